"""The tables of attention against plain numpy, on measurements written by hand."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from evidence import dataset
from scipy import stats

from lib.measurement.attention import QUERIES, SPANS
from lib.measurement.measured_tables import (
    AFFINE_TEXT,
    affine_sentence,
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
from lib.statistics import interval

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


def test_n_counts_the_problems_of_each_place():
    values = np.array([[1.0, NAN, NAN], [2.0, 4.0, NAN], [4.0, 5.0, NAN]])
    labels = {"problem": ["a", "b", "c"], "layer": [1, 2, 3]}
    table = means_table(xr.DataArray(values, labels, ["problem", "layer"]))
    assert table.layer.tolist() == [1, 2]
    assert table.n.tolist() == [3, 2]
    ends = interval([4.0, 5.0])
    numbers = table.loc[1, ["mean", "low", "high"]].tolist()
    assert numbers == pytest.approx([4.5, ends.low, ends.high])


# Four problems, of which no two are of one template.
FOUR = {"network": ["trained"], "problem": ["a", "b", "c", "d"], "layer": [1]}


def wilcoxon(values):
    """Return scipy's p of the signed-rank test of a column against 0."""
    return stats.wilcoxon(values, method="asymptotic").pvalue


def test_heads_have_the_mean_over_problems_and_holms_p_over_all_of_a_models_heads():
    lam = np.array([[0.5, 0.9], [0.6, 1.2], [0.7, 1.3], [0.8, 1.0]])  # (problem, head)
    arrays = {
        "lambda": lam[:, None],
        "mass": 2 * lam[:, None],
        "flatness": 0.25,
        "dispersion": 0.125,
    }
    labels = FOUR | {"condition": ["mless"], "head": [1, 2]}
    table = heads_table({"m": dataset(labels, arrays)})
    assert table[["model", "condition", "layer"]].values.tolist() == [
        ["m", "mless", 1],
        ["m", "mless", 1],
    ]
    assert table["head"].tolist() == [1, 2]
    assert table["lambda"].tolist() == pytest.approx([0.65, 1.1])
    assert table["problems < 1"].tolist() == [1, 0.25]
    assert table["mass"].tolist() == pytest.approx([1.3, 2.2])
    assert (table.flatness == 0.25).all() and (table.dispersion == 0.125).all()
    assert table.n.tolist() == [4, 4]

    first = wilcoxon(np.log([0.5, 0.6, 0.7, 0.8]))
    second = wilcoxon(np.log([0.9, 1.2, 1.3, 1.0]))
    assert first < second
    assert table.p.tolist() == pytest.approx([2 * first, max(2 * first, second)])
    ends = interval([0.5, 0.6, 0.7, 0.8])
    assert table.loc[0, ["low", "high"]].tolist() == pytest.approx(
        [ends.low, ends.high]
    )


def test_layers_have_the_mean_over_heads_and_controls_their_extreme_heads():
    lam = np.array([[0.5, 0.9], [0.7, 1.3]])  # (problem, head)
    networks = ["trained", *UNTRAINED, UNIFORM]
    factors = np.array([1, 0.5, 0.6, 0.7, 0.8])[:, None, None, None, None]
    labels = LABELS | {"network": networks, "condition": ["mless"], "head": [1, 2]}
    arrays = {"lambda": factors * lam[:, None], "mass": 0.25, "flatness": 0.5}
    measured = {"m": dataset(labels, arrays | {"dispersion": 0.125})}
    layers = layers_table(measured).set_index("measure")["mean"]
    assert layers["lambda"] == pytest.approx(0.85)
    assert layers["mass"] == 0.25 and layers["flatness"] == 0.5
    controls = controls_table(measured, "mless")
    assert controls.control.tolist() == ["untrained", "uniform"]
    # Heads have means of 0.6 and 1.1, times the networks' factors.
    assert controls.lowest.tolist() == pytest.approx([0.6 * 0.5, 0.6 * 0.8])
    assert controls.highest.tolist() == pytest.approx([1.1 * 0.7, 1.1 * 0.8])


def test_mass_is_in_percent_beside_a_sentence_untrained_networks_and_even_attention():
    networks = ["trained", *UNTRAINED, UNIFORM]
    # Two heads, of which the second takes nothing.
    mass = np.zeros((len(networks), 2, 2, 1, 2))
    mass[0, :, :, 0, 0] = [[0.2, 0.4], [0.4, 0.6]]  # (condition, problem)
    for network, share in enumerate([0.6, 0.8, 1.0, 0.9], 1):
        mass[network, 0, :, 0, 0] = share
    labels = LABELS | {"network": networks, "condition": ["mless", "random"]}
    measured = dataset(labels | {"head": [1, 2]}, {"mass": mass})
    table = mass_table({"m": measured})
    assert list(table) == ["model", "inserted", "layer", "mass", "low", "high", "n"]
    assert table.inserted.tolist() == [
        "slashes",
        "a sentence as long",
        "slashes, untrained networks",
        "slashes, attention spread evenly",
    ]
    assert table.mass.tolist() == pytest.approx([15, 25, 40, 45])
    assert (table.layer == 1).all() and (table.n == 2).all()


@pytest.mark.parametrize(
    ("means", "words"),
    [
        ([0.55, 0.89], "R² is 0.55 to 0.89 with one λ for all tokens"),
        ([0.7], "R² is 0.70 with one λ for all tokens"),
    ],
)
def test_a_sentence_says_how_well_eq_2_fits_the_models(means, words):
    rows = [(AFFINE_TEXT[name], mean) for name in AFFINE_TEXT for mean in means]
    sentence = affine_sentence(pd.DataFrame(rows, columns=["measure", "mean"]))
    assert sentence.startswith(words)


def test_a_head_counts_where_it_surely_lies_below_or_above_1():
    heads = pd.DataFrame(
        [
            ("m", "mless", 1, 0.9, 0.01),
            ("m", "mless", 1, 1.2, 0.04),
            ("m", "mless", 1, 0.5, 0.06),
            ("m", "mless", 2, 0.5, 0.04),
        ],
        columns=["model", "condition", "layer", "lambda", "p"],
    )
    assert count_heads(heads).values.tolist() == [
        ["m", "mless", 1, 1, 1, 3],
        ["m", "mless", 2, 1, 0, 1],
    ]


def test_a_causes_share_is_of_the_log_of_both():
    both, terms = [0.5, 0.25], [0.5, 0.5]  # by problem
    distance = [1.0, 0.5]
    cause_lambda = np.array([both, terms, distance])[..., None]  # one head
    labels = LABELS | {"cause": list(CAUSES), "head": [1]}
    table = causes_table({"m": dataset(labels, {"cause_lambda": cause_lambda})})
    assert table.cause.tolist() == ["both", "terms", "distance"]
    assert table["lambda"].tolist() == [0.375, 0.5, 0.75]
    # In halvings: both has 1 and 2, terms 1 and 1, distance none and 1.
    assert table["share"].tolist() == pytest.approx([1, 2 / 3, 1 / 3])
    assert table["share low"][1] < 2 / 3 < table["share high"][1]


def test_fits_have_their_mean_and_their_extreme_heads():
    fits = dict.fromkeys(AFFINE_TEXT, 0.5) | {"affine": [[0.2, 0.6], [0.4, 1.0]]}
    measured = dataset(LABELS | {"head": [1, 2]}, fits)
    table = affine_table({"m": measured}).set_index("measure")
    row = table.loc["R2 of lambda * old + sigma"]
    assert row["mean"] == pytest.approx(0.55)
    assert row["lowest head"] == pytest.approx(0.3)
    assert row["highest head"] == pytest.approx(0.8)
