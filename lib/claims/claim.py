"""Read the claims of the paper from data/claims.yaml, and compute their measures.

claims = load_claims()
evidence = gather(profile)["gemma-3-270m"]  # the tables about one model, by name
values_of(claims[0], evidence)  # the numbers by which the claim is decided
"""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import Any, Literal

import xarray as xr
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from lib import paths
from lib.claims import answer_measures, network_measures
from lib.claims.decision_rule import Untestable
from lib.errors import InputError, validated
from lib.files.text_and_yaml import read_yaml
from lib.paths import relative_path
from lib.profiles import VARIATIONS

CLAIMS_FILE = paths.DATA / "claims.yaml"
# By the table that a measure needs: what the profile does not do if it is missing.
MISSING_TABLE_REASONS = {
    "measured": "measures nothing inside this model",
    "answers": "answers no problems with it",
    "scores": "scores nothing with it",
    "ablations": "scores no ablations with it",
    "draws": "draws no answers with it",
}


def _measures_of(*modules: Any) -> dict[str, Callable[..., xr.DataArray]]:
    """Return the measures that modules define, by name: their public functions that
    return an array.
    """
    measures = {}
    for module in modules:
        for name, function in inspect.getmembers(module, inspect.isfunction):
            is_defined_here = function.__module__ == module.__name__
            returned = inspect.signature(function).return_annotation
            if (
                is_defined_here
                and not name.startswith("_")
                and returned is xr.DataArray
            ):
                measures[name] = function
    return dict(sorted(measures.items()))


MEASURES = _measures_of(network_measures, answer_measures)


class Claim(BaseModel):
    """A statement of the paper and the rule that decides it.

    data/claims.yaml describes the fields.
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
    seen: dict[str, str] = {}
    amended: str | None = None
    reading: Literal["literal", "translated", "strict", "generous", "other", "control"]
    paper: dict[str, float] = {}
    planned: int | None = Field(None, gt=0)

    @property
    def bounds(self) -> tuple[float, float]:
        """The lower and upper bound of the range; infinite for a missing one."""
        low, high = self.range
        return -inf if low is None else low, inf if high is None else high

    def written_for(self, model: str) -> str:
        """Return "before" or "after": when the rule was written, relative to the first
        data of its kind on this model.
        """
        return "after" if model in self.seen else self.written

    def paper_value(self, model: str) -> tuple[float, str] | tuple[None, None]:
        """Return the paper's value for a model, or else for the first model of its
        family, with the name of the paper's model; (None, None) if there is neither.
        """
        family = [name for name in self.paper if _family(name) == _family(model)]
        if not family:
            return None, None
        name = model if model in family else family[0]
        return self.paper[name], name

    @model_validator(mode="after")
    def _check_fields(self):
        if self.measure not in MEASURES:
            raise ValueError(
                f"unknown measure {self.measure!r}: choose from {', '.join(MEASURES)}"
            )
        arguments = _arguments_model(self.measure)
        validated(arguments, self.arguments, f"`with` of measure {self.measure}")
        if self.measure == "compared":
            network_measures.check_compared(**self.arguments)
        part = self.arguments.get("part", "main")
        if part not in ("main", *VARIATIONS):
            raise ValueError(
                f"unknown part {part!r}: choose from main, {', '.join(VARIATIONS)}"
            )
        low, high = self.bounds
        if not low < high or (low, high) == (-inf, inf):
            raise ValueError(
                f"range {list(self.range)} claims nothing: give [low, high], null where"
                " it has no end"
            )
        return self


@functools.cache
def _arguments_model(measure: str) -> type[BaseModel]:
    """Return the pydantic model of the arguments that a measure takes in `with`: its
    parameters, without those that name tables.
    """
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(MEASURES[measure]).parameters.items():
        if name not in MISSING_TABLE_REASONS:
            is_required = parameter.default is parameter.empty
            default = ... if is_required else parameter.default
            fields[name] = (parameter.annotation, default)
    return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _tables_of(measure: str) -> list[str]:
    """Return the names of the tables that a measure receives."""
    names = inspect.signature(MEASURES[measure]).parameters
    return [name for name in names if name in MISSING_TABLE_REASONS]


def _family(model: str) -> str:
    """Return a model's family, the letters at the beginning of its name."""
    return re.split(r"[^a-z]", model.lower())[0]


def load_claims(path: Path = CLAIMS_FILE) -> list[Claim]:
    """Return the claims of a YAML file, in its order.

    Raises InputError that names the file, the claim and the error.
    """
    file = relative_path(path)
    content = read_yaml(path)
    entries = content.get("claims") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise InputError(f"{file}: no list of claims")

    claims = []
    names = []
    for number, entry in enumerate(entries, 1):
        name = entry.get("id", number) if isinstance(entry, dict) else number
        if name in names:
            raise InputError(f"{file}: claim {name} is listed twice")
        names.append(name)
        claims.append(validated(Claim, entry, f"{file}: claim {name}"))
    return claims


def missing_tables(claim: Claim, evidence: Mapping[str, Any]) -> list[str]:
    """Return the tables that a claim's measure needs and the evidence about a model
    lacks.
    """
    tables = _tables_of(claim.measure)
    return [table for table in tables if table not in evidence]


def values_of(claim: Claim, evidence: Mapping[str, Any]) -> xr.DataArray:
    """Return the values (network, component, problem) of a claim's measure.

    evidence: the tables about one model, by name. Raises Untestable if there are none.
    """
    for table in missing_tables(claim, evidence):
        raise Untestable(f"the profile {MISSING_TABLE_REASONS[table]}")
    known = {table: evidence[table] for table in _tables_of(claim.measure)}
    values = MEASURES[claim.measure](**known, **claim.arguments)
    return values.transpose("network", "component", "problem")
