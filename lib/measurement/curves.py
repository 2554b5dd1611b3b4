"""The curves behind the paper's attention figures: one prompt, chosen heads, several conditions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from lib.models.names import Card
from lib.profiles import Panel, Profile
from lib.prompts.problems import Problem, describe, load_problems

INSERTED = "inserted"


@dataclass(frozen=True)
class Curves:
    """What one head of a model gives the tokens of a prompt under several conditions."""

    panel: Panel
    model: Card
    tokens: xr.Dataset  # received, and part of the prompt, (condition, token); NaN and "" beyond a prompt

    @property
    def title(self) -> str:
        return f"{self.model.name} Layer {self.panel.layer} Head {self.panel.head}"

    def of(self, condition: str) -> xr.Dataset:
        """Return a prompt's tokens."""
        one = self.tokens.sel(condition=condition)
        return one.isel(token=one.part.values != "")

    def whole(self, condition: str) -> np.ndarray:
        """Return the whole prompt's values without the first token, which takes most of the mass."""
        return self.of(condition).received.values[1:]

    def original(self, condition: str) -> np.ndarray:
        """Return the original tokens' values alone, without the first token: comparable across conditions."""
        one = self.of(condition)
        return one.received.values[one.part.values != INSERTED][1:]

    def drawn(self, condition: str) -> tuple[str, np.ndarray, np.ndarray, np.ndarray, slice]:
        """Return what Figs. 13 and 18 draw: title, original tokens without and with, the whole prompt, its span."""
        inserted = np.flatnonzero(self.of(condition).part.values == INSERTED)
        span = slice(inserted[0], inserted[-1] + 1)
        return self.title, self.original("none"), self.original(condition), self.whole(condition), span

    def table(self) -> pd.DataFrame:
        """Return a row per token: model, layer, head, condition, position, part of the prompt, weight."""
        head = {"model": self.model.name, "revision": self.model.revision}
        head |= {"layer": self.panel.layer, "head": self.panel.head}
        tables = []
        for condition in self.tokens.condition.values:
            one = self.of(condition)
            row = {"condition": condition, "position": np.arange(one.sizes["token"]), "part": one.part.values}
            tables.append(pd.DataFrame(head | row | {"received": one.received.values}))
        return pd.concat(tables, ignore_index=True)


def curves_table(drawn: Sequence[Curves]) -> pd.DataFrame:
    """Return the tables of a figure's heads as one."""
    return pd.concat([curves.table() for curves in drawn])


def drawn_heads(figures: dict[str, Sequence[Curves]]) -> pd.DataFrame:
    """Return a row per figure and head: λ of its original tokens under mless, the share of them that receive less, and
    what an inserted token receives relative to an original one of the same prompt.
    """
    rows = []
    for figure, curves in ((figure, curves) for figure, drawn in figures.items() for curves in drawn):
        before, after = curves.original("none")[:-1], curves.original("mless")[:-1]  # the last token is undefined
        tokens = curves.of("mless")
        inserted = tokens.received.values[tokens.part.values == INSERTED]
        place = (curves.model.name, curves.panel.layer, curves.panel.head, len(before), len(inserted))
        numbers = (after.mean() / before.mean(), np.mean(after < before), inserted.mean() / after.mean())
        rows.append((figure, *place, *numbers))
    columns = ["figure", "model", "layer", "head", "tokens", "inserted", "lambda", "lost", "inserted / original"]
    return pd.DataFrame(rows, columns=columns)


def attention_problems(profile: Profile) -> list[Problem]:
    """Return the problems on which the profile measures attention."""
    attention = profile.attention
    return load_problems(attention.problems, limit=attention.limit, seed=profile.seed)


def curves_dataset(drawn: Sequence[Curves]) -> xr.Dataset:
    """Return the curves of one model as they are stored: a place for each head."""
    return xr.concat([head.tokens for head in drawn], pd.Index([place(head.panel) for head in drawn], name="place"))


def place(panel: Panel) -> str:
    """Return what a head is called where curves are stored."""
    return f"layer {panel.layer} head {panel.head}"


def source_line(profile: Profile, n: int = 1) -> str:
    """Return what a caption says beside the models: problems, prompt and n."""
    return f"Problems: {describe(profile.attention.problems)}, {profile.attention.format} prompt, n = {n}."
