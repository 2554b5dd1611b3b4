"""The rule that decides a claim, and every claim of a profile beside its effect, interval, n and verdict.

verdicts = judge(load_claims(), gather(profile))  # a DataFrame of COLUMNS, a row per claim and model

A claim has one component or several, all of which must hold, and one range for them, fixed beforehand. Supported:
every component's 95 % interval lies inside the range. Contradicted: some component's lies outside of it, at a level
corrected for their number (Bonferroni). Undecided: neither, or fewer than ENOUGH problems. The intervals are those of
lib.statistics; shown is always the one of 95 %. So either wrong verdict has a chance of about 2.5 % at the edge of the
range, and is held below STATED (benchmarks/verdicts.py).
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from math import ceil, inf, isclose, isnan, sqrt
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike
from pydantic import ConfigDict, TypeAdapter, ValidationError, create_model
from scipy import stats

from lib.claims import Untestable
from lib.claims.answers import positive_gain
from lib.claims.asked import Claim, Evidence, asked
from lib.errors import InputError
from lib.paths import write_whole
from lib.profiles import Profile
from lib.statistics import ALPHA, ENOUGH, Interval, clusters_of, holm, interval

STATED = 0.05  # the rate of either wrong verdict that the simulations hold every rule to
NO_EFFECT = "no effect of that size"  # undecided, but the interval lies within a claim's equivalence margin
Verdict = Literal["supported", "contradicted", "no effect of that size", "undecided"]
VERDICTS = get_args(Verdict)
POWER = 0.8
TIED = 0.01  # of the distance to the range: components this near the least favourable are as unfavourable to a reader
FARTHEST = 100.0  # standard deviations: what lies farther, or never varies, is shown as this far
SMALLEST_P, LARGEST_P = 1e-6, 0.99  # between them a p-value is told


@dataclass(frozen=True)
class Component:
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


def components(values: xr.DataArray) -> list[Component]:
    """Return the components of one network's values (component, problem); of the kind largest they are one."""
    kind, problems = values.attrs.get("kind", "mean"), values.problem.values
    if kind == "largest":
        return [Component(f"best of {len(values)}", values.values.T, kind, problems)]
    return [Component(str(one.component.item()), one.values, kind, problems) for one in values]


@dataclass(frozen=True)
class Decision:
    """A verdict with the component that decides it, the least favourable one, and its 95 % interval.

    The margins are distances to the nearest end of the claimed range in standard deviations over problems, positive
    inside. Ends and their margins are None where the problems are too few to say.
    """

    verdict: str
    component: str
    components: int
    effect: float
    low: float | None
    high: float | None
    n: int
    clusters: int  # templates of the n problems; n where they are independent
    margin: float
    margin_low: float | None
    margin_high: float | None
    margin_paper: float | None
    needed: int | None  # problems that would decide with 80 % power; None if no number would


def decide(some: Sequence[Component], low: float | None, high: float | None, paper: float | None = None) -> Decision:
    """Return the verdict on values that are claimed to lie strictly between low and high (None: no end there).

    `needed` is the n that would show `paper`, the value it reports, or, without it, what was measured. Raises
    ValueError for a component with fewer than two independent values.
    """
    ends = -inf if low is None else low, inf if high is None else high
    measured = [_Measured(component, ends, len(some)) for component in some]
    verdict, candidates = "undecided", measured
    if few := [m for m in measured if m.n < ENOUGH]:
        candidates = few
    elif all(_inside(m.narrow, ends) for m in measured):
        verdict = "supported"
    elif outside := [m for m in measured if _outside(m.wide, ends)]:
        verdict, candidates = "contradicted", outside
    least = min(m.slack for m in candidates)
    worst = next(m for m in candidates if isclose(m.slack, least, rel_tol=TIED))
    needed = n_deciding(worst.distance(worst.effect if paper is None else paper), worst.error * sqrt(worst.n))
    low_end, high_end = (None if isnan(end) else end for end in (worst.narrow.low, worst.narrow.high))
    margins = sorted(worst.standardised(end) for end in (low_end, high_end) if end is not None) or (None, None)
    return Decision(
        verdict,
        worst.label,
        len(measured),
        worst.effect,
        low_end,
        high_end,
        worst.n,
        worst.clusters,
        margin=worst.standardised(worst.effect),
        margin_low=margins[0],
        margin_high=margins[1],
        margin_paper=None if paper is None else worst.standardised(paper),
        needed=needed if verdict == "undecided" else None,
    )


