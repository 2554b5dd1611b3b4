"""A user's prompt: λ as in the measurements, a picture instead of controls if nobody
can type, and one line for a mistake.
"""

import asyncio
import copy
import inspect
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import torch
from families import spread
from IPython.display import Image
from jupyter_client.manager import run_kernel

from lib.measurement import interactive_prompt
from lib.measurement.attention_changes import measure_attention, prompts_of
from lib.measurement.single_prompt import received_by
from lib.models.loading import load
from lib.prompts.building import build_prompt
from lib.prompts.fillers import Filler
from lib.prompts.problem_schema import Problem

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
    lam = measure_attention(loaded, prompts)["lambda"].squeeze()  # (layer, head)
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
        loaded, PROBLEM, filler, 8, "between", 3, 2
    )
    assert prompt.data.count("underline") == 8
    assert isinstance(picture, Image)


@pytest.fixture
def shown(monkeypatch):
    """The cell's outputs, as if a person could type."""
    outputs = []

    class Handle:
        def display(self, output):
            self.number = len(outputs)
            outputs.append(output)

        def update(self, output):
            outputs[self.number] = output

    monkeypatch.setattr(
        interactive_prompt, "display", lambda *given: outputs.extend(given)
    )
    monkeypatch.setattr(interactive_prompt, "DisplayHandle", Handle)
    monkeypatch.setattr(interactive_prompt, "accepts_input", lambda: True)
    return outputs


def test_curves_show_the_chosen_head_without_and_with_the_filler(loaded, monkeypatch):
    drawing = Mock(wraps=interactive_prompt.close_up)
    monkeypatch.setattr(interactive_prompt, "close_up", drawing)
    interactive_prompt.draw_prompt(loaded, PROBLEM, "/", 8, "between", 3, 2)
    curves, inserted, _, chosen = drawing.call_args.args
    before, after = curves.values()
    filler = Filler(mless="/", length=8)
    plain = build_prompt(loaded.tokenizer, PROBLEM, "none")
    filled = build_prompt(loaded.tokenizer, PROBLEM, "mless", filler=filler)
    np.testing.assert_array_equal(after, received_by(loaded, filled, [3])[0, 1])
    alone = np.delete(before, inserted)
    np.testing.assert_array_equal(alone, received_by(loaded, plain, [3])[0, 1])
    assert chosen == (3, 2)


def test_controls_redraw_what_is_typed_and_report_mistakes(loaded, shown):
    interactive_prompt.show_prompt(loaded, PROBLEM, "/", 9)
    _, filler, length, position, layer, head = shown[0].children
    assert (layer.max, head.max) == (3, 2)
    pictures = [picture_in(shown)]
    typed = {filler: "he", length: 12, position: "end", layer: 2, head: 2}
    for control, value in typed.items():
        with_a_pause(control, value)
        pictures.append(picture_in(shown))
    assert len(set(pictures)) == 1 + len(typed)
    with_a_pause(filler, "")
    _, said, instead_of_picture = shown
    assert said.data.startswith("error: the filler is empty")
    assert instead_of_picture.data == ""


def test_a_long_filler_is_drawn_as_it_is_and_invalid_settings_are_refused(
    loaded, shown, refused
):
    interactive_prompt.show_prompt(loaded, PROBLEM, "/", 230)
    assert shown[0].children[2].value == 230
    for settings in ({"length": 0}, {"position": "middle"}):
        message = refused(
            interactive_prompt.show_prompt, loaded, PROBLEM, "/", **settings
        )
        assert message.startswith(f"filler: {next(iter(settings))}: must be ")


def picture_in(shown):
    _, _, picture = shown
    return picture.data


def with_a_pause(control, *values):
    """Type values within an event loop, like that of a kernel, and wait until the last
    one is drawn.
    """

    async def typing():
        for value in values:
            control.value = value
            await asyncio.sleep(0.01)
        await asyncio.sleep(interactive_prompt.PAUSE)

    asyncio.run(typing())


def test_letters_that_are_typed_quickly_are_drawn_once(loaded, shown, monkeypatch):
    monkeypatch.setattr(interactive_prompt, "PAUSE", 0.2)
    interactive_prompt.show_prompt(loaded, PROBLEM, "/", 9)
    _, filler, *_ = shown[0].children
    drawing = Mock(wraps=interactive_prompt.draw_prompt)
    monkeypatch.setattr(interactive_prompt, "draw_prompt", drawing)
    with_a_pause(filler, "t", "th", "the", "the ", "the t")
    assert [call.kwargs["filler"] for call in drawing.call_args_list] == ["the t"]
    with_a_pause(filler, "the")
    assert drawing.call_count == 2
    expected = interactive_prompt.draw_prompt(loaded, PROBLEM, "the", 9, "between")[1]
    assert picture_in(shown) == expected.data


def test_a_cell_accepts_input_if_it_may_ask_for_it():
    # Only the function's source runs: importing its module takes seconds.
    function = inspect.getsource(interactive_prompt.accepts_input)
    with run_kernel() as client:
        for may_ask in (True, False):
            code = f"{function}\nassert accepts_input() == {may_ask}"
            reply = client.execute_interactive(code, allow_stdin=may_ask)
            assert reply["content"]["status"] == "ok"


def test_only_the_picture_is_shown_if_nobody_is_there(loaded, shown, monkeypatch):
    monkeypatch.setattr(interactive_prompt, "accepts_input", lambda: False)
    interactive_prompt.show_prompt(loaded, PROBLEM, "/", 9)
    again = interactive_prompt.draw_prompt(loaded, PROBLEM, "/", 9, "between")
    assert [one.data for one in shown] == [one.data for one in again]


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


def test_the_model_answers_with_and_without_a_filler_and_attends_as_before(loaded):
    before = interactive_prompt.compare_fillers(loaded, PROBLEM, ["/"])
    table = interactive_prompt.write(loaded, PROBLEM, "he", 8, max_new_tokens=4)
    assert list(table.prompt) == ["no filler", "8 tokens of 'he'"]
    assert table.answer.all()
    without, filled = interactive_prompt.write(
        loaded, PROBLEM, "/", 8, max_new_tokens=4
    ).answer
    assert table.answer[0] == without
    assert table.answer[1] != filled
    after = interactive_prompt.compare_fillers(loaded, PROBLEM, ["/"])
    pd.testing.assert_frame_equal(after, before)


def test_a_model_without_a_chat_template_answers_too(loaded):
    plain = copy.deepcopy(loaded.tokenizer)
    plain.chat_template = None
    table = interactive_prompt.write(
        replace(loaded, tokenizer=plain), PROBLEM, "he", 8, max_new_tokens=4
    )
    assert table.answer.all()
