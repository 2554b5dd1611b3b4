"""Tables of hand-written records: what they show is known."""

import numpy as np
import pytest
from hand_written import record, run

from lib import statistics
from lib.evaluation.records import groups, matrix
from lib.evaluation.summary import as_text, breakdown, cut_apart, graders, power, summarise


def test_conditions_come_in_order_with_none_first():
    records = run("mless:10", 1, 2) + run("none", 1, 2) + run("mless@end", 1, 2)
    assert [condition for _, condition in groups(records)] == ["none", "mless:10", "mless@end"]


def test_a_row_has_accuracy_rates_and_pairs():
    records = run("none", 10, 40) + run("mless", 20, 40, finish_reason="length", run_on=True, method="no-box")
    none, mless = summarise(records, seed=0).to_dict("records")
    assert (none["accuracy"], none["n"], none["samples"]) == (25, 40, 1) and np.isnan(none["effect"])
    assert (mless["effect"], mless["only_none"], mless["only_this"]) == (25, 0, 10)
    assert mless["p_value"] == pytest.approx(statistics.mcnemar_exact(0, 10))
    assert (mless["truncated"], mless["run_on"], mless["no_box"]) == (100, 100, 100)
    assert none["low"] < 25 < none["high"] and mless["effect_low"] < 25 < mless["effect_high"]


def test_p_values_are_corrected_over_all_conditions_and_models():
    records = run("none", 10, 40) + run("mless", 20, 40) + run("mful", 14, 40)
    records += [r | {"model": "other"} for r in records]
    tested = summarise(records, seed=0).dropna(subset="p_value")
    assert len(tested) == 4
    assert tested["p_holm"].tolist() == pytest.approx(statistics.holm(tested["p_value"]).tolist())


def test_only_problems_that_both_conditions_answered_are_compared():
    mless = summarise(run("none", 5, 10) + run("mless", 9, 30), seed=0).iloc[1]
    assert mless["n"] == 30 and mless["only_none"] + mless["only_this"] == 4 and mless["effect"] == 40


def test_samples_of_one_problem_are_not_independent():
    rng = np.random.default_rng(0)
    solved = rng.random(20) < 0.5
    records = [record("none", f"p{i}", bool(solved[i]), sample) for i in range(20) for sample in range(8)]
    row = summarise(records, seed=0).iloc[0]
    assert (row["n"], row["samples"]) == (20, 8)
    assert row["high"] - row["low"] > 35  # as wide as 20 problems make it, not 160


def test_effects_over_samples_are_tested_by_problem():
    records = [
        record(c, f"p{i}", c == "mless" or s == 0, s) for c in ("none", "mless") for i in range(12) for s in (0, 1)
    ]
    mless = summarise(records, seed=0).iloc[1]
    assert mless["effect"] == pytest.approx(50) and mless["p_value"] == pytest.approx(2 / 2**12)


def test_graders_stand_side_by_side():
    records = run("none", 10, 20) + run("mless", 12, 20)
    for item in records:
        item["correct_authors"] = True
    table = graders(records, seed=0)
    published = table[table["grader"] == "authors' rule as published"]
    assert published["accuracy"].tolist() == [100, 100] and published["disagree"].tolist() == [10, 8]
    assert published["effect"].iloc[1] == 0 and table["effect"].iloc[5] == pytest.approx(10)


def test_levels_and_subjects_are_broken_down():
    records = run("none", 2, 4) + [r | {"problem_id": r["problem_id"] + "x", "level": 5} for r in run("none", 0, 4)]
    table = breakdown(records, "level")
    assert table[["level", "n", "accuracy"]].values.tolist() == [[1, 4, 50], [5, 4, 0]]


def test_power_says_what_n_shows_and_what_n_is_needed():
    (row,) = power(summarise(run("none", 10, 100) + run("mless", 20, 100), seed=0), effect=2).to_dict("records")
    assert row["needed"] == statistics.n_needed(0.02, 0.1)
    assert row["smallest"] == pytest.approx(100 * statistics.smallest_effect(100, 0.1))
    same = summarise(run("none", 10, 100) + run("mless", 10, 100), seed=0)
    assert power(same, effect=2)["needed"].isna().all()


def test_a_missing_sample_is_not_a_wrong_one():
    records = [record("none", "a", True), record("none", "a", True, 1), record("none", "b", False)]
    values = matrix(groups(records)["m", "none"], "correct")
    assert values.loc["a"].tolist() == [1, 1] and values.loc["b"].isna().tolist() == [False, True]


def test_tables_of_nothing_have_their_columns():
    for table in (summarise([], 0), graders([], 0), breakdown([], "level"), power(summarise([], 0), 2)):
        assert table.empty and {"model", "condition"} <= set(table.columns)


def test_what_is_printed_says_what_was_cut_off():
    records = run("none", 1, 4, finish_reason="length") + run("mless", 3, 4, method="no-box")
    none, mless = as_text(summarise(records, seed=0)).splitlines()
    assert none == "none             25 [1, 81] %  n = 4  truncated 100 %  no box 0 %  restated 0 %"
    assert "  truncated 0 %  no box 100 %  restated 0 %  against none +50 [" in mless and mless.endswith("p = 0.5")


def test_two_problems_that_nothing_changes_leave_nearly_everything_open():
    _, mless = as_text(summarise(run("none", 0, 2) + run("mless", 0, 2), seed=0)).splitlines()
    assert mless.startswith("mless            0 [0, 84] %  n = 2") and "against none +0 [-66, +66] points" in mless


def test_rates_count_what_both_conditions_answered():
    row = summarise(run("none", 5, 30) + run("mless", 7, 10), seed=0).iloc[1]
    assert (row["only_this"], row["only_none"], row["discordant"]) == (2, 0, 20)


def test_the_interval_of_an_accuracy_counts_a_template_once():
    records = [record("none", f"embedded/{i // 4}/{i}", i % 8 < 4) for i in range(80)]
    alone = [record("none", f"p{i}", i % 2 == 0) for i in range(20)]
    ends = [summarise(some, seed=0).loc[0, ["low", "high"]].tolist() for some in (records, alone)]
    assert ends[0] == pytest.approx(ends[1])


def test_a_restated_question_is_counted_apart():
    records = run("none", 3, 4) + run("mless", 4, 4)
    records[0] |= {"evaluated": False}
    records[1] |= {"evaluated": False}
    both, right = (summarise(records, 0, outcome).iloc[0] for outcome in ("correct", "right"))
    assert (both["accuracy"], right["accuracy"], both["restated"], right["restated"]) == (75, 25, 50, 50)
    assert summarise(records, 0, "right")["effect"].iloc[1] == 75
    assert breakdown(records, "level", "right")["accuracy"].tolist() == [25, 100]
    judged = graders(records, 0)
    assert judged[judged["grader"].str.contains("worked out")]["accuracy"].tolist() == [25, 100]


def test_problems_that_were_cut_under_any_condition_are_set_apart():
    none, mless = run("none", 10, 40), run("mless", 20, 40)
    mless[0]["finish_reason"] = none[39]["finish_reason"] = "length"
    table = cut_apart([*none, *mless], seed=0)
    assert list(table.problems) == ["all", "all", "finished", "finished"] and list(table.n) == [40, 40, 38, 38]
    assert list(table.truncated) == [2.5, 2.5, 0, 0]
    assert table.accuracy.iloc[2:].tolist() == pytest.approx([100 * 9 / 38, 100 * 19 / 38])
