"""Every claim of the paper beside what was measured: the rule that decides it, its
effect, interval, n and verdict.

verdicts = judge(load_claims(), gather(profile))  # a DataFrame of COLUMNS, a row per claim and model

A claim has one part or several and one range for them, fixed beforehand. A part holds
when its 95 % interval lies inside the range, and is refuted when its interval lies
outside at a level corrected for the number of parts (Bonferroni). Supported: every part
holds. In part: some hold and some are refuted. Contradicted: none holds and some are
refuted. Undecided: else, or fewer than ENOUGH problems. So either wrong verdict has a
chance of about 2.5 % at the edge of the range, and is held below STATED
(benchmarks/verdicts.py). Shown is always the interval of 95 %.
"""

import contextlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import inf, isclose, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from lib import statistics
from lib.claims.claim import Claim, values_of
from lib.claims.measures import POSITIVE, Untestable, likelihood_differences
from lib.errors import InputError
from lib.measurement.plan import OTHER_KEYS, TRAINED, UNIFORM
from lib.paths import write_whole
from lib.profiles import Profile
from lib.statistics import (
    ALPHA,
    ENOUGH,
    POINTS,
    Interval,
    clusters_of,
    interval,
    n_deciding,
    smallest_level,
)

STATED = (
    0.05  # the rate of either wrong verdict that the simulations hold every rule to
)
# undecided, but the interval lies within a claim's equivalence margin
NO_EFFECT = "no effect of that size"
VERDICTS = ("supported", "in part", "contradicted", NO_EFFECT, "undecided")
# of the distance to the range: parts this near the least favourable are as unfavourable
# to a reader
TIED = 0.01
CONTROLS = {
    OTHER_KEYS: "keys",
    UNIFORM: "uniform",
}  # a network's columns; those of untrained ones: control
COLUMNS = [  # NaN or None: no such number
    *("id", "claim", "reading", "source", "model", "verdict"),
    *(
        "part",
        "effect",
        "low",
        "high",
        "unit",
        "low_end",
        "high_end",
    ),  # the part that decides; ends of the range
    *(
        "n",
        "clusters",
        "parts",
        "held",
        "holds",
        "refuted",
    ),  # problems, templates; how many parts hold, and which
    *("heads", "heads_held"),  # that a mean is over, and of them those in the range
    *("p", "p_holm", "survives"),  # the last two corrected for all rows
    # In the same part; the verdict that every untrained network gets, else mixed, the
    # middle one's effect, all ends.
    *(
        f"{of}_{name}"
        for of in ("control", "keys", "uniform")
        for name in ("verdict", "effect", "low", "high")
    ),
    *(
        "difference",
        "difference_low",
        "difference_high",
    ),  # to the nearest of the untrained networks
    *(
        "training",
        "paper",
        "paper_of",
    ),  # also, stronger or weaker than without it, where verdict and side agree
    *(
        "needed",
        "needed_low",
        "needed_high",
    ),  # problems for an effect of the paper's size, as far as that is known
    *(
        "equivalence",
        "cut",
        "cut_less",
    ),  # % of answers that a limit cut under the first condition and the second
    *(
        "finished_n",
        "finished",
        "finished_low",
        "finished_high",
    ),  # the effect over problems that both ended
    *("written", "reason"),
]
Parts = Mapping[
    str, tuple
]  # by label the values of problems, their ids and the kind, as `interval` takes them


def parts_of(values: xr.DataArray) -> dict[str, tuple]:
    """Return the Parts of one network's values (component, problem); of the kind
    largest they are one.

    Raises Untestable for a part with a number of fewer than two independent problems.
    """
    kind, parts = values.attrs.get("kind", "mean"), {}
    best = {f"best of {len(values)}": values.T} if kind == "largest" else {}
    for label, one in (
        best or {str(one.component.item()): one for one in values}
    ).items():
        known = one.where(np.isfinite(one)).dropna("problem")
        problems = known.problem.values
        if (clusters := len(set(clusters_of(problems)))) < 2:
            raise Untestable(
                f"{label}: {len(problems)} problems of {clusters} templates are too few"
            )
        parts[label] = known.values, problems, kind
    return parts


class Decision(NamedTuple):
    """A verdict with the part that decides it, the least favourable one, and that
    part's 95 % interval.
    """

    verdict: str
    part: str
    found: Interval
    holds: list[str]  # the parts inside the range
    refuted: list[str]


