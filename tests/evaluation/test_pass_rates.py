"""Weighted pass rates on a model that can give ten texts, whose expectation is summed
over every draw there can be.
"""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from lib.errors import InputError
from lib.evaluation.pass_rates import (
    counted,
    is_divided,
    pass_rate_table,
    point_differences,
    scored_draws,
    slope_of_halves,
)

RIGHT = np.array([1, 1, 0, 1, 0, 0, 0, 1, 0, 0], dtype=bool)
CONDITIONS = ("none", "mless", "layer-1-only")


def probabilities(seed=0):
    """Return by condition the probabilities of ten texts, none of which is 0."""
    rng = np.random.default_rng(seed)
    return {name: rng.dirichlet(np.full(10, 2.0)) for name in CONDITIONS}


def draws_of(texts, halves, p, problem="a", model="tiny"):
    """Return the rows of drawn texts, as `scored_draws` has them."""
    texts = np.asarray(texts)
    columns = {name: np.log(p[name][texts]) for name in CONDITIONS}
    return pd.DataFrame(
        {
            "model": model,
            "problem_id": problem,
            "drawn_under": halves,
            "sample": range(len(texts)),
            "right": RIGHT[texts],
            "finish_reason": "stop",
            **columns,
        }
    )


HALVES = ["none", "none", "mless", "mless"]


@pytest.mark.parametrize(
    "more, less",
    [("mless", "none"), ("layer-1-only", "none"), ("none", "layer-1-only")],
)
def test_the_mean_over_all_draws_is_the_exact_difference(more, less):
    p = probabilities()
    tuples = np.array(list(product(range(10), repeat=4)))
    chance = p["none"][tuples[:, :2]].prod(1) * p["mless"][tuples[:, 2:]].prod(1)
    texts = tuples.ravel()
    table = draws_of(texts, HALVES * len(tuples), p)
    table["problem_id"] = np.repeat(np.arange(len(tuples)), 4)
    expected = 100 * (p[more] - p[less]) @ RIGHT
    assert point_differences(table, more, less) @ chance == pytest.approx(
        expected, abs=1e-9
    )


# Log p of four answers, two of each half, of which the second is wrong.
FOUR = {"none": [4, 2, 2, 1], "mless": [2, 2, 4, 1], "layer-1-only": [6, 2, 2, 1]}


def four_draws(problem="a", model="tiny"):
    """Return four answers to a problem, whose probabilities are eighths."""
    eighths = {name: np.log(np.array(p) / 8) for name, p in FOUR.items()}
    rows = {"model": model, "problem_id": problem, "drawn_under": HALVES}
    rows |= {"sample": range(4), "right": [True, False, True, True]}
    rows["finish_reason"] = ["length", "stop", "stop", "context"]
    return pd.DataFrame(rows | eighths)


def test_four_answers_are_weighed_as_by_hand():
    # p / p_mix is 2/3, 1, 4/3, 1 under mless, and 4/3, 1, 2/3, 1 under none. The other
    # answers' pass rate is (0 + 1) / 2 of the first and (1 + 1/2) / 2 of the third.
    first = (1 - 1 / 2) * (2 / 3 - 4 / 3)
    third = (1 - 3 / 4) * (4 / 3 - 2 / 3)
    points = point_differences(four_draws(), "mless", "none")
    assert points["a"] == pytest.approx(100 * (first + third) / 4)
    # One of two is right under none, and both under mless.
    assert counted(four_draws())["a"] == 50


def test_a_row_says_what_its_number_rests_on():
    agreed = four_draws("c").assign(right=True, finish_reason="stop")
    draws = pd.concat([four_draws("a"), four_draws("b"), agreed])
    (row,) = pass_rate_table(draws, [("mless", "none")]).to_dict("records")
    # What all answers to a problem agree on is multiplied by 0.
    assert (row["n"], row["divided"], row["answers"]) == (3, 2, 8)
    # Of each four answers log p differs by -log 2, 0, log 2 and 0.
    assert row["spread"] == pytest.approx(np.log(2) * (4 / 7) ** 0.5)
    assert row["cut_none"] == pytest.approx(100 * 2 / 6)
    assert row["cut_mless"] == 0


