"""The studies of importance weights: simulated answers have their stated probabilities,
and each rival estimator has its known bias and cost.
"""

import numpy as np
import pandas as pd
import pytest
from hand_written import draws_of

from lib.errors import InputError
from lib.evaluation.weighted_pass_rates import scored_draws
from lib.prompts.problems import load_problems, sampling_order
from studies import (
    mean_weight,
    rival_estimators,
    second_model,
    simulated,
    weights_checks,
    weights_coverage,
    weights_few,
    weights_figure,
    weights_rivals,
)


def sampled(effect, each=2, shape=(40, 500)):
    rng = np.random.default_rng(0)
    problems = simulated.problems(shape, effect, rng)
    return problems, simulated.draw(problems, each, rng), rng


@pytest.mark.parametrize("effect", [0, 2.5])
def test_simulated_prompts_differ_by_the_effect_and_weights_average_1(effect):
    problems, draws, _ = sampled(effect, each=4)
    rates = problems.rates.mean((0, 1))
    assert 100 * (rates[1] - rates[0]) == pytest.approx(effect, abs=0.3)
    assert draws.right.mean((0, 1, 3)) == pytest.approx(rates, abs=0.006)
    # The probabilities of one prompt's answers, reweighted to the other, add up to 1.
    first, second = draws.ratio[:, :, 0], draws.ratio[:, :, 1]
    assert np.exp(first).mean() == pytest.approx(1, abs=0.05)
    assert np.exp(-second).mean() == pytest.approx(1, abs=0.05)


def test_simulated_answers_are_like_the_stored_ones():
    alike = weights_coverage.regime(*sampled(0)[:2])
    assert alike["right"] == pytest.approx(9.6, abs=0.5)
    assert alike["mixed"] == pytest.approx(22, abs=1)
    assert alike["effective"] == pytest.approx(100 * 369 / 440, abs=2)
    assert alike["spread"] == pytest.approx(1.25, abs=0.1)
    # Most of the variance is sampling noise.
    assert 0.9 < alike["variance_of_draws"] / alike["variance"] < 0.95


def test_weights_are_unbiased_and_cover_the_effect_on_new_problems():
    weights, counting = weights_coverage.rows(2.5, simulations=300)
    assert abs(weights["bias"]) < 4 * weights["bias_error"]
    assert 90 < weights["coverage"] < 99
    assert weights["rmse"] < 0.7 * counting["rmse"]
    assert weights["excludes_0"] > counting["excludes_0"]


def test_errors_of_a_study_are_those_over_simulations():
    by_problem = np.random.default_rng(0).normal(1, 20, (4000, 50))
    found = simulated.accuracy_of_estimates(by_problem, effect=1)
    assert found["rmse"] == pytest.approx(20 / 50**0.5, rel=0.01)
    # The standard error of a variance of normal numbers, and of its root.
    assert found["rmse_error"] / found["rmse"] == pytest.approx(
        (2 / by_problem.size) ** 0.5 / 2, rel=0.1
    )


def test_intervals_cover_the_truth_less_often_with_one_or_two_mixed_problems():
    table = weights_few.table([weights_few.sampled(n, 300) for n in (20, 60)])
    few, enough = table.iloc[1], table[table["fewest"] >= 10]
    assert (few["fewest"], few["most"]) == (1, 2)
    assert few["coverage"] < 88
    assert (enough["coverage"] > 90).all()
    assert table["simulations"].sum() == 600


UNBIASED = ["this method", "paired counting", "answers of one prompt alone"]
UNBIASED += ["common random numbers, at best", "without a baseline", "doubly robust"]
UNBIASED += ["common random numbers, token by token"]
UNBIASED += ["new answers, with some of the others"]
TRAPS = ["more answers where they were mixed", "allocation by first answers"]


@pytest.mark.parametrize("name", rival_estimators.WAYS)
def test_an_estimator_is_unbiased_or_biased_as_documented(name):
    way, _ = rival_estimators.WAYS[name]
    problems, _, rng = sampled(6, shape=(100, 500))
    points, cost = way(problems, 2, rng)
    means = points.mean(1)
    error = means.std() / len(means) ** 0.5
    assert cost.mean() >= 4
    if name in UNBIASED:
        assert abs(means.mean() - 6) < 4 * error
    else:
        # All other estimators underestimate the effect.
        assert means.mean() < 6 - 4 * error


def test_more_answers_to_mixed_problems_lose_the_effect_of_the_others():
    problems, _, rng = sampled(6, shape=(100, 500))
    points, _ = rival_estimators.more_where_mixed(problems, 2, rng)
    rates = problems.rates
    mixed = 1 - (rates.prod(-1) ** 2 + (1 - rates).prod(-1) ** 2)
    effect = 100 * (rates[..., 1] - rates[..., 0])
    expected = (effect * (1 + mixed) / 2).mean()
    assert points.mean() == pytest.approx(expected, abs=0.3)


def test_coupled_answers_differ_no_more_often_than_their_probabilities_do():
    problems, draws, rng = sampled(0, shape=(100, 500))
    points, _ = rival_estimators.by_coupling(problems, 1, rng)
    apart = np.abs(np.tanh(draws.ratio / 2)).mean()
    right = problems.rates.mean(-1)
    # Coupled answers that differ are independent, so one of them is right and the other
    # wrong with probability 2 r (1 - r).
    expected = (2 * right * (1 - right)).mean() * apart
    assert (points != 0).mean() == pytest.approx(expected, rel=0.1)


def test_a_way_that_costs_more_has_fewer_problems():
    names = ("this method", "paired counting", "doubly robust")
    rows = [weights_rivals.row(name, 2, 500, simulations=3) for name in names]
    counts = [row["problems"] for row in rows]
    costs = [row["cost"] for row in rows]
    assert costs[1] == 4 < costs[0] < costs[2] == 8
    assert counts == [round(500 / cost) for cost in costs]


