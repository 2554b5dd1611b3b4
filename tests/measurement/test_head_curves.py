"""What is drawn of single heads, on measurements written by hand."""

import numpy as np
import pandas as pd
import pytest
from evidence import dataset

from lib.errors import InputError
from lib.measurement import head_curves
from lib.measurement.attention import QUERIES, SPANS
from lib.measurement.head_curves import curves, summary_of_heads
from lib.measurement.measured_tables import spans_of_heads
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


def curve(condition, received, parts):
    """Return the rows of a drawn head under a condition."""
    rows = pd.DataFrame({"received": received, "part": parts})
    return rows.assign(model="m", layer=1, head=4, condition=condition)


def test_a_drawn_heads_summary_leaves_out_its_first_and_last_token():
    none = curve("none", [9, 0.4, 0.2, 0.4, 7], "problem")
    inserted = ["problem", "problem", "inserted", "inserted", *["problem"] * 3]
    slashes = curve("mless", [9, 0.2, 0.1, 0.3, 0.3, 0.2, 7], inserted)
    table = summary_of_heads(pd.concat([none, slashes]))
    (row,) = table.to_dict("records")
    expected = {"model": "m", "layer": 1, "head": 4, "tokens": 3, "slashes": 2}
    expected |= {"λ": 0.7, "receive less": 2 / 3, "slash / original": 0.2 / (0.7 / 3)}
    assert row == pytest.approx(expected)


MODEL = "SmolLM2-135M-Instruct"


def measured_of(arrays):
    """Return what is measured of a model of two heads in one layer, by its name."""
    measured = dataset(LABELS, arrays)
    measured.attrs |= {"model": MODEL, "revision": "0123456789ab", "example": "x/1"}
    return {MODEL: measured}


def drawing(**heads):
    """Return a profile that draws these heads of layer 1, one a figure."""
    panels = {}
    for figure, head in heads.items():
        panels[figure] = [Panel(model="demo", layer=1, head=head)]
    demo = load_profile("demo")
    changes = {"panels": panels, "layers": 1}
    attention = demo.attention.model_copy(update=changes)
    return demo.model_copy(update={"attention": attention})


THERE = "demo has layers 1 to 1 and heads 1 to 2, not layer 1, head 3"


@pytest.mark.parametrize(
    ("head", "said"),
    [(3, f"fig10: {THERE}"), (1, f"layer 1, head 1 of {MODEL} gives is not stored")],
)
def test_a_head_that_is_not_there_is_named(head, said):
    nothing = measured_of({"received": NAN, "part": "problem"})
    with pytest.raises(InputError, match=said):
        curves(nothing, drawing(fig10=head), "fig10", ["none", "mless"])


def test_a_drawn_head_has_lambda_of_either_part_over_all_problems():
    measured = measured_of({"lambda_by_span": np.arange(12.0).reshape(2, 3, 2)})
    # One is named for fig10; of the others the first that there are.
    table = spans_of_heads(measured, drawing(fig10=2), "fig10", "fig13", "fig18")
    heads = [("fig10", 2), ("fig13", 1), ("fig13", 2), ("fig18", 2)]
    expected = []
    for figure, head in heads:
        expected += [[figure, 1, head, span] for span in ("problem", "instruction")]
    assert table[["figure", "layer", "head", "span"]].values.tolist() == expected
    assert table["lambda"].tolist() == [8, 10, 2, 4, 8, 10, 8, 10]
    assert (table.n == 2).all()
    # Of the layers that fig09 draws only the first is loaded.
    table = spans_of_heads(measured, drawing(), "fig09")
    assert table[["layer", "head"]].values.tolist() == [[1, 1]] * 2


def test_where_a_profile_names_no_heads_every_model_is_drawn():
    profile = drawing()
    models = ["demo", "gemma-3-270m"]
    attention = profile.attention.model_copy(update={"models": models})
    profile = profile.model_copy(update={"attention": attention})
    measured = measured_of({"received": 0.5, "part": "problem"})
    measured["gemma-3-270m"] = measured[MODEL].assign_attrs(model="gemma-3-270m")
    first, other = (MODEL, 1), ("gemma-3-270m", 1)
    both = [first, other]
    for figure, expected in [("fig13", both), ("fig09", [first]), ("fig10", [first])]:
        drawn = head_curves.drawn_heads(measured, profile, figure)
        assert [(head.model, head["head"].item()) for head in drawn] == expected


def test_a_curve_ends_with_its_prompt():
    parts = np.full((2, 6), "problem", object)
    parts[0, 4:] = ""  # the prompt under none is shorter
    measured = measured_of({"received": 0.5, "part": parts})
    table = curves(measured, drawing(fig10=1), "fig10", ["none", "mless"])
    assert table.condition.value_counts().to_dict() == {"none": 4, "mless": 6}
    assert table.position.tolist() == [*range(4), *range(6)]


def test_a_ratio_is_what_an_original_token_receives_with_over_without():
    tokens = pd.DataFrame(
        {
            "model": "m",
            "layer": 1,
            "head": [1] * 5 + [2] * 5,
            "condition": ["none", "none", "mless", "mless", "mless"] * 2,
            "part": ["a", "b", "a", "inserted", "b"] * 2,
            "received": [1.0, 2, 3, 9, 4, 10, 20, 10, 9, 10],
        }
    )
    ratios = head_curves.with_ratios(tokens).ratio.tolist()
    nan = float("nan")
    expected = [nan, nan, 3, nan, 2, nan, nan, 1, nan, 0.5]
    assert ratios == pytest.approx(expected, nan_ok=True)
