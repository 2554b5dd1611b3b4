"""The paragraph that is quoted says what the numbers say, whichever they are."""

from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from lib.claims.verdict import Verdict
from lib.sentences.conclusion import (
    conclude,
    sentence_takes_as_much,
    shares_drawn,
)

SHARES = pd.DataFrame(
    {
        "inserted": ["slashes", "a sentence as long", "slashes", "a sentence as long"],
        "layer": [1, 1, 2, 2],
        "mass": [10.4, 20.0, 90.0, 95.0],
    }
)


def verdict(claim, low, high, model="tiny", survives=True):
    """Return a verdict on 40 problems whose interval has these ends."""
    return Verdict(
        id=claim,
        claim="Slashes help",
        reading="literal",
        source="Table 1",
        model=model,
        unit="points",
        range=(0, None),
        written="before",
        part="mless - none",
        effect=(low + high) / 2,
        low=low,
        high=high,
        n=40,
        survives=survives,
    )


def test_a_sentence_that_takes_the_same_share_takes_as_much():
    shares = SHARES.assign(model="m", mass=10.0)
    assert sentence_takes_as_much(shares).tolist() == [True]
    # Only the first layer counts.
    less = shares.assign(mass=[10.0, 9.0, 0.0, 95.0])
    assert sentence_takes_as_much(less).tolist() == [False]


def test_the_answer_comes_first_and_attention_next():
    first, _, third, *_ = conclude([verdict("accuracy-mless", -1, 3)], SHARES)
    assert first.startswith(
        "In the one model that we could run, we see no certain gain"
    )
    assert third == (
        "The slashes take 10 % of the first layer's attention; an ordinary sentence as"
        " long takes 20 %."
    )


@pytest.mark.parametrize(
    "claim", ["accuracy-mless", "points-slashes", "likelihood-gain"]
)
def test_a_gain_by_any_measure_is_told_as_one(claim):
    verdicts = [verdict(claim, 1, 3), verdict(claim, -1, 3, model="other")]
    first, *others = conclude(verdicts, SHARES)
    assert first.startswith("In one of the two models that we could run, we see a gain")
    assert "corrected" not in " ".join(others)


def test_an_interval_that_does_not_survive_correction_is_no_certain_gain():
    chance = verdict("points-slashes", 0.1, 5, survives=False)
    sentences = conclude([chance, verdict("accuracy-mless", -1, 3)], SHARES)
    assert sentences[0].startswith(
        "In the one model that we could run, we see no certain gain"
    )
    assert (
        "Of these intervals, none of likelihood and two of accuracy, one lies above 0;"
        " corrected for the number of all tests (Holm), it does not."
    ) in sentences


GAIN = "the paper's gain of 2 points"


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((-1, 3), f"both 0 and {GAIN}"),
        ((-1, 1), f"0 but not {GAIN}"),
        ((1, 3), f"{GAIN} but not 0"),
        ((-3, -1), f"neither 0 nor {GAIN}"),
        ((3, 4), f"neither 0 nor {GAIN}"),
    ],
)
def test_what_an_interval_holds_follows_from_its_ends(ends, text):
    assert f"The interval holds {text}." in conclude(
        [verdict("points-slashes", *ends)], SHARES
    )


def test_intervals_that_hold_the_same_are_told_together_and_others_apart():
    wide = [verdict("accuracy-mless", -1, 3, name) for name in "ab"]
    assert f"Their intervals hold both 0 and {GAIN}." in conclude(wide, SHARES)

    several = conclude([*wide, verdict("accuracy-mless", 1, 3, "c")], SHARES)
    assert f"In a and b the interval holds both 0 and {GAIN}." in several
    assert f"In c the interval holds {GAIN} but not 0." in several


def test_a_run_that_is_not_finished_says_how_many_problems_were_planned():
    text = " ".join(conclude([verdict("points-slashes", -1, 3)], SHARES))
    assert (
        "With several sampled answers, weighted, accuracy moves by +1.0 [-1.0, +3.0]"
        " points in tiny (so far 40 of 500 planned problems)."
    ) in text
    whole = verdict("points-slashes", -1, 3)
    whole.n = 500
    assert "points in tiny (500 problems)." in " ".join(conclude([whole], SHARES))


def test_a_part_in_points_says_whether_it_is_small_or_does_not_stand():
    needed = "points-layer-1-needed"
    parts = [
        replace(verdict(needed, -0.4, 0.6, "a"), equivalence=1),
        replace(verdict(needed, -0.4, 1.4, "b"), equivalence=1),
        replace(verdict(needed, -4, -2, "c", survives=False), equivalence=1),
        replace(verdict("points-arm", -1.5, 0.5, "a"), equivalence=2),
    ]
    sentences = conclude([verdict("points-slashes", -1, 3), *parts], SHARES)
    assert sentences[-2:] == [
        "What the first layer adds to later ones changes accuracy by +0.10"
        " [-0.40, +0.60] points in a (surely below 1) and +0.50 [-0.40, +1.40] points"
        " in b and -3.0 [-4.0, -2.0] points in c (lost when corrected).",
        "ARM, the paper's other method, changes accuracy by -0.5 [-1.5, +0.5] points in"
        " a (surely below 2).",
    ]


def test_likelihoods_are_counted_by_model():
    verdicts = [
        verdict("likelihood-gain", -3, -1, "a"),
        verdict("likelihood-gain", -1, 1, "b"),
        verdict("likelihood-layer-1", 1, 2, "a"),
    ]
    text = " ".join(conclude(verdicts, SHARES))
    assert "likelier in none of two models, and certainly less likely in one" in text
    assert "sees of them: it is certain in one of one model." in text


def test_the_papers_own_models_are_not_said_to_be_others():
    own = conclude([verdict("accuracy-mless", -1, 3, "Qwen2.5-Math-7B")], SHARES)
    other = conclude([verdict("accuracy-mless", -1, 3)], SHARES)
    limit = "None of these models is one of the paper's."
    assert limit in other
    assert limit not in own


def test_attention_is_told_once_notebook_02_has_drawn_it(tmp_path):
    run = SimpleNamespace(figures=tmp_path)
    verdicts = [verdict("accuracy-mless", -1, 3)]
    assert "attention" not in " ".join(conclude(verdicts, shares_drawn(run)))
    SHARES.to_csv(tmp_path / "mass_by_layer.csv", index=False)
    assert conclude(verdicts, shares_drawn(run)) == conclude(verdicts, SHARES)


def test_nothing_is_concluded_from_nothing():
    assert conclude([], SHARES) == [
        "Nothing that was scored or answered says whether slashes help."
    ]
