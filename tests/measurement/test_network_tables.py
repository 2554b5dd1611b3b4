"""The tables of attention and activations compared with plain numpy, on measurements
written by hand.
"""

import numpy as np
import pytest
import xarray as xr
from evidence import close, dataset

from lib.statistics.intervals import interval
from reproduction.measurement.attention_changes import QUERIES, SPANS
from reproduction.measurement.dataset import UNIFORM, UNTRAINED
from reproduction.measurement.network_tables import (
    changes_table,
    classes_table,
    heads_table,
    log_changes,
    mass_table,
    select_layers,
    sinks_table,
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


def test_heads_and_layers_have_the_mean_over_problems_and_its_interval():
    # By problem, lambda of two heads under the slashes; under a sentence it is doubled.
    slashes = np.array([[0.5, 0.84], [0.6, 1.18], [0.7, 1.3], [0.8, 1.08]])
    lam = np.stack([slashes, 2 * slashes])[:, :, None]
    conditions = ["mless", "random"]
    model = measured({"lambda": lam}, condition=conditions, problem=FOUR)
    heads = heads_table(model)
    labels = heads[["model", "layer", "head", "n"]]
    assert labels.values.tolist() == [["m", 1, 1, 4], ["m", 1, 2, 4]]
    close(heads["lambda"], [0.65, 1.1])
    ends = interval(slashes[:, 0])
    close(heads.loc[0, ["low", "high"]], [ends.low, ends.high])
    # Problems of one template are not independent.
    pairs = ["embedded/a/0", "embedded/a/1", "embedded/b/0", "embedded/b/1"]
    model = measured({"lambda": lam}, condition=conditions, problem=pairs)
    ends = interval(slashes[:, 0], pairs)
    close(heads_table(model).loc[0, ["low", "high"]], [ends.low, ends.high])


def test_attention_mass_is_in_percent_with_its_three_references():
    networks = ["trained", *UNTRAINED, UNIFORM]
    # Only the first of two heads attends to the inserted tokens.
    mass = np.zeros((len(networks), 2, 2, 1, 2))
    mass[0, :, :, 0, 0] = [[0.2, 0.4], [0.4, 0.6]]  # (condition, problem)
    mass[1:, 0, :, 0, 0] = np.array([[0.6], [0.8], [1.0], [0.9]])
    labels = {"network": networks, "condition": ["mless", "random"]}
    table = mass_table(measured({"mass": mass}, **labels))
    assert list(table) == ["model", "inserted", "layer", "mass", "low", "high", "n"]
    assert table.inserted.tolist() == [
        "slashes",
        "a sentence as long",
        "slashes, untrained networks",
        "slashes, attention spread evenly",
    ]
    close(table.mass, [15, 25, 40, 45])
    assert (table.layer == 1).all()
    assert (table.n == 2).all()


def test_sinks_are_heads_whose_mean_share_is_large_in_the_later_layers():
    mass = np.zeros((1, 1, 4, 6, 2))  # (network, condition, problem, layer, head)
    mass[..., :4, :] = 0.9  # the layers before FIRST_LATER_LAYER
    mass[:, :, :, 4, 0] = [0.1, 0.2, 0.3, 0.5]
    mass[:, :, 3, 5] = NAN  # the last problem was not run through all layers
    labels = {"condition": ["mless"], "problem": FOUR, "layer": range(1, 7)}
    table = sinks_table(measured({"mass": mass}, **labels))
    close(table.mass, [20 / 4])
    columns = ["model", "condition", "n", "sinks", "heads"]
    assert table[columns].values.tolist() == [["m", "mless", 3, 0, 4]]
    mass[0, 0, 0, 5, 1] = 1
    table = sinks_table(measured({"mass": mass}, **labels))
    assert table.sinks.tolist() == [1]


def test_lambda_over_heads_has_the_same_three_references():
    networks = ["trained", *UNTRAINED, UNIFORM]
    # (network, condition, problem, layer, span, query); `he` was not measured.
    lam = np.full((len(networks), 3, 2, 1, 1, 1), NAN)
    lam[0, 0, :, 0, 0, 0] = 0.8, 0.9
    lam[0, 2] = 0.5
    lam[1:, 0] = np.array([0.5, 0.6, 0.7, 0.4])[:, None, None, None, None]
    labels = {"network": networks, "condition": ["mless", "mful", "random"]}
    labels |= {"span": ["original"], "query": ["all"]}
    table = lambda_table(measured({"lambda_over_heads": lam}, **labels))
    assert table.inserted.tolist() == [
        "slashes",
        "a sentence as long",
        "slashes, untrained networks",
        "slashes, attention spread evenly",
    ]
    close(table["lambda"], [0.85, 0.5, 0.6, 0.4])
    assert (table.n == 2).all()


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
