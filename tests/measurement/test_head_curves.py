"""The curves of single heads, on measurements written by hand."""

import numpy as np
import pytest
from evidence import dataset

from reproduction.measurement.head_curves import received_by_token
from reproduction.profiles import Panel, load_profile

CONDITIONS = ["none", "mless"]
LABELS = {"condition": CONDITIONS, "layer": [1, 2], "token": range(6)}
MODELS = {"demo": "SmolLM2-135M-Instruct", "gemma-3-270m": "gemma-3-270m"}


def measured(heads=(2,), received=0.5, part="problem"):
    """Return measurements by model, of models with so many heads each."""
    by_model = {}
    for name, count in zip(MODELS.values(), heads, strict=False):
        labels = LABELS | {"head": range(1, count + 1)}
        model = dataset(labels, {"received": received, "part": part})
        model.attrs |= {"model": name, "revision": "0123456789ab", "example": "x/1"}
        by_model[name] = model
    return by_model


def drawing(models=1, **heads):
    """Return a profile of the first MODELS that draws these heads of layer 1."""
    panels = {}
    for figure, head in heads.items():
        panels[figure] = [Panel(model="demo", layer=1, head=head)]
    demo = load_profile("demo")
    changes = {"models": list(MODELS)[:models], "panels": panels, "layers": 2}
    attention = demo.attention.model_copy(update=changes)
    return demo.model_copy(update={"attention": attention})


@pytest.mark.parametrize(
    # The number of heads of each model, a figure, and its panels as layer:head.
    ("heads", "figure", "drawn"),
    [
        # The profile loads only two of the layers of fig09.
        ([2], "fig09", "1:1 2:1"),
        ([2], "fig10", "1:1"),
        ([2], "fig11", "1:1 1:2"),
        ([2], "fig18", "1:1 1:2"),
        ([5], "fig13", "1:1 1:2 1:3"),
        ([5], "fig18", "1:3 1:4 1:5"),
        # With several models each has one panel.
        ([2, 1], "fig10", "1:1"),
        ([2, 1], "fig11", "1:1 1:1"),
        ([2, 1], "fig18", "1:2 1:1"),
    ],
)
def test_default_heads_are_drawn_if_a_profile_names_none(heads, figure, drawn):
    table = received_by_token(measured(heads), drawing(len(heads)), figure, ["mless"])
    panels = table[["model", "layer", "head"]].drop_duplicates().itertuples()
    assert " ".join(f"{panel.layer}:{panel.head}" for panel in panels) == drawn


def test_a_curve_ends_with_its_prompt():
    parts = np.full((2, 6), "problem", object)
    parts[0, 4:] = ""  # the prompt under none is shorter
    received = [0.5] * 5 + [np.nan]  # nothing follows the last token
    table = received_by_token(
        measured(received=received, part=parts), drawing(fig10=1), "fig10", CONDITIONS
    )
    assert table.condition.tolist() == ["none"] * 4 + ["mless"] * 6
    assert table.position.tolist() == [*range(4), *range(6)]
