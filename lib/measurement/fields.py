"""The fields, sliders and buttons above the picture of a prompt, in JupyterLab."""

from typing import Any

import ipywidgets
from IPython.core.getipython import get_ipython
from IPython.display import Image, display

from lib.errors import InputError
from lib.figures.tables import quoted, say
from lib.prompts.conditions import POSITIONS, RANDOM_SENTENCE

LONGEST_FILLER = 220  # tokens, at the end of a slider
PICTURE_WIDTH = 900  # pixels on the page
TABS = ("attention", "answers")  # as short as a tab shows whole
# Fillers that a button types.
SUGGESTED = {"slashes": "/", "sentence": RANDOM_SENTENCE, "he": "he", "spaces": " "}


def somebody_is_there() -> bool:
    """Return whether this cell may ask a person.

    JupyterLab lets it, while papermill, nbconvert and nbval do not.
    """
    kernel = getattr(get_ipython(), "kernel", None)
    if not kernel:
        return False
    return bool(kernel.get_parent("shell").get("content", {}).get("allow_stdin"))


def fields_of(tried: Any, asked: dict[str, Any]) -> ipywidgets.VBox:
    """Return fields and sliders above the picture, which follows them.

    tried: what draws and answers, a `TryIt`; asked: what the fields say at first.
    """
    problem = ipywidgets.Textarea(rows=2)
    filler = ipywidgets.Textarea(rows=1)
    fields = {
        "problem": problem,
        "filler": filler,
        "length": ipywidgets.IntSlider(min=1, max=LONGEST_FILLER),
        "position": ipywidgets.Dropdown(options=POSITIONS),
        "layer": ipywidgets.IntSlider(min=1, max=len(tried.layers)),
        "head": ipywidgets.IntSlider(min=1, max=tried.loaded.heads),
    }
    for name, field in fields.items():
        field.description = name
        field.value = asked[name]
    _, _, *others = fields.values()
    problem.layout.width = filler.layout.width = "99%"
    chips = [_chip(name, text, filler) for name, text in SUGGESTED.items()]

    def draw(**values: Any) -> None:
        """Show the picture of the fields, or the last one and why there is none."""
        reason = ""
        try:
            tried.picture(**values)
        except InputError as error:
            reason = f"error: {error}"
        display(tried.prompt)
        display(Image(tried.png, width=PICTURE_WIDTH))
        if reason:
            print(reason)

    picture = ipywidgets.interactive_output(draw, fields)
    tabs = ipywidgets.Tab([picture, _answers(tried)], titles=TABS)
    rows = (ipywidgets.HBox(chips), ipywidgets.HBox(others), tabs)
    return ipywidgets.VBox([problem, filler, *rows])


def _chip(name: str, text: str, field: ipywidgets.Textarea) -> ipywidgets.Button:
    """Return a button that types a text into a field."""
    chip = ipywidgets.Button(description=name, tooltip=f"fill in {text!r}")

    def fill_in(_: ipywidgets.Button) -> None:
        field.value = text

    chip.on_click(fill_in)
    return chip


def _answers(tried: Any) -> ipywidgets.VBox:
    """Return a button that asks the model, above what it answers."""
    button = ipywidgets.Button(description="let it answer")
    answers = ipywidgets.Output()

    def write(_: ipywidgets.Button) -> None:
        button.disabled = True
        answers.clear_output()
        with answers:
            print("The model writes ...")
            try:
                answered = tried.write()
            except InputError as error:
                print(f"error: {error}")
            else:
                answers.clear_output()
                for name, text in answered.itertuples(index=False):
                    say(f"**{name}**", quoted(text))
        button.disabled = False

    button.on_click(write)
    return ipywidgets.VBox([button, answers])
