"""What is known of a claim on a model: its verdict, and the numbers behind it.

Verdicts are kept as JSON: those of a run in results/<profile>/claims.json, and those of
the repository's own profiles in data/<profile>/claims.json, beside a table that people
read, verdicts.csv. Of many verdicts `about` chooses some.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path

import pandas as pd
from pydantic import TypeAdapter, ValidationError, computed_field

from lib import paths
from lib.errors import InputError
from lib.figures.tables import csv_of, still_says
from lib.files.whole import write_whole
from lib.paths import relative_path
from lib.profiles import Profile
from lib.statistics.intervals import ENOUGH
from lib.statistics.rounding import format_interval

VERDICTS = ("supported", "in part", "contradicted", "undecided")
# What is said of a claim with fewer than ENOUGH problems, or none.
UNJUDGED = TOO_FEW, NOT_TESTED = "too few", "not tested"


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


@dataclass(frozen=True)
class Control(Estimate):
    """What networks of a kind give in the part that decides.

    The verdict is the one that each of them gets, else mixed; the effect is the middle
    one's, and the ends are the lowest and the highest of all.
    """

    verdict: str


@dataclass
class Verdict:
    """A claim, a model, and how the claim stands on it.

    With an n of 0 it was not tested, for the `reason` given.
    """

    id: str
    claim: str
    reading: str
    source: str
    model: str
    unit: str
    range: tuple[float | None, float | None]
    written: str  # before or after anything of the kind was known of this model
    verdict: str = "undecided"
    reason: str | None = None

    part: str = ""  # the one that decides, and its effect
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0  # problems
    holds: tuple[str, ...] = ()  # the parts inside the range
    refuted: tuple[str, ...] = ()

    p: float | None = None
    p_holm: float | None = None
    survives: bool | None = None  # the correction for all rows

    control: Control | None = None  # untrained networks
    uniform: Control | None = None  # attention that is spread evenly
    specific: bool | None = None  # whether untrained networks get another verdict
    # The effect in % of what a worked example gains: of changes of log-likelihood.
    of_example: Estimate | None = None
    paper: float | None = None  # the paper's number
    paper_of: str | None = None  # and its model
    needed: float | None = None  # problems that would show an effect of its size

    @property
    def estimate(self) -> Estimate:
        """The effect of the part that decides, NaN where nothing was tested."""
        effect = nan if self.effect is None else self.effect
        return Estimate(effect, self.low, self.high, self.n)

    @computed_field
    @property
    def word(self) -> str:
        """One of VERDICTS, or of UNJUDGED, as tables and figures show it."""
        if self.n == 0:
            return NOT_TESTED
        return self.verdict if self.n >= ENOUGH else TOO_FEW

    @property
    def decided(self) -> bool:
        """Whether the verdict is anything but undecided."""
        return self.word not in (*UNJUDGED, "undecided")

    @computed_field
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


KEPT = TypeAdapter(list[Verdict])


def verdict_table(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return a row per verdict, and a column per field; those of an object in a field
    are named after both, such as control_effect.
    """
    rows = KEPT.dump_python(list(verdicts), mode="json", exclude_none=True)
    table = pd.json_normalize(rows, sep="_")
    for name in ("holds", "refuted"):
        table[name] = table[name].str.join(", ")
    return table


def stored_verdicts(name: str) -> list[Verdict]:
    """Return the verdicts that the repository keeps of a profile of its own, by name.

    Raises InputError when there are none, or they are damaged.
    """
    return _read(_stored(name), f"python -m lib reproduce --profile {name} writes them")


def _stored(name: str) -> Path:
    return paths.DATA / name / "claims.json"


def read_verdicts(profile: Profile) -> list[Verdict]:
    """Return what `write_verdicts` wrote.

    Raises InputError when there are no claims, or they are damaged.
    """
    path = profile.results / "claims.json"
    again = f"python -m lib claims {profile.options}"
    if not path.exists():
        raise InputError(f"no claims of profile {profile.name} yet: {again}")
    return _read(path, f"make it anew with {again}")


def _read(path: Path, advice: str) -> list[Verdict]:
    """Return the verdicts of a file; the InputError ends in this advice."""
    place = relative_path(path)
    try:
        return KEPT.validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {place} ({error.strerror}): {advice}") from error
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "no list"
        raise InputError(f"{place} holds no claims ({where}): {advice}") from error


def write_verdicts(profile: Profile, verdicts: Sequence[Verdict]) -> Path:
    """Write results/<profile>/claims.json and return its path.

    The repository's own files of these verdicts are renewed, if it has them.
    """
    content = KEPT.dump_json(list(verdicts), indent=1) + b"\n"
    path = profile.results / "claims.json"
    write_whole(path, content)

    # Processors round differently: a sixth digit is no news.
    stored = _stored(profile.name)
    table = stored.with_name("verdicts.csv")
    csv = csv_of(verdict_table(verdicts))
    if stored.is_file() and not still_says(table, csv):
        write_whole(stored, content)
        write_whole(table, csv.encode())
    return path


def verdicts_as_text(verdicts: Iterable[Verdict]) -> str:
    """Return a line per verdict: how it stands, with its number, or why there is none.

    † marks one that does not stand when corrected for the number of all.
    """
    lines = []
    for row in verdicts:
        about = row.reason
        if row.n:
            about = f"{row.model}: {row.estimate} {row.unit}, n = {row.n}"
        word = f"{row.word} †" if row.lost else row.word
        lines.append(f"{word:14} {row.id}, {about}")
    return "\n".join(lines)


def totals(verdicts: Iterable[Verdict]) -> str:
    """Return how many literal claims stand how, over all models."""
    literal = [verdict for verdict in verdicts if verdict.reading == "literal"]
    stands = Counter(verdict.word for verdict in literal)
    return ", ".join(f"{count} {name}" for name, count in stands.most_common())
