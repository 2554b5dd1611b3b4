"""Measures of activations compared with their definitions, on forward passes of the
demo model, and classes of tokens.
"""

from itertools import accumulate, pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from eager import outputs_of

from lib.arm.mlp_activations import gini
from lib.arm.settings import Arm
from lib.errors import InputError
from lib.models.loading import load
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems
from reproduction.measurement.activation_changes import (
    TOKEN_CLASSES,
    measure_activations,
    token_classes,
)
from reproduction.measurement.attention_changes import prompts_of

PROBLEMS = load_problems("embedded", limit=4)
FIRST, _, THIRD, _ = PROBLEMS
CONDITIONS = ["none", "mless", "random"]
MEASURES = ["near zero", "L1", "L2", "Gini", "variance", "gate variance"]
ARM = Arm()  # the default settings
C = 0.5  # ARM's setting c, which says how small a near-zero activation is


@pytest.fixture(scope="module")
def loaded():
    return load("demo", layers=2, device="cpu")


def measured(loaded, problems, *conditions, arm=ARM, seed=0):
    """Return the measures of these problems under these conditions."""
    prompts = prompts_of(loaded, problems, conditions)
    return measure_activations(loaded, prompts, [1, 2], arm, seed)


# The tokens of a text in order, each with its class.
TOKENS = [
    ("If", "conjunctions"),
    (" 12", "digits"),
    (r" \times", "operators"),
    (" x", "others"),
    (" <", "operators"),
    ("=", "operators"),
    (r" \frac", "operators"),
    ("{", "others"),
    ("3", "digits"),
    ("}{4}", "others"),
    (" and", "conjunctions"),
    # A conjunction must be a complete word.
    (" s", "others"),
    ("and", "others"),
    (" ands", "others"),
    # Only the first character of a token counts.
    (" (7", "others"),
    ("8)", "digits"),
    ("", "others"),
]


def test_token_classes_depend_on_the_first_character_of_a_token():
    tokens, classes = zip(*TOKENS, strict=True)
    offsets = list(pairwise(accumulate(map(len, tokens), initial=0)))
    assert token_classes("".join(tokens), offsets) == list(classes)


def test_the_gini_index_of_few_numbers_is_exact_and_that_of_zeros_is_0():
    assert gini(torch.tensor([0, 4, 0, 0])) == 3 / 4
    assert gini(torch.zeros(3)) == 0


def shown(loaded, problem, condition, layer):
    """Return input and output of the activation function for the problem's tokens in a
    layer, from a forward pass, and each token's class.
    """
    prompt = build_prompt(loaded.tokenizer, problem.problem, condition)
    span = prompt.spans["problem"]
    names = ("mlp.gate_proj", "mlp.act_fn")
    outputs = outputs_of(loaded.model, prompt.input_ids, *names)
    gate, activation = (outputs[layer, name][span].double().numpy() for name in names)
    return gate, activation, token_classes(prompt.text, prompt.offsets)[span]


def measures_by_hand(gate, activation, bound):
    """Return MEASURES of one prompt in one layer."""
    magnitudes = np.abs(activation)
    # The Gini index follows from the area under the Lorenz curve.
    curve = np.sort(magnitudes.ravel()).cumsum() / magnitudes.sum()
    return [
        (magnitudes <= bound).mean(),
        magnitudes.sum(1).mean(),
        np.linalg.norm(activation, axis=1).mean(),
        1 - (2 * curve.sum() - 1) / len(curve),
        activation.var(),
        gate.var(),
    ]


def histogram_by_hand(activation):
    """Return the counts of the bins; the outer bins include values outside the
    range.
    """
    edges = np.linspace(-0.4, 2, 241)
    clipped = activation.clip(edges[0], edges[-1])
    return np.histogram(clipped, edges)[0]


