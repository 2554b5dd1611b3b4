"""The curves behind the paper's attention figures: one prompt, chosen heads, several conditions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from lib.attention.received import received_attention
from lib.errors import InputError
from lib.measurement.stored import card_of, stored
from lib.measurement.weights import first_layers
from lib.models.card import Card
from lib.models.loading import Loaded
from lib.models.names import resolve
from lib.models.panels import Panel, missing_heads
from lib.profiles import Profile
from lib.prompts.building import Prompt, build_prompt
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


def panel_curves(profile: Profile, figure: str, conditions: list[str]) -> list[Curves]:
    """Compute the panels of one figure on the profile's example problem.

    Raises InputError when the model lacks a head or the example is not among the problems.
    """
    attention, panels = profile.attention, getattr(profile.attention.panels, figure)
    if trees := stored(profile):
        return [_of_stored(trees[resolve(panel.model).name], panel, conditions) for panel in panels]
    problems, drawn = attention_problems(profile), []
    if attention.example >= len(problems):
        raise InputError(f"example {attention.example} is beyond the {len(problems)} problems")
    for panel in panels:
        loaded = first_layers(panel.model, attention.layers, attention.dtype)
        missing_heads(figure, panel, loaded.card)
        drawn.append(head_curves(loaded, panel, problems[attention.example], profile, conditions))
    return drawn


def head_curves(loaded: Loaded, panel: Panel, problem: Problem, profile: Profile, conditions: Sequence[str]) -> Curves:
    """Compute one panel on a problem."""
    given = {"format": profile.attention.format, "filler": profile.filler}
    prompts = {name: build_prompt(loaded.tokenizer, problem.problem, name, **given) for name in conditions}

    def known(prompt: Prompt) -> dict:
        received = received_attention(loaded.model, prompt.input_ids, [panel.layer])[0, 0, panel.head - 1]
        return {"received": ("token", received.cpu().numpy())}

    return Curves(panel, loaded.card, by_condition(prompts, known))


def by_condition(prompts: dict[str, Prompt], known: Callable[[Prompt], dict]) -> xr.Dataset:
    """Return what is known of each token and its part of the prompt (condition, ..., token), NaN or "" beyond it."""
    found = [
        xr.Dataset(known(prompt) | {"part": ("token", prompt.parts)}, {"token": range(len(prompt))})
        for prompt in prompts.values()
    ]
    joined = xr.concat(found, "condition", join="outer", fill_value={"text": "", "part": ""})
    return joined.drop_vars("token").assign_coords(condition=list(prompts))


def curves_dataset(drawn: Sequence[Curves]) -> xr.Dataset:
    """Return the curves of one model as they are stored: a place for each head."""
    return xr.concat([head.tokens for head in drawn], pd.Index([_place(head.panel) for head in drawn], name="place"))


def _of_stored(tree: xr.DataTree, panel: Panel, conditions: list[str]) -> Curves:
    curves = tree["curves/example"].to_dataset()
    return Curves(panel, card_of(curves), curves.sel(place=_place(panel), condition=conditions))


def _place(panel: Panel) -> str:
    return f"layer {panel.layer} head {panel.head}"


def source_line(profile: Profile, n: int = 1, heads: Sequence[Curves] = ()) -> str:
    """Return what a caption says beside the models: problems, prompt, n, and which drawn heads stand for others."""
    replaced = [f" {head.panel.note}." for head in heads if head.panel.note]
    problems, format = describe(profile.attention.problems), profile.attention.format
    return f"Problems: {problems}, {format} prompt, n = {n}.{''.join(replaced)}"
