"""Tables are printed in few digits."""

from types import SimpleNamespace

import pandas as pd
import pytest

from lib.figures.tables import quoted, settings_text, show, triples

TABLE = pd.DataFrame(
    {
        "model": ["a", "a"],
        "effect": [0.1234, None],
        "n": [1, None],
        "kind": ["x", None],
    }
)
PRINTED = [
    (["model", "effect", "n"], 2, "model,effect,n\na,0.12,1\n,,\n"),
    (["kind", "effect"], 3, "kind,effect\nx,0.123\n,\n"),
    (["kind", "effect"], 0, "kind,effect\nx,0\n,\n"),
]


@pytest.mark.parametrize("columns, digits, csv", PRINTED)
def test_show_rounds_and_leaves_gaps_and_what_repeats_empty(columns, digits, csv):
    assert show(TABLE, columns, digits).to_csv() == csv


def test_a_p_value_has_three_digits_whatever_the_table_has():
    table = pd.DataFrame(
        {"x": ["a", "b", "c"], "effect": [12.5, 10.42, None], "p": [1e-9, 0.004, None]}
    )
    assert show(table).to_csv() == "x,effect,p\na,12.50,< 0.001\nb,10.42,0.004\nc,,\n"


@pytest.mark.parametrize(
    "name, text", [("effect", "+2.0 [+1.0, +3.0]"), ("accuracy", "2.0 [1.0, 3.0]")]
)
def test_an_estimate_and_its_ends_are_one_column_and_differences_have_a_sign(
    name, text
):
    row = {"x": ["a"], name: [2.0], f"{name}_low": [1.0], f"{name}_high": [3.0]}
    shown = show(pd.DataFrame(row))
    assert list(shown) == [name]
    assert list(shown[name]) == [text]


def test_ends_belong_to_the_estimate_before_them():
    names = ["n", "mean", "low", "high", "lowest", "highest"]
    names += ["effect", "effect_low", "effect_high", "low"]
    assert triples(names) == [
        ("mean", "low", "high"),
        ("effect", "effect_low", "effect_high"),
    ]
    assert triples(["a", "effect_low", "accuracy_high"]) == []
    names = ["points", "low_float32", "high_float32"]
    assert triples(names) == [tuple(names)]


def test_of_a_table_without_rows_nothing_is_shown(capsys):
    assert show(TABLE[:0]) is None
    assert not capsys.readouterr().out


def test_a_long_table_is_folded_and_printed_whole():
    table = pd.DataFrame({"model": ["a"] * 100, "n": range(100)})
    folded = show(table)
    page = folded._repr_html_()
    assert page.startswith("<details><summary>A table of 100 rows</summary>")
    assert page.count("<td>") == 100
    assert len(repr(folded).splitlines()) == 102
    assert show(table[:21])._repr_html_().startswith("<details>")
    assert show(table[:20]).to_csv().startswith("model,n")


def test_a_quoted_text_keeps_its_lines():
    text = "```python\nword\n\n- a point"
    assert quoted(text) == "    ```python\n    word\n\n    - a point"


def test_a_caption_names_models_with_their_revision_and_the_problems():
    section = SimpleNamespace(
        models=["demo", "Qwen2.5-Math-7B"], problems="math500", format="plain"
    )
    models = "SmolLM2-135M-Instruct @ 1c6034f5fee4; Qwen2.5-Math-7B @ b101308fe896"
    said = f"Models: {models}. Problems: MATH-500, in a plain prompt."
    assert settings_text(section) == said
