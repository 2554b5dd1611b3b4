"""What is drawn is what was given: checked through the artists, pixels are never
compared.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from artists import texts

from lib.figures import draw
from lib.figures.draw import HeadCurves, SeriesStyle
from lib.figures.head_figures import _share_y
from lib.figures.looks import LOOKS

NAN = float("nan")


def rows(columns, *values):
    return pd.DataFrame(values, columns=columns.split())


POINTS = rows(
    "condition head value low high",
    ("none", 1, 20, 15, 26),
    ("none", 3, 30, 28, 33),
    ("mless", 1, NAN, NAN, NAN),
    ("mless", 3, 1, 0, 9),
)


def test_estimates_stand_beside_each_other(ax):
    none, mless = draw.estimates(ax, POINTS, "head", "value")
    assert none.get_xdata().tolist() == pytest.approx([0.9, 2.9])
    assert mless.get_xdata().tolist() == pytest.approx([1.1, 3.1])
    assert none.get_ydata().tolist() == [20, 30]
    assert np.isnan(mless.get_ydata()[0])
    assert (none.get_label(), mless.get_label()) == ("None", "Mless")
    assert none.get_linestyle() == mless.get_linestyle() == "None"


def test_every_estimate_has_its_interval(ax):
    draw.estimates(ax, POINTS, "head", "value")
    bars = [line for line in ax.lines if line.get_marker() == "_"]
    ends = [bar.get_ydata().tolist() for bar in bars]
    assert ends[:2] == [[15, 26], [28, 33]]
    assert ends[3] == [0, 9]


def test_places_that_are_named_stand_in_their_order_and_a_line_joins_them(ax):
    named = POINTS[:2].assign(head=["end", "before"])
    (series,) = draw.estimates(ax, named, "head", "value", style=SeriesStyle(line=True))
    assert series.get_xdata().tolist() == [0, 1]
    assert series.get_linestyle() == "-"
    assert texts(ax.get_xticklabels()) == ["end", "before"]
    left, right = ax.get_xlim()
    assert left < 0
    assert right > 1


def test_a_look_may_be_given(ax):
    looks = {"none": LOOKS["arm"]}
    (series,) = draw.estimates(ax, POINTS[:2], "head", "value", looks=looks)
    assert (series.get_color(), series.get_label()) == (LOOKS["arm"].colour, "none")


PARTS = ["instruction", "instruction", "inserted", "inserted", "problem"]


def one_head():
    """Return what five tokens receive with slashes, of which two, and without them."""
    with_slashes = pd.DataFrame({"part": PARTS, "position": range(5)})
    with_slashes = with_slashes.assign(condition="mless")
    with_slashes["received"] = [0.02, 0.04, 0.06, 0.08, 0.1]
    without = with_slashes.assign(condition="none")
    without["received"] = [0.1, 0.2, NAN, NAN, 0.5]
    both = pd.concat([without.dropna(), with_slashes])
    return both.assign(model="M", layer=1, head=2)


def test_curves_leave_out_the_first_token_and_compare_the_same_ones(ax):
    compared = HeadCurves({"none": "w/o", "mless": "w/"}, fill=True)
    draw.received(ax, one_head(), compared)
    without, after = ax.lines
    assert without.get_ydata().tolist() == [0.2, 0.5]
    assert after.get_ydata().tolist() == [0.04, 0.1]
    assert after.get_xdata().tolist() == [1, 2]
    assert len(ax.collections) == 2
    assert without.get_label() == "w/o"


def test_the_axes_of_a_head_begin_at_zero_and_name_it(ax):
    draw.received(ax, one_head(), HeadCurves({"none": "w/o", "mless": "w/"}))
    assert ax.get_ylim() == (0, pytest.approx(0.54))
    assert ax.get_xlabel() == "Token position"
    assert ax.get_title() == "M\nLayer 1 Head 2"


def test_a_whole_prompt_has_its_inserted_tokens_shaded(ax):
    compared = HeadCurves({"mless": "w/"}, title="all of {model}", shade="inserted")
    draw.received(ax, one_head(), compared)
    assert ax.lines[0].get_ydata().tolist() == [0.04, 0.06, 0.08, 0.1]
    assert ax.get_title() == "all of M"
    assert texts(ax.texts) == ["inserted"]
    assert ax.texts[0].xy[0] == 2.5
    (shade,) = ax.patches
    assert (shade.get_x(), shade.get_width()) == (1.5, 2)  # tokens 2 and 3


def test_the_curve_without_an_insertion_is_seen_below_others_that_coincide(ax):
    draw.received(ax, one_head(), HeadCurves({"none": "w/o", "mless": "w/"}))
    without, after = ax.lines
    assert without.get_linewidth() > 2 * after.get_linewidth()


def test_ratios_leave_out_the_first_token_and_what_was_inserted(ax):
    head = one_head().assign(ratio=[NAN] * 3 + [3.0, 0.2, NAN, NAN, 40.0])
    draw.token_ratios(ax, head, ["mless"])
    even, ratios = ax.lines
    assert even.get_ydata() == [1, 1]
    assert ratios.get_ydata().tolist() == [0.2, 40.0]
    bottom, top = ax.get_ylim()
    assert 0.1 < bottom < 0.2
    assert 10 < top < 40


def test_rows_of_models_have_a_point_per_condition_with_its_interval(ax):
    table = rows(
        "model condition mean low high",
        ("a", "mless", 0.5, 0.4, 0.6),
        ("b", "mless", 0.7, 0.6, 0.8),
        ("b", "mful", 0.9, 0.8, 1.0),
    )
    draw.model_rows(ax, table, "mean", ["a", "b"])
    mless, mful = ax.lines
    assert mless.get_xdata().tolist() == [0.5, 0.7]
    assert mless.get_ydata() == pytest.approx([-0.15, 0.85])
    assert mful.get_ydata() == pytest.approx([1.15])
    ends = [area.get_segments()[0][:, 0].tolist() for area in ax.collections]
    assert ends == [[0.4, 0.6], [0.8, 1.0]]
    assert texts(ax.get_yticklabels()) == ["a", "b"]
    assert ax.get_ylim() == (1.5, -0.5)


BARS = rows(
    "source condition accuracy low high",
    ("this run", "none", 63.2, 59.0, 67.5),
    ("this run", "mless", NAN, NAN, NAN),
    ("the paper", "none", 64.0, NAN, NAN),
    ("the paper", "mless", 66.0, NAN, NAN),
).assign(model="M")


def test_bars_have_the_accuracies_with_their_intervals(ax):
    bars = draw.bars(ax, BARS)
    np.testing.assert_array_equal([bar.get_height() for bar in bars], BARS.accuracy)
    assert texts(ax.texts) == ["63.2", "n/a", "64.0", "66.0"]
    assert [text.xy[1] for text in ax.texts] == [67.5, 0, 64, 66]
    assert ax.get_ylim() == (0, 100)
    own, *others = ax.lines
    assert list(own.get_ydata()) == [59.0, 67.5]
    assert all(np.isnan(line.get_ydata()).all() for line in others)


def test_numbers_above_many_bars_are_turned(ax):
    draw.bars(ax, BARS)
    assert {text.get_rotation() for text in ax.texts} == {0}
    ax.clear()
    models = [BARS.assign(model=name) for name in ("A", "B", "C")]
    draw.bars(ax, pd.concat(models))
    assert {text.get_rotation() for text in ax.texts} == {90}


def test_bars_of_the_paper_are_hatched_in_a_group_of_their_own(ax):
    bars = draw.bars(ax, BARS)
    assert [bool(bar.get_hatch()) for bar in bars] == [False, False, True, True]
    assert bars[0].get_x() + bars[0].get_width() < bars[1].get_x()
    assert texts(ax.get_xticklabels()) == ["M\n(this run)", "M\n(the paper)"]
    _, labels = ax.get_legend_handles_labels()
    assert labels == ["w/o", "w/ Mless", "reported in the paper"]


def test_panels_that_share_an_axis_reach_from_the_lowest_to_the_highest_end():
    _, axes = plt.subplots(2)
    axes[0].set_ylim(0, 3)
    axes[1].set_ylim(-1, 2)
    _share_y(axes)
    assert [axis.get_ylim() for axis in axes] == [(-1, 3)] * 2
