"""The close-up picture of one prompt, on hand-made numbers."""

import re

import numpy as np
import pytest
from artists import texts

from reproduction.figures.single_prompt_figure import close_up, coloured

FILLER = slice(2, 4)
AFTER = np.array([0.3, 0.2, 0.1, 0.1, 0.4, np.nan])
WITHOUT = np.array([0.6, 0.4, np.nan, np.nan, 0.8, np.nan])
RATIOS = np.array([[0.5, 0.9], [1.1, 2.4]])


def draw(after=AFTER):
    curves = {"without": WITHOUT, "with": after}
    return close_up(curves, FILLER, RATIOS, (2, 1)).axes


def test_tokens_that_receive_more_are_darker_and_the_filler_is_underlined():
    tokens = ["<b>", " $3$", " /", "\n", " now", "."]
    page = coloured(tokens, FILLER, AFTER / 0.8).data
    spans = page.split("<span style=")[1:]
    # JupyterLab keeps this form of a colour in outputs that were stored.
    colour = re.compile(r"background: rgba\(232, 131, 58, (0\.\d\d)\);")
    shades = [float(colour.search(span)[1]) for span in spans]
    assert shades == pytest.approx([0.375, 0.25, 0.125, 0.125, 0.5, 0], abs=0.006)
    underlined = ["underline" in span for span in spans]
    assert underlined == [False, False, True, True, False, False]
    assert "&lt;b&gt;" in spans[0]
    assert "↵" in spans[3]


def test_curves_show_what_every_token_receives_and_the_filler_is_shaded():
    curves, _ = draw()
    without, after = (line.get_ydata() for line in curves.lines)
    np.testing.assert_array_equal(after, AFTER)
    np.testing.assert_array_equal(without, WITHOUT)
    assert curves.get_xlabel() == "Position in the complete prompt"
    assert curves.get_ylabel() == "Received attention"
    (shade,) = curves.patches
    assert (shade.get_x(), shade.get_width()) == (1.5, 2)  # tokens 2 and 3
    # The legend covers no curve.
    (legend,) = curves.figure.legends
    assert texts(legend.get_texts()) == ["without", "with", "the filler"]


def test_the_axis_is_the_same_for_every_filler():
    curves, _ = draw()
    weaker, _ = draw(AFTER / 4)
    assert weaker.get_ylim() == curves.get_ylim() == (0, pytest.approx(1.15 * 0.8))


def test_dots_show_the_heads_and_a_ring_marks_the_chosen_one():
    curves, heads = draw()
    no_change, first, second, ring = heads.lines
    assert no_change.get_ydata() == [1, 1]
    assert first.get_ydata().tolist() == [0.5, 1.1]
    assert second.get_ydata().tolist() == [0.9, 2.4]
    assert np.ravel(ring.get_ydata()).tolist() == [1.1]
    assert heads.get_ylim()[1] > 2.4
    assert curves.get_title() == "Layer 2, head 1: λ = 1.10"
    # The dots of a layer are drawn side by side.
    assert (first.get_xdata() < second.get_xdata()).all()
    assert np.ravel(ring.get_xdata()).tolist() == [first.get_xdata()[1]]
