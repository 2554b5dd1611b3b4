"""Drawn heads on hand-written arrays: what their tokens receive, and what is compared."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from lib.errors import InputError
from lib.measurement import tables
from lib.profiles import Panel, load_profile

NAN = float("nan")
PLAIN = ["instruction"] * 2 + ["problem"] * 2 + [""] * 2
FILLED = ["instruction"] * 2 + ["inserted"] * 2 + ["problem"] * 2


@pytest.fixture
def curves(monkeypatch):
    """The curves of one head of a model of two heads in one layer, of which the second gives tokens something."""
    received = np.full((2, 1, 2, 6), NAN)  # (condition, layer, head, token)
    received[:, 0, 1] = [[9, 0.4, 0.2, NAN, NAN, NAN], [9, 0.1, 0.05, 0.07, 0.3, NAN]]
    arrays = {"received": (("condition", "layer", "head", "token"), received)}
    arrays["part"] = ("condition", "token"), [PLAIN, FILLED]
    coords = {"condition": ["none", "mless"], "layer": [1], "head": [1, 2]}
    measured = xr.Dataset(
        arrays, coords, {"model": "SmolLM2-135M-Instruct", "revision": "0123456789ab", "example": "x/1"}
    )
    monkeypatch.setattr(tables, "measure", lambda *given, **options: {measured.model: measured})
    profile = load_profile("demo")

    def of(*named, figure="fig10", what=tables.curves):
        row = [Panel(model="demo", layer=1, head=head) for head in named]
        attention = profile.attention.model_copy(update={"panels": {figure: row}, "layers": 1})
        return what(profile.model_copy(update={"attention": attention}), figure, ["none", "mless"])

    return of


def test_curves_have_a_row_per_token_with_its_part_and_place(curves):
    table = curves(2)
    assert table.part.tolist() == PLAIN[:4] + FILLED and table.position.tolist() == [*range(4), *range(6)]
    np.testing.assert_array_equal(table.received[4:], [9, 0.1, 0.05, 0.07, 0.3, NAN])
    assert set(table.model) == {"SmolLM2-135M-Instruct"} and set(table["head"]) == {2}


def test_the_summary_compares_original_tokens_without_the_first_and_the_last(curves):
    one, other = tables.summary_of_heads(curves(2), curves(2)).to_dict("records")
    assert one == other and (one["layer"], one["head"], one["tokens"], one["slashes"]) == (1, 2, 2, 2)
    assert one["λ"] == pytest.approx(0.4 / 0.6) and one["receive less"] == 0.5
    assert one["slash / original"] == pytest.approx(0.06 / 0.2)


@pytest.mark.parametrize(("figure", "expected"), [("fig13", [1, 2]), ("fig10", [1]), ("fig18", [2])])
def test_where_none_is_named_the_first_heads_are_drawn_as_far_as_there_are_any(curves, figure, expected):
    drawn = curves(figure=figure, what=lambda profile, figure, _: tables._drawn(profile, figure))
    assert [(panel.layer, panel.head) for panel in drawn] == [(1, head) for head in expected]


@pytest.mark.parametrize(
    ("head", "said"),
    [(3, "fig10: demo has layers 1 to 1 and heads 1 to 2, not layer 1, head 3"), (1, "of demo gives is not stored")],
)
def test_a_head_that_is_not_there_is_named(curves, head, said):
    with pytest.raises(InputError, match=said):
        curves(head)


def test_a_drawn_head_has_lambda_of_either_part_over_all_problems(monkeypatch):
    dims = ("network", "condition", "problem", "layer", "head", "span", "query")
    values = np.arange(1.0, 1 + 2 * 3 * 2).reshape(1, 1, 2, 1, 1, 3, 2) * np.ones((1, 1, 2, 1, 9, 3, 2))
    spans = {"span": ["original", "problem", "instruction"], "query": ["all", "original"]}
    coords = {"network": ["trained"], "condition": ["mless"], "layer": [1], "head": range(1, 10), "problem": ["a", "b"]}
    measured = {"m": xr.Dataset({"lambda_by_span": (dims, values)}, coords | spans)}
    monkeypatch.setattr(tables, "measure", lambda *given, **options: measured)
    table = tables.spans_of_heads(load_profile("demo"), "fig10", "fig11")
    assert table["figure"].tolist() == ["fig10"] * 2 + ["fig11"] * 6 and table["head"].tolist()[:4] == [6, 6, 1, 1]
    assert table.query("figure == 'fig10'").set_index("span")["lambda"].to_dict() == {"problem": 6, "instruction": 8}
