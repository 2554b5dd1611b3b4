"""What is drawn is what was given: checked through the artists, pixels are never
compared.
"""

import numpy as np
import pandas as pd
import pytest

from lib.figures import draw
from lib.figures.draw import LOOKS, look_of, ratio_axis

NAN = float("nan")


def rows(columns, *values):
    return pd.DataFrame(values, columns=columns.split())


POINTS = [
    ("none", 1, 20, 15, 26),
    ("none", 3, 30, 28, 33),
    ("mless", 1, NAN, NAN, NAN),
    ("mless", 3, 1, 0, 9),
]
POINTS = rows("condition head value low high", *POINTS)


def texts(labels):
    return [label.get_text() for label in labels]


def test_estimates_stand_beside_each_other_with_their_intervals(ax):
    none, mless = draw.estimates(ax, POINTS, "head", "value", gap=0.2, even=1)
    assert none.get_xdata().tolist() == pytest.approx(
        [0.9, 2.9]
    ) and none.get_ydata().tolist() == [20, 30]
    assert mless.get_xdata().tolist() == pytest.approx([1.1, 3.1]) and np.isnan(
        mless.get_ydata()[0]
    )
    assert (none.get_label(), mless.get_label()) == ("None", "Mless")
    ends = [line.get_ydata().tolist() for line in ax.lines if line.get_marker() == "_"]
    assert ends[:2] == [[15, 26], [28, 33]] and ends[3] == [0, 9]
    assert ax.lines[0].get_ydata() == [1, 1] and {
        line.get_linestyle() for line in (none, mless)
    } == {"None"}


def test_places_that_are_named_stand_in_their_order_and_a_line_joins_them(ax):
    named = POINTS.assign(head=["end", "before", "end", "before"])
    (series,) = draw.estimates(ax, named[:2], "head", "value", line=True)
    assert series.get_xdata().tolist() == [0, 1] and series.get_linestyle() == "-"
    assert texts(ax.get_xticklabels()) == ["end", "before"]


def test_a_band_is_an_area_and_a_look_may_be_given(ax):
    (series,) = draw.estimates(
        ax, POINTS[:2], "head", "value", band=True, looks={"none": LOOKS["arm"]}
    )
    assert ax.collections[0].get_datalim(ax.transData).extents.tolist() == [
        1,
        15,
        3,
        33,
    ]
    assert (series.get_color(), series.get_label()) == (LOOKS["arm"].colour, "none")


def test_conditions_differ_in_colour_and_mark_and_an_unknown_one_is_refused():
    for field in ("colour", "marker"):
        assert (
            len(
                {
                    getattr(LOOKS[name], field)
                    for name in ("none", "mless", "mful", "random", "arm")
                }
            )
            == 5
        )
    assert look_of("mless") == (LOOKS["mless"], "Mless") and look_of("mless:25") == (
        LOOKS["mless"],
        "mless:25",
    )
    with pytest.raises(ValueError, match="unknown condition 'bogus'"):
        look_of("bogus")


PARTS = ["instruction", "instruction", "inserted", "inserted", "problem"]
HEAD = [
    ("none", part, NAN if part == "inserted" else 0.1 * i)
    for i, part in enumerate(PARTS, 1)
]
HEAD = rows(
    "condition part received",
    *HEAD,
    *(("mless", part, 0.02 * i) for i, part in enumerate(PARTS, 1)),
)
HEAD = HEAD.assign(model="M", layer=1, head=2, position=[*range(5)] * 2).dropna()


def test_curves_leave_out_the_first_token_and_compare_the_same_ones(ax):
    draw.received(ax, HEAD, {"none": "w/o", "mless": "w/"}, fill=True)
    without, after = ax.lines
    assert without.get_ydata().tolist() == [
        0.2,
        0.5,
    ] and after.get_ydata().tolist() == [0.04, 0.1]
    assert after.get_xdata().tolist() == [1, 2] and len(ax.collections) == 2
    assert (
        ax.get_ylim() == (0, pytest.approx(0.54))
        and ax.get_xlabel() == "Token position"
    )
    assert (without.get_label(), ax.get_title()) == ("w/o", "M\nLayer 1 Head 2")


