"""The studies of importance weights: simulated answers have their stated probabilities,
and mean weights are averaged over both kinds of problems.
"""

import numpy as np
import pytest
from hand_written import draws_of

from reproduction.evaluation.weighted_pass_rates import scored_draws
from studies import mean_weight, weights_simulated


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


def test_simulated_answers_are_like_the_stored_ones_and_intervals_cover_the_effect():
    weights, counting = weights_simulated.rows(2.5, simulations=300)
    assert abs(weights["bias"]) < 4 * weights["bias_error"]
    assert 90 < weights["coverage"] < 99
    assert weights["rmse"] < 0.7 * counting["rmse"]
    assert weights["excludes_0"] > counting["excludes_0"]
    assert weights["effective"] == pytest.approx(100 * 369 / 440, abs=2)
    assert weights["spread"] == pytest.approx(1.25, abs=0.1)


def test_intervals_cover_the_truth_less_often_with_one_or_two_mixed_problems():
    samples = [weights_simulated.with_few(n, 300) for n in (20, 60)]
    table = weights_simulated.by_mixed_problems(samples)
    few, enough = table.iloc[1], table[table["fewest"] >= 10]
    assert (few["fewest"], few["most"]) == (1, 2)
    assert few["coverage"] < 88
    assert (enough["coverage"] > 90).all()
    assert table["simulations"].sum() == 600


def test_the_sample_has_one_answer_of_each_problem_whose_answers_agree(monkeypatch):
    monkeypatch.setattr(mean_weight, "SAMPLE", 10)
    answers, _ = draws_of(problems=30)
    answers.loc[answers.problem_id > "p20", "right"] = False
    others = mean_weight.sampled(answers, seed=0)
    assert len(others) == others.problem_id.nunique() == 10
    assert others.condition.value_counts().to_dict() == {"none": 5, "mless": 5}
    assert not others.right.any()
    assert others.problem_id.min() > "p20"


def test_mean_weights_of_mixed_and_other_problems_are_averaged_by_their_shares():
    answers, scores = draws_of(problems=40)
    # In a quarter of the problems answers differ; there a hidden filler's weight is 1.
    is_mixed = answers.problem_id.isin([f"p{number}" for number in range(10)])
    answers.loc[~is_mixed, "right"] = False
    draws = scored_draws(answers, scores)
    name = "hidden-from-layer-1"
    others = draws[~is_mixed.to_numpy()].drop_duplicates("problem_id")
    others = others.assign(**{name: others[name] + np.log(2)})
    plain, hidden = mean_weight.table(draws, others, ["mless", name]).itertuples()
    assert plain.of_all == pytest.approx(1)
    assert hidden.of_all == pytest.approx(0.25 * 1 + 0.75 * 2)
    assert (hidden.of_mixed, hidden.of_others) == pytest.approx((1, 2))
    assert hidden.answers == 40
    (alone,) = mean_weight.table(draws, None, [name]).itertuples()
    assert alone.of_mixed == pytest.approx(1)
    assert not hasattr(alone, "of_all")
