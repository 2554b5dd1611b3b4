"""Every figure by its name in figures/<profile>: what of a table it draws, in which
panels. Each is one call.

    figures.fig13(run, curves)    # draws, saves png, pdf and csv unless the numbers are the same, and shows it

run: a profile; tables: as `lib.measurement`, `lib.evaluation` and `lib.claims` make
them. What a figure shows and how to read it is in data/figures.yaml. Of a table without
rows nothing is drawn.
"""

from itertools import cycle, product

import numpy as np
import pandas as pd
from matplotlib import colors, patches

from lib import paths
from lib.arm.settings import Arm
from lib.figures import draw
from lib.figures.draw import (
    HEIGHT,
    LAMBDA,
    LOOKS,
    RECEIVED,
    from_zero,
    integer_axis,
    look_of,
    ratio_axis,
)
from lib.figures.page import THIS_RUN, page
from lib.prompts.conditions import parse_condition
from lib.statistics import format_interval

PAPER = (
    paths.DATA / "paper.yaml"
)  # what it reports: {figure: {"source": text, "values": ...}}
# Of what the tokens of a prompt receive in each head: its panels, which conditions they
# draw, how they call them.
CURVES = {
    "fig09": [{"names": {"none": "None", "mless": "Mless"}}],  # in layers 1, 2 and 3
    "fig10_right": [
        {
            "names": {"none": "None", "mless": "Mless", "mful": "Mful"},
            "what": ": original tokens",
            "fill": True,
        },
        {"names": {"mless": "Mless", "mful": "Mful"}, "what": ": whole prompt"},
    ],
    "fig11": [
        {
            "names": {"random": "Random sentence", "mless": "Meaningless tokens"},
            "shade": "inserted tokens",
        }
    ],
    "fig13": [
        {"names": {"none": "w/o Meaningless tokens", "mless": "w/ Meaningless tokens"}},
        {"names": {"mless": "w/ Meaningless tokens"}, "shade": "Meaningless tokens"},
    ],
}
CURVES["fig18"] = CURVES["fig13"]  # heads of another model
CHANGE = "with / without (log scale)"
DRAWN = ["none", "mless", "arm"]  # of what is measured of activations
MOVED = (
    "near zero",
    "L1",
    "L2",
    "variance",
)  # what the paper says moves: the first falls, the others rise
SPAN = {
    "mass": "Attention mass",
    "flatness": "Coefficient of variation",
    "dispersion": "Dispersion of values",
}
PASSED = ["condition", "value", "value low", "value high"]
# a bin with a smaller share of the activations has no ratio: it would be noise
RARE = 1e-3
SEVEN_B = "the paper, Qwen2.5-Math-7B on MATH-500"
# Of the differences of likelihoods: what slashes give, what of it layer 1 gives, and
# what a real help gives.
ANSWERING = [
    f"{one} \N{MINUS SIGN} {other}"
    for one, other in (("mless", "none"), ("mless", "hidden-from-layer-1"))
]
ANSWERING += ["example \N{MINUS SIGN} none"]
COURSES = {
    "length": "inserted slashes",
    "place": "place of the slashes",
    "depth": "k",
}  # x axes of likelihoods


def _panels(run, name, tables, each, drawn=None, part="attention", per_row=1, **layout):
    """Yield (axes, rows) for each value of the columns `each`, of the rows `drawn` of
    the first table, all if None.

    A value has `per_row` panels, the first of which is named after it; the values of a
    second column stand beside each other. The page is saved after the last panel;
    layout: of it.
    """
    drawn = tables[0] if drawn is None else drawn
    if drawn.empty:  # where nothing was measured, there may be no columns either
        return
    groups = list(drawn.groupby(each, sort=False))
    columns = per_row if per_row > 1 else None
    if len(each) == 2:
        columns = drawn[each[1]].nunique()
    with page(
        run,
        name,
        tables,
        part,
        **{"panels": per_row * len(groups), "columns": columns} | layout,
    ) as axes:
        for mine, (key, rows) in zip(axes.reshape(-1, per_row), groups, strict=True):
            mine[0].set_title("\n".join(map(str, key)))
            yield mine, rows


