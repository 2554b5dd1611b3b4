"""Every figure from a table of a few rows: it draws, saves the numbers that it was
given, and names its panels.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from lib import figures
from lib.evaluation import answer_tables, store
from lib.figures import catalogue
from lib.figures.draw import VERDICTS

M, CONDITIONS = "SmolLM2-135M-Instruct", ("none", "mless", "mful", "random", "arm")


def product(**columns):
    """Return a table with a row for every combination of the columns' values."""
    index = pd.MultiIndex.from_product(columns.values(), names=columns)
    return index.to_frame(index=False).assign(n=40)


def plain(table, name="mean", prefix=""):
    return table.assign(**{name: 0.8, f"{prefix}low": 0.7, f"{prefix}high": 0.9})


def curves(*heads):
    parts = pd.DataFrame(
        {
            "position": range(5),
            "part": ["instruction"] * 2 + ["inserted"] * 2 + ["problem"],
        }
    )
    table = product(
        model=[M], problem=["sum/1"], layer=[1], head=heads, condition=CONDITIONS
    ).drop(columns="n")
    table = table.merge(parts, how="cross").assign(
        received=lambda rows: 0.1 + 0.01 * rows.index
    )
    return table[(table.condition != "none") | (table.part != "inserted")]


SPANS = plain(
    product(figure=["fig09", "fig10", "fig11"], model=[M], layer=[1], head=[1]),
    "lambda",
)
BY_HEAD = plain(
    product(
        model=[M, "gemma-3-270m"],
        condition=["mless", "mful"],
        layer=[1, 2],
        head=[1, 2],
    ),
    "lambda",
)
CONTROLS = product(model=[M], control=["untrained", "uniform"], layer=[1, 2]).assign(
    lowest=0.5, highest=0.6
)
BY_LAYER = plain(
    product(model=[M], measure=["lambda"], condition=["mless", "mful"], layer=[1, 2]),
    "mean",
)
SPAN = plain(
    product(
        model=[M],
        measure=list(catalogue.SPAN),
        condition=["mless", "random"],
        layer=[1, 2],
    ),
    "mean",
)
CAUSES = plain(
    product(model=[M], cause=["both", "terms", "distance"], head=[1, 2]), "lambda"
)
MEASURES = [*catalogue.MOVED, "gate variance"]
CHANGES = plain(
    product(model=[M], condition=["mless", "arm"], layer=[1, 2], measure=MEASURES),
    "ratio",
)
BINS = {
    "network": ["trained"],
    "condition": ["none", "mless", "arm"],
    "layer": [1, 2],
    "bin": [-2.0, -1, 0, 1],
}
COUNTS = xr.DataArray([[[[1, 60, 40, 1]] * 2] * 3], BINS, [*BINS])
HISTOGRAMS = {M: xr.Dataset({"counts": COUNTS}, attrs={"model": M})}
CLASSES = plain(
    product(model=[M], condition=CONDITIONS, **{"class": ["digits", "others"]}),
    "near zero",
)
SAMPLES = product(model=[M], condition=["none", "arm"])
for measure in ("pass@1", "pass@3", "distinct 2-grams"):
    SAMPLES = plain(SAMPLES, measure, f"{measure} ")
FILLERS = plain(
    product(model=[M], condition=["none", "mless", "mless:10", "question"]), "accuracy"
)
BARS = FILLERS[FILLERS.condition != "question"]
ARMS = ["none", "arm:c=0.1:p1=90", "arm:c=0.1:p1=95", "arm:layer=2"]
GRID = plain(product(model=[M], condition=ARMS), "effect", "effect_")
NATS = plain(
    product(panel=["pairs"], curve=["slashes"], x=["mless − none"], model=[M]), "effect"
).assign(band=0.5)
COURSES = pd.concat(
    NATS.assign(panel=panel, x=x)
    for panel, x in [("length", 10), ("length", 55), ("place", "end")]
)
ROWS = product(id=["a", "b"], model=[M, "gemma-3-270m"]).assign(
    verdict="in part", training="also", n=24
)
ROWS["reading"] = ["literal", "literal", "strict", "strict"]

