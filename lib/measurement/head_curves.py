"""The attention that tokens of the example prompt receive in the heads of a figure.

measured = measure(profile, "tokens")
# a row per head, condition and token
curves(measured, profile, "fig13", ["none", "mless"])
"""

from collections.abc import Mapping, Sequence

import pandas as pd
import xarray as xr

from lib.errors import InputError
from lib.models.names import resolve
from lib.profiles import Attention, Figure, Panel, Profile

MOST_DRAWN = 3  # heads, or layers, of a figure if the profile names none


def curves(
    measured: Mapping[str, xr.Dataset],
    profile: Profile,
    figure: Figure,
    conditions: Sequence[str],
) -> pd.DataFrame:
    """Return a row for each token of each head that a figure draws, from left to right.

    The columns are model, revision, problem, layer, head, condition, position, part of
    the prompt and received attention. `measured` has the `tokens` of each of the
    profile's models. Raises InputError if a model lacks a head, or if its measurements
    are not stored.
    """
    tables = []
    for panel in _panels(measured, profile.attention, figure):
        head = _drawn_head(measured, panel, figure)
        tokens = head[["received", "part"]].sel(condition=list(conditions))
        if tokens.received.isnull().all():
            raise InputError(
                f"{figure}: what layer {panel.layer}, head {panel.head} of"
                f" {head.model} gives is not stored"
            )
        rows = tokens.to_dataframe().reset_index(names=["condition", "position"])
        # Beyond the end of a shorter prompt a token has no part.
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
    """Return the heads that a profile names for a figure.

    If it names none, Figs. 9 and 10 have the first head of the first model, in its
    first layers and in layer 1. The other figures have heads of layer 1 (the last ones
    in Fig. 18): several heads of a single model, or one head of each model.
    """
    if panels := attention.panels.get(figure):
        return panels
    if figure in ("fig09", "fig10"):
        deepest = min(attention.layers, MOST_DRAWN) if figure == "fig09" else 1
        first, *_ = attention.models
        layers = range(1, deepest + 1)
        return [Panel(model=first, layer=layer, head=1) for layer in layers]

    count = MOST_DRAWN if len(attention.models) == 1 else 1
    panels = []
    for spec in attention.models:
        heads = range(1, measured[resolve(spec).name].sizes["head"] + 1)
        drawn = heads[-count:] if figure == "fig18" else heads[:count]
        panels += [Panel(model=spec, layer=1, head=head) for head in drawn]
    return panels


def _drawn_head(
    measured: Mapping[str, xr.Dataset], panel: Panel, figure: Figure
) -> xr.Dataset:
    """Return the measurements of a head. Raises InputError if there are none."""
    model = measured[resolve(panel.model).name]
    layers = model["layer"].values
    heads = model["head"].values
    if panel.layer not in layers or panel.head not in heads:
        raise InputError(
            f"{figure}: {panel.model} has layers 1 to {layers[-1]} and heads 1 to"
            f" {heads[-1]}, not layer {panel.layer}, head {panel.head}"
        )
    return model.sel(layer=panel.layer, head=panel.head)
