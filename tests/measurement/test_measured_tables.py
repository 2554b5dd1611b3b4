"""The tables of attention against plain numpy, on measurements written by hand."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from evidence import close, dataset
from scipy import stats

from lib.measurement.attention import QUERIES, SPANS
from lib.measurement.measured_tables import (
    AFFINE_TEXT,
    affine_table,
    causes_table,
    controls_table,
    count_heads,
    heads_table,
    layers_of,
    layers_table,
    mass_table,
    means_table,
)
from lib.measurement.plan import CAUSES, UNIFORM, UNTRAINED
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
    lam = np.ones((1, 2, 2, 3, 1))  # (network, condition, problem, layer, head)
    # A cell that is not defined, and the deeper layer, which only b went through.
    lam[0, 0, 0, :, 0] = [NAN, 1, NAN]
    lam[0, 1, :, 2] = NAN
    labels = LABELS | {
        "condition": ["mless", "random"],
        "layer": [1, 2, 3],
        "head": [1],
    }
    measured = dataset(labels, {"lambda": lam})["lambda"]
    first = layers_of(measured)
    assert first.sizes == {"condition": 2, "problem": 2, "layer": 2, "head": 1}
    assert first.layer.values.tolist() == [1, 2]
    every = layers_of(measured, every=True)
    assert every.condition.values == ["mless"]
    assert every.problem.values == ["b"]
    assert every.layer.size == 3


def test_a_sample_of_which_all_went_through_every_layer_keeps_its_first_layers():
    lam = np.ones((1, 2, 2, 3, 1))
    lam[0, 1, :, 1:] = NAN  # under random only the first layer was measured
    conditions = {"condition": ["mless", "random"], "layer": [1, 2, 3], "head": [1]}
    measured = dataset(LABELS | conditions, {"lambda": lam})["lambda"]
    assert layers_of(measured).layer.values == [1]
    assert layers_of(measured, every=True).layer.size == 3


def test_n_counts_the_problems_of_each_place():
    by_problem = [[1.0, NAN, NAN], [2.0, 4.0, NAN], [4.0, 5.0, NAN]]
    labels = {"problem": ["a", "b", "c"], "layer": [1, 2, 3]}
    table = means_table(xr.DataArray(by_problem, labels, ["problem", "layer"]))
    assert table.layer.tolist() == [1, 2]
    assert table.n.tolist() == [3, 2]
    second = table.loc[1]
    ends = interval([4.0, 5.0])
    close(second[["mean", "low", "high"]], [4.5, ends.low, ends.high])


# Four problems, of which no two are of one template.
FOUR = {"network": ["trained"], "problem": ["a", "b", "c", "d"], "layer": [1]}


def wilcoxon(values):
    """Return scipy's p of the signed-rank test of a column against 0."""
    return stats.wilcoxon(values, method="asymptotic").pvalue


def test_heads_have_the_mean_over_problems_and_holms_p_over_all_of_a_models_heads():
    first = [0.5, 0.6, 0.7, 0.8]  # by problem
    second = [0.84, 1.18, 1.3, 1.08]
    lam = np.stack([first, second], axis=1)[:, None]  # (problem, layer, head)
    arrays = {"lambda": lam, "mass": 2 * lam, "flatness": 0.25, "dispersion": 0.125}
    labels = FOUR | {"condition": ["mless"], "head": [1, 2]}
    table = heads_table({"m": dataset(labels, arrays)})
    places = table[["model", "condition", "layer", "head", "n"]]
    assert places.values.tolist() == [["m", "mless", 1, 1, 4], ["m", "mless", 1, 2, 4]]
    close(table["lambda"], [0.65, 1.1])
    close(table["problems < 1"], [1, 0.25])
    close(table["mass"], [1.3, 2.2])
    close(table["flatness"], [0.25, 0.25])
    close(table["dispersion"], [0.125, 0.125])

    ends = interval(first)
    close(table.loc[0, ["low", "high"]], [ends.low, ends.high])
    smaller = wilcoxon(np.log(first))
    larger = wilcoxon(np.log(second))
    assert smaller < larger
    close(table["p"], [2 * smaller, max(2 * smaller, larger)])


WITH_CONTROLS = ["trained", *UNTRAINED, UNIFORM]


