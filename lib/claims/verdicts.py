"""The verdict of a claim on a model, and the numbers behind it.

Verdicts are stored as JSON: those of a run in results/<profile>/claims.json, and those
of the repository's profiles in data/<profile>/claims.json, together with a readable
table, verdicts.csv. `verdicts_on` selects the verdicts on a claim.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from math import nan
from pathlib import Path

import pandas as pd
from pydantic import TypeAdapter, ValidationError, computed_field

from lib import paths
from lib.errors import InputError
from lib.figures.tables import csv_of, still_says
from lib.files.atomic import write_atomically
from lib.paths import relative_path
from lib.profiles import Profile
from lib.statistics.intervals import ENOUGH
from lib.statistics.rounding import format_interval

VERDICTS = ("supported", "in part", "contradicted", "undecided")
# Words for a claim with fewer than ENOUGH problems, or none.
NOT_JUDGED = TOO_FEW, NOT_TESTED = "too few", "not tested"


@dataclass(frozen=True)
class Estimate:
    """An effect with its interval, whose bounds are NaN if it has none.

    f"{estimate}" rounds all three by the interval's width; f"{estimate:+}" adds signs.
    """

    effect: float
    low: float | None
    high: float | None
    n: int  # problems

    def __format__(self, sign: str) -> str:
        return format_interval(self.effect, self.low, self.high, sign)

    def lies_above(self, number: float) -> bool:
        """Return whether the complete interval lies above a number."""
        return self.low is not None and self.low > number

    def lies_below(self, number: float) -> bool:
        """Return whether the complete interval lies below a number."""
        return self.high is not None and self.high < number

    def includes(self, number: float) -> bool:
        """Return whether the interval includes a number."""
        return not self.lies_above(number) and not self.lies_below(number)


@dataclass(frozen=True)
class Control(Estimate):
    """Result of one kind of control network for the deciding part of a claim.

    `verdict` is the verdict that all of them share, or "mixed". `effect` is the middle
    network's effect; the interval's bounds are the lowest and highest of all networks.
    """

    verdict: str


@dataclass
class Verdict:
    """The verdict of a claim on a model.

    An n of 0 means that it was not tested, for the given `reason`.
    """

    id: str
    claim: str
    reading: str
    source: str
    model: str
    unit: str
    range: tuple[float | None, float | None]
    written: str  # "before" or "after" data of the kind were known for this model
    verdict: str = "undecided"
    reason: str | None = None

    part: str = ""  # the deciding part, and its effect
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0  # problems
    holds: tuple[str, ...] = ()  # the parts inside the range
    refuted: tuple[str, ...] = ()

    p: float | None = None
    p_holm: float | None = None
    survives: bool | None = (
        None  # whether it survives Holm's correction for all verdicts
    )

    control: Control | None = None  # untrained networks
    uniform: Control | None = None  # uniform attention
    specific: bool | None = None  # whether untrained networks get another verdict
    # A change of log-likelihood in % of the gain by a worked example in the prompt.
    of_example: Estimate | None = None
    paper: float | None = None  # the paper's number
    paper_of: str | None = None  # the model of that number
    needed: float | None = (
        None  # problems needed for 80 % power to detect an effect of that size
    )

    @property
    def estimate(self) -> Estimate:
        """The effect of the deciding part; NaN if nothing was tested."""
        effect = nan if self.effect is None else self.effect
        return Estimate(effect, self.low, self.high, self.n)

    @computed_field
    @property
    def word(self) -> str:
        """The verdict in tables and figures: one of VERDICTS, or of UNJUDGED."""
        if self.n == 0:
            return NOT_TESTED
        return self.verdict if self.n >= ENOUGH else TOO_FEW

    @property
    def decided(self) -> bool:
        """Whether the verdict is not "undecided"."""
        return self.word not in (*NOT_JUDGED, "undecided")

    @computed_field
    @property
    def lost(self) -> bool:
        """Whether the verdict is not significant after Holm's correction for all
        verdicts.
        """
        return self.decided and not self.survives


def models_of(verdicts: Iterable[Verdict]) -> list[str]:
    """Return the models of some verdicts, in order of appearance."""
    return list(dict.fromkeys(verdict.model for verdict in verdicts))


def verdicts_on(
    verdicts: Iterable[Verdict], claim: str, min_problems: int = 1
) -> list[Verdict]:
    """Return the verdicts on a claim (by its id) that rest on at least `least`
    problems.
    """
    return [row for row in verdicts if row.id == claim and row.n >= min_problems]


VERDICT_LIST = TypeAdapter(list[Verdict])


def verdict_table(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return a row per verdict with a column per field; the fields of a nested object
    have compound names such as control_effect.
    """
    rows = VERDICT_LIST.dump_python(list(verdicts), mode="json", exclude_none=True)
    table = pd.json_normalize(rows, sep="_")
    if not rows:
        columns = [field.name for field in fields(Verdict)]
        table = pd.DataFrame(columns=columns, dtype=object)
    for name in ("holds", "refuted"):
        table[name] = table[name].str.join(", ")
    return table


def stored_verdicts(name: str) -> list[Verdict]:
    """Return the verdicts of one of the repository's profiles, by its name.

    Raises InputError if there are none, or if they are invalid.
    """
    return _read(
        _repository_file(name), f"python -m lib reproduce --profile {name} writes them"
    )


def _repository_file(name: str) -> Path:
    return paths.DATA / name / "claims.json"


def read_verdicts(profile: Profile) -> list[Verdict]:
    """Return the verdicts that `write_verdicts` wrote.

    Raises InputError if there are none, or if they are invalid.
    """
    path = profile.results / "claims.json"
    again = f"python -m lib claims {profile.options}"
    if not path.exists():
        raise InputError(f"no claims of profile {profile.name} yet: {again}")
    return _read(path, f"write it again with {again}")


def _read(path: Path, advice: str) -> list[Verdict]:
    """Return the verdicts of a file; an InputError ends with the advice."""
    name = relative_path(path)
    try:
        return VERDICT_LIST.validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {name} ({error.strerror}): {advice}") from error
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "no list"
        raise InputError(f"{name} has no valid claims ({where}): {advice}") from error


def write_verdicts(profile: Profile, verdicts: Sequence[Verdict]) -> Path:
    """Write results/<profile>/claims.json and return its path.

    If the repository has files of these verdicts, they are renewed.
    """
    content = VERDICT_LIST.dump_json(list(verdicts), indent=1) + b"\n"
    path = profile.results / "claims.json"
    write_atomically(path, content)

    # Processors round differently, so a change in the sixth digit does not count.
    stored = _repository_file(profile.name)
    table = stored.with_name("verdicts.csv")
    csv = csv_of(verdict_table(verdicts))
    if stored.is_file() and not still_says(table, csv):
        write_atomically(stored, content)
        write_atomically(table, csv.encode())
    return path


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
    """Count the literal claims by verdict, over all models."""
    literal = [verdict for verdict in verdicts if verdict.reading == "literal"]
    counts = Counter(verdict.word for verdict in literal)
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