def _curves(run, curves, spans=None, *, name):
    """Draw for each head that the table of curves has the panels of CURVES; the csv has
    the same heads' spans, too.
    """
    heads = [head for _, head in curves.groupby(["model", "layer", "head"], sort=False)]
    tables = (
        [curves]
        if spans is None
        else [curves, spans[spans.figure == name.removesuffix("_right")]]
    )
    layout = {
        "panels": len(CURVES[name]) * len(heads),
        "columns": len(heads) if spans is None else None,
    }
    layout |= {
        "ylabel": RECEIVED,
        "note": f"One prompt, of problem {curves.problem.iloc[0]}. ",
    }
    with page(run, name, tables, "attention", **layout) as axes:
        for ax, (look, head) in zip(axes, product(CURVES[name], heads), strict=True):
            draw.received(ax, head, **look)
            ax.set_xlabel(ax.get_xlabel() if ax.get_subplotspec().is_last_row() else "")


def fig09(run, curves, spans):
    """Draw the same head in layers 1, 2 and 3: its original tokens without and with the
    slashes.
    """
    _curves(run, curves, spans, name="fig09")


def fig10_right(run, curves, spans):
    """Draw one head: its original tokens under three conditions, and the whole prompt
    with either insertion.
    """
    _curves(run, curves, spans, name="fig10_right")


def fig11(run, curves, spans):
    """Draw whole prompts, with slashes and with a random sentence as long."""
    _curves(run, curves, spans, name="fig11")


def fig13(run, curves):
    """Draw heads of layer 1, a column each: the original tokens without and with, below
    the whole prompt with it.
    """
    _curves(run, curves, name="fig13")


def fig18(run, curves):
    """Draw heads of another model as `fig13` does."""
    _curves(run, curves, name="fig18")


def fig10(run, table, curves):
    """Draw accuracies, a row of the table each, beside the paper's, and at the right
    the panels of `fig10_right`.
    """
    paper = pd.DataFrame(paths.read_yaml(PAPER)["fig10"]["values"]).reset_index(
        names="condition"
    )
    paper = paper.melt("condition", var_name="model", value_name="accuracy").assign(
        source="the paper", n=500
    )
    both = pd.concat([table.assign(source=THIS_RUN), paper], ignore_index=True)
    both = both[["source", "model", "condition", "n", "accuracy", "low", "high"]]
    model, problem = curves[["model", "problem"]].iloc[0]
    note = (
        f"Left; the paper's bars: MATH-500, n = 500. Right: {model}. One prompt, of"
        f" problem {problem}. "
    )
    layout = {
        "panels": 3,
        "mosaic": [[0, 1], [0, 2]],
        "widths": (1.25, 1),
        "note": note,
    }
    with page(run, "fig10", [both, curves], "accuracy", **layout) as (left, *right):
        draw.bars(left, both)
        left.set_title(
            "Results on MATH-500" if run.accuracy.problems == "math500" else "Accuracy"
        )
        for ax, look in zip(right, CURVES["fig10_right"], strict=True):
            draw.received(ax, curves, **look)
            ax.set_ylabel(RECEIVED)


def lambda_by_head(run, table, controls):
    """Draw λ of every head of the first layers under the slashes, with what untrained
    networks of the shape give.
    """
    drawn = table[table.condition == "mless"].assign(
        place=lambda rows: "layer " + rows.layer.astype(str)
    )
    tables = [table, controls]
    for (ax,), rows in _panels(
        run, "lambda_by_head", tables, ["model", "place"], drawn, ylabel=LAMBDA
    ):
        draw.estimates(ax, rows, "head", "lambda", even=1)
        _lambda_axes(ax, rows, "head", controls)


def lambda_by_layer(run, table, controls):
    """Draw λ, the mean over heads, over the layers, a curve per insertion."""
    drawn = table[table.measure == "lambda"]
    layout = {"ylabel": LAMBDA, "note": "Means over heads. "}
    for (ax,), rows in _panels(
        run, "lambda_by_layer", [table, controls], ["model"], drawn, **layout
    ):
        draw.estimates(ax, rows, "layer", "mean", even=1, line=True, gap=0)
        _lambda_axes(ax, rows, "layer", controls)


def causes(run, table):
    """Draw λ of each cause side by side at each head of layer 1."""
    layout = {"ylabel": LAMBDA, "note": "Later original tokens only. "}
    for (ax,), rows in _panels(run, "causes", [table], ["model"], **layout):
        draw.estimates(ax, rows, "head", "lambda", "cause", even=1)
        _lambda_axes(ax, rows, "head")


