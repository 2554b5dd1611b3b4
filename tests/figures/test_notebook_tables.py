"""Tables for readers: rounded, in words, and folded if they are long."""

from types import SimpleNamespace
from typing import get_args

import pandas as pd
import pytest
from artists import table

from lib.prompts.conditions import Format
from reproduction.figures import notebook_tables
from reproduction.figures.notebook_tables import (
    in_words,
    intervals_of,
    preformatted,
    quoted,
    rounded,
    settings_text,
    show,
    side_by_side,
)

# A table, the columns to show, the number of digits, and the table that is shown.
GAPS = "model,effect,n,kind\na,0.1234,1,x\na,,,"
SHOWN = [
    (GAPS, "model,effect,n", 2, "model,effect,n\na,0.12,1\n,,\n"),
    (GAPS, "kind,effect", 3, "kind,effect\nx,0.123\n,\n"),
    (GAPS, "kind,effect", 0, "kind,effect\nx,0\n,\n"),
    # A p-value always has three digits.
    ("x,p\na,1e-9\nb,0.004\nc,", "x,p", 2, "x,p\na,< 0.001\nb,0.004\nc,\n"),
    # An estimate and its interval are one column, and differences have a sign.
    (
        "x,effect,effect_low,effect_high\na,2.0,1.0,3.0",
        "x,effect,effect_low,effect_high",
        2,
        'x,effect\na,"+2.0 [+1.0, +3.0]"\n',
    ),
    (
        "x,mean,low,high\na,2.0,1.0,3.0",
        "x,mean,low,high",
        2,
        'x,mean\na,"2.0 [1.0, 3.0]"\n',
    ),
    # All rows have the decimals of most, but none loses more than one digit.
    (
        "x,mean,low,high\na,13.61,12.72,14.5\nb,16.9,15.3,18.5\nc,0.54321,0.542,0.545\n"
        "d,8,5,11",
        "x,mean,low,high",
        2,
        'x,mean\na,"13.6 [12.7, 14.5]"\nb,"16.9 [15.3, 18.5]"\n'
        'c,"0.543 [0.542, 0.545]"\nd,"8.0 [5.0, 11.0]"\n',
    ),
]


@pytest.mark.parametrize("csv, columns, digits, shown", SHOWN)
def test_show_rounds_numbers_and_leaves_gaps_and_repeated_values_empty(
    csv, columns, digits, shown
):
    assert show(table(csv), columns.split(","), digits).to_csv() == shown


def test_an_empty_table_is_said_to_be_left_out_if_the_text_describes_another_run(
    monkeypatch,
):
    shown = []
    monkeypatch.setattr(notebook_tables, "display", shown.append)
    assert show(table("x,p\na,1").iloc[:0]) is None
    assert not shown
    monkeypatch.setattr(notebook_tables, "caveat", "*Results of another run.*")
    assert show(table("x,p\na,1").iloc[:0]) is None
    (said,) = shown
    assert said.data == "*Results of another run.* *No table: it would have no rows.*"


def test_interval_bounds_belong_to_the_estimate_before_them():
    names = ["n", "mean", "low", "high", "lowest", "highest"]
    names += ["effect", "effect_low", "effect_high", "low"]
    assert intervals_of(names) == [
        ("mean", "low", "high"),
        ("effect", "effect_low", "effect_high"),
    ]
    assert intervals_of(["a", "effect_low", "accuracy_high"]) == []
    names = ["points", "low_float32", "high_float32"]
    assert intervals_of(names) == [tuple(names)]


def test_models_are_put_side_by_side_in_order_of_appearance():
    long = table(
        "model,condition,measure,ratio,low,high\n"
        "b,mless,L2,1,0.8,1.2\nb,mless,L1,2,1.5,2.5\na,mless,L2,3,2.5,3.5"
    )
    wide = side_by_side(long, "ratio", ["condition", "measure"])
    assert wide.columns.tolist() == ["condition", "measure", "b", "a"]
    assert wide.measure.tolist() == ["L2", "L1"]
    assert wide.b.tolist() == ["1.00 [0.80, 1.20]", "2.00 [1.50, 2.50]"]
    # The second model lacks L1.
    assert wide.a[0] == "3.00 [2.50, 3.50]"
    assert pd.isna(wide.a[1])


