"""A prompt of one's own: λ as the measurements give it, a picture where nobody sits,
one line for a mistake.
"""

import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib.attention.received import observe_uniform
from lib.errors import InputError
from lib.measurement import try_it
from lib.measurement.attention import measure_attention, prompts_of
from lib.measurement.try_it import TABS, TryIt
from lib.prompts.conditions import Filler
from lib.prompts.problems import Problem

PROBLEM = "A bag holds $3$ red balls. How many balls does it hold?"


@pytest.fixture(scope="module")
def tried(tiny_llama):
    return TryIt(str(tiny_llama))


@pytest.mark.parametrize("position", ["before", "between", "end"])
def test_lambda_and_that_of_even_attention_are_those_of_the_measurements(
    tried, position
):
    filler = Filler(length=9, position=position, mless="he")
    problem = Problem(unique_id="1", problem=PROBLEM, answer="3")
    prompts = prompts_of(tried.loaded, [problem], ["mless"], filler=filler)
    (measured,) = measure_attention(tried.loaded, prompts)
    none, after, ratios, even = tried.see(PROBLEM, "he", 9, position)
    np.testing.assert_allclose(ratios, measured["lambda"].squeeze().values, rtol=1e-5)
    for tokens, condition in ((none, "none"), (after, "mless")):
        assert "".join(tokens.text.values) == prompts[condition]["1"].text
    (uniform,) = measure_attention(tried.loaded, prompts, observing=observe_uniform)
    np.testing.assert_allclose(
        even, uniform["lambda"].squeeze().mean("head"), rtol=1e-5
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("filler", ["/", "\n", "$x_1$", "中文"])
def test_any_text_is_drawn(tried, filler):
    png = tried.picture(PROBLEM, filler, 8, "between", 3, 2)
    assert Image.open(io.BytesIO(png)).size[0] > 1000


def test_with_a_person_what_is_typed_is_drawn_and_what_is_wrong_is_said(
    tried, monkeypatch, capsys
):
    shown = []
    monkeypatch.setattr(try_it, "display", shown.append)
    monkeypatch.setattr(try_it, "_somebody_is_there", lambda: True)
    tried.show(PROBLEM, "/", 9)
    first, controls = shown
    problem, filler, chips, row, _ = controls.children
    length, position, layer, head = row.children
    assert (layer.max, head.max) == (3, 2)
    pictures = [first.data]
    for control, value in (
        (filler, "he"),
        (length, 12),
        (position, "end"),
        (layer, 2),
        (head, 2),
    ):
        control.value = value
        pictures.append(shown[-1].data)
    assert (
        len(set(pictures)) == len(pictures) and "error" not in capsys.readouterr().out
    )
    blank = chips.children[-1]
    blank.click()
    assert filler.value == " "
    pictures.append(shown[-1].data)
    problem.value = " "
    assert (
        capsys.readouterr().out.endswith("error: the problem is blank\n")
        and shown[-1].data == pictures[-1]
    )


def test_the_table_follows_the_prompt_that_was_drawn_last(tiny_llama):
    tried = TryIt(str(tiny_llama))
    with pytest.raises(InputError, match="nothing is drawn yet"):
        tried.compare(["/"])
    tried.picture(PROBLEM, "/", 9, "between", 1, 1)
    (first,) = tried.compare(["he"])["layer 1"]
    tried.picture(PROBLEM, "/", 9, "end", 1, 1)
    (moved,) = tried.compare(["he"])["layer 1"]
    ratios = tried.see(PROBLEM, "he", 9, "end")[2]
    assert first != moved == ratios[0].mean()


@pytest.mark.parametrize(
    "given, message",
    [
        ({"problem": " "}, "the problem is blank"),
        ({"filler": ""}, "filler: "),
        ({"length": 0}, "filler: length: must be greater than 0"),
        ({"head": 3}, "the picture: .* has heads 1 to 2, not 3"),
        ({"layer": 4}, "the picture: .* has layers 1 to 3, not 4"),
        ({"length": 600}, "longer than the model's context of 512"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_line(tried, given, message):
    with pytest.raises(InputError, match=message) as caught:
        tried.show(**({"problem": PROBLEM, "filler": "/"} | given))
    assert "\n" not in str(caught.value)


def test_the_model_answers_the_prompt_that_was_drawn_last_with_and_without(tiny_llama):
    fresh = TryIt(str(tiny_llama))
    with pytest.raises(InputError, match="nothing is drawn yet"):
        fresh.write()
    fresh.picture(PROBLEM, "he", 8, "between", 1, 1)
    table = fresh.write(max_new_tokens=4)
    assert list(table.prompt) == ["no filler", "8 tokens of 'he'"]
    assert table.answer.map(len).min() > 0
    pd.testing.assert_frame_equal(fresh.write(max_new_tokens=4), table)


def test_a_tab_beside_the_picture_shows_what_the_model_writes(
    tiny_llama, monkeypatch, capsys
):
    shown = []
    monkeypatch.setattr(try_it, "display", shown.append)
    monkeypatch.setattr(try_it, "_somebody_is_there", lambda: True)
    fresh = TryIt(str(tiny_llama))
    fresh.show(PROBLEM, "he", 8)
    *_, tabs = shown[-1].children
    assert tabs.titles == TABS
    button, _ = tabs.children[1].children
    button.click()
    said = capsys.readouterr().out
    for name, text in fresh.write().itertuples(index=False):
        assert f"{name}:\n{text}\n" in said
    assert not button.disabled
