"""A prompt seen from close, on made-up numbers."""

import numpy as np
import pytest
from artists import texts

from lib.figures.prompt import FILLER_INK, LETTERS, close_up, head_dots

TOKENS = ["Add", " $3$", " /", " /", "   ", "\n", " now", "."]
FILLER = slice(2, 6)
AFTER = np.array([0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.4, np.nan])
WITHOUT = np.where(np.isin(range(8), range(2, 6)), np.nan, 2 * AFTER)


def draw(after=AFTER, tokens=TOKENS, inserted=FILLER):
    curves = {"none": WITHOUT, "mless": after}
    return close_up("PP;CD", tokens, inserted, curves, "layer 2, head 1")[1]


@pytest.fixture
def axes():
    return draw()


def test_tokens_are_written_as_they_are_and_what_cannot_be_seen_by_signs(axes):
    written = axes["P"].texts
    assert "".join(texts(written)) == "Add $3$ / /␣␣␣↵ now."
    assert not any(text.get_parse_math() for text in written)


def test_the_more_a_token_receives_the_darker_it_is(axes):
    blue = [ground.get_facecolor()[2] for ground in axes["P"].patches]
    assert blue[6] < blue[1] < blue[2] == blue[5]
    assert blue[7] == pytest.approx(0.85)


def test_the_filler_has_ink_of_its_own_and_is_shaded_among_the_curves(axes):
    inks = [text.get_color() == FILLER_INK for text in axes["P"].texts]
    assert inks == [False] * 2 + [True] * 4 + [False] * 2
    (shade,) = axes["C"].patches
    assert (shade.get_x(), shade.get_width()) == (1.5, 4)  # tokens 2 to 5
    labels = texts(axes["C"].get_legend().get_texts())
    assert labels == ["without the filler", "with the filler", "the filler"]


def test_curves_are_what_every_token_receives(axes):
    without, after = (line.get_ydata() for line in axes["C"].lines)
    np.testing.assert_array_equal(after, AFTER)
    np.testing.assert_array_equal(without, WITHOUT)


def test_axes_and_colours_stay_where_they_are_under_another_filler(axes):
    weaker = draw(AFTER / 4)
    for name in ("C", "P"):
        assert weaker[name].get_xlim() == axes[name].get_xlim()
        assert weaker[name].get_ylim() == axes[name].get_ylim()
    shades = [drawn["P"].patches[6].get_facecolor()[2] for drawn in (axes, weaker)]
    assert shades[1] > shades[0]
    assert axes["C"].get_ylim()[1] == pytest.approx(1.15 * 0.8)


def test_long_prompts_are_broken_between_tokens():
    even = {"mless": np.ones(200)}
    _, axes = close_up("P;C", [" token"] * 200, slice(1, 2), even, "")
    rows = {}
    for text in axes["P"].texts:
        rows.setdefault(text.get_position()[1], []).append(text.get_text())
    assert len(rows) > 1
    assert max(len("".join(row)) for row in rows.values()) <= LETTERS


@pytest.mark.parametrize(
    "token, sign",
    [
        ("  ", "␣␣"),
        (" \n", "␣↵"),
        ("\t", "→"),
        ("a b\n", "a b↵"),
        ("", "·"),
        (" " * 64, "␣×64"),
    ],
)
def test_every_token_can_be_seen(token, sign):
    axes = draw(tokens=[token, *TOKENS[1:]])
    assert axes["P"].texts[0].get_text() == sign


def test_dots_are_the_heads_and_a_ring_is_the_chosen_one(axes):
    ratios = np.array([[0.5, 0.9], [1.1, 2.4]])
    head_dots(axes["D"], ratios, (2, 1))
    _, heads, ring = axes["D"].lines
    assert heads.get_ydata().tolist() == [0.5, 0.9, 1.1, 2.4]
    assert np.ravel(ring.get_ydata()).tolist() == [1.1]
    assert axes["D"].get_ylim()[1] > 2.4