def _lambda_axes(ax, rows, x, controls=None):
    """Draw behind λ from `lowest` to `highest` what each control shows in the same
    layers, and set the axes.
    """
    first, last = rows[x].min() - 0.5, rows[x].max() + 0.5
    if controls is not None:
        same = (controls.model == rows.model.iloc[0]) & controls.layer.isin(rows.layer)
        for row in controls[same].itertuples():
            ends = (row.layer - 0.5, row.layer + 0.5) if x == "layer" else (first, last)
            if row.control == "uniform":
                style = {
                    "color": "0.45",
                    "linestyle": ":",
                    "linewidth": 1.4,
                    "zorder": 0.9,
                }
                ax.plot(
                    ends, [row.lowest] * 2, label="attention spread evenly", **style
                )
            else:
                style = {"color": "0.85", "linewidth": 0, "zorder": 0.5}
                ax.fill_between(
                    ends, row.lowest, row.highest, label="untrained networks", **style
                )
    ax.set_xlim(first, last)
    from_zero(ax)
    integer_axis(ax.xaxis, x.capitalize())


def lambda_map(run, table):
    """Draw λ of every layer and head under the slashes as a map, all models on one log
    scale of colours.

    What lies beyond 0.5 to 2 has the colour of the end, NaN is hatched, and a dot marks
    λ above 1.
    """
    models = table[table.condition == "mless"].groupby("model", sort=False)
    look = {
        "cmap": "PuOr_r",
        "norm": colors.LogNorm(0.5, 2),
        "aspect": "auto",
        "interpolation": "none",
    }
    with page(run, "lambda_map", [table], "attention", panels=len(models)) as axes:
        for ax, (model, rows) in zip(axes, models, strict=True):
            ratios = rows.pivot(
                index="layer", columns="head", values="lambda"
            ).to_numpy(float)
            extent = (
                0.5,
                ratios.shape[1] + 0.5,
                ratios.shape[0] + 0.5,
                0.5,
            )  # layers and heads count from 1
            ax.patch.set(hatch="xxxx", edgecolor="0.8")
            image = ax.imshow(np.ma.masked_invalid(ratios), extent=extent, **look)
            above = np.argwhere(ratios > 1) + 1
            ax.scatter(
                above[:, 1],
                above[:, 0],
                s=3,
                color="black",
                linewidths=0,
                label="λ > 1",
            )
            ax.grid(False)
            ax.set_title(f"{model}, 55 slashes")
            integer_axis(ax.xaxis, "Head")
            integer_axis(ax.yaxis, "Layer")
        bar = {
            "ticks": [0.5, 0.7, 1, 1.4, 2],
            "extend": "both",
            "format": "%g",
            "label": LAMBDA,
        }
        axes[0].figure.colorbar(image, ax=list(axes), **bar).minorticks_off()


def inserted_span(run, table):
    """Draw what the inserted tokens of layer 1 receive and carry, a row per model and a
    column per measure.
    """
    drawn = table[table.layer == 1].assign(what=lambda rows: rows.measure.map(SPAN))
    label = "layer 1, mean over heads"
    for (ax,), rows in _panels(
        run, "inserted_span", [table], ["model", "what"], drawn, ylabel=label
    ):
        draw.estimates(ax, rows, "condition", "mean", gap=0)
        from_zero(ax)


def fig04(run, table, measured):
    """Draw the activations of the first MLPs: histograms, and how many times as large
    six measures become.

    measured: by model a Dataset with `counts` (network, condition, layer, bin), whose
    first and last bin hold what lies outside. In layer 1 the histogram is drawn as it
    is; in later ones, where nobody would see a difference, as ratio to that without
    insertion.
    """
    layers, tokens = sorted(set(table.layer)), table[table.condition != "arm"]
    tokens = tokens.assign(measure=tokens.measure.str.replace("variance", "var."))
    histograms = pd.concat([_histograms(one, layers) for one in measured.values()])
    reach = tokens.low.min(), tokens.high.max()
    layout = {"per_row": 2 * len(layers), "columns": len(layers)}
    note = "ARM works in layer 1; its measures are in the table. "
    for axes, rows in _panels(
        run, "fig04", [table, histograms], ["model"], tokens, note=note, **layout
    ):
        model = rows.model.iloc[0]
        for top, bottom, layer in zip(*axes.reshape(2, -1), layers, strict=True):
            shares = histograms[
                (histograms.model == model) & (histograms.layer == layer)
            ]
            for condition in DRAWN:
                look = LOOKS[condition]
                top.plot(
                    shares.activation,
                    shares[condition],
                    color=look.colour,
                    linewidth=0.8,
                    label=look.name,
                )
            top.set(
                title=(
                    f"{model}\nlayer {layer}:"
                    f" histogram{' / that of None' if layer > 1 else ''}"
                )
            )
            (
                top.set(ylim=(0.8, 1.2))
                if layer > 1
                else top.set(yscale="log", ylabel="share of activations (%)")
            )
            top.set_xlabel("activation")
            draw.estimates(
                bottom, rows[rows.layer == layer], "measure", "ratio", even=1
            )
            bottom.set_title(f"{model}\nlayer {layer}: measures")
            ratio_axis(bottom, *reach)
        axes[len(layers)].set_ylabel(CHANGE)