DRAWN = {  # name: tables, titles of some panels
    "fig09": ([curves(1, 2, 3), SPANS], 3, f"{M}\nLayer 1 Head 2"),
    "fig10": ([BARS, curves(1)], 3, "Accuracy"),
    "fig10_right": ([curves(1), SPANS], 2, f"{M}\nLayer 1 Head 1: whole prompt"),
    "fig11": ([curves(1, 2), SPANS], 2, f"{M}\nLayer 1 Head 1"),
    "fig13": ([curves(1, 2, 8)], 6, f"{M}\nLayer 1 Head 8"),
    "fig18": ([curves(1)], 2, f"{M}\nLayer 1 Head 1"),
    "lambda_by_head": ([BY_HEAD, CONTROLS], 4, f"{M}\nlayer 2"),
    "lambda_by_layer": ([BY_LAYER, CONTROLS], 1, M),
    "lambda_map": ([BY_HEAD], 2, f"{M}, 55 slashes"),
    "inserted_span": ([SPAN], 3, f"{M}\nAttention mass"),
    "causes": ([CAUSES], 1, M),
    "fig04": ([CHANGES, HISTOGRAMS], 4, f"{M}\nlayer 2: histogram / that of None"),
    "fig07": ([CLASSES], 1, M),
    "activations_by_layer": ([CHANGES], 4, f"{M}\nL1"),
    "fig06": ([SAMPLES], 2, f"{M}: pass@k"),
    "fig08": ([FILLERS], 3, f"{M}\nLength (slashes)"),
    "fig12": ([GRID], 2, f"{M}: ARM in other layers"),
    "likelihood": ([NATS], 1, ""),
    "answer_at_once": ([NATS], 1, ""),
    "overview": ([NATS, curves(1)], 2, f"{M}\nLayer 1 Head 1"),
    "likelihood_courses": ([COURSES], 2, "length"),
    "claims_matrix": ([ROWS, lambda row: row["id"]], 1, ""),
}

IN_ROWS = (
    "likelihood",
    "answer_at_once",
    "overview",
    "claims_matrix",
    "lambda_map",
)  # whose y axis has no numbers


@pytest.fixture
def drawn(run, shown, monkeypatch):
    """Draw a figure; return its axes, of panels alone."""
    made, close = [], plt.close
    monkeypatch.setattr(
        plt, "close", lambda figure: (made.append(figure), close(figure))
    )

    def draw(name, *tables):
        getattr(figures, name)(run, *tables)
        return (
            [ax for ax in made[-1].axes if ax.get_label() != "<colorbar>"]
            if made
            else []
        )

    return draw


@pytest.mark.parametrize(
    "name", sorted({*figures.__all__} - {"agreement", "one_prompt", "say", "show"})
)
def test_a_figure_draws_its_panels_and_saves_every_number_that_it_draws(
    drawn, run, name
):
    tables, count, title = DRAWN[name]
    axes = drawn(name, *tables)
    assert len(axes) == count and title in {ax.get_title() for ax in axes}
    assert (run.figures / f"{name}.png").stat().st_size > 500
    saved = (
        pd.read_csv(run.figures / f"{name}.csv")
        .select_dtypes("number")
        .to_numpy()
        .ravel()
    )
    lines = [
        line.get_ydata()
        for ax in axes
        for line in ax.lines
        if line.get_transform() == ax.transData
    ]
    numbers = [np.asarray(some, float) for some in lines if name not in IN_ROWS]
    numbers += [
        [bar.get_height() for bar in ax.patches] for ax in axes if name == "fig10"
    ]
    assert numbers or name in IN_ROWS
    for number in filter(np.isfinite, np.unique(np.concatenate([*numbers, [np.nan]]))):
        assert np.isclose(saved, number, rtol=1e-5).any(), (
            f"{number} is drawn and not saved"
        )
    assert name not in ("fig09", "fig10_right", "fig11") or {0.7, 0.8, 0.9} <= set(
        saved
    )


def test_of_what_was_not_measured_nothing_is_drawn(drawn, run):
    nothing = answer_tables.diversity(store.frame([]))  # which has no columns either
    for name in ("fig06", "fig08", "fig12", "likelihood_courses"):
        assert (
            drawn(name, DRAWN[name][0][0][:0]) == drawn("fig06", nothing) == []
            and not run.figures.exists()
        )


def texts(labels):
    return [label.get_text() for label in labels]


