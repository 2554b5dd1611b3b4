"""The tables of attention and activations compared with plain numpy, on measurements
written by hand.
"""

import numpy as np
import pytest
import xarray as xr
from evidence import close, dataset

from lib.statistics.intervals import interval
from reproduction.measurement.attention_changes import QUERIES, SPANS
from reproduction.measurement.network_tables import (
    changes_table,
    classes_table,
    log_changes,
    select_layers,
)

NAN = float("nan")
LABELS = {
    "network": ["trained"],
    "condition": ["none", "mless"],
    "problem": ["a", "b"],
    "layer": [1],
    "head": [1, 2],
    "measure": ["near zero", "L1"],
    "class": ["digits", "operators", "conjunctions", "others"],
    "span": SPANS,
    "query": QUERIES,
}
# Four problems that share no template.
FOUR = ["a", "b", "c", "d"]


def measured(arrays, **labels):
    """Return measurements of a model `m` over LABELS, some of which may be replaced."""
    return {"m": dataset(LABELS | labels, arrays)}


def test_first_layers_use_all_problems_and_all_layers_those_that_reached_the_last():
    lam = np.ones((1, 3, 2, 3, 1))  # (network, condition, problem, layer, head)
    # Unmeasured: the condition none, one undefined cell, and the deeper layer for
    # problem a, because only b was run through all layers.
    lam[0, 0] = NAN
    lam[0, 1, 0, 0] = NAN
    lam[0, :, 0, 2] = NAN
    labels = {"condition": ["none", "mless", "random"], "layer": [1, 2, 3]}
    lam = measured({"lambda": lam}, **labels)["m"]["lambda"]
    first = select_layers(lam)
    assert first.condition.values.tolist() == ["mless", "random"]
    assert first.problem.values.tolist() == ["a", "b"]
    assert first.layer.values.tolist() == [1, 2]
    every = select_layers(lam, all_layers=True)
    assert every.problem.values == ["b"]
    assert every.layer.size == 3


@pytest.mark.parametrize(
    ("before", "after", "ratio"),
    [
        # A share of 0 counts as half the smallest one of the same measure and layer.
        ([0.2, 0.4], [0.0, 0.2], [0.5, 0.5]),
        # A share below all shares under none is reported as it is.
        ([0.2, 0.2], [0.006, 0.2], [0.03, 1]),
        # The smallest share is taken over all conditions, including none.
        ([0.2, 0.0], [0.0, 0.006], [0.015, 2]),
        ([0.2, 0.1], [0.0, 0.4], [0.25, 4]),
    ],
)
def test_a_share_of_zero_counts_as_half_the_smallest_share(before, after, ratio):
    values = np.full((2, 2, 2, 2), 8e-4)
    values[:, :, 0, 0] = before, after
    dims = ["condition", "problem", "layer", "measure"]
    measures = xr.DataArray(values, {"condition": ["none", "mless"]}, dims)
    (logs,) = log_changes(measures)
    np.testing.assert_allclose(np.exp(logs[:, 0, 0]), ratio)


def test_changes_are_geometric_means_over_problems():
    # Rows are problems, columns are measures.
    before = np.array([[0.1, 1.0], [0.2, 2.0], [0.1, 4.0], [0.2, 8.0]])
    factor = np.array([[2.0, 1.1], [8.0, 0.5], [4.0, 1.2], [4.0, 3.0]])
    values = np.stack([before, before * factor])[:, :, None]
    table = changes_table(measured({"measures": values}, problem=FOUR))
    assert table.measure.tolist() == ["near zero", "L1"]
    assert (table.condition == "mless").all()
    assert (table.n == 4).all()

    near_zero, norm = np.log(factor).T
    close(table.ratio, [4, np.exp(norm.mean())])
    ends = interval(near_zero)
    close(table.loc[0, ["low", "high"]], np.exp([ends.low, ends.high]))


def test_a_token_class_counts_the_problems_that_have_tokens_of_it():
    # Rows are problems, columns are classes. The third problem has no digits, the last
    # no others, and no problem has conjunctions.
    first = [[0.2, 0.4, NAN, 0.1], [0.4, 0.2, NAN, 0.2]]
    shares = np.array([*first, [NAN, 0.3, NAN, 0.6], [0.9, 0.9, NAN, NAN]])
    classes = {"classes": shares[:, None]}
    model = measured(classes, condition=["none"], problem=FOUR)
    table = classes_table(model)
    assert table["class"].tolist() == ["digits", "operators", "others"]
    assert table.n.tolist() == [2, 3, 3]
    close(table["near zero"], [30, 30, 30])
    close(table["against others"], [15, 0, 0])
    ends = interval([10, 20])
    close(table.loc[0, ["against low", "against high"]], [ends.low, ends.high])