def _histograms(measured, layers):
    """Return a row per layer and bin of a model, with the bin's middle as `activation`,
    and a column per condition: its share of the activations in %, in layers after the
    first over that under none.
    """
    counts = measured.counts.sel(
        network="trained", condition=DRAWN, layer=layers, drop=True
    )
    starts, shares = (
        counts.bin.values.astype(float),
        (counts / counts.sum("bin"))[..., 1:-1],
    )
    none = shares.sel(condition="none", drop=True)
    values = (100 * shares).where(shares.layer == 1, (shares / none).where(none > RARE))
    rows = (
        values.assign_coords(bin=(starts[1:-1] + starts[2:]) / 2)
        .rename(bin="activation")
        .to_dataset("condition")
    )
    return rows.to_dataframe().dropna().reset_index().assign(model=measured.model)


def fig07(run, table):
    """Draw the share of near-zero activations of each class of tokens, a point per
    condition.
    """
    drawn = table[table.condition.isin(DRAWN)]
    note = "Layer 1; near zero: within the bound of the prompt without insertion. "
    for (ax,), rows in _panels(
        run,
        "fig07",
        [table],
        ["model"],
        drawn,
        note=note,
        ylabel="near-zero activations (%)",
    ):
        draw.estimates(ax, rows, "class", "near zero")
        from_zero(ax)


def activations_by_layer(run, table):
    """Draw four measures of the MLPs' activations over the layers, with / without, a
    row per model.

    What ARM does to its own layer is off the scale, and written at its edge.
    """
    drawn = table[table.measure.isin(MOVED) & table.condition.isin(["mless", "arm"])]
    inside = drawn[(drawn.condition != "arm") | (drawn.layer > 1)].groupby("model")
    for (ax,), rows in _panels(
        run, "activations_by_layer", [table], ["model", "measure"], drawn, ylabel=CHANGE
    ):
        draw.estimates(ax, rows, "layer", "ratio", gap=0, line=True, band=True, even=1)
        same = inside.get_group(rows.model.iloc[0])
        ratio_axis(ax, same.low.min(), same.high.max())
        low, high = ax.get_ylim()
        for row in rows[(rows.ratio < low) | (rows.ratio > high)].itertuples():
            arrow, side, edge = (
                ("↑", "top", high) if row.ratio > high else ("↓", "bottom", low)
            )
            look = {
                "va": side,
                "color": look_of(row.condition)[0].colour,
                "size": "small",
            }
            ax.annotate(
                f"{arrow} {row.ratio:.2g}",
                (row.layer, edge),
                (5, 0),
                textcoords="offset points",
                **look,
            )
        integer_axis(ax.xaxis, "Layer")


def fig06(run, table):
    """Draw pass@k and the diversity of several samples, a row per model and columns for
    k and distinct 2-grams.
    """
    ks = [
        name.removeprefix("pass@")
        for name in table
        if name.startswith("pass@") and " " not in name
    ]
    layout = {
        "per_row": 2,
        "ylabel": "% of problems",
        "note": "Several samples for each problem. ",
    }
    for (left, right), rows in _panels(
        run, "fig06", [table], ["model"], part="accuracy", **layout
    ):
        wide = [
            rows.filter(regex=rf"^condition$|^pass@{k}( |$)")
            .set_axis(PASSED, axis=1)
            .assign(k=k)
            for k in ks
        ]
        draw.estimates(
            left,
            pd.concat(wide).sort_index(kind="stable"),
            "k",
            "value",
            line=True,
            gap=0.08,
        )
        draw.estimates(right, rows, "condition", "distinct 2-grams", gap=0)
        left.set(title=f"{rows.model.iloc[0]}: pass@k", xlabel="k", ylim=(0, 100))
        right.set(title=f"{rows.model.iloc[0]}: distinct 2-grams (%)", ylim=(0, 100))


