"""The paper's claims as data/claims.yaml states them: what is said, what is measured, which range is claimed."""

import inspect
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lib import paths
from lib.claims import answers, internals, likelihood
from lib.errors import InputError, valid
from lib.paths import read_yaml, shown

CLAIMS = paths.DATA / "claims.yaml"
# By name, every public function of these modules.
MEASURES = {
    name: function
    for module in (internals, answers, likelihood)
    for name, function in vars(module).items()
    if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
}


class Claim(BaseModel):
    """A statement of the paper and the rule that decides it; `range` holds an end or None below and above.

    written: before or after such numbers had been seen; paper: what the paper reports, by model; equivalence: the share
    of the positive control's gain within which a whole interval means no effect of that size.
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
    equivalence: float | None = Field(None, gt=0)

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
    content = read_yaml(path)
    entries = content.get("claims") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise InputError(f"{shown(path)}: no list of claims")
    claims = []
    for number, entry in enumerate(entries, 1):
        name = entry.get("id", number) if isinstance(entry, dict) else number
        claims.append(valid(Claim, entry, f"{shown(path)}: claim {name}"))
    if repeated := {c.id for c in claims if [other.id for other in claims].count(c.id) > 1}:
        raise InputError(f"{shown(path)}: claim {min(repeated)} stands there twice")
    return claims
