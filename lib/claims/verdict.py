"""What is known of a claim on a model: its verdict, and the numbers behind it.

`verdict_tables` makes a row of a table of it, where it is kept. Of many verdicts
`about` and `literal` choose some.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import nan

from lib.statistics import ENOUGH, format_interval

# Undecided, but the interval lies within the claim's margin: a tenth of what a worked
# example gives, or so many points.
SMALL = "small"
VERDICTS = ("supported", "in part", "contradicted", SMALL, "undecided")
# What is said of a claim with fewer than ENOUGH problems, or none.
UNJUDGED = TOO_FEW, NOT_TESTED = "too few", "not tested"
# The networks that a claim is held against, by the prefix of their columns: untrained
# ones, the trained one with other heads' keys, evenly spread attention.
UNTRAINED, OTHER_HEADS, EVEN = CONTROLS = ("control", "keys", "uniform")


@dataclass(frozen=True)
class Estimate:
    """An effect with the ends of its interval, which have no value where it has none.

    f"{estimate}" rounds all three by the interval's width; f"{estimate:+}" signs them.
    """

    effect: float
    low: float | None
    high: float | None
    n: int  # problems

    def __format__(self, sign: str) -> str:
        return format_interval(self.effect, self.low, self.high, sign)

    def lies_above(self, number: float) -> bool:
        """Return whether the whole interval lies above a number."""
        return self.low is not None and self.low > number

    def lies_below(self, number: float) -> bool:
        """Return whether the whole interval lies below a number."""
        return self.high is not None and self.high < number

    def holds(self, number: float) -> bool:
        """Return whether a number lies within the interval."""
        return not self.lies_above(number) and not self.lies_below(number)


UNTESTED = Estimate(nan, None, None, 0)


@dataclass(frozen=True)
class Control:
    """What networks of a kind give in the part that decides.

    The verdict is the one that each of them gets, else mixed; the effect is the middle
    one's, and the ends are the lowest and the highest of all.
    """

    verdict: str
    estimate: Estimate


@dataclass(frozen=True)
class Power:
    """How many problems show an effect of the paper's size, with ends where known."""

    needed: float  # NaN without a number of the paper's
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Answers:
    """What belongs beside an accuracy: answers that a limit cut, the effect on others.

    `cut` and `cut_less` are % under the first condition and the second.
    """

    cut: float
    cut_less: float
    finished: Estimate | None = None  # over the problems that both ended


@dataclass
class Verdict:
    """A claim, a model, and how the claim stands on it.

    With an estimate of no problems it was not tested, for the `reason` given.
    """

    id: str
    claim: str
    reading: str
    source: str
    model: str
    unit: str
    range: tuple[float | None, float | None]
    written: str
    verdict: str = "undecided"
    reason: str | None = None
    paper: float | None = None  # the paper's number
    paper_of: str | None = None  # and its model

    part: str = ""  # the one that decides
    estimate: Estimate = UNTESTED
    clusters: int | None = None
    parts: int = 0
    holds: tuple[str, ...] = ()  # the parts inside the range
    refuted: tuple[str, ...] = ()
    heads: int | None = None
    heads_held: int | None = None

    p: float | None = None
    p_holm: float | None = None
    survives: bool | None = None  # the correction for all rows

    controls: dict[str, Control] = field(default_factory=dict)  # of CONTROLS
    difference: Estimate | None = None
    training: str | None = None  # also, stronger or weaker than without it
    power: Power | None = None
    equivalence: float | None = None  # the margin within which an effect is small
    answers: Answers | None = None

    @property
    def n(self) -> int:
        """The problems that it was tested on."""
        return self.estimate.n

    @property
    def stands(self) -> str:
        """One of VERDICTS, or of UNJUDGED."""
        if self.n == 0:
            return NOT_TESTED
        return self.verdict if self.n >= ENOUGH else TOO_FEW

    @property
    def decided(self) -> bool:
        """Whether it says something else than undecided."""
        return self.stands not in (*UNJUDGED, "undecided")

    @property
    def small(self) -> bool:
        """Whether the whole interval lies within the margin."""
        margin = self.equivalence
        if not margin:
            return False
        return self.estimate.lies_above(-margin) and self.estimate.lies_below(margin)

    @property
    def lost(self) -> bool:
        """Whether it does not stand when corrected for all rows (Holm)."""
        return self.decided and not self.survives


def models_of(verdicts: Iterable[Verdict]) -> list[str]:
    """Return the models of some verdicts, in their order."""
    return list(dict.fromkeys(verdict.model for verdict in verdicts))


def about(verdicts: Iterable[Verdict], claim: str, least: int = 1) -> list[Verdict]:
    """Return the verdicts on a claim by its id, of at least so many problems."""
    return [row for row in verdicts if row.id == claim and row.n >= least]


def literal(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts on what the paper's sentences say."""
    return [verdict for verdict in verdicts if verdict.reading == "literal"]
