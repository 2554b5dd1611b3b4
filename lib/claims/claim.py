"""What the paper claims, as data/claims.yaml has it, and the evidence that a profile
gives for each model.

claims, evidence = load_claims(), gather(profile)
values_of(claims[0], evidence["gemma-3-270m"])  # the numbers that decide it
"""

import inspect
import re
from collections.abc import Mapping
from math import inf, log
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import xarray as xr
from pydantic import BaseModel, ConfigDict, Field, model_validator

from lib import evaluation, paths
from lib.claims import measures
from lib.claims.measures import Untestable
from lib.errors import InputError, validated
from lib.measurement.run import measure
from lib.paths import read_yaml, relative_path
from lib.profiles import PARTS, Profile

CLAIMS = paths.DATA / "claims.yaml"
MEASURES = {
    name: function
    for name, function in inspect.getmembers(measures, inspect.isfunction)
    if function.__module__ == measures.__name__ and not name.startswith("_")
}
NOTHING = {
    "measured": "measures nothing inside this model",
    "answers": "answers no problems with it",
}
NOTHING |= {"scores": "scores nothing with it"}


class Claim(BaseModel):
    """A statement of the paper and the rule that decides it; data/claims.yaml says what
    its fields mean.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
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

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the range, infinite where it has none."""
        low, high = self.range
        return -inf if low is None else low, inf if high is None else high

    def reported(self, model: str) -> tuple[float, str] | tuple[None, None]:
        """Return the paper's value for the model of the same family that is nearest in
        size, and which that is.
        """
        family, size = _family(model)
        nearest = [
            (abs(log(size / _family(of)[1])), of)
            for of in self.paper
            if _family(of)[0] == family
        ]
        return (
            (self.paper[min(nearest)[1]], min(nearest)[1]) if nearest else (None, None)
        )

    @model_validator(mode="after")
    def _check_fields(self):
        if self.measure not in MEASURES:
            raise ValueError(
                f"unknown measure {self.measure!r}: choose from {', '.join(MEASURES)}"
            )
        _, *wanted = inspect.signature(MEASURES[self.measure]).parameters
        if sorted(wanted) != sorted(self.arguments):
            raise ValueError(
                f"measure {self.measure} takes {', '.join(wanted)} in `with`"
            )
        if self.range == (None, None) or self.ends[0] >= self.ends[1]:
            raise ValueError(
                f"range {list(self.range)} claims nothing: give [low, high], null where"
                " it has no end"
            )
        return self


def _family(model: str) -> tuple[str, float]:
    """Return the family that a model's name begins with, and its parameters in
    billions, 1 where it names none.
    """
    size = re.search(r"(\d+(?:\.\d+)?)(b|m)\b", model, re.IGNORECASE)
    scale = {"b": 1.0, "m": 1e-3}
    return re.split(r"[^a-z]", model.lower())[0], (
        float(size[1]) * scale[size[2].lower()] if size else 1.0
    )


def load_claims(path: Path = CLAIMS) -> list[Claim]:
    """Return the claims of a YAML file; raises InputError naming the claim and what is
    wrong with it.
    """
    content = read_yaml(path)
    entries = content.get("claims") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise InputError(f"{relative_path(path)}: no list of claims")
    names = [
        one.get("id", number) if isinstance(one, dict) else number
        for number, one in enumerate(entries, 1)
    ]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{relative_path(path)}: claim {twice[0]} stands there twice")
    return [
        validated(Claim, entry, f"{relative_path(path)}: claim {name}")
        for name, entry in zip(names, entries, strict=True)
    ]


def gather(
    profile: Profile, completions: str | None = None
) -> dict[str, dict[str, Any]]:
    """Return by model what the profile measures, computing only what results/ lacks;
    attention's models come first.
    """
    parts = [
        evaluation.answers(profile, "main", completions),
        *(evaluation.answers(profile, part) for part in PARTS),
    ]
    measured = measure(profile, "attention", "activations", "controls")
    return by_model(
        profile, measured=measured, answers=parts, scores=evaluation.scores(profile)
    )


def by_model(profile: Profile, **at_hand: Any) -> dict[str, dict[str, Any]]:
    """Return by model what is at hand: `measured`, by model; `answers`, a frame per
    part; `scores`.
    """
    evidence = {
        name: {"measured": one}
        for name, one in (at_hand.pop("measured", None) or {}).items()
    }
    if answers := at_hand.pop("answers", None):
        plain = profile.accuracy.format == "plain" and not profile.accuracy.elicit
        at_hand["answers"] = pd.concat(answers, ignore_index=True).assign(plain=plain)
    for kind, table in at_hand.items():
        for name, one in () if table is None else table.groupby("model", sort=False):
            evidence.setdefault(name, {})[kind] = one
    return evidence


def values_of(claim: Claim, given: Mapping[str, Any]) -> xr.DataArray:
    """Return the numbers (network, component, problem) that decide a claim; raises
    Untestable where there are none.
    """
    function = MEASURES[claim.measure]
    kind = next(iter(inspect.signature(function).parameters))
    if kind not in given:
        raise Untestable(f"the profile {NOTHING[kind]}")
    return function(given[kind], **claim.arguments).transpose(
        "network", "component", "problem"
    )
