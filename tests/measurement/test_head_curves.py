"""What is drawn of single heads, on measurements written by hand."""

import numpy as np
import pandas as pd
import pytest
from evidence import dataset

from lib.errors import InputError
from lib.measurement import head_curves
from lib.measurement.attention import QUERIES, SPANS
from lib.measurement.head_curves import curves, spans_of_heads, summary_of_heads
from lib.profiles import Panel, load_profile

NAN = float("nan")
LABELS = {
    "network": ["trained"],
    "condition": ["none", "mless"],
    "problem": ["a", "b"],
    "layer": [1],
    "head": [1, 2],
    "span": SPANS,
    "query": QUERIES,
    "token": range(6),
}


def test_a_drawn_heads_summary_leaves_out_its_first_and_last_token():
    def rows(condition, *tokens):
        return [
            {"model": "m", "layer": 1, "head": 4, "condition": condition}
            | {"part": part, "received": received}
            for part, received in tokens
        ]

    none = [("problem", value) for value in (9, 0.4, 0.2, 0.4, 7)]
    slashes = [("inserted", 0.1), ("inserted", 0.3)]
    after = [("problem", value) for value in (9, 0.2, 0.3, 0.2, 7)]
    curves = rows("none", *none) + rows("mless", *after[:2], *slashes, *after[2:])
    table = summary_of_heads(pd.DataFrame(curves))
    assert table[["model", "layer", "head"]].values.tolist() == [["m", 1, 4]]
    assert table.tokens.tolist() == [3] and table.slashes.tolist() == [2]
    assert table["λ"].tolist() == pytest.approx([0.7])
    assert table["receive less"].tolist() == pytest.approx([2 / 3])
    assert table["slash / original"].tolist() == pytest.approx([0.2 / (0.7 / 3)])


@pytest.fixture
def profile(monkeypatch):
    """A profile that draws a model of two heads in one layer, of which nothing that
    they give is stored.
    """
    arrays = {
        "received": NAN,
        "part": "problem",
        "lambda_by_span": np.arange(12.0).reshape(2, 3, 2),
    }
    measured = dataset(LABELS, arrays)
    measured.attrs |= {
        "model": "SmolLM2-135M-Instruct",
        "revision": "0123456789ab",
        "example": "x/1",
    }
    monkeypatch.setattr(
        head_curves, "measure", lambda *given, **options: {measured.model: measured}
    )

    def drawing(**heads):
        demo = load_profile("demo")
        panels = {
            figure: [Panel(model="demo", layer=1, head=head)]
            for figure, head in heads.items()
        }
        return demo.model_copy(
            update={
                "attention": demo.attention.model_copy(
                    update={"panels": panels, "layers": 1}
                )
            }
        )

    return drawing


def test_a_head_that_is_not_there_is_named(profile):
    there = "demo has layers 1 to 1 and heads 1 to 2, not layer 1, head 3"
    for head, said in ((3, f"fig10: {there}"), (1, "of demo gives is not stored")):
        with pytest.raises(InputError, match=said):
            curves(profile(fig10=head), "fig10", ["none", "mless"])


def test_a_drawn_head_has_lambda_of_either_part_over_all_problems(profile):
    figures = {
        "fig10": [2],
        "fig13": [1, 2],
        "fig18": [2],
    }  # where none is named the first, as far as there are any
    table = spans_of_heads(profile(fig10=2), *figures)
    drawn = [
        (figure, 1, head, span)
        for figure, heads in figures.items()
        for head in heads
        for span in SPANS[1:]
    ]
    assert (
        list(zip(table.figure, table.layer, table["head"], table.span, strict=True))
        == drawn
    )
    assert table["lambda"].tolist() == [8, 10, 2, 4, 8, 10, 8, 10] and set(table.n) == {
        2
    }
