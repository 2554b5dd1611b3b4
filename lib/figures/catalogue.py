"""Every figure by its name in figures/<profile>: what of a table it draws, in which panels. Each is one call.

    figures.fig13(run, curves)    # draws, saves png, pdf and csv unless the numbers are the same, and shows it

run: a profile; tables: as `lib.measurement`, `lib.evaluation` and `lib.claims` make them. What a figure shows and how
to read it is in data/figures.yaml. Of a table without rows nothing is drawn.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lib import paths
from lib.arm.settings import Arm
from lib.figures import draw
from lib.figures.page import THIS_RUN, page
from lib.figures.style import HEIGHT, LAMBDA, LOOKS, RECEIVED, SERIES, WIDTH, from_zero, integer_axis, ratio_axis
from lib.prompts.conditions import parse_condition

WITH_AND_WITHOUT = {"none": "w/o Meaningless tokens", "mless": "w/ Meaningless tokens"}
THREE = {"none": "None", "mless": "Mless", "mful": "Mful"}
CHANGE = "with / without (log scale)"
DRAWN = ["none", "mless", "arm"]  # of what is measured of activations
MOVED = ("near zero", "L1", "L2", "variance")  # what the paper says moves: the first falls, the others rise
SPAN = {"mass": "Attention mass", "flatness": "Coefficient of variation", "dispersion": "Dispersion of values"}
RARE = 1e-3  # a bin with a smaller share of the activations has no ratio: it would be noise
SEVEN_B = "the paper, Qwen2.5-Math-7B on MATH-500"
# Of the differences of likelihoods: what slashes give, what of it layer 1 gives, and what a real help gives.
SLASHES, LAYER_1 = "mless \N{MINUS SIGN} none", "mless \N{MINUS SIGN} hidden-from-layer-1"
EXAMPLE = "example \N{MINUS SIGN} none"
COURSES = {"length": "inserted slashes", "place": "place of the slashes", "depth": "k"}  # x axes of likelihoods


def fig13(run, curves, name="fig13"):
    """Draw heads of layer 1, a column each: the original tokens without and with, below the whole prompt with it."""
    heads = _heads(curves)
    columns = len(heads)
    with _page_of_curves(run, name, curves, panels=2 * columns, columns=columns) as axes:
        for top, bottom, (title, head) in zip(axes, axes[columns:], heads, strict=False):
            draw.received(top, head, WITH_AND_WITHOUT)
            draw.received(bottom, head, {"mless": WITH_AND_WITHOUT["mless"]}, whole=True)
            draw.span(bottom, head, "Meaningless tokens")
            top.set(title=title, xlabel="")
            bottom.set_title(title)


def fig18(run, curves):
    """Draw heads of another model as `fig13` does."""
    fig13(run, curves, "fig18")


def fig09(run, curves, spans):
    """Draw the same head in layers 1, 2 and 3: its original tokens without and with the slashes.

    spans: of `heads.spans`; the csv has those of the heads that the figure draws, as those of Figs. 10 and 11 have.
    """
    heads = _heads(curves)
    with _page_of_curves(run, "fig09", curves, spans, panels=len(heads)) as axes:
        for ax, (title, head) in zip(axes, heads, strict=True):
            draw.received(ax, head, {"none": "None", "mless": "Mless"})
            ax.set_title(title)


def fig11(run, curves, spans):
    """Draw whole prompts, with slashes and with a random sentence as long."""
    heads = _heads(curves)
    with _page_of_curves(run, "fig11", curves, spans, panels=len(heads)) as axes:
        for ax, (title, head) in zip(axes, heads, strict=True):
            draw.received(ax, head, {"random": "Random sentence", "mless": "Meaningless tokens"}, whole=True)
            draw.span(ax, head[head.condition == "mless"], "inserted tokens")
            ax.set_title(title)


def fig10_right(run, curves, spans):
    """Draw one head: its original tokens under three conditions, and the whole prompt with either insertion."""
    with _page_of_curves(run, "fig10_right", curves, spans, panels=2) as axes:
        _three_conditions(axes, curves)


def _page_of_curves(run, name, curves, spans=None, **layout):
    beside = () if spans is None else [spans[spans.figure == name.removesuffix("_right")]]
    return page(run, name, curves, "attention", beside=beside, ylabel=RECEIVED, note=_one_prompt(curves), **layout)


def _one_prompt(curves):
    return f"One prompt, of problem {curves.problem.iloc[0]}. "


def _heads(curves):
    """Return (title, rows) of each head that the table of curves has, in its order."""
    groups = curves.groupby(["model", "layer", "head"], sort=False)
    return [(f"{model}\nLayer {layer} Head {head}", part) for (model, layer, head), part in groups]


def _three_conditions(axes, curves):
    ((title, head),) = _heads(curves)
    draw.received(axes[0], head, THREE, fill=True)
    draw.received(axes[1], head, {key: THREE[key] for key in ("mless", "mful")}, whole=True)
    for ax, what in zip(axes, ("original tokens", "whole prompt"), strict=True):
        ax.set_title(f"{title}: {what}")


def fig10(run, table, curves):
    """Draw accuracies beside the paper's, and at the right the two panels of `fig10_right`.

    table: a row per model and condition with n, accuracy, low and high.
    """
    reported = [
        ("the paper", model, key, 500, value)
        for model, values in paper_numbers()["fig10"]["values"].items()
        for key, value in values.items()
    ]
    paper = pd.DataFrame(reported, columns=["source", "model", "condition", "n", "accuracy"])
    both = pd.concat([table.assign(source=THIS_RUN), paper], ignore_index=True)
    both = both[["source", "model", "condition", "n", "accuracy", "low", "high"]]

    def layout():
        size = {"figsize": (WIDTH, 2 * HEIGHT), "width_ratios": (1.25, 1)}
        figure, axes = plt.subplot_mosaic([["left", "upper"], ["left", "lower"]], **size)
        return figure, (axes["left"], axes["upper"], axes["lower"])

    note = f"Left; the paper's bars: MATH-500, n = 500. Right: {curves.model.iloc[0]}. {_one_prompt(curves)}"
    with page(run, "fig10", both, "accuracy", beside=[curves], layout=layout, note=note) as axes:
        draw.bars(axes[0], both, THREE)
        axes[0].set_title("Results on MATH-500" if run.accuracy.problems == "math500" else "Accuracy")
        _three_conditions(axes[1:], curves)
        for ax in axes[1:]:
            ax.set_ylabel(RECEIVED)


def paper_numbers():
    """Return data/paper.yaml: figure or table -> {"source": text, "values": {model: {condition: %}}}."""
    return paths.read_yaml(paths.DATA / "paper.yaml")


def _panels(
    run, name, table, each, *, drawn=None, finish=None, part="attention", columns=None, beside=(), label, note="", **how
):
    """Draw a panel for `each` value of these columns: the estimates of the rows `drawn` of a table, all if None.

    finish(ax, rows) completes a panel, label names the y axis, beside are other tables; how: of `draw.estimates`.
    """
    groups = list((table if drawn is None else drawn).groupby(each, sort=False))
    if not groups:
        return
    layout = {"panels": len(groups), "columns": columns, "ylabel": label}
    with page(run, name, table, part, beside=beside, note=note, **layout) as axes:
        for ax, (key, some) in zip(axes, groups, strict=True):
            draw.estimates(ax, some, **how)
            ax.set_title("\n".join(map(str, key)))
            if finish:
                finish(ax, some)


def lambda_by_head(run, table, controls):
    """Draw λ of every head of the first layers under the slashes, with what untrained networks of the shape give."""
    drawn = table[table.condition == "mless"].assign(place=lambda rows: "layer " + rows.layer.astype(str))

    def finish(ax, some):
        same = (controls.model == some.model.iloc[0]) & (controls.layer == some.layer.iloc[0])
        draw.controls(ax, controls[same], len(some))
        _lambda_axes(ax, some["head"], "Head")

    how = {"x": "head", "y": "lambda", "by": "condition", "even": 1, "label": LAMBDA, "finish": finish}
    how |= {"columns": drawn.layer.nunique(), "beside": [controls]}
    _panels(run, "lambda_by_head", table, ["model", "place"], drawn=drawn, **how)


def lambda_by_layer(run, table, controls):
    """Draw λ, the mean over heads, over the layers, a curve per insertion."""

    def finish(ax, some):
        draw.controls(ax, controls[controls.model == some.model.iloc[0]])
        _lambda_axes(ax, some.layer, "Layer")

    how = {"x": "layer", "y": "mean", "by": "condition", "even": 1, "line": True, "gap": 0, "label": LAMBDA}
    how |= {"note": "Means over heads. ", "beside": [controls], "finish": finish}
    _panels(run, "lambda_by_layer", table, ["model"], drawn=table[table.measure == "lambda"], **how)


def causes(run, table):
    """Draw λ of each cause side by side at each head of layer 1."""
    how = {"x": "head", "y": "lambda", "by": "cause", "even": 1, "label": LAMBDA}
    how["note"] = "Later original tokens only. "
    _panels(run, "causes", table, ["model"], finish=lambda ax, some: _lambda_axes(ax, some["head"], "Head"), **how)


def _lambda_axes(ax, x, name):
    ax.set_xlim(x.min() - 0.5, x.max() + 0.5)
    from_zero(ax)
    integer_axis(ax.xaxis, name)


def lambda_map(run, table):
    """Draw λ of every layer and head under the slashes as a map, all models on one scale of colours."""
    groups = list(table[table.condition == "mless"].groupby("model", sort=False))
    with page(run, "lambda_map", table, "attention", panels=len(groups)) as axes:
        for ax, (model, some) in zip(axes, groups, strict=True):
            image = draw.lambda_map(ax, some.pivot(index="layer", columns="head", values="lambda"))
            ax.set_title(f"{model}, 55 slashes")
        draw.colour_bar(image, axes)


def inserted_span(run, table):
    """Draw what the inserted tokens of layer 1 receive and carry, a row per model and a column per measure."""
    drawn = table[table.layer == 1].assign(what=lambda rows: rows.measure.map(SPAN))
    how = {"x": "condition", "y": "mean", "by": "condition", "gap": 0, "label": "layer 1, mean over heads"}
    _panels(run, "inserted_span", table, ["model", "what"], drawn=drawn, columns=len(SPAN), finish=_from_zero, **how)


def _from_zero(ax, _):
    from_zero(ax)


def fig04(run, table, measured):
    """Draw the activations of the first MLPs: histograms, and how many times as large six measures become.

    measured: by model a Dataset with `counts` (network, condition, layer, bin), whose first and last bin hold what lies
    outside. In layer 1 the histogram is drawn as it is; in later ones, where nobody would see a difference, as ratio to
    that without insertion.
    """
    layers = sorted(set(table.layer))
    histograms = pd.concat([_histograms_of(one, layers) for one in measured.values()])
    tokens, shape = table[table.condition != "arm"], (len(measured), 2, len(layers))
    reach, how = tokens[["low", "high"]].to_numpy(float), {"panels": int(np.prod(shape)), "columns": len(layers)}
    note = "ARM works in layer 1; its measures are in the table. "
    with page(run, "fig04", table, "attention", beside=[histograms], note=note, **how) as axes:
        for (tops, bottoms), model in zip(axes.reshape(shape), measured, strict=True):
            for top, bottom, layer in zip(tops, bottoms, layers, strict=True):
                _draw_histograms(top, histograms[(histograms.model == model) & (histograms.layer == layer)])
                top.set_title(f"{model}\nlayer {layer}: histogram{' / that of None' if layer > 1 else ''}")
                part = tokens[(tokens.model == model) & (tokens.layer == layer)]
                part = part.assign(measure=part.measure.str.replace("variance", "var."))
                draw.estimates(bottom, part, "measure", "ratio", "condition", even=1)
                bottom.set_title(f"{model}\nlayer {layer}: measures")
                ratio_axis(bottom, reach.min(), reach.max())
            bottoms[0].set_ylabel(CHANGE)


def _histograms_of(measured, layers):
    """Return a row per layer and bin of a model, with the bin's middle as `activation`, and a column per condition: its
    share of the activations in %, in layers after the first over that under none.
    """
    counts = measured.counts.sel(network="trained", condition=DRAWN, layer=layers, drop=True)
    starts, shares = counts.bin.values.astype(float), (counts / counts.sum("bin"))[..., 1:-1]
    none = shares.sel(condition="none", drop=True)
    values = (100 * shares).where(shares.layer == 1, (shares / none).where(none > RARE))
    rows = values.assign_coords(bin=(starts[1:-1] + starts[2:]) / 2).rename(bin="activation").to_dataset("condition")
    return rows.to_dataframe().dropna().reset_index().assign(model=measured.model)


def _draw_histograms(ax, rows):
    """Draw a line per condition of one layer of `_histograms_of`, in layer 1 on a log scale."""
    for condition in DRAWN:
        look = LOOKS[condition]
        ax.plot(rows.activation, rows[condition], color=look.colour, linewidth=0.8, label=look.names[0])
    ax.set_xlabel("activation")
    if rows.layer.iloc[0] == 1:
        ax.set(yscale="log", ylabel="share of activations (%)")
    else:
        ax.set_ylim(0.8, 1.2)


def fig07(run, table):
    """Draw the share of near-zero activations of each class of tokens, a point per condition."""
    drawn = table[table.condition.isin(DRAWN)]
    how = {"x": "class", "y": "near zero", "by": "condition", "label": "near-zero activations (%)"}
    note = "Layer 1; near zero: within the bound of the prompt without insertion. "
    _panels(run, "fig07", table, ["model"], drawn=drawn, finish=_from_zero, note=note, **how)


def activations_by_layer(run, table):
    """Draw four measures of the MLPs' activations over the layers, with / without, a row per model."""
    drawn = table[table.measure.isin(MOVED) & table.condition.isin(["mless", "arm"])]
    inside = drawn[(drawn.condition != "arm") | (drawn.layer > 1)]  # what ARM does to its own layer is off the scale

    def finish(ax, some):
        same = inside[inside.model == some.model.iloc[0]]
        ratio_axis(ax, same.low.min(), same.high.max())
        draw.off_the_scale(ax, some)
        integer_axis(ax.xaxis, "Layer")

    how = {"x": "layer", "y": "ratio", "by": "condition", "band": True, "even": 1, "label": CHANGE, "finish": finish}
    _panels(run, "activations_by_layer", table, ["model", "measure"], drawn=drawn, columns=len(MOVED), **how)