def test_a_table_without_rows_is_not_shown(capsys):
    assert show(table(GAPS)[:0]) is None
    assert not capsys.readouterr().out


@pytest.mark.parametrize("name, lines", [("families", 0), ("families-1", 1)])
def test_a_line_above_each_table_names_a_run_that_the_text_does_not_describe(
    monkeypatch, name, lines
):
    said = []
    monkeypatch.setattr(notebook_tables, "caveat", "of an earlier run")
    monkeypatch.setattr(notebook_tables, "say", said.append)
    notebook_tables.text_describes("families", SimpleNamespace(name=name))
    show(table(GAPS))
    assert len(said) == lines
    assert all("`families-1`" in line and "`families`" in line for line in said)


def test_a_long_table_is_folded_on_the_page_and_printed_in_full():
    long = pd.DataFrame({"model": ["a"] * 100, "n": range(100)})
    folded = show(long)
    page = folded._repr_html_()
    assert page.startswith("<details><summary>A table of 100 rows</summary>")
    assert page.count("<td>") == 100
    assert len(repr(folded).splitlines()) == 102
    assert show(long[:21])._repr_html_().startswith("<details>")
    assert show(long[:20]).to_csv().startswith("model,n")


def test_conditions_are_named_as_in_the_legends():
    names = {
        "none": "none",
        "mless": "slashes",
        "mful": "he",
        "random": "sentence",
        "mless:25": "slashes:25",
        "mless@random": "slashes@random",
        "arm": "ARM",
        "mless+arm:c=0.1": "slashes+ARM:c=0.1",
    }
    shown = in_words(pd.DataFrame({"condition": list(names)}))
    assert list(shown.condition) == list(names.values())
    assert in_words(pd.DataFrame()).empty
    pair = pd.DataFrame({"treatment": ["mless"], "reference": ["none"]})
    assert in_words(pair, list(pair)).to_numpy().tolist() == [["slashes", "none"]]


def test_columns_get_the_words_of_readers():
    table = pd.DataFrame({"model": ["a"], "cut_mless": [0.5], "only_none": [3]})
    assert list(rounded(table)) == ["cut with", "only without"]
    assert list(rounded(table, ["model", "only_none"])) == ["only without"]


def test_a_quoted_text_keeps_its_lines():
    text = "```python\nword\n\n- a point"
    assert quoted(text) == preformatted(text)
    assert quoted("$a < b$") == preformatted("$a &lt; b$")


def test_a_preformatted_text_breaks_between_words():
    opening = preformatted("").removesuffix("</pre>")
    assert "word-break: normal; overflow-wrap: anywhere" in opening


def test_a_caption_names_models_with_their_revision_and_the_problems():
    section = SimpleNamespace(
        models=["demo", "Qwen2.5-Math-7B"], problems="math500", format="plain"
    )
    models = "SmolLM2-135M-Instruct @ 1c6034f5fee4; Qwen2.5-Math-7B @ b101308fe896"
    said = f"Models: {models}. Problems: MATH-500, in a plain prompt."
    assert settings_text(section) == said


def test_a_caption_says_which_models_get_no_chat_prompt(tiny_llama):
    section = {"problems": "math500", "format": "chat"}
    for model, said in {
        "demo": "chat prompt.",
        "gemma-3-270m": "chat prompt, but a plain one for gemma-3-270m.",
        str(tiny_llama): "a plain one for any other model without a chat template.",
    }.items():
        assert settings_text(SimpleNamespace(models=[model], **section)).endswith(said)


def test_every_format_of_prompts_has_words():
    assert notebook_tables.FORMS.keys() == set(get_args(Format))
