"""The report's claims: rows of claims.json, how they are counted and said in words, and the axis of an interval."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from lib.claims.rule import NO_EFFECT, UNJUDGED, VERDICTS
from lib.claims.sentences import closing, measured_text, standing, verdict_text
from lib.errors import InputError
from lib.profiles import Profile

SIGNS = dict(zip(VERDICTS, "✓✕≈?", strict=True))
Verdict = Literal["supported", "contradicted", "no effect of that size", "undecided"]


class Measured(BaseModel):
    """An effect with its interval; None where nothing was measured."""

    model_config = ConfigDict(allow_inf_nan=False)
    effect: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    component: str | None = None  # which part of the claim it is


class Reported(BaseModel):
    """The paper's number, and of which model."""

    value: float
    of: str


class Control(Measured):
    """What the same rule says of untrained networks; `difference` is trained less untrained."""

    difference: float


class Row(Measured):
    """What the report reads of a row of claims.json, which holds more."""

    id: str
    claim: str
    source: str
    model: str
    unit: str
    range: tuple[float | None, float | None]
    written: str  # the rule, before or after such numbers had been seen
    paper: Reported | None
    components: int
    constant: bool | None
    clusters: int | None
    n: int
    needed: int | None
    reason: str | None
    control: Control | None
    uniform: Measured | None
    specific: bool | None
    survives: bool | None
    sentence: str  # what the row teaches

    @property
    def anchor(self) -> str:
        """The claim's place in the page."""
        return "claim-" + re.sub(r"[^\w.]+", "-", f"{self.id}-{self.model}")

    @property
    def stands(self) -> str:
        """The verdict, or why there is none."""
        return standing(self.model_dump())

    @property
    def told(self) -> str:
        """The verdict in words: also that it was not tested, or is an untrained network's too."""
        return verdict_text(self.model_dump())

    @property
    def measured(self) -> str:
        """What was measured, what was claimed and the n that would decide, in one line."""
        return measured_text(self.model_dump())


def read_claims(profile: Profile) -> list[Row]:
    """Return the rows of results/<profile>/claims.json; raises InputError when there are none, or they are damaged."""
    path, again = profile.results / "claims.json", f"python -m lib claims {profile.options}"
    try:
        rows = TypeAdapter(list[Row]).validate_json(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"no claims of profile {profile.name} yet: {again}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        place = error.errors()[0]["loc"]
        reason = "no list"
        if place:
            reason = f"row {int(place[0]) + 1}: {'.'.join(map(str, place[1:])) or 'it'} is missing or wrong"
        raise InputError(f"{path} holds no claims ({reason}); make it anew with {again}") from error
    if not rows:
        raise InputError(f"{path} holds no claims; make it anew with {again}")
    return rows


def in_words(rows: Sequence[Row]) -> list[str]:
    """Return how many claims got which verdict, and what so many verdicts are worth, as sentences."""
    counts = Counter(row.stands for row in rows)
    parts = {name: f"{counts[name] or 'none'} {'is' if counts[name] == 1 else 'are'} {name}" for name in VERDICTS}
    equal = f"{counts[NO_EFFECT]} show{'s' * (counts[NO_EFFECT] == 1)} {NO_EFFECT}, " if counts[NO_EFFECT] else ""
    unjudged = sum(counts[name] for name in UNJUDGED)
    rest = f" {unjudged} {'was' if unjudged == 1 else 'were'} not tested, or on too few problems." if unjudged else ""
    claims, models = len({row.id for row in rows}), len({row.model for row in rows})
    asked = (
        f"Of {claims} claims" if models == 1 else f"Of {len(rows)} verdicts, on {claims} claims and {models} models,"
    )
    decided = f"{parts['supported']} by what was measured, {parts['contradicted']}"
    first = f"{asked} {decided}, {equal}and {parts['undecided']}.{rest}"
    return [first, *closing([row.model_dump() for row in rows])]


def matrix(rows: Sequence[Row]) -> tuple[list[str], dict[str, dict[str, Row]]]:
    """Return the models, and by claim the row of each model that can test it."""
    models = list(dict.fromkeys(row.model for row in rows))
    table: dict[str, dict[str, Row]] = {}
    for row in rows:
        table.setdefault(row.id, {})[row.model] = row
    return models, table