@pytest.mark.parametrize("pair", [("none", "layer-1-only"), ("layer-1-only", "none")])
def test_weights_are_told_of_the_condition_with_fewer_effective_answers(pair):
    # Under none they are 4/3, 1, 2/3, 1; under layer-1-only 2, 1, 2/3, 1.
    agreed = four_draws("c").assign(right=True)
    draws = pd.concat([four_draws(), agreed])
    (row,) = pass_rate_table(draws, [pair]).to_dict("records")
    squares = 2**2 + 1 + (2 / 3) ** 2 + 1
    assert row["effective"] == pytest.approx((2 + 1 + 2 / 3 + 1) ** 2 / squares)
    assert row["largest_weight"] == pytest.approx(2)
    assert np.isnan(row["counted"])


def halves(ratio, slope):
    """Return answers with these log ratios, drawn with chances of another slope."""
    rng = np.random.default_rng(0)
    under_mless = rng.random(len(ratio)) < 1 / (1 + np.exp(-slope * ratio))
    return pd.DataFrame(
        {
            "problem_id": np.arange(len(ratio)) // 4,
            "drawn_under": np.where(under_mless, "mless", "none"),
            "none": -50.0,
            "mless": ratio - 50,
        }
    )


@pytest.mark.parametrize("true_slope", [1, 0.3])
def test_the_slope_of_the_halves_is_1_where_draws_have_the_scored_chances(true_slope):
    ratio = np.random.default_rng(1).normal(0.3, 1, 2000)
    slope, low, high = slope_of_halves(halves(ratio, true_slope))
    assert low < true_slope < high
    assert 0.1 < high - low < 0.3
    assert low < slope < high


def test_the_slopes_interval_is_over_problems_and_of_what_is_scored():
    drawn = halves(np.random.default_rng(1).normal(0, 1, 400), 1)
    copied = pd.concat([drawn] * 4)
    assert slope_of_halves(copied) == pytest.approx(slope_of_halves(drawn))
    unscored = pd.concat([drawn, drawn.assign(drawn_under="mless", mless=np.nan)])
    assert slope_of_halves(unscored) == pytest.approx(slope_of_halves(drawn))
    assert np.isnan(slope_of_halves(drawn[drawn.drawn_under == "none"])).all()
    assert np.isnan(slope_of_halves(drawn.drop(columns="mless"))).all()


def test_models_have_rows_of_their_own():
    p = probabilities()
    tables = [sampled(20, p, seed).assign(model=f"m{seed}") for seed in (0, 1)]
    together = pass_rate_table(pd.concat(tables), [("mless", "none")])
    alone = [pass_rate_table(table, [("mless", "none")]) for table in tables]
    pd.testing.assert_frame_equal(together, pd.concat(alone, ignore_index=True))


def test_problems_of_one_template_count_as_one():
    alone = sampled(20, probabilities())
    copies = []
    for copy in range(4):
        template = "embedded/" + alone["problem_id"]
        copies.append(alone.assign(problem_id=template + f"/{copy}"))
    tables = [
        pass_rate_table(draws, [("mless", "none")])
        for draws in (alone, pd.concat(copies))
    ]
    once, repeated = (table.iloc[0] for table in tables)
    assert (once.n, repeated.n) == (20, 80)
    ends = ["points", "low", "high", "counted", "counted_low", "counted_high"]
    assert repeated[ends].tolist() == pytest.approx(once[ends].tolist())


def sampled(problems, p, seed=0):
    rng = np.random.default_rng(seed)
    parts = [
        draws_of(
            [rng.choice(10, p=p[half]) for half in HALVES], HALVES, p, problem=f"p{i}"
        )
        for i in range(problems)
    ]
    return pd.concat(parts, ignore_index=True)


def test_where_weights_explode_no_number_is_told():
    p = probabilities(2)
    skewed = p["mless"] ** 6  # nearly always one of its texts
    p |= {"layer-1-only": skewed / skewed.sum()}
    draws = sampled(40, p)
    table = pass_rate_table(draws, [("mless", "none"), ("layer-1-only", "mless")])
    ends = table[["points", "low", "high"]]
    assert ends.isna().all(axis=1).tolist() == [False, True]
    with pytest.raises(InputError, match="weights of answers explode between layer-1"):
        point_differences(draws, "layer-1-only", "mless")


def test_where_few_answers_have_the_weight_of_slashes_they_are_counted_alone():
    # An answer in sixty is likely under mless alone, and all others nearly never.
    draws = sampled(60, probabilities()).assign(none=0.0, mless=-12.0)
    draws.loc[draws.index[::60], ["none", "mless"]] = -12.0, 0.0
    (row,) = pass_rate_table(draws, [("mless", "none")]).to_dict("records")
    assert np.isnan(row["points"])
    assert row["counted"] == pytest.approx(counted(draws).mean())
    with pytest.raises(InputError, match="explode between mless and none"):
        point_differences(draws, "mless", "none")