def fig08(run, table):
    """Draw the accuracy under fillers of other lengths, places and kinds, beside the
    paper's numbers for the 7B.
    """
    panels = paths.read_yaml(PAPER)["fig08"]["panels"]
    points = {
        varied: pd.DataFrame.from_dict(row, orient="index")
        for varied, row in panels.items()
    }
    points = pd.concat(points, names=["varied", "condition"]).reset_index()
    points = points[["varied", "condition", "reported", "label"]]
    models = list(dict.fromkeys(table.model))  # each in the order of the points
    drawn = points.merge(table, on="condition").assign(source=THIS_RUN)
    drawn = drawn.sort_values(
        "model", key=lambda names: names.map(models.index), kind="stable"
    )
    layout = {"part": "accuracy", "ylabel": "Accuracy (%)"}
    for (ax,), rows in _panels(run, "fig08", [drawn], ["model", "varied"], **layout):
        draw.estimates(
            ax, rows, "label", "accuracy", "source", looks={THIS_RUN: LOOKS["mless"]}
        )
        if rows.reported.notna().any():
            look = {
                "linestyle": "none",
                "marker": "o",
                "fillstyle": "none",
                "clip_on": False,
                "color": "0.3",
            }
            ax.plot(range(len(rows)), rows.reported, label=SEVEN_B, **look)
        ax.set_ylim(0, 100)


def fig12(run, table):
    """Draw the effect of ARM under other settings as a map, framed where 0 lies
    outside, and in other layers.
    """
    arms = [parse_condition(condition).arm or Arm() for condition in table.condition]
    grid = table.assign(
        **{name: [getattr(arm, name) for arm in arms] for name in ("c", "p1", "layer")}
    )
    layout = {
        "per_row": 2,
        "note": (
            "Brackets and bars: intervals of paired differences; framed: 0 lies"
            " outside. "
        ),
    }
    for (left, right), rows in _panels(
        run, "fig12", [grid], ["model"], part="accuracy", **layout
    ):
        mapped = rows[rows.condition.str.contains("p1=")]
        effects = mapped.pivot(index="c", columns="p1", values="effect")
        reach, (cs, p1s) = (
            max(1.0, effects.abs().max(axis=None)),
            (list(axis) for axis in effects.axes),
        )
        left.imshow(
            effects, cmap="PuOr_r", norm=colors.Normalize(-reach, reach), aspect="auto"
        )
        for row in mapped.itertuples():
            x, y, text = (
                p1s.index(row.p1),
                cs.index(row.c),
                format_interval(row.effect, row.effect_low, row.effect_high, "+"),
            )
            look = {
                "ha": "center",
                "va": "center",
                "color": "white" if abs(row.effect) > 0.6 * reach else "black",
            }
            left.text(x, y, text.replace(" [", "\n["), size="small", **look)
            if row.effect_low > 0 or row.effect_high < 0:
                frame = {"fill": False, "edgecolor": "black", "linewidth": 1.5}
                left.add_patch(
                    patches.Rectangle((x - 0.47, y - 0.47), 0.94, 0.94, **frame)
                )
        left.set_xticks(range(len(p1s)), [f"{value:g}" for value in p1s])
        left.set_yticks(range(len(cs)), [f"{value:g}" for value in cs])
        model = rows.model.iloc[0]
        left.set(
            title=f"{model}: ARM in layer 1, points against none",
            xlabel="p1 (percentile)",
            ylabel="c",
        )
        left.grid(False)
        other = (
            rows[rows.condition.str.contains("layer=")]
            .astype({"layer": str})
            .assign(what="arm")
        )
        draw.estimates(right, other, "layer", "effect", "what", even=0)
        right.set(
            title=f"{model}: ARM in other layers",
            xlabel="Layer",
            ylabel="points against none",
        )


def likelihood(run, table, name="likelihood"):
    """Draw differences of log p between conditions as a forest.

    table: columns panel, curve, x, model, effect, low, high, n and band; drawn are
    those of the panel `pairs`.
    """
    drawn = table[table.panel == "pairs"]
    height = 0.7 + 0.14 * (len(drawn) + drawn.x.nunique())
    note = (
        "Log p under the first condition less log p under the second, teacher-forced, "
    )
    note += (
        f"{run.likelihood.dtype}, solutions of at most"
        f" {run.likelihood.max_solution_tokens} tokens."
    )
    for (ax,), rows in _panels(
        run, name, [drawn], ["panel"], part="likelihood", height=height, note=note
    ):
        draw.forest(ax, rows)
        ax.set_title("")


