"""A prompt of one's own: λ as the measurements give it, a picture where nobody sits,
one line for a mistake.
"""

import copy
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib.errors import InputError
from lib.measurement import try_it
from lib.measurement.attention import measure_attention, prompts_of
from lib.models.loading import load
from lib.prompts.conditions import Filler
from lib.prompts.problems import Problem

PROBLEM = "A bag holds $3$ red balls. How many balls does it hold?"


@pytest.fixture(scope="module")
def loaded(tiny_llama):
    return load(str(tiny_llama))


@pytest.mark.parametrize("position", ["before", "between", "end"])
def test_lambda_is_that_of_the_measurements(loaded, position):
    filler = Filler(length=9, position=position, mless="he")
    problem = Problem(unique_id="1", problem=PROBLEM, answer="3")
    prompts = prompts_of(loaded, [problem], ["mless"], filler=filler)
    lam = measure_attention(loaded, prompts)["lambda"].squeeze()
    seen = try_it._seen(loaded, PROBLEM, "he", 9, position)
    np.testing.assert_allclose(seen.ratios, lam, rtol=1e-5)
    assert seen.prompt.text == prompts["mless"]["1"].text
    assert np.isnan(seen.before[..., seen.prompt.spans["inserted"]]).all()
    assert np.isfinite(seen.before[..., seen.prompt.original[:-1]]).all()
    (row,) = try_it.compare_fillers(loaded, PROBLEM, ["he"], 9, position).to_dict(
        "records"
    )
    assert row["layer 2"] == pytest.approx(float(lam[1].mean()), rel=1e-5)
    below = int((lam[0] < 1).sum())
    assert row["heads of layer 1 below 1"] == f"{below} of 2"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("filler", ["/", "\n", "$x_1$", "中文"])
def test_any_text_is_drawn(loaded, shown, filler):
    try_it.draw_prompt(loaded, PROBLEM, filler, 8, "between", 3, 2)
    prompt, picture = shown
    assert prompt.data.count("underline") == 8
    assert Image.open(io.BytesIO(picture.data)).size[0] > 1000


@pytest.fixture
def shown(monkeypatch):
    """What is displayed, where a person sits."""
    displayed = []
    monkeypatch.setattr(try_it, "display", displayed.append)
    monkeypatch.setattr(try_it, "somebody_is_there", lambda: True)
    return displayed


def test_with_a_person_what_is_typed_is_drawn_and_what_is_wrong_is_said(
    loaded, shown, capsys
):
    try_it.show_prompt(loaded, PROBLEM, "/", 9)
    _, first, widget = shown
    problem, filler, length, position, layer, head, _ = widget.children
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
    assert len(set(pictures)) == len(pictures)
    assert "error" not in capsys.readouterr().out
    filler.value = ""
    assert "error: the filler is empty" in capsys.readouterr().out
    filler.value = "/"
    problem.value = " "
    assert "error: the problem is blank" in capsys.readouterr().out


def test_without_a_person_there_is_the_picture_alone(loaded, shown, monkeypatch):
    monkeypatch.setattr(try_it, "somebody_is_there", lambda: False)
    try_it.show_prompt(loaded, PROBLEM, "/", 9)
    try_it.draw_prompt(loaded, PROBLEM, "/", 9, "between")
    alone, again = shown[:2], shown[2:]
    assert [one.data for one in alone] == [one.data for one in again]


@pytest.mark.parametrize(
    "given, message",
    [
        ({"problem": " "}, "the problem is blank"),
        ({"filler": ""}, "the filler is empty"),
        ({"length": 0}, "filler: length: must be greater than 0"),
        ({"length": 600}, "longer than the model's context of 512"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_line(loaded, given, message):
    with pytest.raises(InputError, match=message) as caught:
        try_it.show_prompt(loaded, **({"problem": PROBLEM, "filler": "/"} | given))
    assert "\n" not in str(caught.value)


def test_the_model_answers_with_and_without_and_attends_as_before(loaded):
    before = try_it.compare_fillers(loaded, PROBLEM, ["/"])
    table = try_it.write(loaded, PROBLEM, "he", 8, max_new_tokens=4)
    assert list(table.prompt) == ["no filler", "8 tokens of 'he'"]
    assert table.answer.map(len).min() > 0
    again = try_it.write(loaded, PROBLEM, "he", 8, max_new_tokens=4)
    pd.testing.assert_frame_equal(again, table)
    pd.testing.assert_frame_equal(
        try_it.compare_fillers(loaded, PROBLEM, ["/"]), before
    )


def test_a_model_without_a_chat_template_answers_too(loaded):
    plain = copy.deepcopy(loaded.tokenizer)
    plain.chat_template = None
    table = try_it.write(
        replace(loaded, tokenizer=plain), PROBLEM, "he", 8, max_new_tokens=4
    )
    assert table.answer.map(len).min() > 0
