"""ARM (activation redistribution): the pure function against its definition, and the
hook, which changes one layer row by row until it is removed.
"""

from typing import get_args
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from families import FAMILIES
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import pad_sequence

from lib.arm.mlp_activations import activation_module, watched
from lib.arm.redistribution import installed, redistribute
from lib.arm.settings import Arm, Mode, parse_arm
from lib.errors import InputError


def by_definition(x, draws, c, p1, mode, fraction):
    """Return the numbers (n,) after ARM; they share median, deviation and extremes."""

    def median(values):
        return np.quantile(values, 0.5, method="lower")

    sizes = np.abs(x)
    near = sizes <= c * 1.4826 * median(np.abs(x - median(x)))
    least = int((0.02 if fraction is None else fraction) * len(x))
    most = int((0.25 if fraction is None else fraction) * len(x))
    count = np.clip(near.sum(), least, most)
    bound = np.sort(sizes)[count - 1] if count else -1
    chosen = sizes <= bound
    if chosen.sum() > most:  # equal magnitudes are all moved, or none of them is
        chosen = sizes < bound
    high = np.maximum(np.quantile(x, p1 / 100, method="lower"), 0)
    low = np.minimum(x.min(), 0)
    if mode == "code":
        return np.where(chosen, draws * np.where(x >= 0, high, low), x)
    target = np.clip(x + draws * np.where(x > 0, high, low), low, high)
    return np.where(chosen & (x != 0) & (x <= high), target, x)


OPTIONS = {
    "c": [0.13, 0, 1, 50],
    "p1": [60, 0, 99.5, 100],
    "mode": get_args(Mode),
    "fraction": [None, 0, 0.4, 1],
}


@settings(max_examples=400)
@given(
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    shape=st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 20)),
    seed=st.integers(0, 2**32 - 1),
    about=st.tuples(st.sampled_from([0, -3, 3]), st.sampled_from([0.3, 2, 0])),
    options=st.fixed_dictionaries(
        {name: st.sampled_from(values) for name, values in OPTIONS.items()}
    ),
)
@example(
    dtype=torch.float32,
    shape=(1, 1, 7),
    seed=0,
    about=(-3, 2),
    options={"c": 0.13, "p1": 60, "mode": "text", "fraction": None},
)
def test_redistribution_equals_its_definition(dtype, shape, seed, about, options):
    # Multiples of 1/4: many are equal or zero, and none is within rounding of a bound.
    quarters = (4 * np.random.default_rng(seed).normal(*about, shape)).round()
    x = quarters.astype("float32") / 4
    activations = torch.tensor(x, dtype=dtype)
    moved = redistribute(activations, Arm(**options), seed=seed)

    groups = x.reshape(len(x), -1) if x.size else []
    draws = torch.rand(x.size, generator=torch.Generator().manual_seed(seed)).numpy()
    expected = [
        by_definition(group, draws[: len(group)], **options) for group in groups
    ]
    expected = torch.tensor(np.array(expected)).to(dtype).reshape(shape)
    torch.testing.assert_close(moved, expected)


def test_settings_are_read_from_a_condition():
    base = Arm(c=0.2, fraction=0.1)
    assert parse_arm("").over(base) == base
    assert parse_arm("p1=95").over(base) == Arm(c=0.2, p1=95.0, fraction=0.1)
    everything = Arm(c=0.1, p1=95.0, mode="code", layer=2)
    assert parse_arm("c=0.1:p1=95:layer=2:mode=code").over(base) == everything
    # A fraction would take precedence over c, so giving c unsets it.
    assert parse_arm("c=0.1").over(base) == Arm(c=0.1)


# Settings as text, and a part of the error message.
REFUSED = """
d=1 | 'd=1': give c, p1
c= | 'c=': give c, p1
c=one | c: must be a valid number
c=-0.1 | c: must be greater than or equal to 0
c=nan | c: must be
p1=101 | p1: must be less than or equal to 100, not '101'
fraction=1.5 | fraction: must be less than or equal to 1
mode=both | mode: must be
layer=0 | layer: must be greater than 0
c=1:c=2 | c is given twice
"""


@pytest.mark.parametrize("row", REFUSED.strip().splitlines())
def test_settings_that_are_unreadable_or_out_of_range_are_refused_by_name(refused, row):
    text, said = row.split(" | ")
    assert said in refused(parse_arm, text)


def seen(model, ids, layer):
    """Return the MLP activation of a layer in one forward pass."""
    activations = []

    def see(layer, gate, activation):
        activations.append(activation.clone())

    with watched(model, [layer], see), torch.inference_mode():
        model(ids)
    return activations[0]


# One of the families, opt, has an MLP without a gate.
@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma3_text", "opt"])
@pytest.mark.parametrize("layer", [1, 3])
def test_the_hook_changes_its_layer_equally_each_time_and_is_removed(family, layer):
    model = FAMILIES[family]().eval()
    ids = torch.randint(1, 32, (2, 12))
    before = seen(model, ids, layer)
    arm = Arm(c=0.3, layer=layer)
    expected = redistribute(before, arm, seed=5)
    with (
        pytest.raises(RuntimeError, match="on purpose"),
        installed(model, arm, seed=5),
    ):
        for _ in range(2):
            torch.testing.assert_close(seen(model, ids, layer), expected)
        raise RuntimeError("on purpose")
    assert torch.equal(seen(model, ids, layer), before)


def test_a_model_that_joins_the_prompts_of_a_batch_is_refused():
    model = FAMILIES["opt"]()
    with installed(model) as arm:
        arm.lengths = [3, 3]
        with pytest.raises(InputError, match="set batch_size to 1"):
            model(torch.ones(2, 3, dtype=torch.long))


def test_padding_is_ignored_and_unchanged():
    model = FAMILIES["llama"]()
    prompts = [torch.randint(1, 32, (length,)) for length in (5, 9, 5)]
    ids = pad_sequence(prompts, batch_first=True)
    real = ids > 0
    before = seen(model, ids, 1)
    with installed(model) as arm:
        alone = torch.cat([seen(model, prompt[None], 1)[0] for prompt in prompts])
        arm.lengths = [5, 9, 5]
        together = seen(model, ids, 1)
    torch.testing.assert_close(together[real], alone, atol=1e-6, rtol=1e-5)
    assert torch.equal(together[~real], before[~real])


@pytest.mark.parametrize(("mode", "calls"), [("text", 1), ("code", 4)])
def test_mode_text_changes_only_the_prompt_and_mode_code_every_step(
    mode, calls, monkeypatch
):
    moving = Mock(side_effect=lambda x, settings, **options: x)
    monkeypatch.setattr("lib.arm.redistribution.redistribute", moving)
    model = FAMILIES["llama"]()
    ids = torch.randint(1, 32, (1, 6))
    with installed(model, Arm(mode=mode)):
        model.generate(ids, max_new_tokens=4, min_new_tokens=4, do_sample=False)
    assert moving.call_count == calls


def llama_without_module():
    model = FAMILIES["llama"]()
    mlp = model.model.layers[0].mlp
    del mlp.act_fn
    mlp.act_fn = torch.nn.functional.silu
    return model


@pytest.mark.parametrize(
    "make, layer, message",
    [
        (FAMILIES["llama"], 4, "layers 1 to 3"),
        (FAMILIES["mixtral"], 1, "mixtral model is a mixture of experts"),
        (llama_without_module, 1, "layer 1 of this llama model has no MLP activation"),
    ],
)
def test_models_without_an_activation_are_refused_by_name(
    refused, make, layer, message
):
    assert message in refused(activation_module, make(), layer)
