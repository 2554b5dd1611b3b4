"""Measures of activations on small tables, classes of tokens, and the driver on the
demo model.
"""

import weakref

import numpy as np
import pytest
import torch

from lib.arm.activations import (
    ACTIVATION_MEASURES,
    BIN_EDGES,
    activation_module,
    gini,
    histogram,
)
from lib.arm.settings import Arm
from lib.errors import InputError
from lib.measurement import activations
from lib.measurement.activations import (
    TOKEN_CLASSES,
    measure_activations,
    token_classes,
)
from lib.measurement.attention import prompts_of
from lib.models.loading import load
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems

PROBLEMS = load_problems("embedded", limit=4)


@pytest.fixture(scope="module")
def loaded():
    return load("demo", layers=2, device="cpu")


def change(loaded, problems, conditions, layers, **given):
    return measure_activations(
        loaded, prompts_of(loaded, problems, conditions), layers, **given
    )


@pytest.mark.parametrize(
    "values, expected",
    [([0, 0, 0], 0), ([2, 2, 2], 0), ([0, 4, 0, 0], 3 / 4), ([3, 1], 1 / 4)],
)
def test_gini_is_half_the_mean_difference_over_the_mean_and_nothing_is_spread_evenly(
    values, expected
):
    assert gini(torch.tensor(values, dtype=torch.float32)).item() == pytest.approx(
        expected
    )


def test_classes_go_by_the_first_character_of_a_token():
    text = r"If 12 \times x <= \frac{3}{4} and sand"
    words = [
        (0, 2),
        (2, 5),
        (5, 12),
        (12, 14),
        (14, 16),
        (16, 17),
        (17, 23),
        (24, 25),
        (29, 33),
        (33, 38),
        (38, 38),
    ]
    named = token_classes(text, words)
    expected = [
        "conjunctions",
        "digits",
        "operators",
        "others",
        "operators",
        "operators",
        "operators",
        "digits",
    ]
    assert named == [*expected, "conjunctions", "others", "others"]


def seen(loaded, prompt, layer):
    """What the activation function of a layer gets and gives for the problem's tokens,
    and each token's class.
    """
    found, module, span = (
        [],
        activation_module(loaded.model, layer),
        prompt.spans["problem"],
    )
    hook = module.register_forward_hook(
        lambda m, given, output: found.extend((*given, output))
    )
    with hook, torch.inference_mode():
        loaded.model(input_ids=prompt.input_ids[None])
    gate, values = (some[0, span].double().numpy() for some in found)
    return gate, values, np.array(token_classes(prompt.text, prompt.offsets)[span])


def cosine(a, b):
    return (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())


def expected_of(loaded, problem, layer, conditions, c):
    """The variables of one problem and layer by condition, from their definitions."""
    parts = {
        name: seen(loaded, build_prompt(loaded.tokenizer, problem.problem, name), layer)
        for name in conditions
    }
    plain = parts["none"][1]
    bound = c * 1.4826 * np.median(np.abs(plain - np.median(plain)))
    edges = BIN_EDGES.double().numpy()
    found = {}
    for name, (gate, values, classes) in parts.items():
        ordered = np.sort(np.abs(values).ravel())
        area = ordered.cumsum() / ordered.sum()  # the Lorenz curve
        near = np.abs(values) <= bound
        found[name] = {
            "near zero": near.mean(),
            "L1": np.abs(values).sum(1).mean(),
            "L2": np.linalg.norm(values, axis=1).mean(),
            "Gini": 1 - (2 * area.sum() - 1) / len(area),
            "variance": values.var(),
            "gate variance": gate.var(),
            "classes": [
                near[classes == label].mean() if label in classes else np.nan
                for label in TOKEN_CLASSES
            ],
            "counts": np.histogram(values.clip(edges[0], edges[-1]), edges)[0],
            "elements": values - plain,
        }
        found[name]["shape"] = (found[name]["counts"] - found["none"]["counts"]).astype(
            float
        )
    return found


@pytest.mark.parametrize("layer", [1, 2])
def test_every_number_agrees_with_what_a_forward_shows(loaded, layer):
    problems, arm = [PROBLEMS[0], PROBLEMS[2]], Arm(c=0.5)
    found = change(loaded, problems, ["mless", "random"], [1, 2], arm=arm).sel(
        layer=layer
    )
    counts = dict.fromkeys(found.condition.values, 0)
    for problem in problems:
        expected = expected_of(loaded, problem, layer, list(counts), arm.c)
        for condition, there in expected.items():
            got = found.sel(problem=problem.id, condition=condition)
            counts[condition] = counts[condition] + there["counts"]
            for name in ACTIVATION_MEASURES:
                assert float(got.measures.sel(measure=name)) == pytest.approx(
                    there[name], rel=1e-3
                ), name
            np.testing.assert_allclose(got.classes, there["classes"], atol=1e-3)
            for name in ("shape", "elements") if condition != "none" else ():
                assert float(got[name]) == pytest.approx(
                    cosine(there[name], expected["mless"][name]), abs=2e-3
                )
    for condition, expected in counts.items():
        got = found.counts.sel(condition=condition)
        assert (
            got.sum() == expected.sum()
            and abs(got - expected).sum() < 1e-3 * expected.sum()
        )


def test_slashes_among_the_words_of_the_problem_are_none_of_its_tokens(loaded):
    some = [
        one
        for one in load_problems("embedded")
        if one.id in ("embedded/loss/049", "embedded/share/112")
    ]
    prompts = prompts_of(loaded, some, ["mless@random"])
    assert all(
        one.spans["problem"].start < one.spans["inserted"].start
        for one in prompts["mless@random"].values()
    )
    found = measure_activations(loaded, prompts, [1])
    tokens = sum(one.parts.count("problem") for one in prompts["none"].values())
    assert (
        found.counts.sum("bin") == tokens * loaded.model.config.intermediate_size
    ).all()
    assert (abs(found["shape"][1]) > 0.99).all()


def test_what_is_held_does_not_grow_with_the_problems(loaded, monkeypatch):
    made, alive = [], []

    def tracked(activation):
        made.append(weakref.ref(activation))
        alive.append(sum(ref() is not None for ref in made))
        return histogram(activation)

    monkeypatch.setattr(activations, "histogram", tracked)
    change(loaded, PROBLEMS, ["mless"], [1])
    assert len(made) == 2 * len(PROBLEMS) and max(alive) <= 2


def test_nan_activations_and_missing_layers_are_named(loaded):
    spoilt = load("demo", layers=2, device="cpu")
    spoilt.model.layers[1].mlp.gate_proj.weight.data[0, 0] = float("nan")
    with pytest.raises(
        InputError,
        match=(
            rf"under none on problem {PROBLEMS[0].id} gives NaN activations in layer 2"
        ),
    ):
        change(spoilt, PROBLEMS, ["mless"], [1, 2])
    with pytest.raises(InputError, match="layers 1 to 2"):
        change(loaded, PROBLEMS, ["mless"], [3])