def fig06(run, table):
    """Draw pass@k and the diversity of several samples, a row per model and columns for k and distinct 2-grams.

    table: a row per model and condition, with pass@1 and so on, each followed by its ends.
    """
    ks = [name.removeprefix("pass@") for name in table if name.startswith("pass@") and " " not in name]
    models = list(table.groupby("model", sort=False)) if len(table) else []
    for_each = {"panels": 2 * len(models), "columns": 2, "ylabel": "% of problems"}
    with page(run, "fig06", table, "accuracy", note="Several samples for each problem. ", **for_each) as axes:
        for (left, right), (model, part) in zip(axes.reshape(-1, 2), models, strict=True):
            passed = pd.concat([_measure(part, f"pass@{k}").assign(k=k) for k in ks]).sort_index(kind="stable")
            draw.estimates(left, passed, "k", "value", "condition", line=True, gap=0.08)
            draw.estimates(right, _measure(part, "distinct 2-grams"), "condition", "value", "condition", gap=0)
            left.set(title=f"{model}: pass@k", xlabel="k", ylim=(0, 100))
            right.set(title=f"{model}: distinct 2-grams (%)", ylim=(0, 100))


def _measure(table, name):
    """Return a measure of a wide table as the column `value` with its ends, beside its condition."""
    names = {name: "value", f"{name} low": "low", f"{name} high": "high"}
    return table[["condition", *names]].rename(columns=names)