def by_hand(loaded, problem, layer):
    """Return measures, classes and histogram counts of one problem in a layer under
    CONDITIONS, computed from their definitions.
    """
    measures, classes, counts = [], [], []
    for condition in CONDITIONS:
        gate, activation, of_tokens = shown(loaded, problem, condition, layer)
        if condition == "none":
            deviations = np.abs(activation - np.median(activation))
            bound = C * 1.4826 * np.median(deviations)
        near = pd.Series((np.abs(activation) <= bound).mean(1))
        measures.append(measures_by_hand(gate, activation, bound))
        classes.append(near.groupby(of_tokens).mean().reindex(TOKEN_CLASSES))
        counts.append(histogram_by_hand(activation))
    return measures, classes, np.array(counts)


def likeness(counts):
    """Return the cosine between each condition's change from none and the slashes'."""
    changes = counts[1:] - counts[0]
    lengths = np.linalg.norm(changes, axis=1)
    return changes @ changes[0] / (lengths * lengths[0])


def test_measures_of_activations_equal_their_definitions(loaded):
    found = measured(loaded, [FIRST, THIRD], *CONDITIONS, arm=Arm(c=C))
    assert found.layer.values.tolist() == [1, 2]
    assert found["shape"].sel(condition="none").isnull().all()
    assert found.counts.dtype == np.float64  # float32 is exact only up to 2**24
    for layer in found.layer.values:
        of_both = 0
        for problem in (FIRST, THIRD):
            measures, classes, counts = by_hand(loaded, problem, layer)
            one = found.sel(layer=layer, problem=problem.id)
            values = one.measures.sel(measure=MEASURES)
            np.testing.assert_allclose(values, measures, rtol=1e-3)
            np.testing.assert_allclose(one.classes, classes, atol=1e-3)
            np.testing.assert_allclose(one["shape"][1:], likeness(counts), atol=2e-3)
            of_both = of_both + counts
        in_layer = found.counts.sel(layer=layer)
        assert (in_layer.sum("bin") == of_both.sum(1)).all()
        # A value on the edge between two bins may be in either.
        assert abs(in_layer - of_both).sum() < 1e-3 * of_both.sum()


def test_slashes_inserted_among_the_words_of_a_problem_are_not_its_tokens(loaded):
    names = ("embedded/loss/049", "embedded/share/112")
    some = [one for one in load_problems("embedded") if one.id in names]
    prompts = prompts_of(loaded, some, ["mless@random"])
    for prompt in prompts["mless@random"].values():
        assert prompt.spans["problem"].start < prompt.spans["inserted"].start

    found = measure_activations(loaded, prompts, [1], ARM, 0)
    tokens = sum(one.parts.count("problem") for one in prompts["none"].values())
    width = loaded.model.config.intermediate_size
    assert (found.counts.sum("bin") == tokens * width).all()
    assert (abs(found["shape"][1]) > 0.99).all()


def test_arm_draws_again_for_each_problem(loaded):
    twins = [FIRST, FIRST.model_copy(update={"id": "twin"})]
    found = measured(loaded, twins, "arm", seed=5).measures
    first, second = found.transpose("problem", ...).values
    again = measured(loaded, [FIRST], "arm", seed=6).measures
    np.testing.assert_array_equal(second, again.squeeze("problem"))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(("fraction", "same"), [(0, True), (1, False)])
def test_arm_moves_the_requested_fraction_of_activations(loaded, fraction, same):
    found = measured(loaded, [FIRST], "arm", arm=Arm(fraction=fraction))
    none, arm = found.counts.transpose("condition", ...).values
    assert np.array_equal(none, arm) == same


def test_nan_activations_are_named():
    spoilt = load("demo", layers=2, device="cpu")
    spoilt.model.layers[1].mlp.gate_proj.weight.data[0, 0] = float("nan")
    message = f"under none on problem {FIRST.id} gives NaN activations in layer 2"
    with pytest.raises(InputError, match=message):
        measured(spoilt, PROBLEMS, "mless")
