"""What single heads give the tokens of one prompt: the curves behind the paper's attention figures, from Datasets.

A head is a Dataset with the dimensions condition and token: `received` and `part` of lib.measurement.store, and as
attributes title, label, model, revision, layer and head. The first token, which takes most of the mass, is not drawn.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from lib.errors import InputError
from lib.measurement.run import measure
from lib.models.names import resolve
from lib.profiles import Panel, Profile
from lib.prompts.problems import describe

INSERTED = "inserted"


def drawn_heads(profile: Profile, figure: str) -> list[xr.Dataset]:
    """Return the heads that a figure draws, from left to right, on the profile's example problem.

    Raises InputError when the model lacks a head, or what is stored of it.
    """
    panels = getattr(profile.attention.panels, figure)
    measured = measure(profile, "tokens", models=[panel.model for panel in panels])
    return [head_of(measured[resolve(panel.model).name], panel, figure) for panel in panels]


def head_of(measured: xr.Dataset, panel: Panel, figure: str = "panel") -> xr.Dataset:
    """Return one head of a model's measurements."""
    layers, heads = (measured[dim].values for dim in ("layer", "head"))
    if panel.layer not in layers or panel.head not in heads:
        last = f"layers 1 to {layers[-1]} and heads 1 to {heads[-1]}"
        raise InputError(f"{figure}: {panel.model} has {last}, not layer {panel.layer}, head {panel.head}")
    head = measured[["received", "part"]].sel(layer=panel.layer, head=panel.head, drop=True)
    head = head.dropna("condition", how="all", subset=["received"])
    if not head.sizes["condition"]:
        raise InputError(f"{figure}: what layer {panel.layer}, head {panel.head} of {panel.model} gives is not stored")
    names = {name: measured.attrs[name] for name in ("model", "revision", "label")}
    title = f"{measured.model} Layer {panel.layer} Head {panel.head}"
    return head.assign_attrs(names, title=title, layer=panel.layer, head=panel.head)


def prompt_of(tokens: xr.Dataset, condition: str) -> xr.Dataset:
    """Return the tokens of one prompt."""
    one = tokens.sel(condition=condition)
    return one.isel(token=one.part.values != "")


def whole(head: xr.Dataset, condition: str) -> np.ndarray:
    """Return what every token but the first receives."""
    return prompt_of(head, condition).received.values[1:]


def original(head: xr.Dataset, condition: str) -> np.ndarray:
    """Return what the original tokens but the first receive: comparable across conditions."""
    one = prompt_of(head, condition)
    return one.received.values[one.part.values != INSERTED][1:]


def with_and_without(head: xr.Dataset, condition: str) -> tuple[str, np.ndarray, np.ndarray, np.ndarray, slice]:
    """Return what Figs. 13 and 18 draw: title, original tokens without and with, the whole prompt, its span."""
    inserted = np.flatnonzero(prompt_of(head, condition).part.values == INSERTED)
    span = slice(inserted[0], inserted[-1] + 1)
    return head.title, original(head, "none"), original(head, condition), whole(head, condition), span


def tokens_table(heads: Sequence[xr.Dataset], conditions: Sequence[str]) -> pd.DataFrame:
    """Return a row per head and token: model, layer, head, condition, position, part of the prompt, weight."""
    tables = []
    for head in heads:
        fixed = {name: head.attrs[name] for name in ("model", "revision", "layer", "head")}
        for condition in conditions:
            one = prompt_of(head, condition)
            row = {"condition": condition, "position": np.arange(one.sizes["token"]), "part": one.part.values}
            tables.append(pd.DataFrame(fixed | row | {"received": one.received.values}))
    return pd.concat(tables, ignore_index=True)


def heads_summary(figures: dict[str, Sequence[xr.Dataset]]) -> pd.DataFrame:
    """Return a row per figure and head: λ of its original tokens under mless, the share of them that receive less, and
    what an inserted token receives relative to an original one of the same prompt.
    """
    rows = []
    for figure, head in ((figure, head) for figure, heads in figures.items() for head in heads):
        before, after = original(head, "none")[:-1], original(head, "mless")[:-1]  # the last token is undefined
        one = prompt_of(head, "mless")
        inserted = one.received.values[one.part.values == INSERTED]
        place = (head.model, head.attrs["layer"], head.attrs["head"], len(before), len(inserted))
        numbers = (after.mean() / before.mean(), np.mean(after < before), inserted.mean() / after.mean())
        rows.append((figure, *place, *numbers))
    columns = ["figure", "model", "layer", "head", "tokens", "inserted", "lambda", "lost", "inserted / original"]
    return pd.DataFrame(rows, columns=columns)


def source_line(profile: Profile, n: int = 1) -> str:
    """Return what a caption says beside the models: problems, prompt and n."""
    return f"Problems: {describe(profile.attention.problems)}, {profile.attention.format} prompt, n = {n}."
