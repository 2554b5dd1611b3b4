"""The curves behind the paper's attention figures: one prompt, chosen heads, several conditions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from lib.attention.received import received_attention
from lib.errors import InputError
from lib.measurement.stored import card_of, stored, stored_curve
from lib.measurement.weights import first_layers
from lib.models.card import Card
from lib.models.loading import Loaded
from lib.models.names import resolve
from lib.models.panels import Panel, missing_heads
from lib.profiles import Profile
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.problems import Problem, describe, load_problems


@dataclass(frozen=True)
class Curves:
    """Received attention (T,) of one head per condition, with the prompts it was measured on."""

    panel: Panel
    model: Card
    prompts: dict[str, Prompt]
    received: dict[str, np.ndarray]

    @property
    def title(self) -> str:
        return f"{self.model.name} Layer {self.panel.layer} Head {self.panel.head}"

    def whole(self, condition: str) -> np.ndarray:
        """Return the whole prompt's values without the first token, which takes most of the mass."""
        return self.received[condition][1:]

    def original(self, condition: str) -> np.ndarray:
        """Return the original tokens' values alone, without the first token: comparable across conditions."""
        return self.received[condition][self.prompts[condition].original][1:]

    def drawn(self, condition: str) -> tuple[str, np.ndarray, np.ndarray, np.ndarray, slice]:
        """Return what Figs. 13 and 18 draw: title, original tokens without and with, the whole prompt, its span."""
        span = self.prompts[condition].spans["inserted"]
        return self.title, self.original("none"), self.original(condition), self.whole(condition), span

    def table(self) -> pd.DataFrame:
        """Return a row per token: model, layer, head, condition, position, part of the prompt, weight."""
        tables = []
        for condition, prompt in self.prompts.items():
            columns = {
                "model": self.model.name,
                "revision": self.model.revision,
                "layer": self.panel.layer,
                "head": self.panel.head,
                "condition": condition,
                "position": np.arange(len(prompt)),
                "part": prompt.parts,
                "received": self.received[condition],
            }
            tables.append(pd.DataFrame(columns))
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
        inserted = curves.received["mless"][curves.prompts["mless"].spans["inserted"]]
        place = (curves.model.name, curves.panel.layer, curves.panel.head, len(before), len(inserted))
        numbers = (after.mean() / before.mean(), np.mean(after < before), inserted.mean() / after.mean())
        rows.append((figure, *place, *numbers))
    columns = ["figure", "model", "layer", "head", "tokens", "inserted", "lambda", "lost", "inserted / original"]
    return pd.DataFrame(rows, columns=columns)


def attention_problems(profile: Profile) -> list[Problem]:
    """Return the problems on which the profile measures attention."""
    attention = profile.attention
    return load_problems(attention.problems, limit=attention.limit, seed=profile.seed)


def panel_curves(profile: Profile, figure: str, conditions: list[str]) -> list[Curves]:
    """Compute the panels of one figure on the profile's example problem.

    Raises InputError when the model lacks a head or the example is not among the problems.
    """
    if trees := stored(profile):
        row = getattr(profile.attention.panels, figure)
        return [_of_stored(trees[resolve(panel.model).name], panel, conditions) for panel in row]
    problems, drawn = attention_problems(profile), []
    if profile.attention.example >= len(problems):
        raise InputError(f"example {profile.attention.example} is beyond the {len(problems)} problems")
    problem = problems[profile.attention.example]
    for panel in getattr(profile.attention.panels, figure):
        loaded = first_layers(panel.model, profile.attention.layers, profile.attention.dtype)
        missing_heads(figure, panel, loaded.card)
        drawn.append(_curves(loaded, panel, problem, profile, conditions))
    return drawn


def _of_stored(tree: xr.DataTree, panel: Panel, conditions: list[str]) -> Curves:
    curves = tree["curves/example"].to_dataset()
    found = {condition: stored_curve(curves, panel, condition) for condition in conditions}
    prompts = {condition: prompt for condition, (prompt, _) in found.items()}
    return Curves(panel, card_of(curves), prompts, {condition: values for condition, (_, values) in found.items()})


def _curves(loaded: Loaded, panel: Panel, problem: Problem, profile: Profile, conditions: list[str]) -> Curves:
    filler, format = profile.filler, profile.attention.format
    prompts = {
        condition: build_prompt(loaded.tokenizer, problem.problem, condition, format=format, filler=filler)
        for condition in conditions
    }
    received = {
        condition: received_attention(loaded.model, prompt.input_ids, [panel.layer])[0, 0, panel.head - 1]
        for condition, prompt in prompts.items()
    }
    arrays = {name: row.cpu().numpy() for name, row in received.items()}
    return Curves(panel, loaded.card, prompts, arrays)


def source_line(profile: Profile, n: int = 1, heads: Sequence[Curves] = ()) -> str:
    """Return what a caption says beside the models: problems, prompt, n, and which drawn heads stand for others."""
    counted = f"n = {n} problem" if n == 1 else f"n = {n} problems"
    replaced = [f" {head.panel.note}." for head in heads if head.panel.note]
    return f"{describe(profile.attention.problems)}, {profile.attention.format} prompt, {counted}.{''.join(replaced)}"
