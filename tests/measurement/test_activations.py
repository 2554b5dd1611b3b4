"""Measures of activations on small tables, classes of tokens, and the driver on the
demo model.
"""

import weakref
from contextlib import nullcontext
from typing import NamedTuple

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


def measured(loaded, problems, conditions, layers, arm=None):
    """Return what is measured of these problems under none and these conditions."""
    prompts = prompts_of(loaded, problems, conditions)
    return measure_activations(loaded, prompts, layers, arm=arm)


@pytest.mark.parametrize(
    "values, expected",
    [([0, 0, 0], 0), ([2, 2, 2], 0), ([0, 4, 0, 0], 3 / 4), ([3, 1], 1 / 4)],
)
def test_gini_is_half_the_mean_difference_over_the_mean_and_nothing_is_spread_evenly(
    values, expected
):
    spread = gini(torch.tensor(values, dtype=torch.float32))
    assert spread.item() == pytest.approx(expected)


# Tokens of a text as they follow each other, and the class of each.
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
    # A conjunction is a whole word.
    (" s", "others"),
    ("and", "others"),
    (" ands", "others"),
    # What follows in a token does not count.
    (" (7", "others"),
    ("8)", "digits"),
    ("", "others"),
]


def test_classes_go_by_the_first_character_of_a_token():
    offsets = []
    end = 0
    for token, _ in TOKENS:
        begin, end = end, end + len(token)
        offsets.append((begin, end))
    text = "".join(token for token, _ in TOKENS)
    assert token_classes(text, offsets) == [name for _, name in TOKENS]


class Seen(NamedTuple):
    """What the activation function of a layer gets and gives for the problem's tokens,
    and each token's class.
    """

    gate: np.ndarray
    activation: np.ndarray
    classes: np.ndarray


def seen(loaded, problem, condition, layer):
    """Return what a forward of one problem's prompt shows of a layer."""
    prompt = build_prompt(loaded.tokenizer, problem.problem, condition)
    span = prompt.spans["problem"]
    found = []

    def keep(module, given, output):
        found.extend((*given, output))

    module = activation_module(loaded.model, layer)
    with module.register_forward_hook(keep), torch.inference_mode():
        loaded.model(input_ids=prompt.input_ids[None])
    gate, activation = (values[0, span].double().numpy() for values in found)
    classes = np.array(token_classes(prompt.text, prompt.offsets)[span])
    return Seen(gate, activation, classes)


def cosine(a, b):
    return (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())


def bound_of(plain, c):
    """Return what is near zero, of activations under none."""
    deviations = np.abs(plain - np.median(plain))
    return c * 1.4826 * np.median(deviations)


def gini_by_lorenz(activation):
    """Return the Gini index by the area under the Lorenz curve."""
    ordered = np.sort(np.abs(activation).ravel())
    curve = ordered.cumsum() / ordered.sum()
    return 1 - (2 * curve.sum() - 1) / len(curve)


def measures_by_hand(here, bound):
    """Return the measures of one prompt in one layer, from their definitions."""
    near = np.abs(here.activation) <= bound
    return {
        "near zero": near.mean(),
        "L1": np.abs(here.activation).sum(1).mean(),
        "L2": np.linalg.norm(here.activation, axis=1).mean(),
        "Gini": gini_by_lorenz(here.activation),
        "variance": here.activation.var(),
        "gate variance": here.gate.var(),
    }


def classes_by_hand(here, bound):
    """Return the share near zero of each class, NaN without any token of it."""
    near = np.abs(here.activation) <= bound
    shares = []
    for name in TOKEN_CLASSES:
        of_class = near[here.classes == name]
        shares.append(of_class.mean() if of_class.size else np.nan)
    return shares


def histogram_by_hand(activation):
    """Return the counts of the bins; what lies outside is at its ends."""
    edges = BIN_EDGES.double().numpy()
    clipped = activation.clip(edges[0], edges[-1])
    return np.histogram(clipped, edges)[0].astype(float)


TWO = [PROBLEMS[0], PROBLEMS[2]]
IDS = [problem.id for problem in TWO]
CHANGED = ["mless", "random"]
C = 0.5


@pytest.fixture(scope="module")
def of_two(loaded):
    """What is measured of two problems in two layers."""
    return measured(loaded, TWO, CHANGED, [1, 2], arm=Arm(c=C))


@pytest.fixture(scope="module", params=[1, 2])
def layer(request):
    return request.param


@pytest.fixture(scope="module")
def shown(loaded, layer):
    """What forwards show of a layer, by problem and condition."""
    by_problem = {}
    for problem in TWO:
        by_problem[problem.id] = {
            condition: seen(loaded, problem, condition, layer)
            for condition in ("none", *CHANGED)
        }
    return by_problem


