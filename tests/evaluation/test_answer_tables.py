"""Tables of hand-written answers, whose numbers are known. The stored outputs of the
notebooks check all of the tables once more.
"""

import numpy as np
import pandas as pd
import pytest
from hand_written import record, run, sampled

from lib.statistics.proportions import clopper_pearson, mcnemar_exact, tango_interval
from reproduction.evaluation import answer_tables
from reproduction.evaluation.answer_tables import shown_columns, summarise, warning_of
from reproduction.evaluation.rows import frame


def summary(records):
    return summarise(frame(records)).to_dict("records")


def ends(row, name=""):
    return row[f"{name}low"] / 100, row[f"{name}high"] / 100


def test_a_summary_row_has_accuracy_rates_and_paired_effect_with_none_first():
    odd = {"finish_reason": "length", "run_on": True, "method": "no-box"}
    records = run("mless", 20, 40, **odd) + run("mful", 9, 40) + run("none", 10, 40)
    none, mless, _ = summary(records)
    assert (none["accuracy"], none["n"], none["samples"]) == (25, 40, 1)
    assert ends(none) == pytest.approx(clopper_pearson(10, 40))
    assert np.isnan(none["effect"])

    assert [mless[name] for name in ("effect", "only_none", "only_this")] == [25, 0, 10]
    assert ends(mless, "effect_") == pytest.approx(tango_interval(0, 10, 40))
    assert mless["p_value"] == pytest.approx(mcnemar_exact(0, 10), rel=0.02)
    assert mless["p_holm"] == 2 * mless["p_value"]
    for name in ("truncated", "run_on", "no_box"):
        assert mless[name] == 100
    assert mless["ungraded"] == 0


def test_accuracies_in_one_figure_are_those_of_the_same_problems():
    records = run("none", 3, 6) + run("mless", 2, 6) + run("mful", 1, 4)
    records += run("newline", 1, 2)
    answers = frame(records)
    kept = answer_tables.answered_under_all(answers, ["none", "mless", "mful"])
    assert summarise(kept)[["condition", "n"]].to_numpy().tolist() == [
        ["none", 4],
        ["mless", 4],
        ["mful", 4],
    ]
    # A model without one of the conditions is compared under the others.
    other = frame(run("none", 3, 6)).assign(model="n")
    kept = answer_tables.answered_under_all(
        pd.concat([answers, other]), ["none", "mful"]
    )
    assert kept.groupby("model").problem_id.nunique().to_dict() == {"m": 4, "n": 6}


def test_a_model_without_any_box_is_named_in_a_warning():
    boxless = run("none", 0, 4, method="no-box") + run("mless", 0, 4, method="no-box")
    warning = warning_of(summarise(frame(boxless)))
    assert warning.startswith("No answer of m has a filled box")
    # What else helps an answer whose box was asked for.
    assert "another `format`" in warning
    boxed = run("none", 0, 4, method="no-box") + run("mless", 0, 4)
    assert not warning_of(summarise(frame(boxed)))


@pytest.mark.parametrize(
    "none, mless, effect, gained",
    [((5, 10), (9, 30), 40, 4), ((5, 30), (7, 10), 20, 2)],
)
def test_only_problems_that_both_conditions_answered_are_compared(
    none, mless, effect, gained
):
    _, paired = summary(run("none", *none) + run("mless", *mless))
    assert (paired["n"], paired["effect"]) == (mless[1], effect)
    assert paired["only_this"] == gained


@pytest.mark.parametrize(
    "none, mless, effect, gained",
    [
        # Every problem is solved under mless, and once in two samples under none.
        (["10"] * 20, ["11"] * 20, 50, 20),
        # A problem with a missing sample is still compared.
        (["00"] * 20, ["11"] * 10 + ["1_"] * 10, 100, 30),
    ],
)
def test_an_effect_averages_each_problem_over_its_samples(none, mless, effect, gained):
    _, paired = summary(sampled("none", none) + sampled("mless", mless))
    assert paired["effect"] == pytest.approx(effect)
    assert paired["p_value"] < 0.01
    assert paired["only_this"] == gained


def test_samples_of_one_problem_are_not_independent():
    (none,) = summary(sampled("none", ["11111111", "00000000"] * 10))
    assert (none["n"], none["samples"]) == (20, 8)
    # The interval is that of 20 problems, not that of 160 independent answers.
    assert none["high"] - none["low"] > 35
    (none,) = summary(sampled("none", ["1000"]))
    assert none["accuracy"] == 25


