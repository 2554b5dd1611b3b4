"""What is drawn is what was given, and no two series look alike: checked through the
artists, pixels are never compared.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from artists import texts

from lib.figures import drawing
from lib.figures.drawing import COLOURS, CONDITION_LOOKS, MARKERS, tell_apart

NAN = float("nan")


@pytest.fixture
def ax():
    yield drawing.grid()[1][0]
    plt.close("all")


def looks_of(names):
    """Return how each of these names looks, without what the legend calls it."""
    looks = tell_apart(names)
    return [(looks[name]["color"], looks[name]["marker"]) for name in names]


@pytest.mark.parametrize(
    "names",
    [
        [*CONDITION_LOOKS, "mless:25", "mless@end", "mless+arm", "arm:mode=code"],
        [f"model {number}" for number in range(50)],
    ],
)
def test_no_two_series_look_alike(names):
    assert len(set(looks_of(names))) == len(names)


def test_conditions_look_the_same_everywhere_and_models_never_like_them():
    assert looks_of(["mless"]) == looks_of(["model", "none", "mless"])[2:]
    own = {colour for _, colour, _ in CONDITION_LOOKS.values()}
    assert len(own) == len(CONDITION_LOOKS)
    assert not own & set(COLOURS)


def test_no_marker_points_in_a_direction():
    markers = {marker for _, _, marker in CONDITION_LOOKS.values()}
    assert len(markers) == len(CONDITION_LOOKS)
    assert not (markers | set(MARKERS)) & set("<>^v1234")


def test_a_grid_has_as_many_panels_as_are_asked_for():
    for count, places in {1: 1, 3: 3, 4: 2, 5: 2}.items():
        figure, axes = drawing.grid(count)
        assert len(axes) == len(figure.axes) == count
        assert axes[0].get_gridspec().ncols == places
        plt.close(figure)


HEAD = pd.DataFrame(
    {
        "model": "m",
        "layer": 1,
        "head": 8,
        "condition": ["none"] * 3 + ["mless"] * 4,
        "position": [0, 1, 2, 0, 1, 2, 3],
        "part": ["original"] * 4 + ["inserted"] * 2 + ["original"],
        "received": [0.5, 0.4, 0.2, 0.3, 0.1, 0.3, 0.2],
    }
)
NAMES = {"none": "without", "mless": "with"}


def test_curves_are_what_each_condition_gives_under_its_name(ax):
    none, mless = drawing.token_curves(ax, HEAD, NAMES)
    assert none.get_xydata().tolist() == [[0, 0.5], [1, 0.4], [2, 0.2]]
    assert mless.get_xydata()[:, 1].tolist() == [0.3, 0.1, 0.3, 0.2]
    assert [none.get_label(), mless.get_label()] == ["without", "with"]
    assert none.get_color() != mless.get_color()
    assert ax.get_ylim()[0] == 0
    assert ax.get_title() == "m\nLayer 1 Head 8"


def test_a_first_token_that_would_flatten_its_curves_is_left_out_and_told(ax):
    large = HEAD.assign(received=[0.7, 0.4, 0.2, 0.3, 0.1, 0.3, 0.2], head=2)
    none, mless = drawing.token_curves(ax, large, NAMES)
    assert none.get_xdata().tolist() == [1, 2]
    assert mless.get_xdata().tolist() == [1, 2, 3]
    both = pd.concat([HEAD, large])
    assert "Left out of m, Layer 1 Head 2: the first token" in drawing.first_tokens(
        both
    )
    every = "Every curve begins with the first token."
    assert drawing.first_tokens(HEAD) == every


def test_the_inserted_tokens_are_shaded(ax):
    drawing.shade_inserted(ax, HEAD, "slashes")
    (shade,) = ax.patches
    assert (shade.get_x(), shade.get_width()) == (0.5, 2)
    assert texts(ax.texts) == ["slashes"]


ESTIMATES = pd.DataFrame(
    {
        "model": ["a", "a", "b"],
        "layer": [1, 2, 1],
        "effect": [0.5, 1.0, NAN],
        "low": [0.4, 0.7, NAN],
        "high": [0.7, 1.5, NAN],
    }
)
ENDS = [[0.4, 0.7], [0.7, 1.5]]


def test_lines_have_every_estimate_and_its_interval(ax):
    line, gap = drawing.interval_lines(ax, ESTIMATES, "layer", "effect", "model")
    assert line[0].get_xydata().tolist() == [[1, 0.5], [2, 1.0]]
    ends = [segment[:, 1].tolist() for segment in line[2][0].get_segments()]
    assert np.allclose(ends, ENDS)
    assert np.isnan(gap[0].get_ydata().astype(float)).all()


def test_rows_have_a_group_each_from_the_top_and_the_series_beside_each_other(ax):
    of_a, of_b = drawing.interval_rows(ax, ESTIMATES, "effect", "layer", "model")
    assert of_a[0].get_xdata().tolist() == [0.5, 1.0]
    ends = [segment[:, 0].tolist() for segment in of_a[2][0].get_segments()]
    assert np.allclose(ends, ENDS)
    assert of_a[0].get_ydata()[0] < of_b[0].get_ydata()[0] < of_a[0].get_ydata()[1]
    assert texts(ax.get_yticklabels()) == ["1", "2"]
    assert ax.yaxis_inverted()


BARS = pd.DataFrame(
    {
        "source": ["this run", "this run", "the paper"],
        "model": ["m", "m", "n"],
        "condition": ["none", "mless", "none"],
        "accuracy": [63.0, 66.0, 44.0],
        "low": [59.0, 62.0, NAN],
        "high": [67.0, 70.0, NAN],
    }
)


def test_rows_of_nothing_are_an_empty_panel_and_looks_go_on_from_an_order(ax):
    assert not drawing.interval_rows(ax, ESTIMATES[:0], "effect", "layer", "model")
    first, *_ = drawing.interval_rows(
        ax, ESTIMATES, "effect", "layer", "model", order=["another"]
    )
    assert first.lines[0].get_color() == COLOURS[1]


def test_bars_are_the_accuracies_and_those_of_the_paper_are_hatched(ax):
    bars = [bar for (bar,) in drawing.accuracy_bars(ax, BARS)]
    assert [bar.get_height() for bar in bars] == [63, 66, 44]
    assert [bool(bar.get_hatch()) for bar in bars] == [False, False, True]
    assert texts(ax.texts) == ["63", "66", "44"]
    assert texts(ax.get_xticklabels()) == ["m\n(this run)", "n\n(the paper)"]
    ends = [line.get_segments()[0][:, 1].tolist() for line in ax.collections[:2]]
    assert ends == [[59, 67], [62, 70]]


def test_a_map_has_the_ratio_of_each_layer_and_head_and_dots_above_one(ax):
    table = pd.DataFrame({"model": "m", "layer": [1, 1, 2, 2], "head": [1, 2, 1, 2]})
    image = drawing.layer_head_map(ax, table.assign(**{"lambda": [0.3, 1.1, NAN, 0.9]}))
    assert image.get_array().filled(-1).tolist() == [[0.3, 1.1], [-1, 0.9]]
    assert (image.norm.vmin, image.norm.vmax) == (0.5, 2)
    assert ax.lines[0].get_xydata().tolist() == [[2, 1]]
    assert ax.yaxis_inverted()
