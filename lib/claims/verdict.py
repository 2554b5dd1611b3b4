"""The rule that decides a claim, and every claim of a profile beside its effect, interval, n and verdict.

verdicts = judge(load_claims(), gather(profile))  # a DataFrame of COLUMNS, a row per claim and model

A claim has one part or several and one range for them, fixed beforehand. A part holds when its 95 % interval lies
inside the range, and is refuted when its interval lies outside at a level corrected for the number of parts
(Bonferroni). Supported: every part holds. In part: some hold and some are refuted. Contradicted: none holds and some
are refuted. Undecided: else, or fewer than ENOUGH problems. The intervals are those of lib.statistics; shown is always
the one of 95 %. So either wrong verdict has a chance of about 2.5 % at the edge of the range, and is held below STATED
(benchmarks/verdicts.py).
"""

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, isclose, isnan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from lib.claims import Untestable
from lib.claims.asked import Claim, Evidence, asked
from lib.claims.measures import POSITIVE, likelihood_differences
from lib.errors import InputError
from lib.paths import write_whole
from lib.profiles import Profile
from lib.statistics import (
    ALPHA,
    ENOUGH,
    POINTS,
    Z_ALPHA,
    Z_POWER,
    Interval,
    clopper_pearson,
    clusters_of,
    holm,
    interval,
)

STATED = 0.05  # the rate of either wrong verdict that the simulations hold every rule to
NO_EFFECT = "no effect of that size"  # undecided, but the interval lies within a claim's equivalence margin
VERDICTS = ("supported", "in part", "contradicted", NO_EFFECT, "undecided")
MIXED = "mixed"  # of untrained networks that do not agree
TIED = 0.01  # of the distance to the range: parts this near the least favourable are as unfavourable to a reader
SMALLEST_P, LARGEST_P = 1e-6, 0.99  # between them a p-value is told
Ends = tuple[float | None, float | None]

CONTROLS = ("control", "keys", "uniform")  # untrained networks, other heads' keys, evenly spread attention
CONTROL = [f"{of}_{name}" for of in CONTROLS for name in ("verdict", "effect", "low", "high")]
COLUMNS = ["id", "claim", "reading", "source", "model", "verdict", "part", "effect", "low", "high", "unit"]
COLUMNS += ["low_end", "high_end", "n", "clusters", "parts"]
COLUMNS += ["held", "holds", "refuted", "heads", "heads_held", "p", "p_holm", "survives", *CONTROL]
COLUMNS += ["difference", "difference_low", "difference_high", "training", "paper", "paper_of", "needed", "needed_low"]
COLUMNS += ["needed_high", "equivalence", "cut", "cut_less", "finished_n", "finished", "finished_low", "finished_high"]
COLUMNS += ["written", "reason"]


@dataclass(frozen=True)
class Part:
    """One of the numbers of a claim: values (N,), or (N, C) of the kind largest; NaN where a problem has none."""

    label: str
    values: np.ndarray
    kind: str = "mean"  # of `lib.statistics`
    problems: ArrayLike | None = None  # ids of the N problems; None: all independent

    @cached_property
    def known(self) -> tuple[np.ndarray, np.ndarray]:
        """The values without NaN, and their problems."""
        values = np.asarray(self.values, dtype=float)
        kept = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
        return values[kept], np.asarray(range(len(values)) if self.problems is None else self.problems)[kept]

    def interval(self, alpha: float = ALPHA) -> Interval:
        """Return its interval; raises ValueError where fewer than two independent problems have a value."""
        values, problems = self.known
        clusters = len(set(clusters_of(problems)))
        if clusters < 2:
            raise ValueError(f"{self.label}: {len(values)} problems of {clusters} templates are too few")
        return interval(values, problems, self.kind, alpha)

    @property
    def discordance(self) -> tuple[float, float] | None:
        """The ends of the share of problems that changed, where values are single answers' differences."""
        values = self.known[0]
        if self.kind != "difference" or not np.isin(values, (-POINTS, 0, POINTS)).all():
            return None
        return clopper_pearson(int((values != 0).sum()), len(values))