def fig08(run, table):
    """Draw the accuracy under fillers of other lengths, places and kinds, beside the paper's numbers for the 7B."""
    points = [
        {"varied": varied, "condition": condition, "reported": np.nan} | point
        for varied, row in paper_numbers()["fig08"]["panels"].items()
        for condition, point in row.items()
    ]
    models = dict(list(table.groupby("model", sort=False)))  # each in the order of the points
    some = [pd.DataFrame(points).merge(part, on="condition") for part in models.values()]
    drawn = pd.concat(some).assign(source=THIS_RUN) if some else table

    def finish(ax, some):
        if some.reported.notna().any():
            look = {"linestyle": "none", "marker": "o", "fillstyle": "none", "clip_on": False, "color": "0.3"}
            ax.plot(range(len(some)), some.reported, label=SEVEN_B, **look)
        ax.set_ylim(0, 100)

    how = {"x": "label", "y": "accuracy", "by": "source", "looks": {THIS_RUN: LOOKS["mless"]}, "label": "Accuracy (%)"}
    each = ["model", "varied"] if some else "model"
    _panels(run, "fig08", drawn, each, part="accuracy", columns=3, finish=finish, **how)


def fig12(run, table):
    """Draw the effect of ARM under other settings as a map, and in other layers."""
    arms = [parse_condition(condition).arm or Arm() for condition in table.condition]
    grid = table.assign(**{name: [getattr(arm, name) for arm in arms] for name in ("c", "p1", "layer")})
    models = list(grid.groupby("model", sort=False))
    note = "Brackets and bars: intervals of paired differences; framed: 0 lies outside. "
    with page(run, "fig12", grid, "accuracy", panels=2 * len(models), columns=2, note=note) as axes:
        for (left, right), (model, part) in zip(axes.reshape(-1, 2), models, strict=True):
            draw.arm_map(left, part[part.condition.str.contains("p1=")])
            other = part[part.condition.str.contains("layer=")].astype({"layer": str}).assign(what="arm")
            draw.estimates(right, other, "layer", "effect", "what", even=0)
            left.set_title(f"{model}: ARM in layer 1, points against none")
            right.set(title=f"{model}: ARM in other layers", xlabel="Layer", ylabel="points against none")