@pytest.mark.parametrize("effective, is_told", [(11, True), (9, False)])
def test_half_of_the_answers_have_to_be_effective(effective, is_told):
    # Of twenty answers so many have weight 1 and the others nearly none.
    draws = pd.concat([four_draws(problem) for problem in "abcde"])
    draws = draws.assign(none=0.0, mless=0.0)
    draws["layer-1-only"] = [0.0] * effective + [-50.0] * (20 - effective)
    (row,) = pass_rate_table(draws, [("layer-1-only", "none")]).to_dict("records")
    assert row["effective"] == pytest.approx(effective)
    assert np.isnan(row["points"]) != is_told


def test_a_pair_that_is_not_scored_has_no_row():
    assert pass_rate_table(sampled(3, probabilities()), [("gap", "none")]).empty


def test_answers_that_agree_need_no_weights_and_count_as_no_difference():
    draws = sampled(30, probabilities())
    divided = draws.groupby("problem_id")["right"].transform("nunique") == 2
    assert 0 < divided.sum() < len(draws)
    whole = point_differences(draws, "layer-1-only", "none")
    pair = [("layer-1-only", "none")]
    of_all = pass_rate_table(draws, pair).iloc[0]

    draws.loc[~divided, list(CONDITIONS)] = np.nan
    points = point_differences(draws, "layer-1-only", "none")
    pd.testing.assert_series_equal(points, whole)
    assert (points[~points.index.isin(draws.problem_id[divided])] == 0).all()
    row = pass_rate_table(draws, pair).iloc[0]
    same = ["points", "low", "high", "n", "answers", "largest_weight"]
    assert row[same].tolist() == of_all[same].tolist()
    assert row.answers == divided.sum()
    assert row.effective == of_all.effective < row.answers


def test_where_all_answers_agree_nothing_is_weighted_and_nothing_differs():
    draws = sampled(3, probabilities()).assign(right=True)
    draws[list(CONDITIONS)] = np.nan
    assert point_differences(draws, "mless", "none").tolist() == [0, 0, 0]
    (row,) = pass_rate_table(draws, [("mless", "none")]).to_dict("records")
    assert (row["n"], row["divided"], row["points"]) == (3, 0, 0)


def test_divided_is_a_problem_of_one_model():
    table = four_draws().assign(right=True)
    other = four_draws(model="other").assign(right=False)
    both = pd.concat([table, other, four_draws("b")])
    assert is_divided(both).tolist() == [False] * 8 + [True] * 4


def test_scores_that_decide_must_be_whole():
    # A choice of the problems whose answers are scored would be none of chance.
    draws = sampled(3, probabilities())
    draws["right"] = [True, False] * 6
    pair = ("layer-1-only", "none")
    draws.loc[[0, 1], "layer-1-only"] = np.nan
    with pytest.raises(InputError, match="2 answers that decide are not scored under"):
        point_differences(draws, *pair)
    assert pass_rate_table(draws, [pair]).empty
    assert len(pass_rate_table(draws, [("mless", "none")])) == 1


def test_problems_with_one_answer_of_a_half_are_left_out():
    draws = sampled(3, probabilities())
    one_of_a_half = draws.drop(index=3)
    assert list(point_differences(one_of_a_half, "mless", "none").index) == ["p1", "p2"]
    without_a_half = draws[draws.drawn_under == "none"]
    assert pass_rate_table(without_a_half, [("mless", "none")]).empty
    with pytest.raises(InputError, match="two answers of each half"):
        point_differences(without_a_half, "mless", "none")


def test_answers_are_joined_with_their_scores_by_key():
    answers = pd.DataFrame(
        {
            "key": ["k1", "k2", "not scored"],
            "model": "tiny",
            "problem_id": "a",
            "condition": ["none", "mless", "mless"],
            "sample": [0, 0, 1],
            "right": [True, False, True],
            "finish_reason": "stop",
        }
    )
    scores = pd.DataFrame(
        {
            "answer": ["k2", "k1", "k2"],
            "condition": ["none", "none", "mless"],
            "nats": [-3.0, -1.0, -2.0],
        }
    )
    draws = scored_draws(answers, scores)
    assert draws["drawn_under"].tolist() == ["none", "mless", "mless"]
    assert draws["none"].fillna(0).tolist() == [-1.0, -3.0, 0]
    assert draws["mless"].isna().tolist() == [True, False, True]