def test_layers_have_the_mean_over_heads_and_controls_their_extreme_heads():
    # Of the networks in turn, times 0.6 of the first head and 1.1 of the second.
    factors = np.array([1, 0.5, 0.6, 0.7, 0.8]).reshape(-1, 1, 1, 1, 1)
    lam = np.array([[0.5, 0.9], [0.7, 1.3]])[:, None]  # (problem, layer, head)
    labels = {"network": WITH_CONTROLS, "condition": ["mless"], "head": [1, 2]}
    arrays = {"mass": 0.25, "flatness": 0.5, "dispersion": 0.125}
    arrays["lambda"] = factors * lam
    measured = {"m": dataset(LABELS | labels, arrays)}

    layers = layers_table(measured).set_index("measure")["mean"]
    names = ["lambda", "mass", "flatness", "dispersion"]
    close(layers[names], [0.85, 0.25, 0.5, 0.125])
    controls = controls_table(measured, "mless")
    assert controls.control.tolist() == ["untrained", "uniform"]
    close(controls.lowest, [0.6 * 0.5, 0.6 * 0.8])
    close(controls.highest, [1.1 * 0.7, 1.1 * 0.8])


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


def test_a_head_counts_where_it_surely_lies_below_or_above_1():
    heads = pd.DataFrame(
        {"lambda": [0.9, 1.2, 0.5, 0.5], "p": [0.01, 0.04, 0.06, 0.04]}
    )
    heads = heads.assign(model="m", condition="mless", layer=[1, 1, 1, 2])
    table = count_heads(heads)
    assert table.layer.tolist() == [1, 2]
    assert table.below.tolist() == [1, 1]
    assert table.above.tolist() == [1, 0]
    assert table["heads"].tolist() == [3, 1]


def test_a_causes_share_is_of_the_mean_log_of_both():
    # By problem and head.
    both = [[0.5, 0.5], [0.25, 1]]
    terms = [[0.5, 1], [0.5, 1]]
    distance = [[1, 1], [0.5, 0.5]]
    labels = LABELS | {"cause": list(CAUSES), "head": [1, 2]}
    lam = np.array([both, terms, distance])
    table = causes_table({"m": dataset(labels, {"cause_lambda": lam})})
    assert table.cause.tolist() == ["both", "terms", "distance"]
    close(table["lambda"], [0.5625, 0.75, 0.75])
    # In halvings: both has 1 and 1, terms a half twice, distance none and 1.
    close(table["share"], [1, 0.5, 0.5])
    assert table["share low"][2] < 0.5 < table["share high"][2]


def test_fits_have_their_mean_and_their_extreme_heads():
    fits = dict.fromkeys(AFFINE_TEXT, 0.5) | {"affine": [[0.2, 0.6], [0.4, 1.0]]}
    measured = dataset(LABELS | {"head": [1, 2]}, fits)
    table = affine_table({"m": measured}).set_index("measure")
    row = table.loc["R2 of lambda * old + sigma"]
    assert row["mean"] == pytest.approx(0.55)
    assert row["lowest head"] == pytest.approx(0.3)
    assert row["highest head"] == pytest.approx(0.8)


def test_a_fit_worse_than_none_counts_as_it_is():
    fits = dict.fromkeys(AFFINE_TEXT, 0.5) | {"affine": -0.5}
    measured = dataset(LABELS | {"head": [1, 2]}, fits)
    table = affine_table({"m": measured}).set_index("measure")
    assert table["mean"][AFFINE_TEXT["affine"]] == -0.5


def test_one_r2_far_below_0_does_not_set_the_mean_but_is_counted():
    fits = dict.fromkeys(AFFINE_TEXT, 0.5) | {"shifted": [[-1e9, 0.6], [0.4, 0.2]]}
    measured = dataset(LABELS | {"head": [1, 2]}, fits)
    table = affine_table({"m": measured}).set_index("measure")
    row = table.loc[AFFINE_TEXT["shifted"]]
    assert row["mean"] == pytest.approx(0.3)
    assert row["lowest head"] == pytest.approx(0.2)
    assert row["below 0"] == 25
    assert table["below 0"].sum() == 25
    assert measured.shifted.min() == -1e9
