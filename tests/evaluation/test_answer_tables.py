"""Tables of hand-written answers: what they show is known. What the notebooks store
holds all of them once more.
"""

import numpy as np
import pandas as pd
import pytest
from hand_written import record, run

from lib.evaluation import answer_tables
from lib.evaluation.answer_tables import shown_columns, summarise
from lib.evaluation.rows import frame
from lib.statistics.intervals import clopper_pearson, mcnemar_exact, tango


def row(table, place=0):
    return table.to_dict("records")[place]


def test_a_row_has_accuracy_rates_and_pairs_and_none_comes_first():
    odd = {"finish_reason": "length", "run_on": True, "method": "no-box"}
    table = summarise(frame(run("mless", 20, 40, **odd) + run("none", 10, 40)))
    none = row(table)
    assert (none["accuracy"], none["n"], none["samples"]) == (25, 40, 1)
    assert np.isnan(none["effect"])

    mless = row(table, 1)
    pairs = ("effect", "only_none", "only_this")
    assert [mless[name] for name in pairs] == [25, 0, 10]
    assert mless["p_value"] == pytest.approx(mcnemar_exact(0, 10), rel=0.02)
    for name in ("truncated", "run_on", "no_box"):
        assert mless[name] == 100
    assert mless["ungraded"] == 0

    low, high = clopper_pearson(10, 40)
    assert (none["low"], none["high"]) == pytest.approx((100 * low, 100 * high))
    low, high = tango(0, 10, 40)
    ends = (mless["effect_low"], mless["effect_high"])
    assert ends == pytest.approx((100 * low, 100 * high))


@pytest.mark.parametrize(
    "none, mless, effect, gained",
    [((5, 10), (9, 30), 40, 4), ((5, 30), (7, 10), 20, 2)],
)
def test_only_problems_that_both_conditions_answered_are_compared(
    none, mless, effect, gained
):
    table = summarise(frame(run("none", *none) + run("mless", *mless)))
    paired = row(table, 1)
    assert (paired["n"], paired["effect"]) == (mless[1], effect)
    assert paired["only_this"] == gained


def test_samples_of_one_problem_are_not_independent():
    right = np.random.default_rng(0).random(20) < 0.5
    records = [
        record("none", f"p{i}", bool(right[i]), sample)
        for i in range(20)
        for sample in range(8)
    ]
    none = row(summarise(frame(records)))
    assert (none["n"], none["samples"]) == (20, 8)
    assert none["high"] - none["low"] > 35  # not as of 160


