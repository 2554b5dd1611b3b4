"""The tables of activations against plain numpy, on measurements written by hand."""

import numpy as np
import pytest
from evidence import dataset
from scipy import stats

from lib.measurement.activation_tables import (
    changes_table,
    classes_table,
    likeness_table,
    log_changes,
)
from lib.statistics import interval

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


def test_changes_are_geometric_means_over_problems_with_holms_p():
    before = np.array([[0.1, 1.0], [0.2, 2.0], [0.1, 4.0], [0.2, 8.0]])
    factor = np.array([[2.0, 1.1], [8.0, 0.5], [4.0, 1.2], [4.0, 3.0]])
    measures = np.stack([before, before * factor])[:, :, None]
    labels = MEASURES | {"problem": ["a", "b", "c", "d"]}
    table = changes_table({"m": dataset(labels, {"measures": measures})})
    assert table["measure"].tolist() == ["near zero", "L1"]
    assert (table.condition == "mless").all() and table.n.tolist() == [4, 4]
    logs = np.log(factor)
    assert table.ratio.tolist() == pytest.approx([4, np.exp(logs[:, 1].mean())])
    ends = interval(logs[:, 0])
    assert table.low[0] == pytest.approx(np.exp(ends.low))
    assert table.high[0] == pytest.approx(np.exp(ends.high))
    first = stats.wilcoxon(logs[:, 0], method="asymptotic").pvalue
    second = stats.wilcoxon(logs[:, 1], method="asymptotic").pvalue
    assert table.p.tolist() == pytest.approx([2 * first, max(2 * first, second)])


def test_likeness_is_a_mean_cosine_of_either_kind():
    labels = LABELS | {"condition": ["mful", "random", "arm"]}
    shape = np.array([[0.5, 0.7], [0.1, 0.3], [0, 0]])[..., None]
    arrays = {"shape": shape, "elements": shape / 2}
    table = likeness_table({"m": dataset(labels, arrays)})
    assert table.condition.tolist() == ["mful", "random", "arm"]
    assert table["shape"].tolist() == pytest.approx([0.6, 0.2, 0])
    assert table["elements"].tolist() == pytest.approx([0.3, 0.1, 0])
    ends = interval([0.5, 0.7])
    assert table["shape low"][0] == pytest.approx(ends.low)


def test_a_class_counts_the_problems_that_have_tokens_of_it_and_of_the_others():
    # digits, operators and others of three problems; the last has no digits.
    shares = np.array([[0.2, 0.4, 0.1], [0.4, 0.2, 0.2], [NAN, 0.3, 0.6]])
    labels = {"network": ["trained"], "condition": ["none"], "layer": [1]}
    labels |= {"problem": ["a", "b", "c"], "class": ["digits", "operators", "others"]}
    table = classes_table({"m": dataset(labels, {"classes": shares[:, None]})})
    assert table["class"].tolist() == ["digits", "operators", "others"]
    assert table.n.tolist() == [2, 3, 3]
    assert table["near zero"].tolist() == pytest.approx([30, 30, 30])
    assert table["against others"].tolist() == pytest.approx([15, 0, 0])
    ends = interval([10, 20])
    assert table["against low"][0] == pytest.approx(ends.low)
    assert table["against high"][0] == pytest.approx(ends.high)
