"""What single heads that figures draw give each token of one prompt, the example.

    measured = measure(profile, "tokens")
    # a row per head, condition and token
    curves(measured, profile, "fig13", ["none", "mless"])

`measured_tables.spans_of_heads` has what the same heads do over all problems.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from lib.errors import InputError
from lib.models.names import resolve
from lib.profiles import Figure, Panel, Profile

# The (layer, head) of a model that a figure draws where a profile names none, as far as
# the model has them.
FIRST_HEADS = {
    "fig09": [(1, 1), (2, 1), (3, 1)],
    "fig10": [(1, 1)],
    "fig11": [(1, 1), (1, 2), (1, 3)],
    "fig13": [(1, 1), (1, 2), (1, 3)],
    "fig18": [(1, 4), (1, 5), (1, 6)],
}
# The first compares layers, and in the second there is room for one head.
OF_ONE_MODEL = ("fig09", "fig10")
# A row per drawn head, model first.
HEAD_COLUMNS = ["model", "layer", "head"]


def curves(
    measured: Mapping[str, xr.Dataset],
    profile: Profile,
    figure: Figure,
    conditions: Sequence[str],
) -> pd.DataFrame:
    """Return a row per token of each head that a figure draws, from left to right.

    Its columns are model, revision, problem, layer, head, condition, position, part of
    the prompt and what the token receives. `measured` has the `tokens` of each of the
    profile's models. Raises InputError when a model lacks a head, or what is stored of
    it.
    """
    tables = []
    for head in drawn_heads(measured, profile, figure):
        tokens = head[["received", "part"]].sel(condition=list(conditions))
        if tokens.received.isnull().all():
            raise InputError(
                f"{figure}: what layer {head.layer.item()}, head {head['head'].item()}"
                f" of {head.model} gives is not stored"
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


def drawn_heads(
    measured: Mapping[str, xr.Dataset], profile: Profile, figure: Figure
) -> Iterator[xr.Dataset]:
    """Yield what was measured of each head that a figure draws.

    Raises InputError for a head that the model lacks.
    """
    for panel in _panels(measured, profile, figure):
        model = measured[resolve(panel.model).name]
        layers = model["layer"].values
        heads = model["head"].values
        if panel.layer not in layers or panel.head not in heads:
            raise InputError(
                f"{figure}: {panel.model} has layers 1 to {layers[-1]} and heads 1 to"
                f" {heads[-1]}, not layer {panel.layer}, head {panel.head}"
            )
        yield model.sel(layer=panel.layer, head=panel.head)


def _panels(
    measured: Mapping[str, xr.Dataset], profile: Profile, figure: Figure
) -> list[Panel]:
    """Return the heads that a profile names for a figure.

    Where it names none they are the FIRST_HEADS of its model, or its last head in layer
    1 where it has none of them.
    Of several models each has one panel, but in OF_ONE_MODEL the first has all.
    """
    attention = profile.attention
    if panels := attention.panels.get(figure):
        return panels
    specs, places = attention.models, FIRST_HEADS[figure]
    if figure in OF_ONE_MODEL:
        specs = specs[:1]
    if len(specs) > 1:
        places = places[:1]
    panels = []
    for spec in specs:
        heads = measured[resolve(spec).name].sizes["head"]
        there = []
        for layer, head in places:
            if layer <= attention.layers and head <= heads:
                there.append(Panel(model=spec, layer=layer, head=head))
        panels += there or [Panel(model=spec, layer=1, head=heads)]
    return panels


def with_ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of `curves` with a column `ratio`.

    That is what an original token receives with an insertion over what it receives
    without.
    """
    table = table.assign(ratio=np.nan)
    original = table[table.part != "inserted"]
    for _, rows in original.groupby(HEAD_COLUMNS, sort=False):
        without = rows.received[rows.condition == "none"].to_numpy()
        for condition in set(rows.condition) - {"none"}:
            received = rows.received[rows.condition == condition]
            table.loc[received.index, "ratio"] = received / without
    return table


def summary_of_heads(*tables: pd.DataFrame) -> pd.DataFrame:
    """Return a row per head of tables of `curves`.

    It has λ of the original tokens, without the first and the last, under mless, the
    share of them that receive less, and what a slash receives relative to an original
    token.
    """
    rows = []
    for table in tables:
        for place, head in table.groupby(HEAD_COLUMNS, sort=False):
            slashes = head.received[head.part == "inserted"]
            original = head[head.part != "inserted"]
            by_condition = original.groupby("condition").received
            before = by_condition.get_group("none").to_numpy()[1:-1]
            after = by_condition.get_group("mless").to_numpy()[1:-1]
            row = dict(zip(HEAD_COLUMNS, place, strict=True))
            row["tokens"] = len(before)
            row["slashes"] = len(slashes)
            row["λ"] = after.mean() / before.mean()
            row["receive less"] = np.mean(after < before)
            row["slash / original"] = slashes.mean() / after.mean()
            rows.append(row)
    return pd.DataFrame(rows)