def decide(parts: Parts, low: float = -inf, high: float = inf) -> Decision:
    """Return the verdict on parts that are all claimed to lie strictly between low and
    high.
    """
    found = {label: interval(*part) for label, part in parts.items()}
    corrected = {
        label: interval(*part, alpha=ALPHA / len(parts))
        for label, part in parts.items()
    }
    few = [label for label, one in found.items() if one.n < ENOUGH]
    holds = [
        label for label, one in found.items() if not few and _inside(one, low, high)
    ]
    refuted = [
        label
        for label, one in corrected.items()
        if not few and _outside(one, low, high)
    ]
    if len(holds) == len(parts):
        verdict = "supported"
    elif refuted:
        verdict = "in part" if holds else "contradicted"
    else:
        verdict = "undecided"
    # by how many standard errors an estimate lies inside the range, negative outside
    slacks = {}
    for label in few or refuted or found:
        distance = _distance(found[label].estimate, low, high)
        error = float(np.nan_to_num(found[label].error))
        slacks[label] = (
            distance / error if error else inf * distance if distance else 0.0
        )
    part = next(
        label
        for label, slack in slacks.items()
        if isclose(slack, min(slacks.values()), rel_tol=TIED)
    )
    return Decision(verdict, part, found[part], holds, refuted)


def _distance(value: float, low: float, high: float) -> float:
    return min(value - low, high - value)


def _inside(found: Interval, low: float, high: float) -> bool:
    return low < found.low and found.high < high


def _outside(found: Interval, low: float, high: float) -> bool:
    return found.high < low or found.low > high


def p_value(parts: Parts, low: float = -inf, high: float = inf) -> float:
    """Return the smallest level, two-sided, at which all parts hold or one is refuted,
    to be corrected over claims.
    """
    supporting = max(
        smallest_level(lambda found: _inside(found, low, high), *part)
        for part in parts.values()
    )
    against = min(
        smallest_level(lambda found: _outside(found, low, high), *part)
        for part in parts.values()
    )
    return min(supporting, len(parts) * against, 1.0)


