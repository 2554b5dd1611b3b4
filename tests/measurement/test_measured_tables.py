"""The tables of attention against plain numpy, on measurements written by hand."""

import numpy as np
import xarray as xr
from evidence import close, dataset

from lib.measurement.attention import QUERIES, SPANS
from lib.measurement.measured_tables import (
    affine_table,
    heads_table,
    layers_of,
    layers_table,
    mass_table,
    means_table,
)
from lib.measurement.plan import UNIFORM, UNTRAINED
from lib.statistics.intervals import interval

NAN = float("nan")
LABELS = {
    "network": ["trained"],
    "problem": ["a", "b"],
    "span": SPANS,
    "query": QUERIES,
}
LABELS |= {"measure": ["near zero", "L1"], "layer": [1], "condition": ["none", "mless"]}


def test_the_first_layers_have_all_problems_and_every_layer_those_that_reached_it():
    lam = np.ones((1, 3, 2, 3, 1))  # (network, condition, problem, layer, head)
    # Nothing under none, a cell that is not defined, and the deeper layer, which only b
    # went through.
    lam[0, 0] = NAN
    lam[0, 1, 0, 0] = NAN
    lam[0, :, 0, 2] = NAN
    labels = LABELS | {"condition": ["none", "mless", "random"]}
    labels |= {"layer": [1, 2, 3], "head": [1]}
    measured = dataset(labels, {"lambda": lam})["lambda"]
    first = layers_of(measured)
    assert first.sizes == {"condition": 2, "problem": 2, "layer": 2, "head": 1}
    assert first.layer.values.tolist() == [1, 2]
    every = layers_of(measured, every=True)
    assert every.problem.values == ["b"]
    assert every.layer.size == 3


def test_n_counts_the_problems_of_each_place():
    by_problem = [[1.0, NAN, NAN], [2.0, 4.0, NAN], [4.0, 5.0, NAN]]
    labels = {"problem": ["a", "b", "c"], "layer": [1, 2, 3]}
    table = means_table(xr.DataArray(by_problem, labels, ["problem", "layer"]))
    assert table.layer.tolist() == [1, 2]
    assert table.n.tolist() == [3, 2]
    second = table.loc[1]
    ends = interval([4.0, 5.0])
    close(second[["mean", "low", "high"]], [4.5, ends.low, ends.high])


def test_heads_and_layers_have_the_mean_over_problems_and_its_interval():
    # By problem: of two heads under the slashes, twice that under a sentence.
    slashes = np.array([[0.5, 0.84], [0.6, 1.18], [0.7, 1.3], [0.8, 1.08]])
    lam = np.stack([slashes, 2 * slashes])[:, :, None]
    labels = {"network": ["trained"], "problem": ["a", "b", "c", "d"], "layer": [1]}
    labels |= {"condition": ["mless", "random"], "head": [1, 2]}
    measured = {"m": dataset(labels, {"lambda": lam})}
    heads = heads_table(measured)
    places = heads[["model", "layer", "head", "n"]]
    assert places.values.tolist() == [["m", 1, 1, 4], ["m", 1, 2, 4]]
    close(heads["lambda"], [0.65, 1.1])
    ends = interval(slashes[:, 0])
    close(heads.loc[0, ["low", "high"]], [ends.low, ends.high])

    layers = layers_table(measured)
    assert layers[["condition", "layer"]].values.tolist() == [
        ["mless", 1],
        ["random", 1],
    ]
    close(layers["lambda"], [0.875, 1.75])


WITH_CONTROLS = ["trained", *UNTRAINED, UNIFORM]


def test_mass_is_in_percent_beside_a_sentence_untrained_networks_and_even_attention():
    # Of the first of two heads; the second takes nothing.
    mass = np.zeros((len(WITH_CONTROLS), 2, 2, 1, 2))
    trained = [[0.2, 0.4], [0.4, 0.6]]  # (condition, problem)
    mass[0, :, :, 0, 0] = trained
    for network, share in enumerate([0.6, 0.8, 1.0, 0.9], 1):
        mass[network, 0, :, 0, 0] = share
    labels = {"network": WITH_CONTROLS, "condition": ["mless", "random"]}
    labels["head"] = [1, 2]
    table = mass_table({"m": dataset(LABELS | labels, {"mass": mass})})
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


def test_maps_have_their_mean_over_heads_also_where_they_fit_worse_than_none():
    fits = {"affine": [[0.2, 0.6], [0.4, 1.0]], "line": 0.5, "softmax": -0.5}
    measured = dataset(LABELS | {"head": [1, 2]}, fits)
    table = affine_table({"m": measured})
    assert table["map"].tolist() == ["affine", "line", "softmax"]
    close(table["R²"], [0.55, 0.5, -0.5])