def likelihood(run, table, name="likelihood"):
    """Draw differences of log p between conditions as a forest.

    table: columns panel, curve, x, model, effect, low, high, n and band; drawn are those of the panel `pairs`.
    """
    pairs = table[table.panel == "pairs"]
    height = 0.7 + 0.14 * (len(pairs) + pairs.x.nunique())
    note = "Log p under the first condition less log p under the second, teacher-forced, "
    note += f"{run.likelihood.dtype}, solutions of at most {run.likelihood.max_solution_tokens} tokens."
    with page(run, name, table, "likelihood", panels=int(len(pairs) > 0), height=height, note=note) as axes:
        for ax in axes:
            draw.forest(ax, pairs)


def overview(run, table, curves):
    """Draw the paper's picture and the answer: one head without and with the slashes, and what they give in nats."""
    pairs = table[(table.panel == "pairs") & table.x.isin([SLASHES, LAYER_1, EXAMPLE])]
    if pairs.empty:
        return
    (title, head), *_ = _heads(curves)

    def layout():
        figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 1.25 * HEIGHT), width_ratios=(1, 1.3))
        return figure, axes

    note = f"Left: {title.split()[0]}. {_one_prompt(curves)}"
    with page(run, "overview", pairs, "likelihood", beside=[head], layout=layout, note=note) as (left, right):
        draw.received(left, head, WITH_AND_WITHOUT)
        left.set(title=title, ylabel=RECEIVED)
        draw.forest(right, pairs)
        right.set_title("How much likelier the worked solution becomes")


