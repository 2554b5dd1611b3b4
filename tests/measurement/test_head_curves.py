"""What is drawn of single heads, on measurements written by hand."""

import numpy as np
import pytest
from evidence import dataset

from lib.errors import InputError
from lib.measurement.head_curves import curves
from lib.profiles import Panel, load_profile

NAN = float("nan")
LABELS = {
    "network": ["trained"],
    "condition": ["none", "mless"],
    "problem": ["a", "b"],
    "layer": [1],
    "head": [1, 2],
    "token": range(6),
}


MODEL = "SmolLM2-135M-Instruct"


def measured_of(arrays, **labels):
    """Return what is measured of a model of two heads in one layer, by its name."""
    measured = dataset(LABELS | labels, arrays)
    measured.attrs |= {"model": MODEL, "revision": "0123456789ab", "example": "x/1"}
    return {MODEL: measured}


def drawing(**heads):
    """Return a profile that draws these heads of layer 1, one a figure."""
    panels = {}
    for figure, head in heads.items():
        panels[figure] = [Panel(model="demo", layer=1, head=head)]
    demo = load_profile("demo")
    changes = {"panels": panels, "layers": 2}
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


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        (2, {"fig10": [1], "fig11": [1, 2], "fig13": [1, 2], "fig18": [1, 2]}),
        (5, {"fig10": [1], "fig11": [1, 2, 3], "fig18": [3, 4, 5]}),
    ],
)
def test_where_a_profile_of_one_model_names_no_heads_some_of_it_are_drawn(
    heads, expected
):
    numbers = {"received": 0.5, "part": "problem"}
    measured = measured_of(numbers, head=range(1, heads + 1), layer=[1, 2])
    for figure, drawn in expected.items():
        table = curves(measured, drawing(), figure, ["mless"])
        assert table["head"].unique().tolist() == drawn
        assert table.layer.unique() == [1]
    # Of the layers that fig09 draws the profile loads two.
    table = curves(measured, drawing(), "fig09", ["mless"])
    assert table.layer.unique().tolist() == [1, 2]
    assert table["head"].unique() == [1]


def test_of_several_models_each_has_one_head_in_figures_that_compare_models():
    profile = drawing()
    names = {"models": ["demo", "gemma-3-270m"]}
    attention = profile.attention.model_copy(update=names)
    profile = profile.model_copy(update={"attention": attention})
    measured = measured_of({"received": 0.5, "part": "problem"})
    other = measured[MODEL].assign_attrs(model="gemma-3-270m")
    measured["gemma-3-270m"] = other.isel(head=[0])
    for figure, last in {"fig11": 1, "fig13": 1, "fig18": 2}.items():
        table = curves(measured, profile, figure, ["mless"])
        drawn = table[["model", "head"]].drop_duplicates().to_numpy().tolist()
        assert drawn == [[MODEL, last], ["gemma-3-270m", 1]]
    assert curves(measured, profile, "fig10", ["mless"]).model.unique() == [MODEL]


def test_a_curve_ends_with_its_prompt():
    parts = np.full((2, 6), "problem", object)
    parts[0, 4:] = ""  # the prompt under none is shorter
    measured = measured_of({"received": 0.5, "part": parts})
    table = curves(measured, drawing(fig10=1), "fig10", ["none", "mless"])
    assert table.condition.value_counts().to_dict() == {"none": 4, "mless": 6}
    assert table.position.tolist() == [*range(4), *range(6)]