def parts_of(values: xr.DataArray) -> list[Part]:
    """Return the parts of one network's values (component, problem); of the kind largest they are one."""
    kind, problems = values.attrs.get("kind", "mean"), values.problem.values
    if kind == "largest":
        return [Part(f"best of {len(values)}", values.values.T, kind, problems)]
    return [Part(str(one.component.item()), one.values, kind, problems) for one in values]


@dataclass(frozen=True)
class Decision:
    """A verdict with the part that decides it, the least favourable one, and that part's 95 % interval."""

    verdict: str
    part: Part
    found: Interval
    parts: int
    holds: list[str]  # labels of the parts inside the range
    refuted: list[str]


def decide(parts: Sequence[Part], low: float | None, high: float | None) -> Decision:
    """Return the verdict on values that are claimed to lie strictly between low and high (None: no end there).

    Raises ValueError for a part with fewer than two independent values.
    """
    ends = _ends(low, high)
    found = [(part, part.interval(), part.interval(ALPHA / len(parts))) for part in parts]
    few = [one for one in found if one[1].n < ENOUGH]
    holds = [part.label for part, narrow, _ in found if not few and _inside(narrow, ends)]
    outside = [one for one in found if not few and _outside(one[2], ends)]
    if len(holds) == len(parts):
        verdict = "supported"
    elif outside:
        verdict = "in part" if holds else "contradicted"
    else:
        verdict = "undecided"
    slacks = [(_slack(narrow, ends), part, narrow) for part, narrow, _ in few or outside or found]
    least = min(slack for slack, *_ in slacks)
    _, part, narrow = next(one for one in slacks if isclose(one[0], least, rel_tol=TIED))
    return Decision(verdict, part, narrow, len(parts), holds, [part.label for part, *_ in outside])


def _ends(low: float | None, high: float | None) -> tuple[float, float]:
    return -inf if low is None else low, inf if high is None else high


def _slack(found: Interval, ends: tuple[float, float]) -> float:
    """Return how many standard errors an estimate lies inside the range; negative outside."""
    distance, error = _distance(float(found.estimate), ends), float(np.nan_to_num(found.error))
    return distance / error if error else inf * distance if distance else 0.0


def _distance(value: float, ends: tuple[float, float]) -> float:
    return min(value - ends[0], ends[1] - value)


def _inside(found: Interval, ends: tuple[float, float]) -> bool:
    return ends[0] < found.low and found.high < ends[1]


def _outside(found: Interval, ends: tuple[float, float]) -> bool:
    return found.high < ends[0] or found.low > ends[1]


def p_value(parts: Sequence[Part], low: float | None, high: float | None) -> float:
    """Return the smallest level, two-sided, at which all parts hold or one is refuted, to be corrected over claims."""
    ends = _ends(low, high)
    supporting = max(_level(part, _inside, ends) for part in parts)
    against = min(_level(part, _outside, ends) for part in parts)
    return min(supporting, len(parts) * against, 1.0)


def _level(part: Part, reached: Callable, ends: tuple[float, float]) -> float:
    """Return the smallest level whose interval reaches a verdict, by halving a logarithmic scale; 1 if none does."""
    low, high = SMALLEST_P, LARGEST_P
    if not reached(part.interval(high), ends):
        return 1.0
    while high / low > 1.01:
        middle = sqrt(low * high)
        low, high = (low, middle) if reached(part.interval(middle), ends) else (middle, high)
    return high


def n_deciding(distance: float, deviation: float) -> int | None:
    """Return how many problems put the interval on one side of an end `distance` away with power 0.8; None at 0.

    n = ((z(1 - alpha/2) + z(power)) sd / distance)^2 + z(1 - alpha/2)^2 / 2 for one part, the last term for Student's
    distribution instead of the normal one (Guenther 1981, Am. Stat. 35:243).
    """
    return None if distance == 0 else ceil(((Z_ALPHA + Z_POWER) * deviation / distance) ** 2 + Z_ALPHA**2 / 2)


