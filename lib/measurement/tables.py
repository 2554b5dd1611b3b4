"""From what was measured on each model to a table: means over problems with intervals, a row per place."""

from collections.abc import Callable

import pandas as pd
import xarray as xr

from lib.measurement.run import Measured
from lib.statistics import bootstrap_mean

RESAMPLES = 2000  # of each of many intervals


def estimates(values: xr.DataArray, seed: int, resamples: int = RESAMPLES, name: str = "mean") -> pd.DataFrame:
    """Return a row per place of values (problem, ...): its labels, the mean over problems, low, high and n."""
    places = across(values)
    found = bootstrap_mean(places.values, seed, resamples)
    columns = {name: found.estimate, "low": found.low, "high": found.high, "n": found.n}
    return pd.DataFrame(columns, places.indexes["place"]).reset_index()


def across(values: xr.DataArray) -> xr.DataArray:
    """Return values (problem, place): all other axes as one."""
    return values.stack(place=[dim for dim in values.dims if dim != "problem"]).transpose("problem", "place")


def by_model(measured: dict[str, Measured], table: Callable[[Measured], pd.DataFrame]) -> pd.DataFrame:
    """Return one table of all models', the model's name its first column and n its last."""
    found = pd.concat({name: table(one) for name, one in measured.items()}, names=["model"]).reset_index("model")
    return found.assign(n=found.pop("n"))
