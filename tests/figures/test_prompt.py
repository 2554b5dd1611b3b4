"""A prompt seen from close, on made-up numbers."""

import numpy as np
import pytest
from artists import texts

from lib.figures.prompt import LETTERS, draw_close

TOKENS = ["Add", " $3$", " /", " /", "   ", "\n", " now", "."]
FILLER = slice(2, 6)
RATIOS = np.array([[0.5, 0.9], [1.1, 1.2]])
REFERENCES = {
    "slashes": np.array([0.7, 1.0]),
    "even attention": np.array([0.5, 0.5]),
}


AFTER = np.array([9.0, 0.2, 0.1, 0.1, 0.1, 0.1, 0.4, np.nan])
WITHOUT = np.where(np.isin(range(8), range(2, 6)), np.nan, 2 * AFTER)


def draw(after=AFTER, ratios=RATIOS):
    return draw_close(TOKENS, FILLER, WITHOUT, after, ratios, REFERENCES, (2, 1))


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
