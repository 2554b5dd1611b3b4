"""Read the claims of the paper from data/claims.yaml, and compute their measures.

claims = load_claims()
evidence = gather(profile)["gemma-3-270m"]  # the tables about one model, by name
values_of(claims[0], evidence)  # the numbers by which the claim is decided
"""

import inspect
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import Any, Literal

import xarray as xr
from pydantic import BaseModel, ConfigDict, Field

from lib.errors import validated
from lib.files.text_files import read_yaml
from lib.paths import relative_path
from reproduction import paths
from reproduction.claims import answer_measures, network_measures
from reproduction.claims.decision_rule import Untestable

CLAIMS_FILE = paths.DATA / "claims.yaml"
# By the table that a measure needs: what the profile does not do if it is missing.
MISSING_TABLE_REASONS = {
    "measured": "measures nothing inside this model",
    "answers": "answers no problems with it",
    "scores": "scores nothing with it",
    "ablations": "scores no ablations with it",
    "draws": "draws no answers with it",
}


class Otherwise(BaseModel):
    """Another way to decide a claim that could be defended as well."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    says: str
    arguments: dict = Field({}, alias="with")  # of the measure, instead of the claim's
    range: tuple[float | None, float | None] | None = None  # None: the claim's
    parts: int | None = None  # how many of the parts suffice; None: all


class Claim(BaseModel):
    """A statement of the paper and the rule that decides it.

    data/claims.yaml describes the fields.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    id: str
    claim: str
    source: str
    measure: str
    arguments: dict = Field(alias="with")
    range: tuple[float | None, float | None]
    unit: str
    written: Literal["before", "after"]
    seen: dict[str, str] = {}
    amended: str | None = None
    reading: Literal["literal", "translated", "strict", "generous", "other", "control"]
    paper: dict[str, float] = {}
    planned: int | None = None
    certain: str | None = None
    otherwise: Otherwise | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """The lower and upper bound of the range; infinite for a missing one."""
        low, high = self.range
        return -inf if low is None else low, inf if high is None else high

    @property
    def function(self) -> Callable[..., xr.DataArray]:
        """The measure, a function of network_measures or answer_measures."""
        is_of_networks = hasattr(network_measures, self.measure)
        module = network_measures if is_of_networks else answer_measures
        return getattr(module, self.measure)

    @property
    def tables(self) -> list[str]:
        """The names of the tables that the measure receives."""
        names = inspect.signature(self.function).parameters
        return [name for name in names if name in MISSING_TABLE_REASONS]

    def lacking(self, evidence: Mapping[str, Any]) -> list[str]:
        """Return the tables that the measure needs and the evidence lacks."""
        return [table for table in self.tables if table not in evidence]

    def written_for(self, model: str) -> str:
        """Return "before" or "after": when the rule was written, relative to the first
        data of its kind on this model.
        """
        return "after" if model in self.seen else self.written


def load_claims(path: Path = CLAIMS_FILE) -> list[Claim]:
    """Return the claims of a YAML file, in its order.

    Raises InputError that names the file, the claim and the error.
    """
    file = relative_path(path)
    return [
        validated(Claim, entry, f"{file}: claim {entry.get('id')}")
        for entry in read_yaml(path)["claims"]
    ]


def values_of(claim: Claim, evidence: Mapping[str, Any]) -> xr.DataArray:
    """Return the values (network, component, problem) of a claim's measure.

    evidence: the tables about one model, by name. Raises Untestable if there are none.
    """
    for table in claim.lacking(evidence):
        raise Untestable(f"the profile {MISSING_TABLE_REASONS[table]}")
    known = {table: evidence[table] for table in claim.tables}
    values = claim.function(**known, **claim.arguments)
    return values.transpose("network", "component", "problem")
