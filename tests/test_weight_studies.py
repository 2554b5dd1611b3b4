"""The study of importance weights: simulated answers have their stated
probabilities.
"""

import numpy as np
import pytest

from lib.statistics.importance_weighting import effective_sample_size, log_weights
from studies import weights_simulated


@pytest.mark.parametrize("effect", [0, 2.5])
def test_simulated_prompts_differ_by_the_effect_and_weights_average_1(effect):
    rng = np.random.default_rng(0)
    rates = weights_simulated.pass_rates((80, 500), effect, rng)
    right, ratio = weights_simulated.draw(rates, rng)
    by_prompt = rates.mean((0, 1))
    assert 100 * (by_prompt[1] - by_prompt[0]) == pytest.approx(effect, abs=0.3)
    assert right.mean((0, 1, 3)) == pytest.approx(by_prompt, abs=0.006)
    # The probabilities of one prompt's answers, reweighted to the other, add up to 1.
    assert np.exp(ratio[:, :, 0]).mean() == pytest.approx(1, abs=0.05)
    assert np.exp(-ratio[:, :, 1]).mean() == pytest.approx(1, abs=0.05)


def test_simulated_answers_are_like_the_stored_ones():
    rng = np.random.default_rng(0)
    rates = weights_simulated.pass_rates((300, 500), 2.5, rng)
    right, ratio = weights_simulated.draw(rates, rng)
    of_mixed = ratio[weights_simulated.is_mixed(right)].ravel()
    assert of_mixed.std() == pytest.approx(1.25, abs=0.1)
    log_p = np.stack([np.zeros_like(of_mixed), of_mixed], axis=1)
    effective = effective_sample_size(log_weights(log_p, log_p)) / len(of_mixed)
    assert effective == pytest.approx(369 / 440, abs=0.02)


def test_weights_are_precise_and_their_intervals_cover_the_effect():
    weights, counting = weights_simulated.rows(2.5, simulations=300)
    assert abs(weights["bias"]) < 4 * weights["bias_error"]
    assert 90 < weights["coverage"] < 99
    assert weights["rmse"] < 0.7 * counting["rmse"]
    assert weights["excludes_0"] > counting["excludes_0"]


def test_intervals_cover_the_truth_less_often_with_one_or_two_mixed_problems():
    samples = [weights_simulated.with_few(n, 300) for n in (20, 60)]
    table = weights_simulated.by_mixed_problems(samples)
    few, enough = table.iloc[1], table[table["fewest"] >= 10]
    assert (few["fewest"], few["most"]) == (1, 2)
    assert few["coverage"] < 88
    assert (enough["coverage"] > 90).all()
    assert table["simulations"].sum() == 600