def test_problems_of_one_template_are_not_independent():
    widths = []
    for name in ("embedded/{0}/{1}", "p{1}"):
        ids = [name.format(i // 4, i) for i in range(40)]
        records = [record("none", ids[i], i // 4 % 2 == 0) for i in range(40)]
        none = row(summarise(frame(records)))
        assert none["accuracy"] == 50
        widths.append(none["high"] - none["low"])
    assert widths[0] > 1.5 * widths[1]


def test_a_problem_that_some_samples_solve_is_partly_solved():
    records = [record("none", "p", sample == 0, sample) for sample in range(4)]
    assert row(summarise(frame(records)))["accuracy"] == 25


RATES = """
equal
no-box no_box
empty-box no_box
timeout ungraded
crash ungraded
refused ungraded
unreadable-gold unreadable_gold
"""


@pytest.mark.parametrize("line", RATES.strip().splitlines())
def test_what_decided_a_grade_is_told_as_a_rate(line):
    method, *rates = line.split()
    answers = frame(run("none", 1, 4, method=method))
    none = row(summarise(answers))
    rates_of_methods = ("no_box", "ungraded", "unreadable_gold")
    told = [name for name in rates_of_methods if none[name]]
    assert told == rates


def test_graders_disagree_with_what_is_correct_worked_out_or_not():
    answers = run("none", 3, 4, evaluated=False)
    for answer in answers:
        answer["problem_id"] = f"embedded/sums/{answer['problem_id']}"
    table = answer_tables.graders(frame(answers)).set_index("grader")
    ours = answer_tables.GRADERS["correct"]
    worked_out = answer_tables.GRADERS["worked_out"]
    assert table.disagree[ours] == 0
    assert table.accuracy[ours] == 75
    assert table.disagree[worked_out] == 3
    assert table.accuracy[worked_out] == 0


def test_of_two_answers_to_one_prompt_the_first_counts():
    twice = [record("none", "a", True), record("none", "a", False)]
    values = answer_tables.solved(frame(twice))
    assert values.loc["a"].tolist() == [1]


def test_a_problem_with_a_missing_sample_is_still_compared():
    answers = run("none", 0, 20) + run("none", 0, 20, sample=1)
    answers += run("mless", 20, 20) + run("mless", 10, 10, sample=1)
    mless = row(summarise(frame(answers)), 1)
    assert mless["effect"] == 100
    assert mless["only_this"] == 30


@pytest.mark.parametrize("reason", ["length", "context"])
def test_answers_that_a_limit_cut_are_told_model_by_model(reason):
    first = frame(run("none", 1, 4) + run("mless", 1, 4))
    second = first.assign(model="second")
    second.loc[4, "finish_reason"] = reason  # under mless, of the solved problem
    answers = pd.concat([first, second], ignore_index=True)
    assert summarise(answers).truncated.tolist() == [0, 0, 0, 25]


def test_an_effect_is_a_problems_mean_over_its_samples():
    # Every problem is solved under mless, and once in two samples under none.
    records = [
        record(condition, f"p{i}", condition == "mless" or sample == 0, sample)
        for condition in ("none", "mless")
        for i in range(20)
        for sample in (0, 1)
    ]
    table = summarise(frame(records))
    mless = row(table, 1)
    assert mless["effect"] == pytest.approx(50)
    assert mless["p_value"] < 0.01
    # Twenty pairs of forty changed.
    assert mless["only_this"] == 20


def test_a_missing_sample_is_not_a_wrong_one():
    records = [
        record("none", "a", True),
        record("none", "a", True, 1),
        record("none", "b", False),
    ]
    values = answer_tables.solved(frame(records))
    assert values.loc["a"].tolist() == [1, 1]
    assert values.loc["b"].isna().tolist() == [False, True]


def test_tables_of_nothing_have_their_columns():
    nothing = frame([])
    summary = summarise(nothing)
    for table in (
        summary,
        answer_tables.graders(nothing),
    ):
        assert table.empty
        assert {"model", "condition"} <= set(table.columns)


def test_fillers_stand_by_what_the_paper_varies_beside_what_it_reports():
    names = ["none", "mless@end", "mless:10", "other"]
    table = pd.DataFrame(
        {"model": "m", "condition": names, "accuracy": [50, 10, 40, 1]}
    )
    varied = answer_tables.varied_fillers(table)
    length = varied[varied.varied == "Length (slashes)"].set_index("label")
    assert length.accuracy.to_dict() == {"0": 50, "10": 40}
    place = varied[varied.varied == "Place (55 slashes)"].set_index("label")
    assert place.reported.to_dict() == {"no tokens": 72.4, "end": 0.0}


def test_the_papers_accuracies_stand_below_those_of_this_run():
    own = {"model": "m", "condition": "none", "n": 40, "accuracy": 50.0}
    table = pd.DataFrame([own | {"low": 40.0, "high": 60.0, "effect": 1}])
    both = answer_tables.beside_the_paper(table)
    first, *reported = both.to_dict("records")
    assert first == {"source": "this run", **own, "low": 40.0, "high": 60.0}
    by_paper = {(row["model"], row["condition"]): row["accuracy"] for row in reported}
    assert by_paper["Qwen2.5-Math-7B", "mless"] == 76
    assert len(by_paper) == 9


def test_a_command_prints_no_rate_that_is_zero_throughout():
    cut = run("mless", 2, 20, finish_reason="length")
    table = summarise(frame(run("none", 2, 20) + cut))
    columns = shown_columns(table)
    assert "truncated" in columns
    assert "no_box" not in columns
    assert "accuracy" in columns


def test_an_answer_that_is_longer_than_a_limit_is_wrong_and_cut_there():
    lengths = {"none": [100, 300, 500], "mless": [110, 250, 600]}
    rows = []
    for condition, tokens in lengths.items():
        for number, length in enumerate(tokens):
            row = {"model": "tiny", "condition": condition, "sample": 0}
            row |= {"problem_id": f"p{number}", "completion_tokens": length}
            row |= {"answer": "1", "response": "1"}
            rows.append(row | {"correct": True, "finish_reason": "stop"})
    short, whole = answer_tables.by_limit(frame(rows), (280, 600)).to_dict("records")
    assert (short["none"], short["mless"]) == pytest.approx((100 / 3, 200 / 3))
    assert (short["cut_none"], short["cut_mless"]) == pytest.approx((200 / 3, 100 / 3))
    assert (short["only_none"], short["only_this"]) == (0, 1)
    assert (short["ended"], short["tokens"]) == (1, 10)
    assert (whole["none"], whole["mless"], whole["cut_none"]) == (100, 100, 0)
    assert (whole["ended"], whole["tokens"]) == (3, 20)
