"""The tables of activations against plain numpy, on measurements written by hand."""

import numpy as np
import pytest
import xarray as xr
from evidence import close, dataset

from lib.measurement import activation_tables
from lib.measurement.activation_tables import (
    changes_table,
    classes_table,
    log_changes,
)
from lib.statistics.intervals import interval

NAN = float("nan")
LABELS = {"network": ["trained"], "problem": ["a", "b"], "layer": [1]}
MEASURES = LABELS | {"measure": ["near zero", "L1"], "condition": ["none", "mless"]}


@pytest.mark.parametrize(
    ("before", "after", "ratio"),
    [
        # A share of nothing counts as half the smallest of its own measure.
        ([0.2, 0.4], [0.0, 0.2], [0.5, 0.5]),
        # One that is below all of none is told as it is.
        ([0.2, 0.2], [0.006, 0.2], [0.03, 1]),
        # The smallest is that of all conditions, for none as for the others.
        ([0.2, 0.0], [0.0, 0.006], [0.015, 2]),
        ([0.2, 0.1], [0.0, 0.4], [0.25, 4]),
    ],
)
def test_no_share_is_smaller_than_half_an_element(before, after, ratio):
    # Another measure, whose smallest is no floor of shares.
    others = np.array([[8e-4, 9e-4], [8e-4, 9e-4]])
    values = np.stack([[before, after], others], -1)  # (condition, problem, measure)
    measured = dataset(MEASURES, {"measures": values[:, :, None]})
    measures = measured.measures.sel(network="trained")
    logs = log_changes(measures)
    shares = logs.sel(condition="mless", measure="near zero", layer=1)
    np.testing.assert_allclose(np.exp(shares), ratio)


def test_the_smallest_share_is_that_of_its_own_layer():
    shares = np.array([[[0.2, 0.0]], [[0.0, 0.002]]])  # (condition, problem, layer)
    labels = MEASURES | {"problem": ["a"]}
    labels["layer"] = [1, 2]
    labels["measure"] = ["near zero"]
    measured = dataset(labels, {"measures": shares[..., None]})
    logs = log_changes(measured.measures.sel(network="trained"))
    np.testing.assert_allclose(np.exp(logs).squeeze(), [0.5, 2])


# Four problems, of which no two are of one template.
FOUR = ["a", "b", "c", "d"]


def test_changes_are_geometric_means_over_problems():
    # By problem and measure.
    before = np.array([[0.1, 1.0], [0.2, 2.0], [0.1, 4.0], [0.2, 8.0]])
    factor = np.array([[2.0, 1.1], [8.0, 0.5], [4.0, 1.2], [4.0, 3.0]])
    measures = np.stack([before, before * factor])[:, :, None]
    measured = dataset(MEASURES | {"problem": FOUR}, {"measures": measures})
    table = changes_table({"m": measured})
    assert table["measure"].tolist() == ["near zero", "L1"]
    assert (table.condition == "mless").all()
    assert (table.n == 4).all()

    near_zero, norm = np.log(factor).T
    close(table.ratio, [4, np.exp(norm.mean())])
    ends = interval(near_zero)
    close(table.loc[0, ["low", "high"]], [np.exp(ends.low), np.exp(ends.high)])


def test_a_class_counts_the_problems_that_have_tokens_of_it_and_of_the_others():
    classes = ["digits", "operators", "others"]
    # By problem and class; the third problem has no digits, the last no others.
    shares = [[0.2, 0.4, 0.1], [0.4, 0.2, 0.2], [NAN, 0.3, 0.6], [0.9, 0.9, NAN]]
    shares = np.array(shares)
    labels = LABELS | {"problem": FOUR, "condition": ["none"], "class": classes}
    table = classes_table({"m": dataset(labels, {"classes": shares[:, None]})})
    assert table["class"].tolist() == classes
    assert table.n.tolist() == [2, 3, 3]
    close(table["near zero"], [30, 30, 30])
    close(table["against others"], [15, 0, 0])
    ends = interval([10, 20])
    close(table.loc[0, ["against low", "against high"]], [ends.low, ends.high])


def test_a_histogram_is_the_share_of_all_activations_at_the_middle_of_each_bin():
    counts = [[[[1, 60, 40, 1]] * 2, [[1, 30, 40, 1]] * 2, [[0, 5, 5, 0]] * 2]]
    labels = {"network": ["trained"], "condition": ["none", "mless", "arm"]}
    labels |= {"layer": [1, 2], "bin": [-2.0, -1, 0, 1]}
    model = xr.Dataset({"counts": xr.DataArray(counts, labels, [*labels])})
    table = activation_tables.histogram_table({"m": model})
    assert table.activation.tolist() == [-0.5, 0.5]
    assert table.none.tolist() == pytest.approx([6000 / 102, 4000 / 102])
    assert table.mless.tolist() == pytest.approx([3000 / 72, 4000 / 72])
    assert table.arm.tolist() == [50, 50]
    assert set(table.model) == {"m"}
