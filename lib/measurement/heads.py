"""What single heads give the tokens of one prompt, the profile's example: the curves behind the paper's figures.

curves(run, "fig13", ["none", "mless"])  # a row per head and token
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from lib.errors import InputError
from lib.measurement.store import TRAINED, measure
from lib.measurement.tables import estimates
from lib.models.names import resolve
from lib.profiles import Figure, Panel, Profile

# (layer, head) that a figure draws where a profile names none, as far as the model has them.
FIRST = {
    "fig09": [(1, 1), (2, 1), (3, 1)],
    "fig10": [(1, 1)],
    "fig11": [(1, 1), (1, 2), (1, 3)],
    "fig13": [(1, 1), (1, 2), (1, 3)],
    "fig18": [(1, 4), (1, 5), (1, 6)],
}


def curves(profile: Profile, figure: Figure, conditions: Sequence[str]) -> pd.DataFrame:
    """Return a row per token of each head that a figure draws, from left to right, under these conditions: model,
    revision, problem, layer, head, condition, position, part of the prompt and what it receives.

    Raises InputError when the model lacks a head, or what is stored of it.
    """
    panels = _drawn(profile, figure)
    measured = measure(profile, "tokens", models=[panel.model for panel in panels])
    heads = [_head(measured[resolve(panel.model).name], panel, conditions, figure) for panel in panels]
    return pd.concat(heads, ignore_index=True)


def _drawn(profile: Profile, figure: Figure) -> list[Panel]:
    """Return the heads that a figure draws: the profile's, else the FIRST of its first model."""
    if panels := profile.attention.panels.get(figure):
        return panels
    first, last = profile.attention.models[0], profile.attention.layers
    (measured,) = measure(profile, "tokens", models=[first]).values()
    heads = measured.sizes["head"]
    places = [(layer, head) for layer, head in FIRST[figure] if layer <= last and head <= heads]
    return [Panel(model=first, layer=layer, head=head) for layer, head in places or [(1, heads)]]


def _head(measured: xr.Dataset, panel: Panel, conditions: Sequence[str], figure: str) -> pd.DataFrame:
    layers, heads = (measured[dim].values for dim in ("layer", "head"))
    if panel.layer not in layers or panel.head not in heads:
        last = f"layers 1 to {layers[-1]} and heads 1 to {heads[-1]}"
        raise InputError(f"{figure}: {panel.model} has {last}, not layer {panel.layer}, head {panel.head}")
    tokens = measured[["received", "part"]].sel(layer=panel.layer, head=panel.head, drop=True)
    if tokens.received.isnull().all():
        raise InputError(f"{figure}: what layer {panel.layer}, head {panel.head} of {panel.model} gives is not stored")
    place = {"model": measured.model, "revision": measured.revision, "problem": measured.example}
    place |= {"layer": panel.layer, "head": panel.head}
    rows = []
    for condition in conditions:
        one = tokens.sel(condition=condition).to_dataframe()
        one = one[one.part != ""]
        position = {"condition": condition, "position": np.arange(len(one))}
        rows.append(one.assign(**place, **position)[[*place, *position, "part", "received"]])
    return pd.concat(rows)


def spans(profile: Profile, *figures: Figure) -> pd.DataFrame:
    """Return λ of the problem's and of the instruction's tokens (span, lambda, low, high, n) over all problems, for
    each head that these figures draw, under the slashes and from all later tokens.
    """
    tables = []
    for figure in figures:
        for panel in _drawn(profile, figure):
            ((name, measured),) = measure(profile, "attention", models=[panel.model]).items()
            lam = measured.lambda_by_span.sel(layer=panel.layer, head=panel.head, span=["problem", "instruction"])
            table = estimates(lam.sel(network=TRAINED, condition="mless", query="all"), "lambda")
            tables.append(table.assign(figure=figure, model=name, layer=panel.layer, head=panel.head))
    columns = ["figure", "model", "layer", "head", "span", "lambda", "low", "high", "n"]
    return pd.concat(tables, ignore_index=True)[columns]


def summary(*figures: pd.DataFrame) -> pd.DataFrame:
    """Return a row per head of tables of `curves`: λ of its original tokens, without the first and the last, under
    mless, the share of them that receive less, and what a slash receives relative to an original token.
    """
    rows = []
    for table in figures:
        for place, head in table.groupby(["model", "layer", "head"], sort=False):
            original = {name: some.received[some.part != "inserted"] for name, some in head.groupby("condition")}
            before, after = (original[name].to_numpy()[1:-1] for name in ("none", "mless"))
            slashes = head.received[head.part == "inserted"]
            numbers = (after.mean() / before.mean(), np.mean(after < before), slashes.mean() / after.mean())
            rows.append((*place, len(before), len(slashes), *numbers))
    columns = ["tokens", "slashes", "λ", "receive less", "slash / original"]
    return pd.DataFrame(rows, columns=["model", "layer", "head", *columns])
