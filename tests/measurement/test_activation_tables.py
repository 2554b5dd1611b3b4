"""The tables of activations on arrays written by hand."""

import numpy as np
import xarray as xr

from lib.measurement.activation_tables import log_changes


def test_a_share_of_nothing_counts_as_half_the_smallest_of_its_own_measure():
    before, after = [[0.2, 800.0], [0.4, 900.0]], [[0.0, 800.0], [0.2, 900.0]]  # (problem, measure)
    values = np.array([before, after])[:, :, None]  # (condition, problem, layer, measure)
    coords = {"condition": ["none", "mless"], "layer": [1], "measure": ["near zero", "L1"]}
    logs = log_changes(xr.Dataset({"measures": (("condition", "problem", "layer", "measure"), values)}, coords))
    np.testing.assert_allclose(np.exp(logs.sel(condition="mless", measure="near zero", layer=1)), [0.5, 0.5])
    # What is small beside another measure is not small beside its own: the floor of shares is no floor of norms.
    tiny = xr.Dataset({"measures": (("condition", "problem", "layer", "measure"), values * [1000.0, 1e-3])}, coords)
    np.testing.assert_allclose(log_changes(tiny), logs)


def test_a_share_below_all_of_none_is_told_as_it_is():
    values = np.array([[[0.2]], [[0.006]]])[:, :, None]  # (condition, problem, layer, measure)
    coords = {"condition": ["none", "arm"], "layer": [1], "measure": ["near zero"]}
    logs = log_changes(xr.Dataset({"measures": (("condition", "problem", "layer", "measure"), values)}, coords))
    np.testing.assert_allclose(np.exp(logs), 0.03)
