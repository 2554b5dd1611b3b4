"""The forest of differences and its panels: what is drawn is what was given."""

import numpy as np
import pandas as pd
import pytest

from lib.figures.likelihood import draw_likelihood, likelihood_layout


def row(panel, x, model="m", effect=0.5, band=0.8, curve="slashes"):
    ends = {"low": effect - 1, "high": effect + 1}
    return {"panel": panel, "curve": curve, "x": x, "model": model, "effect": effect, **ends, "n": 40, "band": band}


def drawn(*rows):
    figure, axes = likelihood_layout(pd.DataFrame(rows))()
    return figure, axes, draw_likelihood(axes, pd.DataFrame(rows))


def test_rows_stand_by_pair_with_their_model_their_band_and_their_numbers():
    pairs = [row("pairs", "a − b"), row("pairs", "a − b", "other", -2, np.nan), row("pairs", "c − b", effect=9)]
    _, axes, points = drawn(*pairs)
    ax = axes["pairs"]
    assert [point.get_xdata()[0] for point in points] == [0.5, -2, 9]
    heights = [point.get_ydata()[0] for point in points]
    assert heights[0] > heights[1] > heights[2] and heights[0] - heights[1] < heights[1] - heights[2]
    assert points[0].get_color() == points[2].get_color() != points[1].get_color()
    assert points[0].get_marker() != points[1].get_marker()
    bands = {round(bar.get_y() + 0.5, 3): (bar.get_x(), bar.get_width()) for bar in ax.patches[:3]}
    assert bands[round(heights[0], 3)] == (-0.8, 1.6) and bands[round(heights[1], 3)][1] == 0
    texts = [text.get_text() for text in ax.texts]
    assert texts[0] == "+0.5 [−0.5, +1.5], n = 40" and len(texts) == 3
    assert [label.get_text() for label in ax.get_yticklabels()] == ["slashes\n(a − b)", "slashes\n(c − b)"]
    low, high = ax.get_xlim()
    assert low == -high and high > 10
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[:2] == ["m", "other"] and "worked example" in names[2]


def test_lengths_and_depths_are_lines_and_places_are_points():
    rows = [row("length", 110), row("length", 10), row("place", "end"), row("place", "before")]
    rows += [row("depth", k, curve=curve) for curve in ("hidden", "shown") for k in (1, 4)]
    _, axes, marks = drawn(row("pairs", "a − b"), *rows)
    assert set(axes) == {"pairs", "length", "place", "depth"}
    lines = {ax: [m for m in marks if m.axes is axes[ax]] for ax in axes}
    assert list(lines["length"][0].get_xdata()) == [10, 110]
    assert lines["place"][0].get_linestyle() == "None"
    assert [text.get_text() for text in axes["place"].get_xticklabels()] == ["end", "before"]
    assert [line.get_linestyle() for line in lines["depth"]] == ["-", "--"]
    assert {line.get_label() for line in lines["depth"]} == {"m, hidden", "m, shown"}


def test_without_a_scale_no_band_is_named_and_without_a_row_it_is_said():
    _, axes, _ = drawn(row("pairs", "a − b", band=np.nan))
    assert [text.get_text() for text in axes["pairs"].get_legend().get_texts()] == ["m"]
    table = pd.DataFrame([row("pairs", "a − b")])[:0]
    _, axes = likelihood_layout(table)()
    assert draw_likelihood(axes, table) == []
    assert axes["pairs"].texts[0].get_text() == "nothing was scored on enough problems"


@pytest.mark.parametrize("more", [(), (row("length", 10), row("length", 20))])
def test_the_page_is_as_high_as_what_it_shows(more):
    figure, axes, _ = drawn(row("pairs", "a − b"), *more)
    assert (figure.get_figheight() > 3) == bool(more) and set(axes) == {"pairs", *(["length"] if more else [])}
