"""Tables of several samples of hand-written answers."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hand_written import record, run

from lib.evaluation import sample_tables
from lib.evaluation.rows import frame


def row(table):
    return table.to_dict("records")[0]


def voted(**answers):
    """Answers by problem, one character a sample: . is none; 7 is right."""
    return frame(
        [
            record("none", name, answer == "7", sample, extracted=answer.strip("."))
            for name, of_problem in answers.items()
            for sample, answer in enumerate(of_problem)
        ]
    )


def test_pass_at_k_is_the_mean_over_all_choices_of_k_samples():
    correct = np.array([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0]])
    # Of another problem a fifth sample was taken.
    fewer = np.column_stack([correct, np.full(4, np.nan)])
    for k in (1, 2, 3, 4):
        choices = itertools.combinations(range(4), k)
        solved = [correct[:, choice].any(axis=1) for choice in choices]
        mean = np.mean(solved, axis=0)
        np.testing.assert_allclose(sample_tables.pass_at_k(correct, k), mean)
        np.testing.assert_allclose(sample_tables.pass_at_k(fewer, k), mean)


def test_the_best_of_fewer_samples_is_that_of_the_first_in_their_order():
    answers = voted(a="37777", b="77555")
    three = row(sample_tables.best_of(answers[::-1], 3))
    assert (three["majority"], three["one"], three["samples"]) == (100, 60, 5)
    # One of three is right: surely of five with four right ones; of b all but where the
    # three others are drawn.
    assert three["best"] == pytest.approx(100 * (1 + 1 - 1 / 10) / 2)
    one = row(sample_tables.best_of(answers, 1))
    assert (one["majority"], one["best"]) == (50, 60)


def test_an_answer_without_a_box_is_no_vote():
    table = sample_tables.best_of(voted(a="..7", b="..."), 3)
    assert row(table)["majority"] == 50


@pytest.mark.parametrize(
    "texts, share",
    [(("a b a b",), 2 / 3), (("a b", "a b"), 1 / 2), (("",), 0), (("word",), 0)],
)
def test_distinct_pairs_of_words_are_a_share_of_all(texts, share):
    assert sample_tables.distinct_2(texts) == pytest.approx(share)


def test_the_noise_floor_is_what_seeds_alone_change():
    answers = [
        record("none", f"p{i}", i < right, sample)
        for sample, right in enumerate((2, 5, 6))
        for i in range(10)
    ]
    floor = row(sample_tables.noise_floor(frame(answers)))
    assert floor["difference"] == pytest.approx(80 / 3)
    assert floor["largest"] == pytest.approx(40)
    assert floor["discordant"] == pytest.approx(80 / 3)
    assert (floor["n"], floor["samples"]) == (10, 3)


def test_the_noise_floor_is_of_prompts_without_any_insertion():
    slashes = voted(a="75").assign(condition="mless")
    answers = pd.concat([slashes, voted(a="55")])
    assert sample_tables.noise_floor(answers).largest.tolist() == [0]


def test_diversity_is_told_up_to_as_many_samples_as_there_are():
    answers = voted(a="7555", b="5555")
    answers["response"] = ["x y", "x y", "x z", ""] + ["x y"] * 4
    found = row(sample_tables.diversity(answers))
    assert found["pass@1"] == 12.5
    assert found["pass@3"] == pytest.approx(37.5)
    assert found["pass@4"] == 50
    assert "pass@8" not in found
    # Two of the first problem's three pairs of words are distinct, one of four.
    share = (2 / 3 + 1 / 4) / 2
    assert found["distinct 2-grams"] == pytest.approx(100 * share)


def test_samples_that_solve_opposite_problems_differ_in_all_and_in_nothing():
    answers = [
        record("none", f"p{i}", (i + sample) % 2 == 0, sample)
        for i in range(10)
        for sample in range(2)
    ]
    floor = row(sample_tables.noise_floor(frame(answers)))
    assert (floor["difference"], floor["discordant"]) == (0, 100)


@pytest.mark.parametrize("records", [[], run("none", 2, 4)])
def test_one_sample_shows_nothing(records):
    answers = frame(records)
    assert sample_tables.diversity(answers).empty
    assert sample_tables.best_of(answers, 5).empty
    assert sample_tables.noise_floor(answers).empty


def test_one_missing_sample_leaves_its_problem_out_of_what_it_is_too_few_for():
    answers = voted(a="777", b="77", c="555")
    several = row(sample_tables.diversity(answers))
    assert (several["pass@1"], several["pass@3"]) == (pytest.approx(200 / 3), 50)
    best = row(sample_tables.best_of(answers, 3))
    assert (best["best"], best["majority"]) == (50, 50)
    noise = row(sample_tables.noise_floor(answers))
    assert (noise["difference"], noise["discordant"], noise["largest"]) == (0, 0, 0)