def test_a_missing_sample_is_not_a_wrong_one():
    values = answer_tables.right_by_sample(frame(sampled("none", ["11", "0_"])))
    assert values.loc["p0"].tolist() == [1, 1]
    assert values.loc["p1"].isna().tolist() == [False, True]


RATES = """
equal
no-box no_box
empty-box no_box
timeout ungraded
crash ungraded
refused ungraded
unreadable-answer ungraded
unreadable-gold unreadable_gold
"""


@pytest.mark.parametrize("line", RATES.strip().splitlines())
def test_grading_methods_are_reported_as_rates(line):
    method, *rates = line.split()
    (none,) = summary(run("none", 1, 4, method=method))
    rates_of_methods = ("no_box", "ungraded", "unreadable_gold")
    assert [name for name in rates_of_methods if none[name]] == rates


def test_graders_are_compared_on_answers_that_are_correct_but_not_worked_out():
    # On the embedded set a right answer must be worked out; one of the three is.
    records = run("none", 3, 4, evaluated=False)
    records[0]["evaluated"] = True
    answers = frame(records)
    answers["right"] = answers["worked_out"]
    assert summarise(answers).restated.tolist() == [50]
    table = answer_tables.graders(answers).set_index("grader")
    names = [answer_tables.GRADERS[field] for field in ("correct", "worked_out")]
    assert table.disagree[names].tolist() == [0, 2]
    assert table.accuracy[names].tolist() == [75, 25]
    assert table.n[names].tolist() == [4, 4]


@pytest.mark.parametrize("reason", ["length", "context"])
def test_truncated_answers_are_reported_by_model(reason):
    first = frame(run("none", 1, 4) + run("mless", 1, 4))
    second = first.assign(model="second")
    second.loc[4, "finish_reason"] = reason  # the solved problem under mless
    table = summarise(pd.concat([first, second], ignore_index=True))
    assert table.truncated.tolist() == [0, 0, 0, 25]
    # The commands print no rate that is zero in every row.
    columns = shown_columns(table)
    assert "truncated" in columns
    assert "no_box" not in columns
    assert "accuracy" in columns


@pytest.mark.parametrize("table", [summarise, answer_tables.graders])
def test_empty_tables_have_their_columns(table):
    nothing = table(frame([]))
    assert nothing.empty
    assert {"model", "condition"} <= set(nothing.columns)


def test_an_answer_longer_than_a_limit_counts_as_truncated_and_wrong():
    lengths = {"none": [100, 300, 500], "mless": [110, 250, 600]}
    records = [
        record(condition, f"p{number}", True, completion_tokens=length)
        for condition, tokens in lengths.items()
        for number, length in enumerate(tokens)
    ]
    alone = record("none", "p0", True, model="other", completion_tokens=1)
    others = [row | {"model": "third"} for row in records]
    he = record("mful", "p0", True, completion_tokens=1)
    table = answer_tables.by_limit(frame([*records, alone, *others, he]), (280, 600))
    assert table.model.tolist() == ["m"] * 2 + ["third"] * 2
    assert not {"mful", "cut_mful"} & set(table)
    short, long, *_ = table.to_dict("records")
    assert (short["none"], short["mless"]) == pytest.approx((100 / 3, 200 / 3))
    assert (short["cut_none"], short["cut_mless"]) == pytest.approx((200 / 3, 100 / 3))
    assert (short["only_none"], short["only_this"]) == (0, 1)
    assert (short["ended"], short["tokens"]) == (1, 10)
    assert (long["none"], long["mless"], long["cut_none"]) == (100, 100, 0)
    assert (long["ended"], long["tokens"]) == (3, 20)


def test_the_gains_that_the_paper_reports_are_accuracies_with_slashes_minus_without():
    # Llama's in Table 1 (41.8 to 42.1), and that of the smallest Qwen in Table 5.
    assert answer_tables.reported_gains() == pytest.approx((0.3, 3.2))


def test_the_papers_fillers_without_answers_have_no_row():
    table = summarise(frame(run("mless@end", 1, 4) + run("none", 2, 4)))
    varied = answer_tables.varied_fillers(table)
    assert varied.label.tolist() == ["0", "no tokens", "end", "no tokens"]
    assert varied.accuracy.tolist() == [50, 50, 25, 50]


def test_the_change_of_length_is_over_the_means_of_a_problems_samples():
    lengths = {"none": (100, 200), "mless": (110, 230)}
    rows = [
        record(condition, "p0", True, sample=sample, completion_tokens=length)
        for condition, of_samples in lengths.items()
        for sample, length in enumerate(of_samples)
    ]
    change = answer_tables.change_of_length(frame(rows))
    assert (change["ended"], change["tokens"]) == (1, 20)