def p_value(some: Sequence[Component], low: float | None, high: float | None) -> float:
    """Return the smallest level, two-sided, at which either verdict is reached, for a correction over many claims."""
    ends = -inf if low is None else low, inf if high is None else high
    supporting = max(_level(component, _inside, ends) for component in some)
    against = min(_level(component, _outside, ends) for component in some)
    return min(supporting, len(some) * against, 1.0)


def _level(component: Component, reached: Callable, ends: tuple[float, float]) -> float:
    """Return the smallest level whose interval reaches a verdict, by halving a logarithmic scale; 1 if none does."""
    low, high = SMALLEST_P, LARGEST_P
    if not reached(component.interval(high), ends):
        return 1.0
    while high / low > 1.01:
        middle = sqrt(low * high)
        low, high = (low, middle) if reached(component.interval(middle), ends) else (middle, high)
    return high


def _inside(found: Interval, ends: tuple[float, float]) -> bool:
    return ends[0] < found.low and found.high < ends[1]


def _outside(found: Interval, ends: tuple[float, float]) -> bool:
    return found.high < ends[0] or found.low > ends[1]


def n_deciding(distance: float, deviation: float, power: float = POWER) -> int | None:
    """Return how many problems put the interval on one side of an end `distance` away with that power; None at 0.

    n = ((z(1 - alpha/2) + z(power)) sd / distance)^2 + z(1 - alpha/2)^2 / 2 for one component, the last term for
    Student's distribution instead of the normal one (Guenther 1981, Am. Stat. 35:243).
    """
    if distance == 0:
        return None
    z_alpha, z_power = stats.norm.ppf(1 - ALPHA / 2), stats.norm.ppf(power)
    return ceil(((z_alpha + z_power) * deviation / distance) ** 2 + z_alpha**2 / 2)


class _Measured:
    """A component against the ends of a range, with the interval that supports and the one that contradicts."""

    def __init__(self, component: Component, ends: tuple[float, float], count: int):
        self.narrow, self.wide = component.interval(ALPHA), component.interval(ALPHA / count)
        self.label, self.ends, self.effect = component.label, ends, float(self.narrow.estimate)
        self.n, self.clusters = self.narrow.n, self.narrow.clusters
        self.error = float(np.nan_to_num(self.narrow.error))  # NaN: of too few problems, which decide nothing
        values = component.known[0].reshape(self.n, -1)
        self.deviation = float(values[:, values.mean(0).argmax()].std(ddof=1)) if self.error else 0.0

    def distance(self, value: float) -> float:
        """Return how far inside the range a value lies; negative outside."""
        return min(value - self.ends[0], self.ends[1] - value)

    @property
    def slack(self) -> float:
        """How many standard errors the effect lies inside the range."""
        distance = self.distance(self.effect)
        return distance / self.error if self.error else inf * distance if distance else 0.0

    def standardised(self, value: float) -> float:
        """Return a value's distance to the end that is nearest to the effect, in standard deviations."""
        to_low = self.effect - self.ends[0] <= self.ends[1] - self.effect
        distance = value - self.ends[0] if to_low else self.ends[1] - value
        if abs(distance) > FARTHEST * self.deviation:
            return float(np.sign(distance)) * FARTHEST
        return distance / self.deviation if distance else 0.0


DECIDED = [field.name for field in fields(Decision)]
CONTROL = ["verdict", "component", "effect", "low", "high", "margin"]
COLUMNS = ["id", "claim", "source", "model", *DECIDED, "unit", "low_end", "high_end", "written", "paper", "paper_of"]
COLUMNS += ["p", "p_holm", "survives", "reason", "equivalence", *(f"control_{name}" for name in CONTROL)]
COLUMNS += ["difference", "difference_low", "difference_high", "specific", *(f"uniform_{name}" for name in CONTROL)]

