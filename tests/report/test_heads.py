"""λ by head and layer: which network and which condition a column is of."""

import numpy as np
import xarray as xr
from report_folder import made_profile, measured

from lib.measurement.plan import TRAINED, UNIFORM
from lib.measurement.store import save_measured
from lib.report.heads import _of_model, read_heads

profile = made_profile
CONDITIONS = ["none", "mless", "mful", "random"]
NETWORKS = [TRAINED, "untrained 0", UNIFORM]


def ratios():
    """Return λ of 24 problems in two layers with two heads, about the same in all."""
    shape = (len(NETWORKS), len(CONDITIONS), 24, 2, 2)
    labels = {"network": NETWORKS, "condition": CONDITIONS}
    labels |= {"problem": [f"sum/{i}" for i in range(24)], "layer": [1, 2]}
    labels |= {"head": [1, 2]}
    values = xr.DataArray(np.full(shape, 0.5), labels, tuple(labels))
    values.loc[{"condition": "none"}] = np.nan
    return values


def drawn(values):
    whole = xr.Dataset({"lambda": values}, attrs={"model": "m", "revision": "abc"})
    return _of_model(whole)


def test_a_column_is_of_its_condition_and_its_network():
    values = ratios()
    values.loc[{"network": TRAINED, "condition": "mful"}] = 0.6
    values.loc[{"network": TRAINED, "condition": "random"}] = 0.7
    values.loc[{"network": "untrained 0", "condition": "mless"}] = 0.8
    values.loc[{"network": UNIFORM, "condition": "mless"}] = 0.9
    values.loc[{"layer": 2}] = 2.0
    columns = drawn(values)["columns"]
    means = {name: [head[0] for head in heads] for name, heads in columns.items()}
    assert means == {
        "mless": [0.5, 0.5],
        "mful": [0.6, 0.6],
        "random": [0.7, 0.7],
        "untrained": [0.8, 0.8],
        "even": [0.9, 0.9],
    }


def test_layers_have_a_curve_per_insertion():
    layers = drawn(ratios())["layers"]
    assert list(layers) == ["mless", "mful", "random"]
    assert [layer for layer, *_ in layers["mful"]] == [1, 2]


def test_where_no_problem_went_through_all_layers_the_first_ones_are_drawn():
    values = ratios()
    values.loc[{"layer": 2}] = np.nan
    layers = drawn(values)["layers"]
    assert [layer for layer, *_ in layers["mless"]] == [1]


def test_measurements_of_no_heads_are_neither_drawn_nor_damaged(profile):
    (profile.results / "tiny.nc").unlink()
    save_measured(profile.results / "other.nc", measured().drop_vars("lambda"))
    models, (missing,) = read_heads(profile)
    assert models == []
    assert missing.startswith("No heads of this profile yet: python -m lib reproduce")