def judge(claims: Sequence[Claim], evidence: dict[str, Evidence]) -> pd.DataFrame:
    """Return a row of COLUMNS per claim and model that can test it, or one that says why none can.

    NaN or None: no such number. low_end, high_end: of the claimed range; part: what effect, low and high are of; holds,
    refuted: the parts that do; heads_held: of the heads that a mean is over, those in the range; p_holm, survives:
    corrected for all rows; needed: problems for an effect of the paper's size, with what the interval of the share of
    answers that changed makes of it; cut, cut_less: % of answers that a limit cut, under the first condition and the
    second; finished: the effect over problems that both ended. Of the controls, in the same part: the verdict that
    every untrained network gets, else mixed; the middle one's effect, and the ends of them all; difference: to the
    nearest of them; training: also, stronger or weaker, where verdict and side agree.
    """
    rows = []
    for claim in claims:
        judged = [_row(claim, name, one) for name, one in evidence.items()]
        rows += [row for row in judged if row["n"]] or judged[:1]
    tested = [row for row in rows if row["n"]]
    for row, p in zip(tested, holm([row["p"] for row in tested]) if tested else [], strict=True):
        row["p_holm"] = float(p)
        row["survives"] = row["verdict"] != "undecided" and row["p_holm"] <= ALPHA
    return pd.DataFrame(rows, columns=COLUMNS)


def _row(claim: Claim, model: str, evidence: Evidence) -> dict[str, Any]:
    low, high = claim.range
    row: dict[str, Any] = {"model": model, "low_end": low, "high_end": high}
    row |= claim.model_dump(include={"id", "claim", "reading", "source", "unit", "written"})
    row["paper"], row["paper_of"] = claim.reported(model)
    try:
        values = asked(claim, evidence)
        parts = parts_of(values.sel(network="trained"))
        decision = decide(parts, low, high)
    except ValueError as reason:
        return row | {"verdict": "undecided", "n": 0, "parts": 0, "reason": str(reason)}
    row |= {"verdict": decision.verdict, "p": p_value(parts, low, high), "part": decision.part.label}
    row |= _told(decision.found) | {"n": decision.found.n, "clusters": decision.found.clusters}
    row |= {"parts": decision.parts, "held": len(decision.holds)}
    row |= {"holds": ", ".join(decision.holds), "refuted": ", ".join(decision.refuted)}
    if (heads := values.attrs.get("heads")) is not None:
        row |= {"heads": len(heads), "heads_held": sum(_distance(head, _ends(low, high)) > 0 for head in heads)}
    row |= values.attrs.get("cut", {})
    if decision.verdict == "undecided":
        row |= _needed(decision, claim.range, row["paper"])
        row |= _equivalence(claim, evidence, parts)
    return row | _controls(claim, values, decision)


def _told(found: Interval, of: str = "") -> dict[str, float | None]:
    ends = {"effect": found.estimate, "low": found.low, "high": found.high}
    return {f"{of}{name}": None if isnan(end) else float(end) for name, end in ends.items()}


def _needed(decision: Decision, claimed: Ends, paper: float | None) -> dict[str, int | None]:
    """Return the n that would show an effect of the paper's size, and its range where answers changed or not."""
    distance = 0 if paper is None else _distance(paper, _ends(*claimed))
    found = {"needed": n_deciding(distance, float(np.nan_to_num(decision.found.error)) * sqrt(decision.found.n))}
    rates = decision.part.discordance or ()
    ends = (n_deciding(distance, POINTS * sqrt(rate)) for rate in rates)
    return found | dict(zip(("needed_low", "needed_high"), ends, strict=False))


def _equivalence(claim: Claim, evidence: Evidence, parts: Sequence[Part]) -> dict[str, Any]:
    """Return the margin within which a difference counts as none, and that verdict if every part lies in it."""
    if not claim.equivalence:
        return {}
    try:
        gain = float(likelihood_differences(evidence.scores, claim.arguments["target"], [POSITIVE]).mean())
    except Untestable:
        return {}
    if gain <= 0:
        return {}
    margin = claim.equivalence * gain
    if decide(parts, -margin, margin).verdict != "supported":
        return {"equivalence": margin}
    p = max(_level(part, _inside, (-margin, margin)) for part in parts)
    return {"equivalence": margin, "verdict": NO_EFFECT, "p": p}


