"""What the studies of the findings count, on scores that can be checked by eye."""

import numpy as np
import pandas as pd
import pytest

from lib.errors import InputError
from lib.evaluation.pass_rates import counted, scored_draws, weighted
from lib.evaluation.records import frame
from lib.prompts.problems import Problem
from studies import (
    again,
    authors_rule,
    bfloat16,
    hints,
    own_problems,
    pass_rates,
    weights,
)
from studies.plain import compared
from tests.support.hand_written import record


def scores_of(model, **nats):
    """Rows of scores: a list of log p per condition, one for each problem."""
    rows = []
    for condition, values in nats.items():
        for number, value in enumerate(values):
            row = {"model": model, "target": "solution", "condition": condition}
            rows.append(row | {"problem_id": f"p{number}", "nats": value})
    return pd.DataFrame(rows)


def test_plain_prompts_stand_beside_chat_on_the_same_problems():
    plain = scores_of("tiny", none=[-10, -20, -30], mless=[-9, -18, -27])
    # A fourth problem was scored in chat alone.
    chat = scores_of("tiny", none=[-5, -5, -5, -5], mless=[-5, -6, -7, -99])
    table = compared(plain, chat)
    slashes = table.iloc[0]
    assert slashes.more == "mless"
    assert slashes.less == "none"

    assert slashes.n == 3
    assert slashes.effect == 2
    assert slashes.low < 2
    assert slashes.high > 2

    assert slashes.n_in_chat == 3
    assert slashes.effect_in_chat == -1


def test_what_was_not_scored_has_no_number():
    plain = scores_of("tiny", none=[-10, -20], mless=[-9, -18])
    table = compared(plain, plain)
    sentence = table[table.more == "random"]
    assert len(sentence) == 1
    assert sentence.effect.isna().all()
    assert sentence.n.isna().all()
    assert sentence.effect_in_chat.isna().all()


def test_a_model_that_has_no_chat_scores_has_plain_ones_alone():
    plain = scores_of("base", none=[-10, -20], mless=[-11, -21])
    chat = scores_of("other", none=[-1, -1], mless=[-2, -2])
    table = compared(plain, chat)
    assert table.effect[0] == pytest.approx(-1)
    assert "effect_in_chat" not in table


def draws_of(problems):
    """Two answers under none and two under mless to each problem, of which the first is
    right, and their log p under three conditions.
    """
    answers = []
    scores = []
    for number in range(problems):
        for place, condition in enumerate(["none", "none", "mless", "mless"]):
            key = f"{number}-{place}"
            answer = {"key": key, "model": "tiny", "problem_id": f"p{number}"}
            answer |= {"condition": condition, "sample": place % 2, "right": place == 0}
            answer["finish_reason"] = "stop"
            answers.append(answer)
            for seen in ("none", "mless", "hidden-from-layer-1"):
                score = {"answer": key, "model": "tiny", "problem_id": f"p{number}"}
                scores.append(score | {"condition": seen, "nats": -50.0})
    return pd.DataFrame(answers), pd.DataFrame(scores)


def test_rounding_is_compared_on_the_same_answers():
    answers, exact = draws_of(problems=30)
    rounded = exact.copy()
    is_slashed = rounded.condition == "mless"
    is_first = rounded.answer.str.endswith("-0")
    # Slashes make the right answers likelier where they are rounded, and none other.
    rounded.loc[is_slashed & is_first, "nats"] += 0.4
    # Answers of which the stored scores know nothing.
    unknown = rounded.assign(answer=rounded.answer + "-new")
    table = bfloat16.compared(answers, exact, pd.concat([rounded, unknown]))

    assert list(zip(table.more, table.less, strict=True)) == bfloat16.PAIRS
    slashes, layer_1 = table.to_dict("records")
    assert (slashes["n"], slashes["scored"]) == (30, 120)
    for row in (slashes, layer_1):
        assert row["ratio_change"] == pytest.approx(0.1)
        assert row["ratio_change_largest"] == pytest.approx(0.4)
        assert row["points_float32"] == 0
        assert row["points_bfloat16"] > 1
        assert row["spread_float32"] == 0


def test_rounding_of_a_change_is_what_both_conditions_do_not_share():
    answers, exact = draws_of(problems=30)
    rounded = exact.assign(nats=exact.nats + 0.3)
    rounded.loc[rounded.condition == "mless", "nats"] -= 0.5
    for row in bfloat16.compared(answers, exact, rounded).to_dict("records"):
        assert row["ratio_change"] == pytest.approx(0.5)


def test_answers_that_are_scored_in_one_dtype_alone_are_no_comparison():
    answers, exact = draws_of(problems=30)
    with pytest.raises(InputError, match=r"^tiny: answers that decide lack a score"):
        bfloat16.compared(answers, exact, exact[exact.answer != "3-1"])


def test_the_prompt_decides_by_the_authors_rule_where_an_answer_has_no_box():
    responses = [r"\boxed{12}", r"\boxed{2}", "I do not know.", r"\boxed{}"]
    rows = []
    for condition in ("none", "bare"):
        for number, response in enumerate(responses):
            row = {"model": "tiny", "condition": condition, "sample": 0}
            row |= {"problem_id": f"p{number}", "answer": "12", "response": response}
            rows.append(row | {"correct": number == 0})
    table = pd.DataFrame(authors_rule.compared(frame(rows)))
    shares = table.set_index("condition")[["n", *authors_rule.GRADERS]].T.to_dict()
    # The bare condition has no instruction, and so no box.
    assert list(shares["none"].values()) == [4, 25, 100, 75, 75]
    assert list(shares["bare"].values()) == [4, 25, 75, 75, 75]
    assert (table.rule_our_prompt_low < table.rule_our_prompt_high).all()