def checked(name, simulations=20):
    as_scored = weights_checks.simulated("as scored", simulations)
    found = weights_checks.simulated(name, simulations)
    return weights_checks.row(name, found, as_scored)


def test_the_checks_detect_another_temperature_and_pass_the_right_one():
    right, hot = checked("as scored"), checked("temperature 1")
    assert right["slope"] == pytest.approx(1, abs=0.1)
    assert hot["slope"] == pytest.approx(0.6, abs=0.1)
    assert right["withheld"] < 40 < 90 < hot["withheld"]
    assert (right["bias"], right["bias_error"]) == (0, 0)
    assert abs(hot["bias"]) < 4 * hot["bias_error"] + 0.5


def test_an_error_of_one_prompts_scores_moves_the_mean_weight_and_not_the_slope():
    wrong = checked("scores of one prompt 1 nat too high")
    assert wrong["slope"] == pytest.approx(checked("as scored")["slope"])
    assert wrong["rounding"] == pytest.approx(1)
    assert wrong["second_mean"] > 1.2
    assert wrong["second_excludes_1"] == wrong["withheld"] == 100


def test_simulated_rounding_is_as_large_as_that_of_bfloat16():
    rounded = weights_checks.simulated("rounding as of bfloat16", simulations=3)
    assert rounded["rounding"].mean() == pytest.approx(
        weights_checks.BFLOAT16_CHANGE, abs=0.03
    )


def test_top_p_keeps_the_most_probable_tokens():
    chances = np.array([0.5, 0.3, 0.15, 0.05])
    logits = np.broadcast_to(np.log(chances), (2000, 4))
    rng = np.random.default_rng(0)
    found = np.bincount(weights_checks._chosen(logits, 0.7, rng), minlength=4) / 2000
    assert found == pytest.approx([5 / 8, 3 / 8, 0, 0], abs=0.04)


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


@pytest.mark.parametrize(
    ("gold", "response", "right"),
    [
        ("16", "First $2$, then $8 \\times 2 = 16$.", True),
        ("16", "It is 16, and 16 + 16 = 32.", False),
        ("16", "I cannot say.", False),
        ("16", "16.0", True),
        ("1200", "The total is $1,200.", True),
        ("12", "They are 1, 12.", True),
        (r"\frac{3}{7}", "The chance is 3/7.", True),
        (r"\frac{3}{7}", r"It is $\frac{6}{14}$.", True),
        (r"\frac{3}{7}", r"It is $\frac{3}{8}$.", False),
        ("5", "x = -5", False),
    ],
)
def test_the_last_number_of_an_answer_that_ended_decides(gold, response, right):
    answer = {"answer": gold, "response": response}
    rows = pd.DataFrame([answer | {"finish_reason": end} for end in ("stop", "length")])
    assert second_model.right_by_last_number(rows).tolist() == [right, False]


def test_the_largest_sample_that_is_answered_completely_is_taken():
    order = [p.id for p in sampling_order(load_problems("embedded"), seed=0)]
    answers = pd.DataFrame({"problem_id": np.repeat(order[:180], 4)})
    assert len(second_model.largest_sample(answers)) == 4 * 150
    assert len(second_model.largest_sample(answers.drop(index=500))) == 4 * 100
    with pytest.raises(InputError, match="each of 50 problems"):
        second_model.largest_sample(answers.drop(index=20))


def test_weighting_and_counting_are_compared_over_kinds_and_over_problems():
    answers, scores = draws_of(problems=60)
    kinds = {f"p{n}": f"embedded/{'abcdef'[n // 10]}/{n}" for n in range(60)}
    for table in (answers, scores):
        table["problem_id"] = table["problem_id"].map(kinds)
    # By the box, one of four answers is right, in three kinds; by the last number none.
    answers["right"] &= answers.problem_id < "embedded/d"
    answers = answers.assign(answer="1", response="2")
    table = second_model.table(answers, scores).set_index(["grader", "unit"])

    assert set(table.loc["last number"].mixed_problems) == {0}
    by_kind, by_problem = table.loc["box", "kinds"], table.loc["box", "problems"]
    assert (by_kind.mixed_units, by_problem.mixed_units) == (3, 30)
    # Where both prompts make all answers as likely, weighting gives exactly 0.
    assert (by_kind.points, by_kind.observed) == pytest.approx((0, -25))
    assert by_kind.apart == pytest.approx(25)
    assert by_kind.apart_low < by_problem.apart_low < by_problem.apart_high
    assert by_problem.apart_high < by_kind.apart_high
    assert by_kind.mean_weight == pytest.approx(1)
    assert (by_kind.right_none, by_kind.right_mless) == (25, 0)


def test_the_figure_has_a_mark_for_each_estimator_and_check():
    rivals = pd.DataFrame({"way": ["one", "two"], "answers": [4, 8]})
    rivals = rivals.assign(rmse=[0.5, 0.7], bias=[0.0, -0.2])
    checks = pd.DataFrame({"drawn": ["as scored"], "slope_excludes_1": [5.0]})
    checks = checks.assign(second_excludes_1=[3.0], third_excludes_1=[4.0])
    checks = checks.assign(withheld=[9.0])
    upper, lower = weights_figure.drawn(rivals, checks).axes
    assert [list(line.get_xdata()) for line in upper.lines[:2]] == [
        [0.5, 0.7],
        [0.0, -0.2],
    ]
    names = [label.get_text() for label in upper.get_yticklabels()]
    assert names == ["one, 4 answers", "two, 8 answers"]
    assert [line.get_xdata()[0] for line in lower.lines] == [5, 3, 4, 9]