TEXTS = ["id", "claim", "source", "model", "unit", "written"]
MAYBE = ["component", "paper_of", "reason", *(f"{of}_{name}" for of in ("control", "uniform") for name in CONTROL[:2])]
KINDS: dict[str, Any] = (
    dict.fromkeys(COLUMNS, float | None) | dict.fromkeys(TEXTS, str) | dict.fromkeys(MAYBE, str | None)
)
KINDS |= {"verdict": Verdict, "n": int, "components": int, "specific": bool | None, "survives": bool | None}
FIELDS: Any = {name: (kind, ...) for name, kind in KINDS.items()}
Row = create_model("Row", __config__=ConfigDict(allow_inf_nan=False), **FIELDS)


def judge(claims: Sequence[Claim], evidence: dict[str, Evidence]) -> pd.DataFrame:
    """Return a row per claim and model that can test it, or one that says why none can; NaN or None: no such number.

    low_end, high_end: of the claimed range; p_holm, survives: over all rows; control, uniform: what the rule says of
    untrained networks and of attention spread evenly; difference, specific: the deciding component less theirs, and
    whether it differs from each of theirs.
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


def _row(claim: Claim, model: str, evidence: Evidence) -> dict:
    paper, of = claim.reported(model)
    row: dict[str, Any] = {
        "model": model,
        "low_end": claim.range[0],
        "high_end": claim.range[1],
        "paper": paper,
        "paper_of": of,
    }
    row |= claim.model_dump(include={"id", "claim", "source", "unit", "written"})
    try:
        values = asked(claim, evidence)
        some = components(values.sel(network="trained"))
        row |= asdict(decide(some, *claim.range, paper)) | {"p": p_value(some, *claim.range)}
    except ValueError as reason:
        return row | {"verdict": "undecided", "n": 0, "components": 0, "reason": str(reason)}
    if claim.equivalence:
        with contextlib.suppress(Untestable):
            row["equivalence"] = claim.equivalence * positive_gain(evidence.scores, claim.arguments["target"])
            if row["verdict"] == "undecided" and _all_within(some, row["equivalence"]):
                row["verdict"] = NO_EFFECT
    return row | _controls(claim, values, row["component"])


def _all_within(some: Sequence[Component], margin: float) -> bool:
    """Return whether every component's 95 % interval, of ENOUGH problems, lies within the margin on both sides of 0."""
    return all(one.n >= ENOUGH and -margin < one.low <= one.high < margin for one in (c.interval() for c in some))


def _controls(claim: Claim, values: xr.DataArray, component: str) -> dict:
    """Return what the rule says of the controls, and whether the component that decides differs from each of theirs."""
    row: dict = {}
    names = [name for name in values.network.values if name.startswith("untrained")]
    untrained = values.sel(network=names).drop_vars("network")
    found = {"control": untrained.mean("network", skipna=False)} if names else {}
    found |= {name: values.sel(network=name) for name in ("uniform",) if name in values.network}
    for name, some in found.items():
        with contextlib.suppress(ValueError):  # evenly spread attention has no values and no activations
            decided = decide(components(some), *claim.range)
            row |= {f"{name}_{part}": getattr(decided, part) for part in CONTROL}
    if "control_verdict" not in row:
        return row
    same = values.sel(component=component, drop=True)
    trained, others = same.sel(network="trained", drop=True), same.sel(network=names).drop_vars("network")
    less = [trained - others.mean("network", skipna=False), *(trained - one for one in others)]
    whole, *each = (Component(component, one.values, problems=one.problem.values).interval() for one in less)
    row |= {"difference": whole.estimate, "difference_low": whole.low, "difference_high": whole.high}
    return row | {"specific": all(one.low > 0 for one in each) or all(one.high < 0 for one in each)}


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
        rows = TypeAdapter(list[Row]).validate_json(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"no claims of profile {profile.name} yet: {again}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        place = error.errors()[0]["loc"]
        reason = (
            f"row {int(place[0]) + 1}: {'.'.join(map(str, place[1:])) or 'it'} is missing or wrong"
            if place
            else "no list"
        )
        raise InputError(f"{path} holds no claims ({reason}); make it anew with {again}") from error
    if not rows:
        raise InputError(f"{path} holds no claims; make it anew with {again}")
    return pd.DataFrame([dict(row) for row in rows], columns=COLUMNS)