def test_checks_of_weights_leave_out_what_the_weights_do_not_allow():
    answers, scores = draws_of(problems=30)
    answers.loc[answers.problem_id.isin(["p0", "p1"]), "right"] = False
    draws = scored_draws(answers, scores)
    table = weights.checks(draws)
    assert list(table["more"]) == ["mless", "mless"]
    slashes = table.iloc[0]
    assert (slashes["n"], slashes["divided"], slashes["answers"]) == (30, 28, 112)
    draws.loc[2, "hidden-from-layer-1"] += 12  # one answer of p2 has all the weight
    draws.loc[8, "hidden-from-layer-1"] += 12
    refused = weights.checks(draws)
    assert list(refused["refused"]) == [False, True]
    assert refused["points"].isna().tolist() == [False, True]


def test_problems_up_to_the_last_look_are_told_apart_from_the_others(monkeypatch):
    monkeypatch.setattr(weights, "LAST_LOOK", 10)
    answers, scores = draws_of(problems=30)
    answers["level"] = 1
    first, others = weights.blocks(scored_draws(answers, scores), answers, seed=0).n
    assert (first, others) == (10, 20)


def test_simulated_answers_are_drawn_with_the_chances_that_they_are_given():
    rng = np.random.default_rng(1)
    draws, truth = pass_rates.draw(20_000, 0.9, rng)
    assert len(draws) == 80_000
    assert abs(counted(draws).mean() - truth) < 1
    assert abs(weighted(draws, "mless", "none").mean() - truth) < 0.5
    # The chances of what was drawn lie above those of twelve like answers.
    assert draws[["none", "mless"]].mean().min() > -np.log(12)


def test_weights_are_narrower_than_counts_where_conditions_are_alike():
    alike = pass_rates.simulate(problems=120, noise=0.3, simulations=12)
    assert alike["half_width_weights"] < alike["half_width_counting"] / 2
    assert abs(alike["bias_weights"]) < 1


@pytest.mark.parametrize(
    ("solution", "holds"),
    [
        ("We get $x = \\boxed{12}$. Done.", True),
        ("The sum is 12.", True),
        ("The sum is 112.", False),
        ("The sum is 12.5 at least.", False),
        ("Add both. The sum is 12.", False),
    ],
)
def test_a_hint_holds_the_answer_as_a_number_of_its_own(solution, holds):
    # The problem itself names the answer, which is no hint.
    asked = Problem(unique_id="p0", problem="Is it 12?", answer="12", solution=solution)
    assert hints.holds_answer(asked) == holds


def test_hints_are_compared_apart_by_what_they_hold():
    problems = [
        Problem(unique_id="p0", problem="?", answer="3", solution="It is 3."),
        Problem(unique_id="p1", problem="?", answer="4", solution="Think."),
    ]
    rows = [
        record("none", "p0", correct=False),
        record("hint", "p0", correct=True),
        record("none", "p1", correct=True),
        record("hint", "p1", correct=True),
    ]
    table = hints.compared(frame(rows, "comparisons"), problems)
    assert list(table.holds_answer) == [False, True]
    assert list(table.effect) == [0, 100]
    assert list(table.accuracy_none) == [100, 0]


def test_an_expression_that_is_repeated_equals_the_answer_and_is_not_worked_out():
    rows = [
        record("none", "embedded/sum/001", correct=True, evaluated=True),
        record("none", "embedded/draw/001", correct=False),
        record("mless", "embedded/sum/001", correct=True, evaluated=False),
        record("mless", "embedded/draw/001", correct=True, evaluated=False),
    ]
    of_none, slashes = own_problems.compared(frame(rows)).to_dict("records")
    assert (of_none["accuracy"], of_none["equal"]) == (50, 50)
    assert (slashes["accuracy"], slashes["equal"]) == (0, 100)
    assert (slashes["effect"], slashes["equal_effect"]) == (-50, 50)


def test_answers_that_are_asked_again_are_compared_by_key_and_processors():
    first = pd.DataFrame({"key": ["a", "b", "c"], "response": ["1", "2", "3"]})
    first = first.assign(part="main", model="tiny", dtype="float32", processor="GPU")
    first["right"] = [True, False, True]
    second = first.assign(processor="CPU", response=["1", "4", "5"])
    second["right"] = [True, True, False]
    known = second[second.key != "a"]
    (row,) = again.compared(first, known).reset_index().to_dict("records")
    assert (row["processor"], row["processor_again"]) == ("GPU", "CPU")
    assert (row["n"], row["other_text"], row["lost"], row["gained"]) == (2, 2, 1, 1)


def test_scores_that_are_computed_again_are_told_apart_by_the_condition():
    first = pd.DataFrame({"key": ["a", "b", "c"], "nats": [-1.0, -2.0, -3.0]})
    first["condition"] = ["none", "none", "arm"]
    first = first.assign(model="tiny", dtype="float32", processor="GPU")
    second = first.assign(processor="CPU", nats=[-1.5, -1.75, -3.0])
    none, arm = again.scores_compared(first, second).reset_index().to_dict("records")
    assert (none["condition"], none["n"], none["largest"]) == ("none", 2, 0.5)
    assert (arm["condition"], arm["n"], arm["largest"]) == ("arm", 1, 0)
    assert (arm["processor"], arm["processor_again"]) == ("GPU", "CPU")
    # What one processor computed twice says nothing of two.
    assert again.scores_compared(first, first).empty
