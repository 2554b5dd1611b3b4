"""The figures of answers: accuracies beside the paper's, several samples, and ARM under
other settings.

run: a profile; tables: as `lib.evaluation.answer_tables` makes them. Of a table without
rows nothing is drawn.
"""

import pandas as pd
from matplotlib import colors, patches

from lib import paths
from lib.arm.settings import Arm
from lib.figures import draw
from lib.figures.head_figures import FIRST_TOKEN, draw_fig10_right, with_ratios
from lib.figures.layout import THIS_RUN, Layout, in_model_order, page, panels
from lib.figures.looks import EVEN, LOOKS, look_of_model
from lib.prompts.conditions import parse_condition
from lib.statistics import format_interval

# What the paper reports: {figure: {"source": text, "values": ...}}
PAPERS_NUMBERS = paths.DATA / "paper.yaml"
SEVEN_B = "the paper, Qwen2.5-Math-7B on MATH-500"
HOLLOW = {
    "linestyle": "none",
    "marker": "o",
    "fillstyle": "none",
    "clip_on": False,
    "color": "0.3",
}
CELL_TEXT = {"size": "small", "ha": "center", "va": "center"}
FRAME = {"fill": False, "edgecolor": "black", "linewidth": 1.5}


def fig06(run, table):
    """Draw pass@k and the diversity of several samples, a row per model and columns for
    k and distinct 2-grams.
    """
    layout = Layout(
        each=2,
        ylabel="% of problems",
        note="Several samples for each problem. Bars: 95 % intervals over problems. ",
    )
    for (left, right), rows in panels(
        run, "fig06", table, ["model"], "accuracy", layout
    ):
        passed = _pass_at_k(rows)
        model = rows.model.iloc[0]
        style = draw.SeriesStyle(gap=0.08, line=True)
        draw.estimates(left, passed, "k", "value", style=style)
        left.set(title=f"{model}: pass@k", xlabel="k", ylim=(0, 100))
        style = draw.SeriesStyle(gap=0)
        draw.estimates(right, rows, "condition", "distinct 2-grams", style=style)
        right.set(title=f"{model}: distinct 2-grams (%)", ylim=(0, 100))


def _pass_at_k(table):
    """Return a row per condition and k with pass@k as `value` and its two ends."""
    names = [name for name in table if name.startswith("pass@") and " " not in name]
    parts = []
    for name in names:
        columns = ["condition", name, f"{name} low", f"{name} high"]
        part = table[columns].set_axis(["condition", "value", "low", "high"], axis=1)
        parts.append(part.assign(k=name.removeprefix("pass@")))
    return pd.concat(parts)


def fig08(run, table):
    """Draw the accuracy under fillers of other lengths, places and kinds, beside the
    paper's numbers for the 7B.
    """
    points = _reported_points()
    models = list(dict.fromkeys(table.model))  # each in the order of the points
    drawn = points.merge(table, on="condition").assign(source=THIS_RUN)
    drawn = drawn.sort_values(
        "model", key=lambda names: names.map(models.index), kind="stable"
    )
    layout = Layout(ylabel="Accuracy (%)")
    looks = {THIS_RUN: LOOKS["mless"]}
    for (ax,), rows in panels(
        run, "fig08", drawn, ["model", "varied"], "accuracy", layout
    ):
        draw.estimates(ax, rows, "label", "accuracy", "source", looks=looks)
        if rows.reported.notna().any():
            ax.plot(range(len(rows)), rows.reported, label=SEVEN_B, **HOLLOW)
        ax.set_ylim(0, 100)


def _reported_points():
    """Return a row per condition that the paper varies, with what it reports."""
    varied = paths.read_yaml(PAPERS_NUMBERS)["fig08"]["panels"]
    parts = []
    for name, points in varied.items():
        by_condition = pd.DataFrame.from_dict(points, orient="index")
        part = by_condition.rename_axis("condition").reset_index()
        parts.append(part.assign(varied=name))
    return pd.concat(parts)[["varied", "condition", "reported", "label"]]


def fig10(run, table, curves):
    """Draw accuracies, a row of the table each, beside the paper's, and at the right
    the panels of `fig10_right`.
    """
    own = table.assign(source=THIS_RUN)
    both = pd.concat([own, _paper_bars()], ignore_index=True)
    both = both[["source", "model", "condition", "n", "accuracy", "low", "high"]]
    model, problem = curves[["model", "problem"]].iloc[0]
    layout = Layout(
        panels=4,
        mosaic=[[0, [[1], [1], [2], [3], [3]]]],
        height=4.2,
        widths=(1.25, 1),
        note=(
            "These are of the left side; the paper's bars: MATH-500, n = 500. Right:"
            f" {model}. One {run.attention.format} prompt, of problem {problem}."
            f" {FIRST_TOKEN}"
        ),
    )
    saved = [both, with_ratios(curves)]
    with page(run, "fig10", saved, "accuracy", layout) as (left, *right):
        draw.bars(left, both)
        is_papers_set = run.accuracy.problems == "math500"
        left.set_title("Results on MATH-500" if is_papers_set else "Accuracy")
        draw_fig10_right(right, saved[1])


