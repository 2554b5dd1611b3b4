"""A user's prompt: λ as in the measurements, a picture instead of controls if nobody
can type, and one line for a mistake.
"""

import re
from types import SimpleNamespace
from unittest.mock import Mock

import ipywidgets
import numpy as np
import pandas as pd
import pytest
import torch
from families import spread
from IPython.display import Image
from jupyter_client.manager import run_kernel

from lib.errors import InputError
from lib.models.loading import load
from lib.paths import ROOT
from lib.prompts.building import build_prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import Problem
from reproduction.measurement import interactive_prompt
from reproduction.measurement.attention_changes import measure_attention, prompts_of
from reproduction.measurement.single_prompt import received_by

PROBLEM = "A bag holds $3$ red balls. How many balls does it hold?"


@pytest.fixture(scope="module")
def loaded(tiny_llama):
    """A model whose heads differ, so that λ exceeds 1 in some of them."""
    loaded = load(str(tiny_llama))
    torch.manual_seed(0)
    spread(loaded.model, 1)
    return loaded


@pytest.mark.parametrize("position", ["before", "between", "end"])
def test_fillers_are_compared_by_the_lambda_of_the_measurements(loaded, position):
    filler = Filler(length=9, position=position, mless="he")
    problem = Problem(unique_id="1", problem=PROBLEM, answer="3")
    prompts = prompts_of(loaded, [problem], ["mless"], filler=filler)
    lam = measure_attention(loaded, prompts, [1, 2, 3])[
        "lambda"
    ].squeeze()  # (layer, head)
    table = interactive_prompt.compare_fillers(
        loaded, PROBLEM, ["/", "he"], 9, position
    )
    name, *means, below = table.loc[1]
    assert name == "'he'"
    np.testing.assert_allclose(means, lam.mean("head"), rtol=1e-5)
    assert below == f"{int((lam[0] < 1).sum())} of 2"


def test_a_filler_that_cannot_be_inserted_has_a_row_with_the_reason(loaded):
    fillers = ["", "he"]
    table = interactive_prompt.compare_fillers(loaded, PROBLEM, fillers, 9)
    assert table.loc[0, ["layer 1", "layer 2", "layer 3"]].isna().all()
    assert table.iloc[0, -1].startswith("the filler is empty")
    assert table.iloc[1, -1].endswith("of 2")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("filler", ["/", "\n", "$x_1$", "中文"])
def test_any_text_can_be_drawn_as_filler(loaded, filler):
    prompt, picture = interactive_prompt.draw_prompt(
        loaded, PROBLEM, filler, 8, "between", "plain", (3, 2)
    )
    assert prompt.data.count("underline") == 8
    assert isinstance(picture, Image)


@pytest.fixture
def shown(monkeypatch):
    """The cell's outputs, and its controls as if a person could type."""
    outputs = []
    monkeypatch.setattr(
        interactive_prompt, "display", lambda *given: outputs.append(given)
    )
    monkeypatch.setattr(interactive_prompt, "accepts_input", lambda: True)
    interact = Mock(wraps=ipywidgets.interactive)
    monkeypatch.setattr(ipywidgets, "interact", interact)
    return SimpleNamespace(outputs=outputs, interact=interact)


def test_curves_show_the_chosen_head_without_and_with_the_filler(loaded, monkeypatch):
    drawing = Mock(wraps=interactive_prompt.close_up)
    monkeypatch.setattr(interactive_prompt, "close_up", drawing)
    interactive_prompt.draw_prompt(loaded, PROBLEM, "/", 8, "between", "plain", (3, 2))
    curves, inserted, _, chosen = drawing.call_args.args
    before, after = curves.values()
    filler = Filler(mless="/", length=8)
    plain = build_prompt(loaded.tokenizer, PROBLEM, "none")
    filled = build_prompt(loaded.tokenizer, PROBLEM, "mless", filler=filler)
    np.testing.assert_array_equal(after, received_by(loaded, filled, [3])[0, 1])
    assert np.isnan(before[inserted]).all()
    alone = np.delete(before, inserted)
    np.testing.assert_array_equal(alone, received_by(loaded, plain, [3])[0, 1])
    assert chosen == (3, 2)


def test_controls_redraw_what_is_typed(loaded, shown):
    interactive_prompt.show_prompt(loaded, PROBLEM, "/", 230)
    controls = shown.interact.call_args.kwargs
    assert controls["length"].value == 230
    assert (controls["layer"].max, controls["head"].max) == (3, 2)
    draw = shown.interact.call_args.args[0]
    typed = {name: control.value for name, control in controls.items()}
    pictures = []
    others = {"filler": "he", "length": 12, "position": "end", "layer": 2, "head": 2}
    others |= {"format": "authors"}
    for name, value in others.items():
        typed[name] = value
        draw(**typed)
        pictures.append(shown.outputs[-1][1].data)
    assert len(set(pictures)) == len(others)
    with pytest.raises(InputError, match="the filler is empty"):
        draw(**typed | {"filler": ""})


def test_a_cell_accepts_input_if_it_may_ask_for_it():
    asked = "from lib.progress import accepts_input\nassert accepts_input() =="
    with run_kernel(cwd=ROOT) as client:
        for may_ask in (True, False):
            code = f"{asked} {may_ask}"
            reply = client.execute_interactive(code, allow_stdin=may_ask)
            assert reply["content"]["status"] == "ok"


@pytest.mark.parametrize(
    "given, message",
    [
        ({"problem": " "}, "the problem is blank"),
        ({"filler": ""}, "the filler is empty"),
        ({"length": 0}, "filler: length: must be greater than 0"),
        ({"length": 600}, "longer than the model's context of 512"),
    ],
)
def test_a_prompt_that_cannot_be_drawn_is_refused_in_one_line(
    loaded, refused, given, message
):
    arguments = {"problem": PROBLEM, "filler": "/"} | given
    assert message in refused(interactive_prompt.show_prompt, loaded, **arguments)


@pytest.fixture
def short_answers(monkeypatch):
    monkeypatch.setattr(interactive_prompt, "MAX_ANSWER_TOKENS", 4)


def test_the_format_of_the_authors_is_drawn_and_answered(loaded, short_answers):
    prompt, _ = interactive_prompt.draw_prompt(
        loaded, PROBLEM, "/", 8, "between", "authors"
    )
    assert "{{}}" in re.sub("<[^>]*>", "", prompt.data)
    plain, authors = (
        interactive_prompt.compare_fillers(loaded, PROBLEM, ["/"], format=format)
        for format in ("plain", "authors")
    )
    assert plain["layer 1"][0] != authors["layer 1"][0]
    answers = interactive_prompt.write(loaded, PROBLEM, "/", 8, format="authors")
    assert "authors-chat" in answers.prompt[0]


def test_the_model_answers_with_and_without_a_filler_and_attends_as_before(
    loaded, short_answers
):
    before = interactive_prompt.compare_fillers(loaded, PROBLEM, ["/"])
    table = interactive_prompt.write(loaded, PROBLEM, "he", 8)
    asked = "format chat"
    assert list(table.prompt) == [f"no filler, {asked}", f"8 tokens of 'he', {asked}"]
    assert table.answer.all()
    without, filled = interactive_prompt.write(loaded, PROBLEM, "/", 8).answer
    assert table.answer[0] == without
    assert table.answer[1] != filled
    after = interactive_prompt.compare_fillers(loaded, PROBLEM, ["/"])
    pd.testing.assert_frame_equal(after, before)
