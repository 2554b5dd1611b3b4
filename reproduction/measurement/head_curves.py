"""Tabulate the attention that each token of the example prompt receives, in the heads
that a figure draws.

measured = measure(profile, "tokens")
# one row per head, condition and token
received_by_token(measured, profile, "fig13", ["none", "mless"])
"""

from collections.abc import Mapping, Sequence

import pandas as pd
import xarray as xr

from lib.models.sources import resolve
from reproduction.profiles import Attention, Figure, Panel, Profile

MAX_PANELS = 3  # in a figure for which the profile names no heads


def received_by_token(
    measured: Mapping[str, xr.Dataset],
    profile: Profile,
    figure: Figure,
    conditions: Sequence[str],
) -> pd.DataFrame:
    """Return the attention that each token receives in each head of a figure.

    The table has one row per panel (from left to right), condition and token of the
    prompt. Its columns are model, revision, problem, layer, head, condition, position
    (of the token, from 0), part (of the prompt) and received (the mean attention weight
    that later tokens give it). measured: the data set "tokens" of
    `reproduction.measurement.measure`, by model.
    Raises KeyError if the model has no such head, which `reproduction.profiles.check`
    reports before a run.
    """
    tables = []
    for panel in _panels(measured, profile.attention, figure):
        model = measured[resolve(panel.model).name]
        head = model.sel(layer=panel.layer, head=panel.head)
        tokens = head[["received", "part"]].sel(condition=list(conditions))
        rows = tokens.to_dataframe().reset_index(names=["condition", "position"])
        # The token axis is as long as the longest prompt; padding has no part.
        rows = rows[rows.part != ""].copy()
        rows["model"] = head.model
        rows["revision"] = head.revision
        rows["problem"] = head.example
        tables.append(rows)
    columns = ["model", "revision", "problem", "layer", "head"]
    columns += ["condition", "position", "part", "received"]
    return pd.concat(tables, ignore_index=True)[columns]


def _panels(
    measured: Mapping[str, xr.Dataset], attention: Attention, figure: Figure
) -> list[Panel]:
    """Return the heads that a figure draws: those that the profile names, or a default.

    By default Fig. 9 draws head 1 of the first model in its first layers, and Fig. 10
    the same head in layer 1 alone. The other figures draw heads of layer 1 (the last
    ones in Fig. 18): up to MAX_PANELS heads of a single model, or one head of each of
    several models.
    """
    if panels := attention.panels.get(figure):
        return panels
    if figure in ("fig09", "fig10"):
        last_layer = min(attention.layers, MAX_PANELS) if figure == "fig09" else 1
        first_model, *_ = attention.models
        layers = range(1, last_layer + 1)
        return [Panel(model=first_model, layer=layer, head=1) for layer in layers]

    heads_per_model = MAX_PANELS if len(attention.models) == 1 else 1
    panels = []
    for spec in attention.models:
        heads = range(1, measured[resolve(spec).name].sizes["head"] + 1)
        if figure == "fig18":
            drawn = heads[-heads_per_model:]
        else:
            drawn = heads[:heads_per_model]
        panels += [Panel(model=spec, layer=1, head=head) for head in drawn]
    return panels
