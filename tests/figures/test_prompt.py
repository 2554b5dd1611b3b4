"""A prompt seen from close, on made-up numbers."""

import numpy as np
import pytest

from lib.figures.prompt import LETTERS, draw_close

TOKENS = ["Add", " $3$", " /", " /", "   ", "\n", " now", "."]


@pytest.fixture
def figure():
    after = np.array([9.0, 0.2, 0.1, 0.1, 0.1, 0.1, 0.4, np.nan])
    without = np.where(np.isin(range(8), [2, 3, 4, 5]), np.nan, 2 * after)
    ratios = np.array([[0.5, 0.9], [1.1, 1.2]])
    references = {
        "slashes": np.array([0.7, 1.0]),
        "even attention": np.array([0.5, 0.5]),
    }
    return draw_close(TOKENS, slice(2, 6), without, after, ratios, references, (2, 1))


def test_tokens_are_written_as_they_are_and_what_cannot_be_seen_by_signs(figure):
    (line,) = figure.axes[0].texts
    assert line.get_text() == "Add $3$ / /␣×3↵ now." and not line.get_parse_math()


def test_the_more_a_token_receives_the_darker_it_is(figure):
    (grounds,) = figure.axes[0].collections
    light = grounds.get_facecolors()[:, 2]
    assert light[6] < light[1] < light[2] == light[5] and light[7] == pytest.approx(
        0.85
    )


def test_long_prompts_are_broken_between_tokens():
    ones = np.ones(200)
    many = draw_close(
        [" token"] * 200,
        slice(1, 2),
        ones,
        ones,
        np.ones((1, 1)),
        {"slashes": [1.0]},
        (1, 1),
    )
    lines = [text.get_text() for text in many.axes[0].texts]
    assert "".join(lines) == " token" * 200 and max(map(len, lines)) <= LETTERS
    assert many.get_figheight() > 3


def test_curves_leave_out_the_first_token_and_dots_are_the_heads(figure):
    _, curve, dots = figure.axes
    without, after = (line.get_ydata() for line in curve.lines)
    assert (
        len(after) == 7
        and after[0] == 0.2
        and np.isnan(without[1:5]).all()
        and without[5] == 0.8
    )
    assert [line.get_ydata().tolist() for line in dots.lines[1:]] == [
        [0.5, 0.9, 1.1, 1.2],
        [1.1],
    ]
    assert curve.get_title("left") == "Layer 2, head 1: λ = 1.10"
    assert [text.get_text() for text in dots.get_legend().get_texts()] == [
        "slashes",
        "even attention",
    ]
