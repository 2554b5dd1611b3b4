"""Tables of hand-written answers: what they show is known. What the notebooks store
holds all of them once more.
"""

import numpy as np
import pytest
from hand_written import record, run, solved

from lib import statistics
from lib.evaluation import answer_tables
from lib.evaluation.answer_tables import summarise
from lib.evaluation.store import frame


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
    none, mless = row(table), row(table, 1)
    assert (none["accuracy"], none["n"], none["samples"]) == (25, 40, 1) and np.isnan(
        none["effect"]
    )
    assert (
        mless["effect"],
        mless["only_none"],
        mless["only_this"],
        mless["discordant"],
    ) == (25, 0, 10, 25)
    assert mless["p_value"] == pytest.approx(statistics.mcnemar_exact(0, 10), rel=0.02)
    assert [
        mless[name]
        for name in ("truncated", "run_on", "no_box", "elicited", "ungraded")
    ] == [100] * 4 + [0]
    low, high = (100 * end for end in statistics.clopper_pearson(10, 40))
    assert (none["low"], none["high"]) == pytest.approx((low, high))
    low, high = (100 * end for end in statistics.tango(0, 10, 40))
    assert (mless["effect_low"], mless["effect_high"]) == pytest.approx((low, high))


@pytest.mark.parametrize(
    "none, mless, effect, share",
    [((5, 10), (9, 30), 40, 40), ((5, 30), (7, 10), 20, 20)],
)
def test_only_problems_that_both_conditions_answered_are_compared(
    none, mless, effect, share
):
    found = row(summarise(frame(run("none", *none) + run("mless", *mless))), 1)
    assert (found["n"], found["effect"], found["discordant"]) == (
        mless[1],
        effect,
        share,
    )


def test_samples_of_one_problem_are_not_independent():
    rng = np.random.default_rng(0)
    right = rng.random(20) < 0.5
    answers = frame(
        [
            record("none", f"p{i}", bool(right[i]), sample)
            for i in range(20)
            for sample in range(8)
        ]
    )
    found = row(summarise(answers))
    assert (found["n"], found["samples"]) == (20, 8) and found["high"] - found[
        "low"
    ] > 35  # not as of 160
    both = [
        record(c, f"p{i}", c == "mless" or s == 0, s)
        for c in ("none", "mless")
        for i in range(20)
        for s in (0, 1)
    ]
    found = row(summarise(frame(both)), 1)
    assert found["effect"] == pytest.approx(50) and found["p_value"] < 0.01


def test_a_missing_sample_is_not_a_wrong_one():
    answers = frame(
        [
            record("none", "a", True),
            record("none", "a", True, 1),
            record("none", "b", False),
        ]
    )
    values = answer_tables.solved(answers)
    assert values.loc["a"].tolist() == [1, 1] and values.loc["b"].isna().tolist() == [
        False,
        True,
    ]


def test_a_grade_that_an_older_run_lacks_is_left_out():
    table = answer_tables.graders(
        frame([one | {"correct_exact": None} for one in run("none", 10, 20)])
    )
    assert set(table.grader) == {*answer_tables.GRADERS.values()} - {
        "exact match after normalisation"
    }


def test_power_says_what_n_shows_and_what_n_is_needed():
    found = row(answer_tables.power(summarise(solved(none=10, mless=30)), effect=2))
    deviation = 100 * np.std([0.0, 1.0] * 20, ddof=1)  # of the changes, twenty of forty
    assert found["needed"] == statistics.n_deciding(2, deviation)
    assert found["smallest"] == pytest.approx(statistics.smallest_effect(40, deviation))
    assert np.isnan(
        row(answer_tables.power(summarise(solved(none=4, mless=8)), effect=2))[
            "smallest"
        ]
    )
    assert (
        answer_tables.power(summarise(solved(none=4, mless=4)), effect=2)["needed"]
        .isna()
        .all()
    )


def test_tables_of_nothing_have_their_columns():
    nothing = frame([])
    made = (
        summarise(nothing),
        answer_tables.graders(nothing),
        answer_tables.breakdown(nothing, "level"),
    )
    for table in (*made, answer_tables.power(made[0], 2)):
        assert table.empty and {"model", "condition"} <= set(table.columns)
    for make in (
        answer_tables.diversity,
        lambda some: answer_tables.best_of(some, 5),
        answer_tables.noise_floor,
    ):
        assert (
            make(nothing).empty and make(frame(run("none", 2, 4))).empty
        )  # one sample, nothing against none


def test_what_is_printed_says_what_was_cut_off_and_how_little_two_problems_say():
    answers = run("none", 1, 4, finish_reason="length") + run(
        "mless", 3, 4, method="no-box"
    )
    none, mless = answer_tables.summary_as_text(summarise(frame(answers))).splitlines()
    assert (
        none == "none             25 [1, 81] %  n = 4  truncated 100 %  no box 0 % "
        " restated 0 %"
    )
    assert (
        "  truncated 0 %  no box 100 %  restated 0 %  against none +50 [" in mless
        and mless.endswith("p = 0.5")
    )
    _, mless = answer_tables.summary_as_text(
        summarise(frame(run("none", 0, 2) + run("mless", 0, 2)))
    ).splitlines()
    assert (
        mless.startswith("mless            0 [0, 84] %  n = 2")
        and "against none +0 [-66, +66] points" in mless
    )


def voted(**answers):
    """Answers by problem, one character a sample: . is none; 7 is right."""
    every = [
        (name, place, x)
        for name, some in answers.items()
        for place, x in enumerate(some)
    ]
    return [
        record("none", name, x == "7", place, extracted=x.strip("."))
        for name, place, x in every
    ]


def test_the_best_of_fewer_samples_is_that_of_the_first_in_their_order():
    answers = voted(a="37777", b="77555")
    found = row(answer_tables.best_of(frame(answers[::-1]), 3))
    # One of three is right: surely of five with four right ones; of b all but where the
    # three others are drawn.
    assert (found["majority"], found["one"], found["samples"]) == (100, 60, 5)
    assert found["best"] == pytest.approx(100 * (1 + 1 - 1 / 10) / 2)
    found = row(answer_tables.best_of(frame(answers), 1))
    assert (found["majority"], found["best"]) == (50, 60)
    assert answer_tables.best_of(frame(voted(a="7777")), 5).empty


def test_distinct_pairs_of_words_are_a_share_of_all():
    for texts, share in {
        ("a b a b",): 2 / 3,
        ("a b", "a b"): 1 / 2,
        ("",): 0,
        ("word",): 0,
    }.items():
        assert answer_tables.distinct_2(texts) == pytest.approx(share)


def test_the_noise_floor_is_what_seeds_alone_change():
    answers = [
        record("none", f"p{i}", i < right, s)
        for s, right in enumerate((2, 5, 6))
        for i in range(10)
    ]
    found = row(answer_tables.noise_floor(frame(answers)))
    assert [
        found[name] for name in ("difference", "largest", "discordant")
    ] == pytest.approx([80 / 3, 40, 80 / 3])
    assert (found["n"], found["samples"]) == (10, 3)
    opposite = [
        record("none", f"p{i}", (i + s) % 2 == 0, s)
        for i in range(10)
        for s in range(2)
    ]
    found = row(answer_tables.noise_floor(frame(opposite)))
    assert (found["difference"], found["discordant"]) == (0, 100)