def _controls(claim: Claim, values: xr.DataArray, decision: Decision) -> dict[str, Any]:
    """Return the columns of the controls, each judged by itself: those of CONTROLS."""
    verdicts, shown, apart = {}, {}, {}
    for name in values.network.values[values.network.values != "trained"]:
        with contextlib.suppress(ValueError):  # evenly spread attention has no values and no activations
            verdicts[name] = decide(parts_of(values.sel(network=name)), *claim.range).verdict
            same = values.sel(component=[decision.part.label])
            (shown[name],) = (part.interval() for part in parts_of(same.sel(network=name)))
            less = same.sel(network="trained", drop=True) - same.sel(network=name, drop=True)
            (apart[name],) = (part.interval() for part in parts_of(less))
    row: dict[str, Any] = {}
    for name, of in (("uniform", "uniform"), ("other keys", "keys")):
        if name in shown:
            row |= {f"{of}_verdict": verdicts.pop(name)} | _told(shown.pop(name), f"{of}_")
    if not shown:
        return row
    middle = sorted(shown.values(), key=lambda one: one.estimate)[len(shown) // 2]
    lows, highs = ([getattr(one, end) for one in shown.values()] for end in ("low", "high"))
    row |= {"control_effect": float(middle.estimate), "control_low": min(lows), "control_high": max(highs)}
    row["control_verdict"] = verdicts.popitem()[1] if len(set(verdicts.values())) == 1 else MIXED
    each = [apart[name] for name in shown]  # of untrained networks
    nearest = min(each, key=lambda one: abs(one.estimate))
    row |= {"difference": nearest.estimate, "difference_low": nearest.low, "difference_high": nearest.high}
    if row["control_verdict"] == decision.verdict != "undecided":
        row["training"] = _training(claim, decision.found, list(shown.values()), each)
    return row


def _training(claim: Claim, trained: Interval, untrained: list[Interval], apart: list[Interval]) -> str | None:
    """Return also, stronger or weaker for a verdict that untrained ones share; None on the range's other side."""
    ends = _ends(*claim.range)
    if len({(one.estimate > ends[0], one.estimate > ends[1]) for one in (trained, *untrained)}) > 1:
        return None
    if not (all(one.low > 0 for one in apart) or all(one.high < 0 for one in apart)):
        return "also"
    nearest = min(untrained, key=lambda one: abs(one.estimate - trained.estimate))
    return "weaker" if abs(_distance(trained.estimate, ends)) < abs(_distance(nearest.estimate, ends)) else "stronger"


def write_verdicts(profile: Profile, verdicts: pd.DataFrame) -> Path:
    """Write results/<profile>/claims.json, a row per claim and model, and return its path."""
    profile.results.mkdir(parents=True, exist_ok=True)
    path = profile.results / "claims.json"
    write_whole(path, (verdicts.to_json(orient="records", indent=1, force_ascii=False) + "\n").encode())
    return path


def read_verdicts(profile: Profile) -> pd.DataFrame:
    """Return what `write_verdicts` wrote; raises InputError when there are no claims, or they are damaged."""
    path, again = profile.results / "claims.json", f"python -m lib claims {profile.options}"
    try:
        verdicts = pd.DataFrame(json.loads(path.read_bytes()))
    except FileNotFoundError:
        raise InputError(f"no claims of profile {profile.name} yet: {again}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError):
        verdicts = pd.DataFrame()
    wrong = [name for name in COLUMNS if name not in verdicts]
    if wrong or not verdicts.verdict.isin(VERDICTS).all():
        raise InputError(
            f"{path} holds no claims ({[*wrong, 'verdict'][0]} is missing or wrong); make it anew with {again}"
        )
    return verdicts[COLUMNS]
