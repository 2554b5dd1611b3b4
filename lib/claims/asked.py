"""What is asked: the claims as data/claims.yaml states them, and the numbers that each is decided on.

evidence = gather(profile)                    # by model: all that was measured on it
values = asked(claim, evidence["m"])          # (network, component, problem)
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from typing import Literal

import pandas as pd
import xarray as xr
from pydantic import BaseModel, ConfigDict, Field, model_validator

from lib import evaluation, paths
from lib.claims import Untestable, measures
from lib.errors import InputError, valid
from lib.measurement.run import measure
from lib.paths import read_yaml, shown
from lib.profiles import PARTS, Profile

CLAIMS = paths.DATA / "claims.yaml"
MEASURES = {
    name: function
    for name, function in inspect.getmembers(measures, inspect.isfunction)
    if function.__module__ == measures.__name__ and not name.startswith("_")
}


class Claim(BaseModel):
    """A statement of the paper and the rule that decides it; `range` holds an end or None below and above.

    reading: literal is what the paper's sentence says, and counts; written: before or after such numbers had been seen;
    paper: what the paper reports, by model; equivalence: the share of the positive control's gain within which a whole
    interval means no effect of that size.
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
    reading: Literal["literal", "strict", "generous"]
    paper: dict[str, float] = {}
    equivalence: float | None = Field(None, gt=0)

    def reported(self, model: str) -> tuple[float, str] | tuple[None, None]:
        """Return the paper's value for the model of the same family that is nearest in size, and which that is."""
        family, size = _family(model)
        nearest = [(abs(log(size / _family(of)[1])), of) for of in self.paper if _family(of)[0] == family]
        return (self.paper[min(nearest)[1]], min(nearest)[1]) if nearest else (None, None)

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


def _family(model: str) -> tuple[str, float]:
    """Return the family that a model's name begins with, and its parameters in billions, 1 where it names none."""
    size = re.search(r"(\d+(?:\.\d+)?)(b|m)\b", model, re.IGNORECASE)
    scale = {"b": 1.0, "m": 1e-3}
    return re.split(r"[^a-z]", model.lower())[0], float(size[1]) * scale[size[2].lower()] if size else 1.0


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


@dataclass(frozen=True)
class Evidence:
    """All that a profile measured on one model."""

    measured: xr.Dataset | None = None  # of its inside, on networks: lib.measurement.store
    answers: pd.DataFrame = field(default_factory=pd.DataFrame)  # a row per completion, with part, right and plain
    scores: pd.DataFrame = field(default_factory=pd.DataFrame)  # a row per likelihood


def asked(claim: Claim, evidence: Evidence) -> xr.DataArray:
    """Return the numbers (network, component, problem) of a claim; raises Untestable, which says why there are none."""
    measure = MEASURES[claim.measure]
    kind = next(iter(inspect.signature(measure).parameters))
    given = getattr(evidence, kind)
    if given is None or not len(given):
        missing = {"measured": "measures nothing inside this model", "answers": "answers no problems with it"}
        raise Untestable(f"the profile {missing.get(kind, 'scores nothing with it')}")
    return measure(given, **claim.arguments).transpose("network", "component", "problem")


def gather(profile: Profile, completions: str | None = None) -> dict[str, Evidence]:
    """Return by model what the profile measures, computing only what results/ lacks; attention's models come first."""
    parts = [evaluation.answers(profile, "main", completions), *(evaluation.answers(profile, part) for part in PARTS)]
    measured = measure(profile, "attention", "activations", "controls")
    return as_evidence(profile, measured, parts, evaluation.scores(profile))


def as_evidence(
    profile: Profile,
    measured: Mapping[str, xr.Dataset] | None = None,
    answers: Sequence[pd.DataFrame] = (),
    scores: pd.DataFrame | None = None,
) -> dict[str, Evidence]:
    """Return by model what is at hand: Datasets by name, the answers of some parts, likelihoods."""
    plain = profile.accuracy.format == "plain" and not profile.accuracy.elicit
    given = pd.concat(answers, ignore_index=True).assign(plain=plain) if answers else pd.DataFrame({"model": []})
    tables = given, pd.DataFrame({"model": []}) if scores is None else scores
    answered, scored = ({str(name): one for name, one in table.groupby("model", sort=False)} for table in tables)
    measured = measured or {}
    return {
        name: Evidence(measured.get(name), answered.get(name, given[:0]), scored.get(name, pd.DataFrame()))
        for name in dict.fromkeys([*measured, *answered, *scored])
    }