def test_a_whole_prompt_has_its_inserted_tokens_shaded(ax):
    draw.received(ax, HEAD, {"mless": "w/"}, ": all", shade="inserted")
    assert ax.lines[0].get_ydata().tolist() == [
        0.04,
        0.06,
        0.08,
        0.1,
    ] and ax.get_title().endswith("Head 2: all")
    assert (ax.patches[0].get_x(), ax.patches[0].get_width()) == (
        1.5,
        2,
    )  # tokens 2 and 3


BARS = [("this run", "none", 63.2, 59.0, 67.5), ("this run", "mless", NAN, NAN, NAN)]
BARS += [("the paper", "none", 64.0, NAN, NAN), ("the paper", "mless", 66.0, NAN, NAN)]
BARS = rows("source condition accuracy low high", *BARS).assign(model="M")


def test_bars_have_the_accuracies_and_the_papers_are_hatched_without_interval(ax):
    bars = draw.bars(ax, BARS)
    np.testing.assert_array_equal([bar.get_height() for bar in bars], BARS.accuracy)
    assert [bool(bar.get_hatch()) for bar in bars] == [False, False, True, True]
    assert (
        texts(ax.texts) == ["63.2", "n/a", "64.0", "66.0"] and ax.texts[0].xy[1] == 67.5
    )
    assert list(ax.lines[0].get_ydata()) == [59.0, 67.5]
    assert all(np.isnan(line.get_ydata()).all() for line in ax.lines[1:])
    assert bars[0].get_x() + bars[0].get_width() < bars[1].get_x()
    assert texts(ax.get_xticklabels()) == ["M\n(this run)", "M\n(the paper)"]
    assert ax.get_legend_handles_labels()[1] == [
        "None",
        "Mless",
        "reported in the paper",
    ]


@pytest.mark.parametrize("low, high", [(0.97, 1.03), (0.1, 1.2), (0.5, 8.0)])
def test_ticks_of_ratios_are_plain_few_and_include_one(ax, low, high):
    ratio_axis(ax, low, high)
    labels = texts(ax.get_yticklabels())
    assert (
        "1" in labels
        and 2 <= len(labels) <= 8
        and ax.get_ylim()[0] < low
        and ax.get_ylim()[1] > high
    )


def test_rows_of_the_forest_stand_by_pair_with_their_band_and_their_numbers(ax):
    given = [
        ("m", "slashes", "a − b", 0.5, -0.5, 1.5, 40, 0.8),
        ("other", "slashes", "a − b", -2, -3, -1, 40, NAN),
    ]
    given.append(("m", "example", "c − b", 9, 8, 10, 40, 0.8))
    one, other = draw.forest(ax, rows("model curve x effect low high n band", *given))
    assert one.get_xdata().tolist() == [0.5, 9] and other.get_xdata().tolist() == [-2]
    heights = one.get_ydata()[0], other.get_ydata()[0], one.get_ydata()[1]
    assert (
        heights[0] - heights[1] == 1
        and heights[1] - heights[2] == 2
        and one.get_color() != other.get_color()
    )
    assert [line.get_segments()[0][:, 0].tolist() for line in ax.collections] == [
        [-0.5, 1.5],
        [-3, -1],
    ]
    assert (ax.patches[0].get_x(), ax.patches[0].get_width()) == (
        -0.8,
        1.6,
    ) and ax.patches[1].get_width() == 0
    assert texts(ax.texts)[0] == "+0.5 [−0.5, +1.5], n = 40"
    assert texts(ax.get_yticklabels()) == ["slashes\n(a − b)", "example\n(c − b)"]
    low, high = ax.get_xlim()
    assert low == -high and high > 10
