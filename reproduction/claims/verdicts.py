"""The verdict on a claim for one model; lists of verdicts, their files, and the table
of the numbers behind them.

A run writes its verdicts to results/<profile>/claims.json. Those of the repository's
profiles are also stored in data/<profile>/claims.json.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from math import nan
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from pydantic import TypeAdapter, ValidationError, computed_field

from lib.errors import InputError
from lib.files.atomic import write_atomically
from lib.files.text_files import read_bytes
from lib.paths import relative_path
from lib.statistics.intervals import ENOUGH, format_interval
from reproduction import paths
from reproduction.figures.notebook_tables import interval_texts, looks_same, short
from reproduction.profiles import Profile

FILE = "claims.json"
VERDICTS = ("supported", "in part", "contradicted", "undecided")


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
    certain: str | None = None  # why the claim is nearly certain by construction
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
    otherwise: str | None = None  # the verdict by the claim's other way to decide it
    # A change of log-likelihood in % of the gain by a worked example in the prompt.
    of_example: Estimate | None = None

    @property
    def title(self) -> str:
        """The claim, with a mark if it is nearly certain by construction."""
        return f"{self.claim} §" if self.certain else self.claim

    @property
    def estimate(self) -> Estimate:
        """The effect of the deciding part; NaN if the claim was not tested."""
        effect = nan if self.effect is None else self.effect
        return Estimate(effect, self.low, self.high, self.n)

    @computed_field
    @property
    def word(self) -> str:
        """The verdict as tables and figures print it: one of VERDICTS, or "too
        few" for a claim that was tested on fewer than ENOUGH problems.

        A verdict that is lost after Holm's correction is undecided.
        """
        if self.n == 0:
            return "not tested"
        if self.n < ENOUGH:
            return "too few"
        return "undecided" if self.lost else self.verdict

    @property
    def decided(self) -> bool:
        """Whether the claim was judged, with another verdict than "undecided", before
        Holm's correction.
        """
        return self.n >= ENOUGH and self.verdict != "undecided"

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


def totals(verdicts: Iterable[Verdict]) -> str:
    """Return how many verdicts on literal claims there are of each kind, as text."""
    literal = [verdict for verdict in verdicts if verdict.reading == "literal"]
    counts = Counter(verdict.word for verdict in literal)
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())


VERDICT_LIST = TypeAdapter(list[Verdict])


def verdict_table(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return a row per verdict with a column per field; the fields of a nested object
    have compound names such as control_effect.
    """
    rows = VERDICT_LIST.dump_python(list(verdicts), mode="json", exclude_none=True)
    table = pd.json_normalize(rows, sep="_")
    if not rows:
        columns = [*(field.name for field in fields(Verdict)), "word", "lost"]
        table = pd.DataFrame(columns=columns, dtype=object)
    for name in ("holds", "refuted"):
        table[name] = table[name].str.join(", ")
    return table


def read_verdicts(folder: Path) -> list[Verdict]:
    """Return the verdicts that a run has stored in its folder of results, or the
    repository in its folder of data.

    Raises InputError if there are none, or if they are invalid.
    """
    path = folder / FILE
    try:
        return VERDICT_LIST.validate_json(read_bytes(path))
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "no list"
        raise InputError(
            f"{relative_path(path)} has no valid verdicts ({where}): run notebook 06"
            " again, which writes it"
        ) from error


def write_verdicts(profile: Profile, verdicts: Sequence[Verdict]) -> Path:
    """Write verdicts to results/<profile>/claims.json, and return its path.

    If the repository stores verdicts of this profile, its file is replaced, too, unless
    their table would look the same to a reader.
    """
    content = VERDICT_LIST.dump_json(list(verdicts), indent=1) + b"\n"
    path = profile.results / FILE
    write_atomically(path, content)

    # Processors round differently, so a change in the sixth digit alone must not change
    # the repository's file.
    stored = paths.DATA / profile.name / FILE
    if stored.is_file():
        before = verdict_table(read_verdicts(stored.parent))
        if not looks_same(before, verdict_table(verdicts)):
            write_atomically(stored, content)
    return path


# Of networks with random weights, by `Verdict.specific`.
UNTRAINED_VERDICT = {True: "another", False: "the same", None: ""}


def numbers_table(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return the numbers behind the verdicts on tested claims, in a row per verdict.

    `part` is the deciding part, `measured` its estimate with the interval, and `range`
    where the claim expects it, in its unit. `parts` says how many parts hold and are
    refuted; it is empty for a claim with one part, as is `part`. `untrained` says which
    verdict untrained networks get, and `rule` when the rule was written.
    """
    by_claim: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.n:
            by_claim.setdefault(verdict.id, []).append(verdict)
    rows = []
    for of_claim in by_claim.values():
        parts = [_as_measured(verdict) for verdict in of_claim]
        # The verdicts on a claim have the same number of decimals.
        texts = interval_texts([estimate for _, estimate, _ in parts])
        for verdict, (part, _, bounds), text in zip(
            of_claim, parts, texts, strict=True
        ):
            rows.append(_row(verdict, part, text, bounds))
    return pd.DataFrame(rows, columns=_Numbers._fields)


def statements(table: pd.DataFrame) -> str:
    """Return the claims of a table with columns `id` and `claim`, each once, as a list
    in Markdown.
    """
    claims = dict(zip(table["id"], table["claim"], strict=True))
    return "\n".join(f"- `{id}`: {claim}" for id, claim in claims.items())


class _Numbers(NamedTuple):
    """A row of `numbers_table`."""

    id: str
    claim: str
    reading: str
    model: str
    verdict: str
    part: str
    measured: str
    range: str
    n: int
    parts: str
    untrained: str
    rule: str


def _row(
    verdict: Verdict, part: str, measured: str, bounds: tuple[float | None, ...]
) -> _Numbers:
    has_several = verdict.parts > 1
    return _Numbers(
        id=verdict.id,
        claim=verdict.title,
        reading=verdict.reading,
        model=short(verdict.model),
        verdict=f"{verdict.word} †" if verdict.lost else verdict.word,
        part=part if has_several else "",
        measured=measured,
        range=f"{_range(*bounds)} {verdict.unit}".strip(),
        n=verdict.n,
        parts=_parts(verdict) if has_several else "",
        untrained=UNTRAINED_VERDICT[verdict.specific],
        rule=verdict.written,
    )


def _as_measured(
    verdict: Verdict,
) -> tuple[str, tuple[float | None, ...], tuple[float | None, ...]]:
    """Return the deciding part with its (estimate, low, high) and its range, all with
    the sign of what was measured.

    `activation_changes` names its parts after the expected change, as in "L1 up", and
    turns the sign of those that should fall, so that all parts share a range.
    """
    name, _, expected = verdict.part.rpartition(" ")
    estimate = verdict.effect, verdict.low, verdict.high
    low, high = verdict.range
    if expected == "down":
        turned = verdict.effect, verdict.high, verdict.low
        return name, tuple(map(_negative, turned)), (_negative(high), _negative(low))
    return (name if expected == "up" else verdict.part), estimate, (low, high)


def _negative(number: float | None) -> float | None:
    return None if number is None else 0 - number


def _range(low: float | None, high: float | None) -> str:
    if high is None:
        return f"above {low:g}"
    return f"below {high:g}" if low is None else f"{low:g} to {high:g}"


def _parts(verdict: Verdict) -> str:
    holds = f"{len(verdict.holds)} of {verdict.parts} hold"
    return f"{holds}, {len(verdict.refuted)} refuted"
