"""Represent the verdict on a claim for one model, and select and list verdicts.

`verdicts_on` selects the verdicts on one claim. `lib.claims.verdict_files` reads and
writes verdicts.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import nan

from pydantic import computed_field

from lib.statistics.intervals import ENOUGH
from lib.statistics.rounding import format_interval

VERDICTS = ("supported", "in part", "contradicted", "undecided")
# Words for a claim that was tested on fewer than ENOUGH problems, or not at all.
NOT_JUDGED = TOO_FEW, NOT_TESTED = "too few", "not tested"


@dataclass(frozen=True)
class Estimate:
    """An effect with the bounds of its 95 % interval, None or NaN if it has none.

    f"{estimate}" rounds all three to the precision that the interval's width justifies;
    f"{estimate:+}" also prints their signs.
    """

    effect: float
    low: float | None
    high: float | None
    n: int  # number of problems

    def __format__(self, sign: str) -> str:
        return format_interval(self.effect, self.low, self.high, sign)

    def lies_above(self, number: float) -> bool:
        """Return whether both bounds lie above a number; False without an interval."""
        return self.low is not None and self.low > number

    def lies_below(self, number: float) -> bool:
        """Return whether both bounds lie below a number; False without an interval."""
        return self.high is not None and self.high < number

    def includes(self, number: float) -> bool:
        """Return whether the interval includes a number; True without an interval."""
        return not self.lies_above(number) and not self.lies_below(number)


@dataclass(frozen=True)
class Control(Estimate):
    """The effect in a group of control networks, for the deciding part of a claim.

    effect is the median over the networks, low and high are the lowest and the highest
    bound of their intervals, and n is their smallest number of problems.
    """

    verdict: str  # the networks' common verdict, or "mixed"


@dataclass
class Verdict:
    """The verdict on a claim for one model, with the numbers behind it.

    If n is 0, the claim was not tested, and `reason` says why. data/claims.yaml
    describes the fields that are copied from the claim.
    """

    id: str
    claim: str
    reading: str
    source: str
    model: str
    unit: str
    range: tuple[float | None, float | None]  # in which the claim says the parts lie
    written: str  # the rule: "before" or "after" data of its kind on this model
    verdict: str = "undecided"  # one of VERDICTS
    reason: str | None = None

    # The deciding part, and its effect with the bounds of its interval.
    part: str = ""
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0  # number of problems
    parts: int = 0  # number of parts of the claim
    holds: tuple[str, ...] = ()  # the parts whose interval lies inside the range
    refuted: tuple[str, ...] = ()  # those outside at the corrected level

    p: float | None = None
    p_holm: float | None = None  # corrected for all verdicts
    # Whether the verdict is decided and significant after Holm's correction.
    survives: bool | None = None

    control: Control | None = None  # untrained networks
    uniform: Control | None = None  # uniform attention
    specific: bool | None = None  # whether an untrained network gets another verdict
    # A change of log-likelihood in % of the gain by a worked example in the prompt.
    of_example: Estimate | None = None
    paper: float | None = None  # the paper's value of the effect
    paper_of: str | None = None  # the paper's model with this value
    needed: float | None = None  # problems for 80 % power if the effect is the paper's

    @property
    def estimate(self) -> Estimate:
        """The effect of the deciding part; NaN if the claim was not tested."""
        effect = nan if self.effect is None else self.effect
        return Estimate(effect, self.low, self.high, self.n)

    @computed_field
    @property
    def word(self) -> str:
        """The verdict as tables and figures print it: one of VERDICTS or NOT_JUDGED."""
        if self.n == 0:
            return NOT_TESTED
        return self.verdict if self.n >= ENOUGH else TOO_FEW

    @property
    def decided(self) -> bool:
        """Whether the claim was judged, with another verdict than "undecided"."""
        return self.word not in (*NOT_JUDGED, "undecided")

    @computed_field
    @property
    def lost(self) -> bool:
        """Whether the verdict is decided, but not significant after Holm's correction
        for all verdicts.
        """
        return self.decided and not self.survives


def models_of(verdicts: Iterable[Verdict]) -> list[str]:
    """Return the models of some verdicts, in order of appearance."""
    return list(dict.fromkeys(verdict.model for verdict in verdicts))


def verdicts_on(
    verdicts: Iterable[Verdict], claim: str, min_problems: int = 1
) -> list[Verdict]:
    """Return the verdicts on the claim with an id that rest on at least `min_problems`
    problems.
    """
    return [row for row in verdicts if row.id == claim and row.n >= min_problems]


def verdicts_as_text(verdicts: Iterable[Verdict]) -> str:
    """Format each verdict in a line with its effect, or the reason why it has none.

    † marks a verdict that is not significant after the correction for all verdicts.
    """
    lines = []
    for row in verdicts:
        text = row.reason
        if row.n:
            text = f"{row.model}: {row.estimate} {row.unit}, n = {row.n}"
        word = f"{row.word} †" if row.lost else row.word
        lines.append(f"{word:14} {row.id}, {text}")
    return "\n".join(lines)


def totals(verdicts: Iterable[Verdict]) -> str:
    """Return how many verdicts on literal claims there are of each kind, as text."""
    literal = [verdict for verdict in verdicts if verdict.reading == "literal"]
    counts = Counter(verdict.word for verdict in literal)
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
