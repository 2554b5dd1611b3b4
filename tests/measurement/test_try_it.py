"""A prompt of one's own: λ as the measurements give it, a picture where nobody sits,
one line for a mistake.
"""

import base64
import io

import ipywidgets
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib.attention.received import observe_uniform
from lib.errors import InputError
from lib.figures import tables
from lib.measurement import fields, try_it
from lib.measurement.attention import measure_attention, prompts_of
from lib.measurement.fields import TABS
from lib.measurement.try_it import TryIt
from lib.models.loading import load
from lib.prompts.conditions import Filler
from lib.prompts.problems import Problem

VIEW = "application/vnd.jupyter.widget-view+json"
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


@pytest.fixture
def shown(monkeypatch):
    """What is displayed, where a person sits."""
    displayed = []
    for module in (try_it, fields, tables):
        monkeypatch.setattr(
            module, "display", lambda content, **how: displayed.append(content)
        )
    monkeypatch.setattr(try_it, "somebody_is_there", lambda: True)
    return displayed


def widget_of(bundle):
    """Return the widget that a displayed bundle is a view of."""
    return ipywidgets.widgets.widget._instances[bundle[VIEW]["model_id"]]


def test_with_a_person_what_is_typed_is_drawn_and_what_is_wrong_is_said(
    tried, shown, capsys
):
    tried.show(PROBLEM, "/", 9)
    _, first, bundle = shown
    problem, filler, chips, row, _ = widget_of(bundle).children
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
    spaces = chips.children[-1]
    spaces.click()
    assert filler.value == " "
    last = shown[-1].data
    filler.value = ""
    assert "error: the filler is empty" in capsys.readouterr().out
    assert shown[-1].data == last
    filler.value = "/"
    last = shown[-1].data
    problem.value = " "
    assert capsys.readouterr().out.endswith("error: the problem is blank\n")
    assert shown[-1].data == last


def test_a_notebook_keeps_the_picture_beside_the_fields(tried, shown, monkeypatch):
    tried.show(PROBLEM, "/", 9)
    monkeypatch.setattr(try_it, "somebody_is_there", lambda: False)
    tried.show(PROBLEM, "/", 9)
    *_, with_fields, prompt, alone = shown
    assert prompt is tried.prompt
    assert set(with_fields) == {*alone, VIEW}
    for kind in ("image/png", "text/plain"):
        assert with_fields[kind] == alone[kind]
    png = base64.b64decode(alone["image/png"])
    assert Image.open(io.BytesIO(png)).size[0] > 1000


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
        ({"filler": ""}, "the filler is empty"),
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
    before = fresh.compare(["/"])
    table = fresh.write(max_new_tokens=4)
    assert list(table.prompt) == ["no filler", "8 tokens of 'he'"]
    assert table.answer.map(len).min() > 0
    pd.testing.assert_frame_equal(fresh.write(max_new_tokens=4), table)
    # What is drawn after an answer is what was drawn before it.
    fresh.see.cache_clear()
    pd.testing.assert_frame_equal(fresh.compare(["/"]), before)


def test_a_tab_beside_the_picture_shows_what_the_model_writes_and_loads_it_once(
    tiny_llama, shown, monkeypatch
):
    loads = []
    monkeypatch.setattr(try_it, "load", lambda spec: loads.append(spec) or load(spec))
    fresh = TryIt(str(tiny_llama))
    fresh.show(PROBLEM, "he", 8)
    *_, tabs = widget_of(shown[-1]).children
    assert tabs.titles == TABS
    button, _ = tabs.children[1].children
    button.click()
    said = "".join(paragraphs.data for paragraphs in shown[3:])
    for name, text in fresh.write().itertuples(index=False):
        assert f"**{name}**\n\n{tables.quoted(text)}" in said
    assert not button.disabled
    assert len(loads) == 1
