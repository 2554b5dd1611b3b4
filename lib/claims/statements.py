"""The paper's claims as data/claims.yaml states them: what is said, what is measured, which range is claimed."""

import inspect
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lib import paths
from lib.claims import answers, internals
from lib.errors import InputError

CLAIMS = paths.DATA / "claims.yaml"
MEASURES = {function.__name__: function for function in (*internals.MEASURES, *answers.MEASURES)}


class Claim(BaseModel):
    """A statement of the paper and the rule that decides it; `range` holds an end or None below and above.

    written: before or after such numbers had been seen; paper: what the paper reports, by model.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    id: str = Field(min_length=1)
    claim: str = Field(min_length=1)
    source: str = Field(min_length=1)
    measure: str
    arguments: dict = Field(default={}, alias="with")
    range: tuple[float | None, float | None]
    unit: str
    written: Literal["before", "after"]
    paper: dict[str, float] = {}

    def reported(self, model: str) -> dict | None:
        """Return the paper's `value` for a model, else for the first it has, and of which model it is."""
        of = model if model in self.paper else next(iter(self.paper), None)
        return None if of is None else {"value": self.paper[of], "of": of}

    @model_validator(mode="after")
    def _agrees(self):
        if self.measure not in MEASURES:
            raise ValueError(f"unknown measure {self.measure!r}: choose from {', '.join(MEASURES)}")
        wanted = list(inspect.signature(MEASURES[self.measure]).parameters)[1:]
        if sorted(wanted) != sorted(self.arguments):
            raise ValueError(f"measure {self.measure} takes {', '.join(wanted) or 'nothing'} in `with`")
        low, high = self.range
        if (low is None and high is None) or (low is not None and high is not None and low >= high):
            raise ValueError(f"range {list(self.range)} claims nothing: give [low, high], null where it has no end")
        return self


def load_claims(path: Path = CLAIMS) -> list[Claim]:
    """Return the claims of a YAML file; raises InputError naming the claim and what is wrong with it."""
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        entries = content["claims"]
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: no list of claims: {' '.join(str(error).split())}") from error
    claims = []
    for number, entry in enumerate(entries, 1):
        try:
            claims.append(Claim.model_validate(entry))
        except ValidationError as error:
            first = error.errors()[0]
            name = entry.get("id", number) if isinstance(entry, dict) else number
            place = "".join(f"{part}: " for part in first["loc"])
            raise InputError(f"{path}: claim {name}: {place}{first['msg'].removeprefix('Value error, ')}") from error
    if repeated := {c.id for c in claims if [other.id for other in claims].count(c.id) > 1}:
        raise InputError(f"{path}: claim {min(repeated)} stands there twice")
    return claims
