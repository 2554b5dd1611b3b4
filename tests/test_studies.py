"""The tables of the studies, on answers and scores that can be checked by eye."""

import json

import numpy as np
import pandas as pd
import pytest
from artists import table
from hand_written import record

from lib.files.text_files import read
from lib.prompts.problems import Problem
from reproduction.evaluation.rows import frame
from studies import (
    again,
    contamination,
    hints,
    own_problems,
    plain,
    twice,
)

PLAIN = """model,condition,problem_id,nats
tiny,none,p0,-10
tiny,none,p1,-20
tiny,none,p2,-30
tiny,mless,p0,-9
tiny,mless,p1,-18
tiny,mless,p2,-27
base,none,p0,-10
base,none,p1,-20
base,mless,p0,-11
base,mless,p1,-21
"""
# A fourth problem was scored only with chat prompts.
CHAT = """model,condition,problem_id,nats
tiny,none,p0,-5
tiny,none,p1,-5
tiny,none,p2,-5
tiny,none,p3,-5
tiny,mless,p0,-5
tiny,mless,p1,-6
tiny,mless,p2,-7
tiny,mless,p3,-99
"""


def test_plain_prompts_are_compared_with_chat_prompts_on_the_same_problems():
    scores = [table(csv).assign(target="solution") for csv in (PLAIN, CHAT)]
    rows = plain.compared(*scores).set_index(["model", "treatment", "reference"])
    slashes = rows.loc["tiny", "mless", "none"]
    assert (slashes.n, slashes.n_in_chat) == (3, 3)
    assert (slashes.effect, slashes.effect_in_chat) == (2, -1)
    assert slashes.low < 2 < slashes.high

    # Pairs that were not scored have no numbers.
    assert rows.loc["tiny", "random", "none"].isna().all()
    base = rows.loc["base", "mless", "none"]
    assert base.effect == pytest.approx(-1)
    assert np.isnan(base.effect_in_chat)


HOLDING = ["We get $x = \\boxed{12}$. Done.", "The sum is 12."]
OTHERS = ["The sum is 112.", "The sum is 12.5 at least.", "Add both. The sum is 12."]


def test_a_hint_has_the_answer_only_as_a_separate_number():
    for solution in HOLDING + OTHERS:
        # The problem also has the answer, which does not count as a hint.
        fields = {"unique_id": "p0", "problem": "Is it 12?", "answer": "12"}
        problem = Problem(**fields, solution=solution)
        assert hints.holds_answer(problem) is (solution in HOLDING), solution


def test_hints_with_and_without_the_answer_are_compared_separately():
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
    compared = hints.compared(frame(rows, "comparisons"), problems)
    assert compared.holds_answer.to_list() == [False, True]
    assert compared.effect.to_list() == [0, 100]
    assert compared.accuracy_none.to_list() == [100, 0]


def test_an_expression_that_is_repeated_equals_the_answer_and_is_not_worked_out():
    rows = [
        record("none", "embedded/sum/001", correct=True, evaluated=True),
        record("none", "embedded/draw/001", correct=False),
        record("mless", "embedded/sum/001", correct=True, evaluated=False),
        record("mless", "embedded/draw/001", correct=True, evaluated=False),
    ]
    of_none, slashes = own_problems.compared(frame(rows)).itertuples()
    assert (of_none.accuracy, of_none.equal) == (50, 50)
    assert (slashes.accuracy, slashes.equal) == (0, 100)
    assert (slashes.effect, slashes.equal_effect) == (-50, 50)


def test_the_repeated_problem_is_compared_over_models_that_answered_everything():
    names = [f"embedded/{kind}/{number}" for kind in "abcd" for number in range(6)]
    rows = []
    for model, twice_right in (("seen", 6), (twice.UNSEEN[0], 18)):
        for number, name in enumerate(names):
            rows.append(record("none", name, number >= 23, model=model))
            rows.append(record("repeat", name, number < twice_right, model=model))
    # A model that has not answered all problems yet does not count.
    rows += [
        record(name, "embedded/a/0", True, model="cut") for name in ("none", "repeat")
    ]
    table = twice.compared(frame(rows)).set_index(["set", "outcome"])

    assert set(table.index.levels[0]) == {"all", "new", "seen", twice.UNSEEN[0]}
    every, new = table.loc["all", "right"], table.loc["new", "right"]
    assert (every.models, every.n, every.gained, every.lost) == (2, 24, 24, 2)
    assert (every.right_none, every.right) == (2, 24)
    assert every.effect == pytest.approx(100 * (24 - 2) / 48)
    assert new.effect == pytest.approx(100 * (18 - 1) / 24)
    # Problems of a kind change together, so the interval over kinds is wider.
    assert new.low < new.low_problems < new.effect < new.high_problems < new.high
    assert new.p_sign < new.p_value


GIVEN = "Let $x$ be a number. What is"
PROBLEM = f"{GIVEN} $x + 1$, in\nwords?"