def _paper_bars():
    """Return the accuracies that the paper reports, a row per model and condition."""
    values = pd.DataFrame(paths.read_yaml(PAPERS_NUMBERS)["fig10"]["values"])
    rows = values.reset_index(names="condition")
    rows = rows.melt("condition", var_name="model", value_name="accuracy")
    return rows.assign(source="the paper", n=500)


def fig12(run, table):
    """Draw the effect of ARM under other settings as a map, framed where 0 lies
    outside, and in other layers.
    """
    arms = [parse_condition(condition).arm or Arm() for condition in table.condition]
    table = table.copy()
    table["c"] = [arm.c for arm in arms]
    table["p1"] = [arm.p1 for arm in arms]
    table["layer"] = [arm.layer for arm in arms]
    layout = Layout(
        each=2,
        note="Brackets and bars: intervals of paired differences; framed: 0 lies"
        " outside. ",
    )
    for (left, right), rows in panels(
        run, "fig12", table, ["model"], "accuracy", layout
    ):
        model = rows.model.iloc[0]
        settings = rows.condition.str.contains("p1=")
        _effect_map(left, rows[settings & (rows.layer == 1)])
        left.set_title(f"{model}: ARM in layer 1, points against none")

        by_layer = rows[rows.condition.str.contains("layer=")]
        layers = by_layer.astype({"layer": str}).assign(what="arm")
        right.axhline(0, **EVEN)
        draw.estimates(right, layers, "layer", "effect", "what")
        right.set_title(f"{model}: ARM in other layers")
        right.set(xlabel="Layer", ylabel="points against none")


def _effect_map(ax, table):
    """Draw effects as a map over ARM's two settings; where 0 lies outside the interval,
    a frame.
    """
    effects = table.pivot(index="c", columns="p1", values="effect")
    cs = list(effects.index)
    p1s = list(effects.columns)
    reach = max(1.0, effects.abs().max(axis=None))
    norm = colors.Normalize(-reach, reach)
    ax.imshow(effects, cmap="PuOr_r", norm=norm, aspect="auto")
    for row in table.itertuples():
        x = p1s.index(row.p1)
        y = cs.index(row.c)
        colour = "white" if abs(row.effect) > 0.6 * reach else "black"
        ax.text(x, y, _in_two_lines(row), color=colour, **CELL_TEXT)
        if row.effect_low > 0 or row.effect_high < 0:
            corner = (x - 0.47, y - 0.47)
            ax.add_patch(patches.Rectangle(corner, 0.94, 0.94, **FRAME))
    ax.set_xticks(range(len(p1s)), [f"{p1:g}" for p1 in p1s])
    ax.set_yticks(range(len(cs)), [f"{c:g}" for c in cs])
    ax.set(xlabel="p1 (percentile)", ylabel="c")
    ax.grid(False)


def _in_two_lines(row):
    """Return an effect, and its interval below."""
    text = format_interval(row.effect, row.effect_low, row.effect_high, "+")
    return text.replace(" [", "\n[")


def same_answers(run, table):
    """Draw what share of the same answers each grader finds right, and what the slashes
    change under it: a row per grader and a mark per model.
    """
    if table.empty:
        return
    table = in_model_order(run, table)
    graders = list(dict.fromkeys(table.grader))
    layout = Layout(
        panels=2,
        height=0.6 + 0.26 * len(graders),
        note="Bars: 95 % intervals of the paired differences over problems. ",
    )
    with page(run, "same_answers", [table], "accuracy", layout) as (left, right):
        without = table[table.condition == "none"]
        for row, y in _placed_by_grader(left, without, "accuracy", graders):
            text = f"  {row.accuracy:.1f}"
            left.text(row.accuracy, y, text, size="small", va="center")
        left.set(title="Right answers without slashes", xlabel="%", xlim=(0, 100))

        slashes = table[table.condition == "mless"]
        for row, y in _placed_by_grader(right, slashes, "effect", graders):
            colour = look_of_model(row.model).colour
            right.hlines(y, row.effect_low, row.effect_high, color=colour)
        right.axvline(0, **EVEN)
        right.set(title="What the slashes change", xlabel="points")
        right.set_yticklabels([])


def _placed_by_grader(ax, table, value, graders):
    """Draw a column of a table as marks, a row per grader from the top; yield each row
    of the table with the height of its mark.
    """
    ax.set_yticks(range(len(graders)), graders)
    ax.set_ylim(len(graders) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    groups = list(table.groupby("model", sort=False))
    for index, (model, rows) in enumerate(groups):
        look = look_of_model(model)
        shift = 0.5 * (index - (len(groups) - 1) / 2) / len(groups)
        places = rows.grader.map(graders.index) + shift
        style = {"color": look.colour, "marker": look.marker, "label": model}
        ax.plot(rows[value], places, linestyle="none", **style)
        yield from zip(rows.itertuples(), places, strict=True)
