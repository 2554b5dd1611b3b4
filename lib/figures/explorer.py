"""Altair charts of single heads: the map of λ, and what every token of a prompt receives. JupyterLab draws them itself.

head_explorer(measured, "mless")    # a Dataset of lib.measurement; a click on the map picks the head
"""

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

# The newest that JupyterLab draws itself; Altair's own asks the network.
LAB = "application/vnd.vegalite.v5+json"
SCHEMA = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json"}
# Okabe and Ito's, as in the other figures; `even` is what attention spread evenly over all tokens would give.
SERIES = {"without": "#0072B2", "with": "#D55E00", "even": "#767676"}
STRIP = {
    "left": "datum.position - 0.5",
    "right": "datum.position + 0.5",
    "told": "isValid(datum.without) ? format(datum.without, '.3g') : 'not there'",
}
DIGITS = 3  # of received attention: a notebook stays small

alt.renderers.register("lab", lambda spec, **_: {LAB: spec | SCHEMA, "text/plain": "a chart, drawn by JupyterLab"})
alt.renderers.enable("lab")


def head_explorer(measured: xr.Dataset, condition: str, layers: int | None = None) -> alt.HConcatChart:
    """Return the map of λ of the first `layers` (None: all) beside the curves of the head that was clicked last."""
    heads, tokens = head_tables(measured.isel(layer=slice(layers)), condition)
    chosen = alt.selection_point(name="chosen", fields=["head", "layer"], value=[{"head": 1, "layer": 1}], toggle=False)
    curves = (
        alt.Chart(heads)
        .transform_filter(chosen)
        .transform_flatten(["without", "with"])
        .transform_window(position="row_number()")
        .transform_lookup("position", alt.LookupData(tokens, "position", ["text", "part", "even"]))
    )
    return alt.hconcat(_lambda_map(heads, chosen), received_chart(curves, 420)).resolve_scale(color="independent")


def head_tables(measured: xr.Dataset, condition: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row per head (layer, head, λ, received attention with and without as lists) and a row per token.

    The first token, which takes most of the mass, and the last, which receives nothing, are left out; positions count
    from 1. `without` holds None where a token was inserted.
    """
    one, none = measured.sel(condition=condition), measured.sel(condition="none")
    ratios = one["lambda"].sel(network="trained", drop=True).mean("problem")  # (layer, head)
    real, before = (np.flatnonzero(part.part.values != "") for part in (one, none))
    without = np.full((*ratios.shape, len(real)), np.nan)
    without[..., one.part.values[real] != "inserted"] = none.received.values[..., before]
    heads = ratios.to_dataframe("λ").reset_index()[["layer", "head", "λ"]].round(DIGITS)
    heads["without"] = pd.Series(_lists(without[..., 1:-1]))
    heads["with"] = pd.Series(_lists(one.received.values[..., real[1:-1]]))
    tokens = pd.DataFrame({name: one[name].values[real] for name in ("text", "part", "even")})
    return heads, tokens.round(5)[1:-1].rename_axis("position").reset_index()


def _lists(values: np.ndarray) -> list[list[float | None]]:
    """Return values (L, H, T) as a list per head, with few digits and None for NaN."""
    return [[None if np.isnan(v) else float(f"{v:.{DIGITS}g}") for v in head] for layer in values for head in layer]


def _lambda_map(heads: pd.DataFrame, chosen: alt.Parameter):
    """Return λ (layer, head) as colours whose order grey print keeps, 1 in the middle; a ring where it is above."""
    place = {"x": alt.X("head:O", axis=alt.Axis(labelAngle=0)), "y": "layer:O"}
    scale = alt.Scale(type="log", domain=[0.5, 2], scheme="cividis", clamp=True)
    told = [alt.Tooltip(name, format=".2f" if name == "λ" else "d") for name in ("layer", "head", "λ")]
    cells = alt.Chart(heads).encode(**place, tooltip=told)
    edge = alt.when(chosen).then(alt.value(2.5)).otherwise(alt.value(0))
    colour = alt.Color("λ:Q", scale=scale, legend=alt.Legend(values=[0.5, 1, 2]))
    colours = cells.mark_rect(stroke="black").encode(color=colour, strokeWidth=edge)
    above = cells.transform_filter("datum['λ'] > 1").mark_point(color="black", size=30)
    return alt.layer(colours.add_params(chosen), above).properties(width=alt.Step(20), height=alt.Step(14))


def page_chart() -> dict:
    """Return the chart of one head for the report's page, whose rows the page puts into the data set `tokens`."""
    return received_chart(alt.Chart(alt.NamedData("tokens")), "container").to_dict()


def received_chart(base: alt.Chart, width: int | str):
    """Return lines of received attention (SERIES), the inserted span shaded, of rows with position, text and part."""
    position = alt.X("position:Q", title="Token position", axis=alt.Axis(tickMinStep=1, grid=False))
    colours = alt.Scale(domain=list(SERIES), range=list(SERIES.values()))
    folded = base.transform_fold(list(SERIES), as_=["series", "received"])
    lines = folded.mark_line(strokeWidth=1.4, invalid="break-paths-show-path-domains").encode(
        position,
        alt.Y("received:Q", title="Received attention"),
        alt.Color("series:N", scale=colours, legend=alt.Legend(orient="top", title=None)),
    )
    inserted = base.transform_filter("datum.part == 'inserted'")
    ends = inserted.transform_aggregate(first="min(position)", last="max(position)")
    shade = ends.mark_rect(color="#888888", opacity=0.2).encode(x="first:Q", x2="last:Q")
    return alt.layer(shade, lines, _hover(base)).properties(width=width, height=230)


def _hover(base: alt.Chart) -> alt.Chart:
    """Return a strip for each token that shows, and tells its numbers, under the pointer."""
    # Not `nearest`: Vega-Lite 6 then loses the texts of a tooltip.
    pointer = alt.selection_point(name="token", on="pointerover", clear="pointerout", fields=["position"], empty=False)
    shown = alt.when(pointer).then(alt.value(0.35)).otherwise(alt.value(0.001))
    told = [alt.Tooltip("text:N", title="token"), alt.Tooltip("part:N"), alt.Tooltip("position:Q")]
    told += [alt.Tooltip("told:N", title="without"), *(alt.Tooltip(f"{s}:Q", format=".3g") for s in ("with", "even"))]
    strips = base.transform_calculate(**STRIP).mark_rect(color="#888")
    return strips.encode(x="left:Q", x2="right:Q", opacity=shown, tooltip=told).add_params(pointer)
