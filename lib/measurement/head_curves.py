"""What single heads that figures draw give each token of one prompt, the example.

    curves(profile, "fig13", ["none", "mless"])  # a row per head, condition and token

`spans_of_heads` has what the same heads do over all problems.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from lib.errors import InputError
from lib.measurement.measured_tables import means_table
from lib.measurement.plan import TRAINED
from lib.measurement.run import measure
from lib.profiles import Figure, Panel, Profile

# The (layer, head) that a figure draws where a profile names none, as far as the model
# has them.
FIRST_HEADS = {
    "fig09": [(1, 1), (2, 1), (3, 1)],
    "fig10": [(1, 1)],
    "fig11": [(1, 1), (1, 2), (1, 3)],
    "fig13": [(1, 1), (1, 2), (1, 3)],
    "fig18": [(1, 4), (1, 5), (1, 6)],
}
# A row per drawn head, model first.
HEAD_COLUMNS = ["model", "layer", "head"]


def curves(profile: Profile, figure: Figure, conditions: Sequence[str]) -> pd.DataFrame:
    """Return a row per token of each head that a figure draws, from left to right.

    Its columns are model, revision, problem, layer, head, condition, position, part of
    the prompt and what the token receives. Raises InputError when the model lacks a
    head, or what is stored of it.
    """
    tables = []
    for place, head in _drawn_curves(profile, figure, "tokens"):
        tokens = head[["received", "part"]].sel(condition=list(conditions))
        if tokens.received.isnull().all():
            raise InputError(f"{figure}: what {place} gives is not stored")
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


def spans_of_heads(profile: Profile, *figures: Figure) -> pd.DataFrame:
    """Return λ of the problem's and of the instruction's tokens over all problems.

    There are two rows (span, lambda, low, high, n) for each head that these figures
    draw, under the slashes and from all later tokens.
    """
    tables = []
    for figure in figures:
        for _, head in _drawn_curves(profile, figure, "attention"):
            by_span = head.lambda_by_span.sel(
                network=TRAINED,
                condition="mless",
                query="all",
                span=["problem", "instruction"],
            )
            rows = means_table(by_span, "lambda")
            rows["figure"] = figure
            rows["model"] = head.model
            rows["layer"] = head.layer.item()
            rows["head"] = head["head"].item()
            tables.append(rows)
    columns = ["figure", *HEAD_COLUMNS, "span", "lambda", "low", "high", "n"]
    return pd.concat(tables, ignore_index=True)[columns]


def _drawn_curves(
    profile: Profile, figure: Figure, part: str
) -> Iterator[tuple[str, xr.Dataset]]:
    """Yield, of the heads that a figure draws, what a message calls each and its data.

    The data are this part of what is measured on it. Raises InputError for a head that
    the model lacks.
    """
    panels = profile.attention.panels.get(figure)
    if not panels:
        panels = _first_panels(profile, figure, part)
    for panel in panels:
        (measured,) = measure(profile, part, models=[panel.model]).values()
        layers = measured["layer"].values
        heads = measured["head"].values
        if panel.layer not in layers or panel.head not in heads:
            raise InputError(
                f"{figure}: {panel.model} has layers 1 to {layers[-1]} and heads 1 to"
                f" {heads[-1]}, not layer {panel.layer}, head {panel.head}"
            )
        place = f"layer {panel.layer}, head {panel.head} of {panel.model}"
        yield place, measured.sel(layer=panel.layer, head=panel.head)


def _first_panels(profile: Profile, figure: Figure, part: str) -> list[Panel]:
    """Return the FIRST_HEADS of the profile's first model, at least its last head."""
    attention = profile.attention
    spec = attention.models[0]
    (measured,) = measure(profile, part, models=[spec]).values()
    heads = measured.sizes["head"]
    panels = []
    for layer, head in FIRST_HEADS[figure]:
        if layer <= attention.layers and head <= heads:
            panels.append(Panel(model=spec, layer=layer, head=head))
    return panels or [Panel(model=spec, layer=1, head=heads)]


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