def test_the_matrix_names_other_readings_and_is_hollow_where_training_adds_nothing(
    drawn,
):
    rows = ROWS.assign(training=["also", None, "weaker", None], n=[40, 0, 40, 40])
    (ax,) = drawn("claims_matrix", rows, lambda row: row["model"])
    assert texts(ax.get_yticklabels()) == ["(b, strict)", "a"] and texts(
        ax.get_xticklabels()
    ) == [M, "gemma-3-270m"]
    assert texts(ax.texts) == [M, M, "gemma-3-270m"] and len(ax.patches) == 3
    marks = [
        line
        for line in ax.lines
        if line.get_marker() == VERDICTS["in part"].marker and len(line.get_xdata())
    ]
    assert [(mark.get_xdata()[0] // 1, mark.get_ydata()[0] // 1) for mark in marks] == [
        (0, 1),
        (0, 0),
        (1, 0),
    ]
    assert [mark.get_markerfacecolor() == "white" for mark in marks] == [
        True,
        False,
        False,
    ]


def test_maps_of_all_models_have_one_scale_and_dots_above_one(drawn):
    ratios = BY_HEAD.assign(**{"lambda": [0.3, 1.1, np.nan, 0.9] * 4})
    ax, _ = drawn("lambda_map", ratios)
    (image,) = ax.images
    assert (image.norm.vmin, image.norm.vmax) == (0.5, 2) and image.get_extent() == [
        0.5,
        2.5,
        2.5,
        0.5,
    ]
    assert (
        ax.collections[0].get_offsets().tolist() == [[2, 1]]
        and image.get_array().mask[1, 0]
    )


def test_the_map_of_arm_frames_only_cells_whose_interval_leaves_zero_out(drawn):
    conditions = [f"arm:c={c}:p1={p1}" for c in (0.1, 0.2) for p1 in (90, 95)]
    numbers = [(5, 4, 6), (1, -1, 2), (-4, -10, -3), (0, -1, 1)]
    cells = pd.DataFrame(numbers, columns=["effect", "effect_low", "effect_high"])
    ax, _ = drawn(
        "fig12",
        pd.concat([cells.assign(model=M, condition=conditions, n=40), GRID[-1:]]),
    )
    assert (
        ax.images[0].get_array().tolist() == [[5, 1], [-4, 0]] and len(ax.patches) == 2
    )
    assert ax.texts[0].get_text() == "+5.0\n[+4.0, +6.0]" and texts(
        ax.get_yticklabels()
    ) == ["0.1", "0.2"]


def test_controls_span_all_heads_of_their_layer_or_its_place_among_layers(drawn):
    ax, *_ = drawn(
        "lambda_by_head", BY_HEAD, CONTROLS.assign(lowest=[0.3, 0.4, 0.5, 0.6])
    )
    even, area = (
        (line for line in ax.lines if line.get_linestyle() == ":"),
        ax.collections[0],
    )
    assert [line.get_xydata().tolist() for line in even] == [[[0.5, 0.5], [2.5, 0.5]]]
    assert area.get_datalim(ax.transData).extents.tolist() == [0.5, 0.3, 2.5, 0.6]
    (ax,) = drawn("lambda_by_layer", BY_LAYER, CONTROLS)
    assert [
        area.get_datalim(ax.transData).extents.tolist()[::2] for area in ax.collections
    ] == [[0.5, 1.5], [1.5, 2.5]]


def test_fig08_shows_the_papers_numbers_hollow_on_all_of_the_scale(drawn):
    length, place, _ = drawn("fig08", FILLERS)
    assert length.get_ylim() == place.get_ylim() == (0, 100)
    hollow = [line for line in place.lines if line.get_fillstyle() == "none"]
    assert [list(line.get_ydata()) for line in hollow] == [[72.4, 75.0]]


def test_fig04_has_the_histogram_of_layer_1_and_later_ones_as_ratio_to_none(drawn):
    counts = COUNTS.copy()
    counts.loc[{"condition": "mless", "bin": -1.0}] = 30
    first, second, *_ = drawn(
        "fig04", CHANGES, {M: xr.Dataset({"counts": counts}, attrs={"model": M})}
    )
    none, mless = 60 / 102, 30 / 72
    assert [line.get_ydata()[0] for line in first.lines] == pytest.approx(
        [100 * none, 100 * mless, 100 * none]
    )
    assert [line.get_ydata()[0] for line in second.lines] == pytest.approx(
        [1, mless / none, 1]
    )


def test_what_arm_does_to_its_own_layer_does_not_flatten_the_rest(drawn):
    own, ends = (
        (CHANGES.condition == "arm") & (CHANGES.layer == 1),
        ["ratio", "low", "high"],
    )
    axes = drawn(
        "activations_by_layer", CHANGES.assign(**CHANGES[ends].mask(own, 0.02))
    )
    assert all(ax.get_ylim()[0] > 0.5 and texts(ax.texts) == ["↓ 0.02"] for ax in axes)
