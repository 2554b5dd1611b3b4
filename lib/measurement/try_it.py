"""One prompt and any filler, live: what its tokens receive, and λ beside that of
slashes, a sentence, even attention.

tried = TryIt("demo")
tried.show("What is $3 + 4$?", "/")                  # with sliders where somebody may
move them tried.compare("What is $3 + 4$?", ["/", " ", "he"])  # a row of numbers per
filler
"""

import functools
import io
import warnings
from collections.abc import Sequence
from typing import Any

import ipywidgets
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from IPython.core.getipython import get_ipython
from IPython.display import Image, display

from lib.errors import InputError, validated
from lib.figures.prompt import CLOSE, draw_close
from lib.measurement.attention import measure_tokens
from lib.measurement.networks import load_cached
from lib.profiles import Panel, check_panel
from lib.prompts.building import build_prompt
from lib.prompts.conditions import POSITIONS, Filler

LONGEST, DPI, WIDE = 220, 150, 900
USUAL = {
    "slashes": "mless",
    "a sentence": "random",
}  # what a filler is compared with: conditions


class TryIt:
    """The first layers of a model, ready for any prompt; what was asked just before is
    not computed again.
    """

    def __init__(self, model: str, layers: int = 3) -> None:
        """Load a name of data/models.yaml, a hub id, a folder or a .gguf file; raises
        InputError as loading does.
        """
        self.loaded, self.layers = (
            load_cached(model, layers),
            list(range(1, layers + 1)),
        )
        self.see = functools.lru_cache(64)(self._see)

    def show(
        self,
        problem: str,
        filler: str,
        length: int = 55,
        position: str = "between",
        layer=1,
        head=1,
    ) -> None:
        """Show the picture, under fields and sliders that draw it anew where somebody
        may use them.

        Raises InputError for what no prompt can be built of; a field that is changed to
        such says why.
        """
        picture = Image(
            self.picture(problem, filler, length, position, layer, head), width=WIDE
        )
        if not _somebody_is_there():
            display(picture)
            return

        def draw(**typed: Any) -> None:
            try:
                display(Image(self.picture(**typed), width=WIDE))
            except InputError as error:
                print(f"error: {error}")

        wide, narrow = ipywidgets.Layout(width="99%"), ipywidgets.Layout(width="32%")
        slider = functools.partial(ipywidgets.IntSlider, min=1, layout=narrow)
        drawn = ipywidgets.interactive(
            draw,
            problem=ipywidgets.Textarea(problem, rows=2, layout=wide),
            filler=ipywidgets.Textarea(filler, rows=1, layout=wide),
            length=slider(length, max=LONGEST, description="tokens"),
            position=ipywidgets.Dropdown(
                value=position, options=POSITIONS, layout=narrow
            ),
            layer=slider(layer, max=len(self.layers)),
            head=slider(head, max=self.loaded.heads),
        )
        *fields, output = drawn.children
        drawn.children = *fields[:2], ipywidgets.HBox(fields[2:]), output
        display(drawn)

    def picture(
        self,
        problem: str,
        filler: str,
        length: int,
        position: str,
        layer: int,
        head: int,
    ) -> bytes:
        """Return the picture of one prompt and head as a png."""
        check_panel(
            "the picture",
            Panel(model=self.loaded.spec, layer=layer, head=head),
            self.loaded,
        )
        none, after, ratios, even = self.see(problem, filler, length, position)
        inserted = np.flatnonzero(after.part == "inserted")
        before = np.insert(
            none.received, np.full(len(inserted), inserted[0]), np.nan, -1
        )  # (L, H, T)
        means = {
            name: self.see(problem, "/", length, position, key)[2].mean(1)
            for name, key in USUAL.items()
        }
        with plt.rc_context(CLOSE), warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Glyph .* missing"
            )  # of a script that the font lacks: a box stands there
            curves = (
                before[layer - 1, head - 1],
                after.received.values[layer - 1, head - 1],
            )
            span, references = (
                slice(inserted[0], inserted[-1] + 1),
                means | {"even attention": even},
            )
            figure = draw_close(
                after.text.values.tolist(),
                span,
                *curves,
                ratios,
                references,
                (layer, head),
            )
            file = io.BytesIO()
            figure.savefig(file, dpi=DPI)
            plt.close(figure)
        return file.getvalue()

    def compare(
        self, problem: str, fillers: Sequence[str], length=55, position="between"
    ) -> pd.DataFrame:
        """Return a row per filler: mean λ of each layer, and in how many heads of layer
        1 it is below 1.
        """
        ratios = [self.see(problem, text, length, position)[2] for text in fillers]
        below = [f"{(one[0] < 1).sum()} of {self.loaded.heads}" for one in ratios]
        rows = [
            (repr(text), *one.mean(1), last)
            for text, one, last in zip(fillers, ratios, below, strict=True)
        ]
        return pd.DataFrame(
            rows,
            columns=[
                "filler",
                *(f"layer {n}" for n in self.layers),
                "heads of layer 1 below 1",
            ],
        )

    def _see(
        self,
        problem: str,
        text: str,
        length: int,
        position: str,
        condition: str = "mless",
    ) -> tuple[xr.Dataset, xr.Dataset, np.ndarray, np.ndarray]:
        """Return the tokens of the prompt without and with a filler, as
        `measure_tokens` does, λ (L, H), and what it would be (L,) if attention were
        spread evenly.
        """
        filler = validated(
            Filler, {"mless": text, "length": length, "position": position}, "filler"
        )
        both, tokenizer = ("none", condition), self.loaded.tokenizer
        prompts = {
            name: {"": build_prompt(tokenizer, problem, name, filler=filler)}
            for name in both
        }
        tokens = measure_tokens(self.loaded, prompts, self.layers)
        none, after = (
            one.isel(token=one.part.values != "")
            for one in (tokens.sel(condition=name) for name in both)
        )
        originals = (
            one.isel(token=one.part.values != "inserted").isel(token=slice(1, -1))
            for one in (none, after)
        )
        before, behind = (one[["received", "even"]].mean("token") for one in originals)
        even = np.full(len(self.layers), float(behind.even / before.even))
        return none, after, (behind.received / before.received).values, even


def _somebody_is_there() -> bool:
    """Return whether this cell may ask a person: JupyterLab lets it, while papermill,
    nbconvert and nbval do not.
    """
    kernel = getattr(get_ipython(), "kernel", None)
    return bool(
        kernel and kernel.get_parent("shell").get("content", {}).get("allow_stdin")
    )