def answer_at_once(run, table):
    """Draw the same of the gold answer, without a solution before it."""
    likelihood(run, table, "answer_at_once")


def likelihood_courses(run, table):
    """Draw what so many slashes, in another place, or seen by some layers only give against none, in nats."""
    drawn = table[table.panel.isin(list(COURSES))].assign(series=lambda rows: rows.model + ", " + rows.curve)
    looks = dict(zip(dict.fromkeys(drawn.series), SERIES * len(drawn), strict=False))

    def finish(ax, some):
        if some.panel.iloc[0] == "depth":
            integer_axis(ax.xaxis, "")
        ax.set_xlabel(COURSES[some.panel.iloc[0]])

    how = {"x": "x", "y": "effect", "by": "series", "looks": looks, "even": 0, "label": "nats, to none"}
    _panels(run, "likelihood_courses", drawn, ["panel"], part="likelihood", finish=finish, **how)


def claims_matrix(run, table, told_of):
    """Draw each claim that was tested in a row, a column per model; other readings than the literal one in brackets."""
    tested = table[table.n > 0]
    other = "(" + tested.id + ", " + tested.reading + ")"
    tested = tested.assign(id=tested.id.where(tested.reading == "literal", other))
    note = "The part that decides; effect [interval]; untrained networks; n problems, and in how many parts it holds. "
    note += "\N{DAGGER}: lost when corrected for all rows. Empty: not tested. "
    with page(run, "claims_matrix", table, None, panels=1, height=0.2 + 0.42 * tested.id.nunique(), note=note) as axes:
        draw.matrix(axes[0], tested, told_of)