@pytest.mark.parametrize("problem", IDS)
def test_measures_and_classes_agree_with_what_a_forward_shows(
    of_two, shown, layer, problem
):
    bound = bound_of(shown[problem]["none"].activation, C)
    for condition, here in shown[problem].items():
        found = of_two.sel(layer=layer, problem=problem, condition=condition)
        by_hand = measures_by_hand(here, bound)
        assert set(by_hand) == set(ACTIVATION_MEASURES)
        for name, expected in by_hand.items():
            value = float(found.measures.sel(measure=name))
            assert value == pytest.approx(expected, rel=1e-3), name
        shares = classes_by_hand(here, bound)
        np.testing.assert_allclose(found.classes, shares, atol=1e-3)


@pytest.mark.parametrize("problem", IDS)
def test_a_change_is_as_like_that_by_the_slashes_as_its_cosine(
    of_two, shown, layer, problem
):
    before = histogram_by_hand(shown[problem]["none"].activation)
    found = of_two["shape"].sel(layer=layer, problem=problem)
    shapes = {}
    for condition in CHANGED:
        after = histogram_by_hand(shown[problem][condition].activation)
        shapes[condition] = after - before
        expected = cosine(shapes[condition], shapes["mless"])
        there = found.sel(condition=condition)
        assert float(there) == pytest.approx(expected, abs=2e-3)
    assert found.sel(condition="none").isnull()


@pytest.mark.parametrize("condition", ["none", *CHANGED])
def test_histograms_are_sums_over_problems(of_two, shown, layer, condition):
    expected = 0
    for problem in IDS:
        expected = expected + histogram_by_hand(shown[problem][condition].activation)
    counts = of_two.counts.sel(layer=layer, condition=condition)
    assert counts.sum() == expected.sum()
    # What lies on the edge of a bin may be in either.
    assert abs(counts - expected).sum() < 1e-3 * expected.sum()
    assert of_two["counts"].dtype == np.float64  # float32 is exact to 2**24 alone


def test_slashes_among_the_words_of_the_problem_are_none_of_its_tokens(loaded):
    names = ("embedded/loss/049", "embedded/share/112")
    some = [one for one in load_problems("embedded") if one.id in names]
    prompts = prompts_of(loaded, some, ["mless@random"])
    for prompt in prompts["mless@random"].values():
        assert prompt.spans["problem"].start < prompt.spans["inserted"].start

    found = measure_activations(loaded, prompts, [1])
    tokens = 0
    for prompt in prompts["none"].values():
        tokens += prompt.parts.count("problem")
    width = loaded.model.config.intermediate_size
    assert (found.counts.sum("bin") == tokens * width).all()
    assert (abs(found["shape"][1]) > 0.99).all()


def test_what_is_held_does_not_grow_with_the_problems(loaded, monkeypatch):
    made = []
    alive = []

    def tracked(activation):
        made.append(weakref.ref(activation))
        alive.append(sum(reference() is not None for reference in made))
        return histogram(activation)

    monkeypatch.setattr(activations, "histogram", tracked)
    measured(loaded, PROBLEMS, ["mless"], [1])
    assert len(made) == 2 * len(PROBLEMS)
    assert max(alive) <= 2


def test_arm_draws_anew_for_each_problem_in_all_layers(loaded, monkeypatch):
    seeds = []

    def installed(model, seed, **settings):
        seeds.append(seed)
        return nullcontext()

    monkeypatch.setattr(activations, "installed", installed)
    prompts = prompts_of(loaded, PROBLEMS[:2], ["arm"])
    found = measure_activations(loaded, prompts, seed=5)
    assert seeds == [5, 6]
    assert found.layer.values.tolist() == [1, 2]


def test_arm_moves_as_many_activations_as_is_asked_for(loaded):
    few, many = (
        measured(loaded, PROBLEMS[:1], ["arm"], [1], arm=Arm(fraction=fraction))
        for fraction in (0, 1)
    )
    assert (
        few["counts"].sel(condition="none").equals(many["counts"].sel(condition="none"))
    )
    assert few["counts"].sel(condition="arm").values.tolist() == (
        few["counts"].sel(condition="none").values.tolist()
    )
    assert not np.array_equal(
        many["counts"].sel(condition="arm"), many["counts"].sel(condition="none")
    )


def test_nan_activations_are_named(loaded):
    spoilt = load("demo", layers=2, device="cpu")
    spoilt.model.layers[1].mlp.gate_proj.weight.data[0, 0] = float("nan")
    place = f"under none on problem {PROBLEMS[0].id} gives NaN activations in layer 2"
    with pytest.raises(InputError, match=place):
        measured(spoilt, PROBLEMS, ["mless"], [1, 2])


def test_a_missing_layer_is_named(loaded):
    with pytest.raises(InputError, match="layers 1 to 2"):
        measured(loaded, PROBLEMS, ["mless"], [3])
