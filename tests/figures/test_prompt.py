"""A prompt seen from close, on made-up numbers."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from artists import texts
from matplotlib import colors

from lib.figures.prompt import LETTERS, SHADES, draw_close, one_prompt

TOKENS = ["Add", " $3$", " /", " /", "   ", "\n", " now", "."]
FILLER = slice(2, 6)
RATIOS = np.array([[0.5, 0.9], [1.1, 1.2]])
REFERENCES = {
    "slashes": np.array([0.7, 1.0]),
    "even attention": np.array([0.5, 0.5]),
}


AFTER = np.array([9.0, 0.2, 0.1, 0.1, 0.1, 0.1, 0.4, np.nan])
WITHOUT = np.where(np.isin(range(8), range(2, 6)), np.nan, 2 * AFTER)


def draw(after=AFTER, ratios=RATIOS, tokens=TOKENS):
    return draw_close(tokens, FILLER, WITHOUT, after, ratios, REFERENCES, (2, 1))


@pytest.fixture
def figure():
    return draw()


def test_tokens_are_written_as_they_are_and_what_cannot_be_seen_by_signs(figure):
    (line,) = figure.axes[0].texts
    assert line.get_text() == "Add $3$ / /␣×3↵ now."
    assert not line.get_parse_math()


def test_the_more_a_token_receives_the_darker_it_is(figure):
    (grounds,) = figure.axes[0].collections
    blue = grounds.get_facecolors()[:, 2]
    assert blue[6] < blue[1] < blue[2] == blue[5]
    assert blue[7] == pytest.approx(0.85)


def test_long_prompts_are_broken_between_tokens():
    tokens = [" token"] * 200
    even = np.ones(200)
    one_head = np.ones((1, 1))
    figure = draw_close(
        tokens, slice(1, 2), even, even, one_head, {"slashes": [1.0]}, (1, 1)
    )
    lines = texts(figure.axes[0].texts)
    assert "".join(lines) == " token" * 200
    assert max(map(len, lines)) <= LETTERS
    assert figure.get_figheight() > 3


def test_curves_leave_out_the_first_token(figure):
    curve = figure.axes[1]
    without, after = (line.get_ydata() for line in curve.lines)
    assert len(after) == 7
    assert after[0] == 0.2
    assert np.isnan(without[1:5]).all()
    assert without[5] == 0.8
    assert curve.get_title("left") == "Layer 2, head 1: λ = 1.10"


def ends(figure):
    return [(ax.get_xlim(), ax.get_ylim()) for ax in figure.axes[1:]]


def test_axes_and_colours_stay_where_they_are_under_another_filler(figure):
    weaker = draw(AFTER / 4, RATIOS / 4)
    assert ends(weaker) == ends(figure)
    shades = [
        drawn.axes[0].collections[0].get_facecolors() for drawn in (figure, weaker)
    ]
    assert (shades[1][6] > shades[0][6]).any()


def test_a_head_with_a_high_lambda_is_on_the_scale():
    assert draw(ratios=2 * RATIOS).axes[2].get_ylim()[1] > 2.4


def test_dots_are_the_heads_and_a_ring_is_the_chosen_one(figure):
    dots = figure.axes[2]
    _, heads, ring = dots.lines
    assert heads.get_ydata().tolist() == [0.5, 0.9, 1.1, 1.2]
    assert ring.get_ydata().tolist() == [1.1]
    labels = texts(dots.get_legend().get_texts())
    assert labels == ["slashes", "even attention"]


SIGNS = {
    " " * 2: "␣×2",
    " \n": "↵×2",
    "\t": "→",
    "a\tb\n": "a→b↵",
    "": "·",
}


@pytest.mark.parametrize("token", SIGNS)
def test_every_token_can_be_seen(token):
    figure = draw(tokens=[token, *TOKENS[1:]])
    (line,) = figure.axes[0].texts
    assert line.get_text() == f"{SIGNS[token]} $3$ / /␣×3↵ now."


def test_the_filler_is_shaded_and_named(figure):
    curve = figure.axes[1]
    (shade,) = curve.patches
    assert (shade.get_x(), shade.get_width()) == (1.5, 4)  # tokens 2 to 5
    labels = texts(curve.get_legend().get_texts())
    assert labels == ["without the filler", "with it", "the filler"]


def test_the_curves_axes_hold_every_token_and_the_highest_but_the_first(figure):
    curve = figure.axes[1]
    assert curve.get_xlim() == (0, 60)
    assert curve.get_ylim() == (0, pytest.approx(1.15 * 0.8))


def test_one_prompt_shades_what_was_inserted_and_is_as_dark_as_its_second_highest(
    monkeypatch,
):
    figures = []
    monkeypatch.setattr(plt, "close", figures.append)
    text = "Add / now."
    offsets = [(0, 3), (3, 5), (5, 9), (9, 10)]
    spans = {"inserted": slice(1, 2), "problem": slice(2, 4)}
    prompt = SimpleNamespace(text=text, offsets=offsets, spans=spans)
    picture = one_prompt(prompt, [9.0, 0.1, 0.4, 0.2])
    assert picture.retina
    words, curve = figures[0].axes
    assert texts(words.texts) == [text]
    darkest = words.collections[0].get_facecolors()[2]
    assert colors.to_hex(darkest).upper() == SHADES[-1]
    (shade,) = curve.patches
    assert (shade.get_x(), shade.get_width()) == (0.5, 1)  # token 1
    assert curve.lines[0].get_ydata().tolist() == [0.1, 0.4, 0.2]
