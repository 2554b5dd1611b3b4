"""One prompt and any filler, live: what its tokens receive, and λ beside others.

    tried = TryIt("demo")
    # with fields and sliders where somebody may move them
    tried.show("What is $3 + 4$?", "/")
    # a row of numbers per filler, in the prompt that was shown last
    tried.compare(["/", " ", "he"])
    # what the model writes, without the filler and with it
    tried.write()

The others are slashes, a sentence and attention that is spread evenly.
"""

import base64
import functools
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from IPython.display import display

from lib.errors import InputError, validated
from lib.figures.keeping import bytes_of
from lib.figures.prompt import close_up, coloured
from lib.generation.writer import Request, Sampling, engine_class
from lib.measurement.attention import measure_tokens
from lib.measurement.fields import PICTURE_WIDTH, fields_of, somebody_is_there
from lib.models.loading import load
from lib.prompts.building import build_prompt
from lib.prompts.conditions import Filler

DRAWN_LAYERS = 3
MOST_WRITTEN = 120  # tokens of an answer
# What a filler is compared with: conditions.
COMPARED_WITH = {"slashes": "mless", "a sentence": "random"}


class TryIt:
    """A model, ready for any prompt; its first layers are drawn.

    What was asked just before is not computed again.
    """

    def __init__(self, model: str) -> None:
        """Load a name of data/models.yaml, a hub id, a folder or a .gguf file.

        Raises InputError as loading does.
        """
        self.loaded = load(model)
        drawn = min(DRAWN_LAYERS, self.loaded.layers)
        self.layers = list(range(1, drawn + 1))
        self.see = functools.lru_cache(64)(self._see)
        # The problem, length and position that were drawn last, their filler, the
        # coloured prompt and the picture.
        self.shown: tuple[str, int, str] | None = None
        self.filler = ""
        self.prompt: Any = None
        self.png = b""

    def show(
        self,
        problem: str,
        filler: str,
        length: int = 55,
        position: str = "between",
        layer: int = 1,
        head: int = 1,
    ) -> None:
        """Show the picture, under fields and sliders where somebody may use them.

        A notebook keeps the picture either way, since no viewer but JupyterLab shows
        the fields. Raises InputError for what no prompt can be built of; a field that
        is changed to such says why, below the last picture.
        """
        asked: dict[str, Any] = {"problem": problem, "filler": filler}
        asked |= {"length": length, "position": position, "layer": layer, "head": head}
        png = self.picture(**asked)
        shown: dict[str, Any] = {"image/png": base64.b64encode(png).decode()}
        if somebody_is_there():
            shown |= fields_of(self, asked)._repr_mimebundle_() or {}
        else:
            display(self.prompt)
        shown["text/plain"] = "one prompt"  # the same with fields and without
        about = {"image/png": {"width": PICTURE_WIDTH}}
        display(shown, metadata=about, raw=True)

    def picture(
        self,
        problem: str,
        filler: str,
        length: int,
        position: str,
        layer: int,
        head: int,
    ) -> bytes:
        """Return the picture of one prompt and head as a png; `prompt` has its tokens
        on colours.
        """
        self._require("layers", layer, len(self.layers))
        self._require("heads", head, self.loaded.heads)
        plain, filled, ratios, even = self.see(problem, filler, length, position)
        # Without the filler the tokens keep the places that they have with it.
        inserted = np.flatnonzero(filled.part == "inserted")
        gap = np.full(len(inserted), inserted[0])
        before = np.insert(plain.received, gap, np.nan, -1)  # (L, H, T)
        without = before[layer - 1, head - 1]
        after = filled.received.values[layer - 1, head - 1]
        span = slice(inserted[0], inserted[-1] + 1)
        weights = after / np.nanmax(without[1:])
        self.prompt = coloured(filled.text.values.tolist(), span, weights)

        curves = {"without the filler": without, "with the filler": after}
        means = self._means(problem, length, position) | {"even attention": even}
        figure = close_up(curves, span, ratios, means, (layer, head))
        self.png = bytes_of(figure, "png")
        plt.close(figure)
        self.shown = (problem, length, position)
        self.filler = filler
        return self.png

    def _require(self, name: str, number: int, last: int) -> None:
        """Raise InputError for a layer or a head that is not drawn."""
        if not 1 <= number <= last:
            raise InputError(
                f"the picture: {self.loaded.spec} has {name} 1 to {last}, not {number}"
            )

    def _means(self, problem: str, length: int, position: str) -> dict[str, np.ndarray]:
        """Return the mean λ of each layer (L,) by what a filler is compared with."""
        means = {}
        for name, condition in COMPARED_WITH.items():
            _, _, ratios, _ = self.see(problem, "/", length, position, condition)
            means[name] = ratios.mean(1)
        return means

    def compare(self, fillers: Sequence[str]) -> pd.DataFrame:
        """Return a row per filler in the prompt that was drawn last, with the mean λ of
        each layer.

        The last column says in how many heads of layer 1 λ is below 1. Raises
        InputError before anything was drawn.
        """
        problem, length, position = self._last_shown()
        rows = []
        for filler in fillers:
            _, _, ratios, _ = self.see(problem, filler, length, position)
            row: dict[str, object] = {"filler": repr(filler)}
            for layer, mean in zip(self.layers, ratios.mean(1), strict=True):
                row[f"layer {layer}"] = mean
            below = (ratios[0] < 1).sum()
            row["heads of layer 1 below 1"] = f"{below} of {self.loaded.heads}"
            rows.append(row)
        return pd.DataFrame(rows)

    @functools.cached_property
    def engine(self) -> Any:
        """What writes with the model."""
        return engine_class("transformers")(self.loaded, 2)

    def write(self, max_new_tokens: int = MOST_WRITTEN) -> pd.DataFrame:
        """Return what the model answers to the prompt that was drawn last,
        without the filler and with it: a row each.

        Raises InputError before anything was drawn.
        """
        problem, length, position = self._last_shown()
        tokenizer = self.loaded.tokenizer
        format = "chat" if tokenizer.chat_template else "plain"
        filler = _filler(self.filler, length, position)
        requests = []
        for condition in ("none", "mless"):
            prompt = build_prompt(
                tokenizer, problem, condition, format=format, filler=filler
            )
            requests.append(Request(condition, prompt.input_ids.tolist()))
        written = self.engine.complete(requests, Sampling(max_new_tokens))
        answers = {completion.key: completion.text for completion in written}
        names = {"none": "no filler", "mless": f"{length} tokens of {self.filler!r}"}
        rows = [{"prompt": names[key], "answer": answers[key]} for key in names]
        return pd.DataFrame(rows)

    def _last_shown(self) -> tuple[str, int, str]:
        """Return the problem, length and position that were drawn last."""
        if self.shown is None:
            raise InputError(
                "nothing is drawn yet: run the cell with the picture first"
            )
        return self.shown

    def _see(
        self,
        problem: str,
        text: str,
        length: int,
        position: str,
        condition: str = "mless",
    ) -> tuple[xr.Dataset, xr.Dataset, np.ndarray, np.ndarray]:
        """Return what `measure_tokens` shows of the prompt without and with a filler.

        Beside it λ (L, H), and what λ would be (L,) if attention were spread evenly.
        """
        filler = _filler(text, length, position)
        prompts = {}
        for name in ("none", condition):
            prompt = build_prompt(self.loaded.tokenizer, problem, name, filler=filler)
            prompts[name] = {"": prompt}
        tokens = measure_tokens(self.loaded, prompts, self.layers)
        plain = _of_one_prompt(tokens, "none")
        filled = _of_one_prompt(tokens, condition)

        before = _original_mean(plain)
        after = _original_mean(filled)
        ratios = (after.received / before.received).values
        even = np.full(len(self.layers), float(after.even / before.even))
        return plain, filled, ratios, even


def _filler(text: str, length: int, position: str) -> Filler:
    """Return a filler of one's own; raises InputError for what is none."""
    if not text:
        raise InputError("the filler is empty: type at least a space")
    fields = {"mless": text, "length": length, "position": position}
    return validated(Filler, fields, "filler")


def _of_one_prompt(tokens: xr.Dataset, condition: str) -> xr.Dataset:
    """Return the tokens of the prompt under a condition; the other may be longer."""
    prompt = tokens.sel(condition=condition)
    return prompt.isel(token=prompt.part.values != "")


def _original_mean(prompt: xr.Dataset) -> xr.Dataset:
    """Return what the original tokens but the first and last receive on average."""
    original = prompt.isel(token=prompt.part.values != "inserted")
    return original[["received", "even"]].isel(token=slice(1, -1)).mean("token")
