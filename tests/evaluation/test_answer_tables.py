"""Tables of hand-written answers: what they show is known. What the notebooks store
holds all of them once more.
"""

import numpy as np
import pandas as pd
import pytest
from hand_written import record, run, solved

from lib.evaluation import answer_tables
from lib.evaluation.answer_tables import shown_columns, summarise
from lib.evaluation.rows import frame
from lib.statistics.intervals import clopper_pearson, mcnemar_exact, tango
from lib.statistics.power import n_deciding, smallest_effect


def row(table, place=0):
    return table.to_dict("records")[place]


def test_a_row_has_accuracy_rates_and_pairs_and_none_comes_first():
    odd = {
        "finish_reason": "length",
        "run_on": True,
        "method": "no-box",
        "elicited": True,
    }
    table = summarise(frame(run("mless", 20, 40, **odd) + run("none", 10, 40)))
    none = row(table)
    assert (none["accuracy"], none["n"], none["samples"]) == (25, 40, 1)
    assert np.isnan(none["effect"])

    mless = row(table, 1)
    pairs = ("effect", "only_none", "only_this", "discordant")
    assert [mless[name] for name in pairs] == [25, 0, 10, 25]
    assert mless["p_value"] == pytest.approx(mcnemar_exact(0, 10), rel=0.02)
    for name in ("truncated", "run_on", "no_box", "elicited"):
        assert mless[name] == 100
    assert mless["ungraded"] == 0

    low, high = clopper_pearson(10, 40)
    assert (none["low"], none["high"]) == pytest.approx((100 * low, 100 * high))
    low, high = tango(0, 10, 40)
    ends = (mless["effect_low"], mless["effect_high"])
    assert ends == pytest.approx((100 * low, 100 * high))


@pytest.mark.parametrize(
    "none, mless, effect, share",
    [((5, 10), (9, 30), 40, 40), ((5, 30), (7, 10), 20, 20)],
)
def test_only_problems_that_both_conditions_answered_are_compared(
    none, mless, effect, share
):
    table = summarise(frame(run("none", *none) + run("mless", *mless)))
    paired = row(table, 1)
    assert (paired["n"], paired["effect"]) == (mless[1], effect)
    assert paired["discordant"] == share


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
    assert mless["discordant"] == 100


@pytest.mark.parametrize("reason", ["length", "context"])
def test_answers_that_a_limit_cut_are_told_apart_model_by_model(reason):
    first = frame(run("none", 1, 4) + run("mless", 1, 4))
    second = first.assign(model="second")
    second.loc[4, "finish_reason"] = reason  # under mless, of the solved problem
    answers = pd.concat([first, second], ignore_index=True)
    assert summarise(answers).truncated.tolist() == [0, 0, 0, 25]
    table = answer_tables.cut_apart(answers)
    finished = table[table.problems == "finished"]
    assert finished.n.tolist() == [4, 4, 3, 3]
    assert finished.accuracy.tolist() == [25, 25, 0, 0]


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
    assert mless["discordant"] == 50
    assert row(answer_tables.power(table, effect=2))["pairs"] == 40


def test_a_missing_sample_is_not_a_wrong_one():
    records = [
        record("none", "a", True),
        record("none", "a", True, 1),
        record("none", "b", False),
    ]
    values = answer_tables.solved(frame(records))
    assert values.loc["a"].tolist() == [1, 1]
    assert values.loc["b"].isna().tolist() == [False, True]


def test_a_grade_that_an_older_run_lacks_is_left_out():
    older = [row | {"correct_exact": None} for row in run("none", 10, 20)]
    table = answer_tables.graders(frame(older))
    names = set(answer_tables.GRADERS.values())
    assert set(table.grader) == names - {"exact match after normalisation"}


def test_power_says_what_n_shows_and_what_n_is_needed():
    found = row(answer_tables.power(summarise(solved(none=10, mless=30)), effect=2))
    deviation = 100 * np.std([0.0, 1.0] * 20, ddof=1)  # of the changes, twenty of forty
    assert found["needed"] == n_deciding(2, deviation)
    assert found["smallest"] == pytest.approx(smallest_effect(40, deviation))


def test_one_problem_has_no_spread_to_reckon_with():
    answers = run("none", 0, 1) + run("mless", 1, 1)
    found = row(answer_tables.power(summarise(frame(answers)), effect=2))
    assert np.isnan(found["needed"])


def test_power_is_open_where_the_effect_would_be_more_than_all_changes():
    few = answer_tables.power(summarise(solved(none=4, mless=8)), effect=2)
    assert few["smallest"].isna().all()
    none = answer_tables.power(summarise(solved(none=4, mless=4)), effect=2)
    assert none[["smallest", "needed"]].isna().all(axis=None)


def test_what_has_no_known_level_or_subject_is_not_broken_down():
    answers = frame(run("none", 1, 2)).assign(level=[0, 3], subject="")
    assert answer_tables.breakdown(answers, "level").level.tolist() == [3]
    assert answer_tables.breakdown(answers, "subject").empty


def test_tables_of_nothing_have_their_columns():
    nothing = frame([])
    summary = summarise(nothing)
    for table in (
        summary,
        answer_tables.graders(nothing),
        answer_tables.breakdown(nothing, "level"),
        answer_tables.power(summary, 2),
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
