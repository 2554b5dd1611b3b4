"""The importance-weighted difference in accuracy: its properties, and its estimates on
answers that are drawn with known probabilities.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.statistics.importance_weighting import (
    differences,
    effective_sample_size,
    log_weights,
    slope_values,
)

NAMES = ["right", "log_p", "drawn_from", "problem"]


def drawn(problems, each, seed, spread=1.0):
    """Return the arrays of answers, with `each` answers of either prompt per problem.

    The log ratio is normal; its mean follows from its variance, so that the
    probabilities under each prompt add up to 1.
    """
    rng = np.random.default_rng(seed)
    problem = np.repeat(np.arange(problems), 2 * each)
    drawn_from = np.tile(np.repeat([0, 1], each), problems)
    ratio = rng.normal((drawn_from - 0.5) * spread**2, spread)
    log_p = rng.normal(-50, 5, len(ratio))[:, None] + np.array([0, 1]) * ratio[:, None]
    right = rng.random(len(ratio)) < 1 / (1 + np.exp(1 - ratio))
    values = (right, log_p, drawn_from, problem)
    return dict(zip(NAMES, values, strict=True))


samples = st.builds(drawn, st.integers(2, 40), st.integers(2, 4), st.integers(0, 10**6))


def estimates(sample):
    """Return the difference of each problem of a sample."""
    weights = log_weights(sample["log_p"], sample["log_p"])
    rest = (sample["drawn_from"], sample["problem"])
    return differences(sample["right"], weights, *rest)


def slopes(sample):
    """Return the values whose mean is the calibration slope of a sample."""
    return slope_values(sample["log_p"] @ [-1, 1], sample["drawn_from"] == 1)


@given(samples)
def test_equal_prompts_give_0(sample):
    sample["log_p"] = sample["log_p"][:, [0, 0]]
    assert not estimates(sample).any()
    weights = log_weights(sample["log_p"], sample["log_p"])
    assert effective_sample_size(weights) == pytest.approx(len(weights))
    # If both probabilities are equal, they cannot be checked against the draws.
    assert np.isnan(slopes(sample)).all()


@given(samples, st.integers(0, 10**6))
def test_the_order_of_answers_changes_nothing(sample, seed):
    order = np.random.default_rng(seed).permutation(len(sample["right"]))
    shuffled = {name: values[order] for name, values in sample.items()}
    np.testing.assert_allclose(estimates(shuffled), estimates(sample), atol=1e-8)


@given(samples)
def test_prompts_without_common_texts_give_the_unweighted_difference(sample):
    apart = np.where(sample["drawn_from"] == 1, 1000.0, -1000.0)
    sample["log_p"] = np.stack([-apart, apart], axis=1)
    second = sample["drawn_from"] == 1
    observed = sample["right"][second].mean() - sample["right"][~second].mean()
    assert estimates(sample).mean() == pytest.approx(observed, abs=1e-9)
    # For the prompts that drew the sample this is the smallest possible size.
    weights = log_weights(sample["log_p"], sample["log_p"])
    assert effective_sample_size(weights) == pytest.approx(len(weights) / 2)
    weights[:, 0] = -np.inf  # a prompt that gives none of the answers
    assert effective_sample_size(weights) == 0


@pytest.mark.parametrize("shift", [-1000, 100])
def test_the_effective_sample_size_does_not_depend_on_a_factor_of_the_weights(shift):
    sample = drawn(problems=60, each=2, seed=3)
    third = sample["log_p"][:, [0, 0]] + [0, 1] * np.array(sample["right"])[:, None]
    size = effective_sample_size(log_weights(third, sample["log_p"]))
    shifted = effective_sample_size(log_weights(third + shift, sample["log_p"]))
    assert shifted == pytest.approx(size)