def answer_at_once(run, table):
    """Draw the same of the gold answer, without a solution before it."""
    likelihood(run, table, name="answer_at_once")


def overview(run, table, curves):
    """Draw the paper's picture and the answer: one head without and with the slashes,
    and what they give in nats.
    """
    pairs = table[(table.panel == "pairs") & table.x.isin(ANSWERING)]
    _, head = next(iter(curves.groupby(["model", "layer", "head"], sort=False)))
    layout = {
        "per_row": 2,
        "height": 1.25 * HEIGHT,
        "widths": (1, 1.3),
        "ylabel": RECEIVED,
    }
    layout["note"] = (
        f"Left: {head.model.iloc[0]}. One prompt, of problem {head.problem.iloc[0]}. "
    )
    for (left, right), rows in _panels(
        run, "overview", [pairs, head], ["panel"], part="likelihood", **layout
    ):
        draw.received(left, head, **CURVES["fig13"][0])
        draw.forest(right, rows)
        right.set_title("How much likelier the worked solution becomes")


def likelihood_courses(run, table):
    """Draw what so many slashes, in another place, or seen by some layers only give
    against none, in nats.
    """
    drawn = table[table.panel.isin(list(COURSES))].assign(
        series=lambda rows: rows.model + ", " + rows.curve
    )
    looks = dict(zip(dict.fromkeys(drawn.series), cycle(draw.SERIES), strict=False))
    layout = {"part": "likelihood", "ylabel": "nats, to none"}
    for (ax,), rows in _panels(run, "likelihood_courses", [drawn], ["panel"], **layout):
        draw.estimates(ax, rows, "x", "effect", "series", looks=looks, even=0)
        panel = rows.panel.iloc[0]
        if panel == "depth":
            integer_axis(ax.xaxis, "")
        ax.set_xlabel(COURSES[panel])


def claims_matrix(run, table, told_of):
    """Draw each claim that was tested in a row, a column per model: the verdict as
    colour and mark, and what was found.

    table: a row per claim and model, as `lib.claims` judges them; told_of: a row ->
    what is written in its cell. Other readings than the literal one stand in brackets.
    A mark is hollow where the claim stands so without training too.
    """
    tested = table[table.n > 0]
    other = "(" + tested.id + ", " + tested.reading + ")"
    tested = tested.assign(id=tested.id.where(tested.reading == "literal", other))
    names, models = (
        list(dict.fromkeys(tested.id))[::-1],
        list(dict.fromkeys(tested.model)),
    )
    note = (
        "The part that decides; effect [interval]; untrained networks; n problems, and"
        " in how many parts it holds. "
    )
    note += "\N{DAGGER}: lost when corrected for all rows. Empty: not tested. "
    with page(
        run, "claims_matrix", [table], None, height=0.2 + 0.42 * len(names), note=note
    ) as (ax,):
        for row in tested.to_dict("records"):
            x, y, look = (
                models.index(row["model"]),
                names.index(row["id"]),
                draw.VERDICTS[row["verdict"]],
            )
            ax.add_patch(
                patches.Rectangle((x, y), 1, 1, facecolor=look.tint, linewidth=0)
            )
            mark = {
                "color": look.colour,
                "marker": look.marker,
                "linestyle": "none",
                "markersize": 6,
            }
            inner = "white" if row["training"] == "also" else look.colour
            ax.plot([x + 0.09], [y + 0.5], markerfacecolor=inner, **mark)
            ax.plot([], [], label=row["verdict"], **mark)
            ax.text(
                x + 0.16, y + 0.5, told_of(row), va="center", size=4.7, linespacing=1.3
            )
        ax.set(xlim=(0, len(models)), ylim=(0, len(names)))
        ax.set_xticks(np.arange(len(models)) + 0.5, models, size="small")
        ax.set_yticks(np.arange(len(names)) + 0.5, names)
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        ax.grid(False)
        ax.spines[:].set_visible(False)
        ax.hlines(range(len(names) + 1), 0, len(models), color="white", linewidth=1.5)
        ax.vlines(range(len(models) + 1), 0, len(names), color="white", linewidth=3)
        hollow = {
            "marker": "o",
            "markerfacecolor": "white",
            "color": "0.2",
            "linestyle": "none",
        }
        ax.plot([], [], label="hollow: also without training", **hollow)
