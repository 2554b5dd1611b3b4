"""Show what any filler does to one prompt, interactively, on a complete model.

# received attention, with input fields and sliders in JupyterLab
show_prompt(loaded, "What is $3 + 4$?", "/")
# λ in the first layers, a row per filler
compare_fillers(loaded, "What is $3 + 4$?", ["/", " ", "he"])
# the model's answers, without the filler and with it
write(loaded, "What is $3 + 4$?", "/")
"""

from collections.abc import Sequence
from typing import Any

import ipywidgets
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import HTML, Image, display

from lib.errors import InputError, validated
from lib.generation.engine_interface import Request, Sampling, engine_class
from lib.models.loading import Loaded
from lib.progress import accepts_input
from lib.prompts.building import build_prompt
from lib.prompts.conditions import FORMATS, POSITIONS, Filler
from reproduction.figures.saved_figures import bytes_of
from reproduction.figures.single_prompt_figure import close_up, coloured
from reproduction.measurement.single_prompt import PromptChanges, changes_in_prompt

DRAWN_LAYERS = 3
MAX_FILLER_TOKENS = 220  # at the end of the slider, unless it starts with more
PICTURE_WIDTH = 900  # pixels on the page
MAX_ANSWER_TOKENS = 120
IN_A_CHAT = {"plain": "chat", "authors": "authors-chat"}
BELOW = "heads of layer 1 below 1"


def show_prompt(
    loaded: Loaded,
    problem: str,
    filler: str,
    length: int = 55,
    position: str = "between",
    format: str = "plain",
) -> None:
    """Show the picture of a prompt, below input fields and sliders if the cell accepts
    input.

    length: of the filler, in tokens. position: one of POSITIONS. format: one of
    FORMATS. Typed text is drawn when its field loses the focus. Raises InputError for a
    prompt that cannot be drawn; below fields, its message is shown instead of the
    picture.
    """
    if not accepts_input():
        display(*draw_prompt(loaded, problem, filler, length, position, format))
        return

    def draw(layer: int, head: int, **typed: Any) -> None:
        display(*draw_prompt(loaded, **typed, drawn=(layer, head)))

    ipywidgets.interact(
        draw,
        problem=ipywidgets.Textarea(problem, continuous_update=False),
        filler=ipywidgets.Textarea(filler, continuous_update=False),
        length=ipywidgets.IntSlider(length, 1, max(length, MAX_FILLER_TOKENS)),
        position=ipywidgets.Dropdown(options=POSITIONS, value=position),
        format=ipywidgets.Dropdown(options=FORMATS, value=format),
        layer=ipywidgets.IntSlider(1, 1, len(_layers(loaded))),
        head=ipywidgets.IntSlider(1, 1, loaded.heads),
    )


def draw_prompt(
    loaded: Loaded,
    problem: str,
    filler: str,
    length: int,
    position: str,
    format: str = "plain",
    drawn: tuple[int, int] = (1, 1),
) -> tuple[HTML, Image]:
    """Return a prompt coloured by the attention that its tokens receive in a head, and
    a picture of this attention as a curve, with λ of every head.

    drawn: the layer and the head.
    """
    layer, head = drawn
    changes = _measured(loaded, problem, filler, length, position, format)
    before = changes.before[layer - 1, head - 1]
    after = changes.after[layer - 1, head - 1]
    inserted = changes.prompt.spans["inserted"]
    shades = after / np.nanmax(before[1:])
    prompt = coloured(changes.prompt.texts, inserted, shades)

    curves = {"without the filler": before, "with the filler": after}
    figure = close_up(curves, inserted, changes.ratios, drawn)
    picture = Image(bytes_of(figure, "png"), width=PICTURE_WIDTH)
    plt.close(figure)
    return prompt, picture


def compare_fillers(
    loaded: Loaded,
    problem: str,
    fillers: Sequence[str],
    length: int = 55,
    position: str = "between",
    format: str = "plain",
) -> pd.DataFrame:
    """Return the mean λ over the heads of each of the first layers, a row per filler.

    The last column says in how many heads of layer 1 λ is below 1, or why this model
    cannot read the filler there: tokens of some fillers merge with their neighbours.
    """
    layers = [f"layer {layer}" for layer in _layers(loaded)]
    rows = []
    for filler in fillers:
        row: dict[str, object] = {"filler": repr(filler)} | dict.fromkeys(layers)
        try:
            changes = _measured(loaded, problem, filler, length, position, format)
        except InputError as error:
            rows.append(row | {BELOW: str(error)})
            continue
        row |= dict(zip(layers, changes.ratios.mean(1), strict=True))
        below = (changes.ratios[0] < 1).sum()
        rows.append(row | {BELOW: f"{below} of {loaded.heads}"})
    return pd.DataFrame(rows)


def write(
    loaded: Loaded,
    problem: str,
    filler: str,
    length: int = 55,
    position: str = "between",
    format: str = "plain",
) -> pd.DataFrame:
    """Return the model's answers without the filler and with it, one row each: in the
    chat that has this format, if the model has a template for one.
    """
    tokenizer = loaded.tokenizer
    if tokenizer.chat_template:
        format = IN_A_CHAT.get(format, format)
    inserted = _filler(filler, length, position)
    requests = []
    for condition in ("none", "mless"):
        prompt = build_prompt(
            tokenizer, problem, condition, format=format, filler=inserted
        )
        requests.append(Request(condition, prompt.input_ids.tolist()))
    engine = engine_class("transformers")(loaded, len(requests))
    completions = engine.complete(requests, Sampling(MAX_ANSWER_TOKENS))
    answers = {completion.key: completion.text for completion in completions}
    names = {"none": "no filler", "mless": f"{length} tokens of {filler!r}"}
    rows = [
        {"prompt": f"{name}, format {format}", "answer": answers[key]}
        for key, name in names.items()
    ]
    return pd.DataFrame(rows)


def _measured(
    loaded: Loaded, problem: str, text: str, length: int, position: str, format: str
) -> PromptChanges:
    """Return the received attention without and with a filler in the drawn layers."""
    filler = _filler(text, length, position)
    return changes_in_prompt(loaded, problem, filler, _layers(loaded), format)


def _layers(loaded: Loaded) -> range:
    return range(1, min(DRAWN_LAYERS, loaded.layers) + 1)


def _filler(text: str, length: int, position: str) -> Filler:
    """Return the filler that repeats a text; raise InputError for an empty text."""
    if not text:
        raise InputError("the filler is empty: type at least a space")
    fields = {"mless": text, "length": length, "position": position}
    return validated(Filler, fields, "filler")