def test_a_problem_is_split_between_words():
    assert contamination.parted(PROBLEM) == (GIVEN, " $x + 1$, in\nwords?")
    assert contamination.parted("Compute_this please") == ("", "Compute_this please")
    begin, rest = contamination.parted("a b c d e")
    assert (begin, rest) == ("a b c", " d e")


def test_a_rest_counts_as_reproduced_word_by_word_whatever_follows():
    rest = " $x + 1$, in\nwords?"
    assert contamination.reproduces(" $x + 1$,  in words? It is", rest)
    assert not contamination.reproduces(" $x + 2$, in words?", rest)
    assert not contamination.reproduces(" $x + 1$, in", rest)


@pytest.mark.parametrize(
    ("continuation", "share"),
    [
        ("a b c d", 100),
        ("a b c d e f", 100),
        ("a x c y", 50),
        ("d c b a", 25),
        ("a a a a", 25),
        ("b c", 50),
        ("x a b c d", 75),
        ("", 0),
    ],
)
def test_rouge_l_counts_words_in_their_order(continuation, share):
    assert contamination.rouge_l(continuation, "a b c d") == share


def test_a_model_that_repeats_itself_reproduces_a_rest_of_repeats(demo, tmp_path):
    problems = [
        {"unique_id": "again", "problem": "A B C D " * 24, "answer": "1"},
        {"unique_id": "new", "problem": "Call zyx the qwv of 83 by 7.", "answer": "1"},
        {"unique_id": "long", "problem": "seven eight " * 200, "answer": "1"},
    ]
    source = tmp_path / "problems.jsonl"
    source.write_text("".join(f"{json.dumps(one)}\n" for one in problems))
    out = tmp_path / "run"
    contamination.continued("demo", str(source), out)
    rows = read(out / contamination.ROWS)
    assert {row["problem_id"]: row["reproduced"] for row in rows} == {
        "again": True,
        "new": False,
    }
    assert not any("C D" in str(row) for row in rows)
    # A second run has nothing left to do.
    contamination.continued("demo", str(source), out)
    assert read(out / contamination.ROWS) == rows


def test_slashes_are_compared_by_reproduction_only_with_enough_problems_of_both_kinds():
    names = [f"p{number}" for number in range(60)]
    rows = pd.DataFrame({"model": "tiny", "problem_id": names, "rouge_l": 50.0})
    rows["reproduced"] = [number < 25 for number in range(60)]
    changes = [2.0 if number < 25 else -1.0 for number in range(60)]
    scores = pd.concat(
        pd.DataFrame(
            {
                "model": "tiny",
                "problem_id": names,
                "condition": condition,
                "nats": [-9 + share * one for one in changes],
            }
        )
        for condition, share in (("none", 0), ("mless", 1))
    )
    (row,) = contamination.compared(rows, scores).itertuples()
    assert (row.n, row.reproduced, row.n_seen, row.n_others) == (60, 25, 25, 35)
    assert row.low < row.share < row.high
    assert (row.slashes_seen, row.slashes_others) == (2, -1)

    fewer = scores[~scores.problem_id.isin(names[:6])]
    (row,) = contamination.compared(rows, fewer).to_dict("records")
    assert (row["n_seen"], row["n_others"]) == (19, 35)
    assert row["slashes_seen"] is row["slashes_others"] is None


FIRST_RUN = """key,condition,response,right,nats
a,none,1,True,-1
b,none,2,False,-2
c,arm,3,True,-3
d,arm,4,True,-4
e,arm,5,True,-5
"""
SECOND_RUN = """key,condition,response,right,nats
d,arm,44,False,-4
b,none,22,True,-2.25
a,none,11,True,-0.5
c,arm,33,False,-3
"""


@pytest.fixture
def runs():
    """The answers and scores of one processor, and those of another one."""
    first, second = (
        table(csv).assign(part="main", model="tiny", dtype="float32", processor=name)
        for csv, name in ((FIRST_RUN, "GPU"), (SECOND_RUN, "CPU"))
    )
    return first, second


def test_answers_generated_again_are_compared_by_key_and_processors(runs):
    (row,) = again.compared(*runs).reset_index().itertuples()
    assert (row.processor, row.processor_again) == ("GPU", "CPU")
    assert (row.n, row.other_text, row.lost, row.gained) == (4, 4, 2, 1)


def test_scores_computed_again_are_compared_by_condition(runs):
    none, arm = again.scores_compared(*runs).reset_index().itertuples()
    assert (none.condition, none.n, none.largest) == ("none", 2, 0.5)
    assert (arm.condition, arm.n, arm.largest) == ("arm", 2, 0)
    assert (arm.processor, arm.processor_again) == ("GPU", "CPU")
    # Scores that the same processor computed twice are not compared.
    first, _ = runs
    assert again.scores_compared(first, first).empty
