"""Altair charts of single heads: the map of λ, and what every token of a prompt receives. JupyterLab draws them itself.

head_explorer(dataset, "mless")     # a Dataset of lib.measurement.explorer; a click on the map picks the head
"""

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

# Okabe and Ito's, as the other figures; `even` is what attention spread evenly over all tokens would give.
SERIES = {"without": "#0072B2", "with": "#D55E00", "even": "#767676"}
DASHES = [[1, 0], [5, 2], [1, 2]]


def received_chart(base: alt.Chart, width: int | str) -> alt.LayerChart:
    """Return lines of received attention with the inserted span shaded and every token's text on hover.

    base: a row per token with position, text, part, and received attention `without`, `with` and `even`.
    """
    position = alt.X("position:Q", title="Token position", axis=alt.Axis(tickMinStep=1, grid=False))
    folded = base.transform_fold(list(SERIES), as_=["series", "received"])
    legend = alt.Legend(orient="top", title=None, symbolSize=600)
    names, colours = list(SERIES), list(SERIES.values())
    lines = folded.mark_line(strokeWidth=1.6, invalid="break-paths-show-path-domains").encode(
        position,
        alt.Y("received:Q", title="Received attention"),
        alt.Color("series:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
        alt.StrokeDash("series:N", scale=alt.Scale(domain=names, range=DASHES), legend=legend),
    )
    return alt.layer(_span(base), lines, _hover(base, position)).properties(width=width, height=230)


def _span(base: alt.Chart) -> alt.Chart:
    """Return the shade behind the inserted tokens."""
    inserted = base.transform_filter("datum.part == 'inserted'")
    ends = inserted.transform_aggregate(first="min(position)", last="max(position)")
    return ends.mark_rect(color="#888888", opacity=0.2).encode(x="first:Q", x2="last:Q")


def _hover(base: alt.Chart, position: alt.X) -> alt.Chart:
    """Return a line at each token that shows, and tells its numbers, under the pointer."""
    pointer = alt.selection_point(name="token", on="pointerover", fields=["position"], nearest=True, empty=False)
    shown = alt.when(pointer).then(alt.value(0.6)).otherwise(alt.value(0))
    told = [alt.Tooltip("text:N", title="token"), alt.Tooltip("part:N"), alt.Tooltip("position:Q")]
    told += [alt.Tooltip(f"{name}:Q", format=".3g") for name in SERIES]
    return base.mark_rule(color="#767676", strokeWidth=2).encode(position, opacity=shown, tooltip=told).add_params(pointer)