def judge(
    claims: Sequence[Claim], evidence: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """Return a row of COLUMNS per claim and model that can test it, or one that says
    why none can.
    """
    rows = []
    for claim in claims:
        judged = [_row(claim, model, given) for model, given in evidence.items()]
        rows += [row for row in judged if row["n"]] or judged[:1]
    tested = [row for row in rows if row["n"]]
    for row, p in zip(
        tested, statistics.holm([row["p"] for row in tested]), strict=True
    ):
        row |= {
            "p_holm": float(p),
            "survives": row["verdict"] != "undecided" and bool(p <= ALPHA),
        }
    return pd.DataFrame(rows, columns=COLUMNS)


def _row(claim: Claim, model: str, given: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = claim.model_dump(
        include={"id", "claim", "reading", "source", "unit", "written"}
    )
    row["low_end"], row["high_end"] = claim.range
    row["paper"], row["paper_of"] = claim.reported(model)
    row["model"] = model
    try:
        values = values_of(claim, given)
        parts = parts_of(values.sel(network=TRAINED))
    except Untestable as reason:
        return row | {"verdict": "undecided", "n": 0, "parts": 0, "reason": str(reason)}
    decision = decide(parts, *claim.ends)
    found, holds = decision.found, decision.holds
    row |= {
        "verdict": decision.verdict,
        "p": p_value(parts, *claim.ends),
        "part": decision.part,
    }
    row |= {
        "effect": float(found.estimate),
        "low": float(found.low),
        "high": float(found.high),
    }
    row |= {
        "n": found.n,
        "clusters": found.clusters,
        "parts": len(parts),
        "held": len(holds),
    }
    row |= {
        "holds": ", ".join(holds),
        "refuted": ", ".join(decision.refuted),
    } | values.attrs.get("cut", {})
    if (heads := values.attrs.get("heads")) is not None:
        row |= {
            "heads": len(heads),
            "heads_held": sum(_distance(head, *claim.ends) > 0 for head in heads),
        }
    if decision.verdict == "undecided":
        row |= _undecided(claim, given, parts, decision, row["paper"])
    return row | _controls(claim, values, decision)


def _undecided(
    claim: Claim, given: Mapping, parts: Parts, decision: Decision, paper: float | None
) -> dict[str, Any]:
    """Return the n that would show an effect of the paper's size, and whether the
    effect is at most a margin's.
    """
    distance = 0 if paper is None else _distance(paper, *claim.ends)
    deviation = float(np.nan_to_num(decision.found.error)) * sqrt(decision.found.n)
    row: dict[str, Any] = {"needed": n_deciding(distance, deviation)}
    values, _, kind = parts[decision.part]
    if (
        kind == "difference" and np.isin(values, (-POINTS, 0, POINTS)).all()
    ):  # by the share of answers that changed
        rates = statistics.clopper_pearson(int((values != 0).sum()), len(values))
        row["needed_low"], row["needed_high"] = (
            n_deciding(distance, POINTS * sqrt(rate)) for rate in rates
        )
    if claim.equivalence:
        with contextlib.suppress(Untestable):
            gain = float(
                likelihood_differences(
                    given["scores"], claim.arguments["target"], [POSITIVE]
                ).mean()
            )
            if gain > 0:
                row["equivalence"] = margin = claim.equivalence * gain
                if decide(parts, -margin, margin).verdict == "supported":
                    row |= {"verdict": NO_EFFECT, "p": p_value(parts, -margin, margin)}
    return row


def _controls(claim: Claim, values: xr.DataArray, decision: Decision) -> dict[str, Any]:
    """Return the columns of the controls, each network judged by itself and shown in
    the part that decides.
    """
    trained, part, found, row = (
        values.sel(network=TRAINED, drop=True),
        decision.part,
        defaultdict(list),
        {},
    )
    for name in values.network.values[values.network.values != TRAINED]:
        with contextlib.suppress(
            Untestable
        ):  # evenly spread attention has no values and no activations
            one = values.sel(network=name, drop=True)
            verdict = decide(parts_of(one), *claim.ends).verdict
            shown = (
                interval(*parts_of(some.sel(component=[part]))[part])
                for some in (one, trained - one)
            )
            found[CONTROLS.get(name, "control")].append((verdict, *shown))
    for of, some in found.items():
        verdicts, shown, _ = zip(*some, strict=True)
        row[f"{of}_verdict"] = verdicts[0] if len(set(verdicts)) == 1 else "mixed"
        row[f"{of}_effect"] = sorted(one.estimate for one in shown)[
            len(shown) // 2
        ]  # nothing is averaged
        row |= {
            f"{of}_low": min(one.low for one in shown),
            f"{of}_high": max(one.high for one in shown),
        }
    if "control" not in found:
        return row
    _, untrained, apart = zip(*found["control"], strict=True)
    near, other = min(
        zip(apart, untrained, strict=True), key=lambda pair: abs(pair[0].estimate)
    )
    row |= {
        "difference": near.estimate,
        "difference_low": near.low,
        "difference_high": near.high,
    }
    sides = {
        tuple(one.estimate > end for end in claim.ends)
        for one in (decision.found, *untrained)
    }
    if row["control_verdict"] == decision.verdict != "undecided" and len(sides) == 1:
        differs = all(one.low > 0 for one in apart) or all(
            one.high < 0 for one in apart
        )
        own, others = (
            abs(_distance(one.estimate, *claim.ends)) for one in (decision.found, other)
        )
        row["training"] = (
            ("weaker" if own < others else "stronger") if differs else "also"
        )
    return row


def write_verdicts(profile: Profile, verdicts: pd.DataFrame) -> Path:
    """Write results/<profile>/claims.json, a row per claim and model, and return its
    path.
    """
    profile.results.mkdir(parents=True, exist_ok=True)
    path = profile.results / "claims.json"
    write_whole(
        path,
        (
            verdicts.to_json(orient="records", indent=1, force_ascii=False) + "\n"
        ).encode(),
    )
    return path


def read_verdicts(profile: Profile) -> pd.DataFrame:
    """Return what `write_verdicts` wrote; raises InputError when there are no claims,
    or they are damaged.
    """
    path, again = (
        profile.results / "claims.json",
        f"python -m lib claims {profile.options}",
    )
    if not path.exists():
        raise InputError(f"no claims of profile {profile.name} yet: {again}")
    try:
        verdicts = pd.DataFrame(json.loads(path.read_bytes()))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError):
        verdicts = pd.DataFrame()
    wrong = [*(name for name in COLUMNS if name not in verdicts), "verdict"][0]
    if (
        wrong != "verdict"
        or not verdicts.get("verdict", pd.Series([""])).isin(VERDICTS).all()
    ):
        raise InputError(
            f"{path} holds no claims ({wrong} is missing or wrong); make it anew with"
            f" {again}"
        )
    return verdicts[COLUMNS]
