"""The sentences of the page, filled from verdicts that are written by hand."""

from dataclasses import replace

import pandas as pd
import pytest
from report_folder import claim, verdict_of

from lib.claims.verdict import Power
from lib.evaluation.answer_tables import GRADERS
from lib.sentences import page_sections
from lib.sentences.conclusion import SENTENCE, SLASHES


def verdict(name, effect, low, high, **changes):
    row = {"id": name, "effect": effect, "low": low, "high": high, "unit": "points"}
    return verdict_of(claim(**row | changes))


def dilution(effect, model):
    return verdict("dilution", effect, effect - 0.01, effect + 0.01, model=model)


def shares(taken):
    """Return what slashes and a sentence take of layers 1 and 2, in %; None: unknown.

    In the second layer it is the other way round.
    """
    rows = []
    for model, pair in taken.items():
        for layer, masses in ((1, pair), (2, pair[::-1])):
            rows += [
                (model, name, layer, mass)
                for name, mass in zip((SLASHES, SENTENCE), masses, strict=True)
                if mass is not None
            ]
    return pd.DataFrame(rows, columns=["model", "inserted", "layer", "mass"])


NO_GAIN = verdict("accuracy-mless", 1, -2, 4, paper=2, paper_of="a bigger model")
GAIN = verdict("likelihood-gain", 1, 0.5, 1.5, survives=True)
CHANCE = verdict("likelihood-gain", 1, 0.5, 1.5, survives=False)
WHERE = "the one model that we could run, we see"
WHAT = "gain in maths from 55 slashes in the prompt."
LOSS = verdict("accuracy-mless", -2, -4, -1)
FEW = verdict("accuracy-mless", 1, -2, 4, n=4)


@pytest.mark.parametrize(
    "verdicts, says",
    [
        ([NO_GAIN], f"In {WHERE} no certain {WHAT}"),
        ([LOSS], f"In {WHERE} no {WHAT}"),
        ([NO_GAIN, CHANCE], f"In {WHERE} no certain {WHAT}"),
        ([NO_GAIN, GAIN], f"In one of {WHERE} a {WHAT}"),
        ([FEW], "Too few problems were measured to answer: that takes 20 or more."),
        ([], "Too few problems were measured to answer: that takes 20 or more."),
    ],
)
def test_the_answer_comes_first_and_follows_from_the_intervals(verdicts, says):
    assert page_sections.answer(verdicts, shares({}))[0] == says


def test_what_attention_is_taken_is_told_over_the_models():
    taken = shares({"a": (10, 20), "b": (39, 46)})
    assert page_sections.answer([NO_GAIN], taken)[1] == (
        "The slashes take 10 to 39 % of the first layer's attention; an ordinary"
        " sentence as long takes 20 to 46 %."
    )


@pytest.mark.parametrize(
    "low, high, open_still",
    [(-2, 4, True), (0.5, 4, False), (-2, 1.5, False), (-4, -1, False)],
)
def test_the_papers_gain_stays_open_where_an_interval_holds_it_and_zero(
    low, high, open_still
):
    row = verdict("accuracy-mless", 1, low, high, paper=2, paper_of="another")
    last = page_sections.answer([row], shares({}))[-1]
    assert ("too uncertain" in last) == open_still
    # With another model, where it is open, all of it is as open as this one.
    last = page_sections.answer([NO_GAIN, row], shares({}))[-1]
    assert ("too uncertain" in last) == open_still


@pytest.mark.parametrize(
    "count, total, says",
    [
        (0, 1, "none of the models"),
        (1, 1, "the one model"),
        (0, 2, "neither of the two models"),
        (0, 4, "none of the four models"),
        (2, 4, "two of the four models"),
        (4, 4, "all four models"),
    ],
)
def test_models_are_counted_in_words(count, total, says):
    assert page_sections.of_models(count, total) == says


def test_a_sentence_is_compared_with_slashes_model_by_model():
    taken = {"a": (10, 20), "b": (30, 25), "c": (30, None)}
    (line,) = page_sections.any_text([], shares(taken))
    assert line.endswith("in one of the two models.")
    assert page_sections.any_text([], shares({"a": (30, 25)})) == [
        "Slashes take more attention than an ordinary sentence as long."
    ]
    assert page_sections.any_text([], shares({})) == []


@pytest.mark.parametrize(
    "low, survives, doubted",
    [(0.1, False, True), (-1, False, False), (0.1, True, False)],
)
def test_weighted_answers_that_gain_only_uncorrected_are_doubted(
    low, survives, doubted
):
    row = verdict("points-slashes", 1.8, low, 4.7, n=60, survives=survives)
    assert ("does not stand" in page_sections.helps([row])[-1]) == doubted


def test_settings_that_help_and_hurt_are_counted():
    rows = [{"low": 1, "high": 2}, {"low": -1, "high": 2}, {"low": -2, "high": -1}]
    line, _ = page_sections.settings([{"title": "How many", "rows": rows}])
    assert line == (
        "Of 3 settings 1 make the worked solution surely likelier and 1 surely less"
        " likely."
    )


def test_a_paper_model_that_was_run_is_not_denied():
    denied = "None of the paper's own models was run, so its gain stays open."
    assert denied in page_sections.undone([NO_GAIN])
    assert denied not in page_sections.undone([dilution(0.9, "Qwen2.5-Math-1.5B")])


def test_turned_answers_are_counted_either_way():
    flips = [{"gained": True}, {"gained": True}, {"gained": False}]
    assert (
        page_sections.writes(flips)[0]
        == "With slashes 2 answers turned right and 1 turned wrong."
    )
    assert page_sections.writes([]) == []


def test_the_graders_lesson_is_told_of_the_model_where_they_lie_apart_most():
    rows = [
        ("a", "none", "correct", 10.5, None),
        ("a", "none", "correct_authors", 39, None),
        ("a", "mless", "correct", 11.5, 1),
        ("a", "mless", "correct_authors", 41, -2),
        ("b", "none", "correct", 40, None),
        ("b", "none", "correct_authors", 50, None),
    ]
    columns = ["model", "condition", "grader", "accuracy", "effect"]
    table = pd.DataFrame(rows, columns=columns)
    table["n"] = 40
    table["effect_low"] = table.effect - 3
    table["effect_high"] = table.effect + 3
    table["grader"] = table.grader.map(GRADERS)
    assert page_sections.trust([], table) == [
        "The same answers of one model are right in 10.5 or 39.0 %, depending on who"
        " grades.",
        "Slashes change that by +1.0 [-2.0, +4.0] points for this project's grader.",
        "For the authors' rule they change it by -2.0 [-5.0, +1.0] points.",
    ]
    assert len(page_sections.trust([], table[table.condition == "none"])) == 1
    # They may lie apart in either direction.
    stricter = table.assign(accuracy=100 - table.accuracy)
    told = page_sections.trust([], stricter)[0]
    assert told.startswith("The same answers of one model are right in 61.0 or 89.5 %")


def test_the_problems_that_a_gain_needs_are_told_by_model_and_not_by_the_ends():
    few = replace(NO_GAIN, power=Power(90, 70, 120))
    many = replace(NO_GAIN, power=Power(1200, 900, 1600))
    line = "Seeing a gain of 2 points takes 90 to 1,200 problems."
    assert line in page_sections.undone([few, many])
