"""ARM: the pure function against its definition; the hook changes one layer, row by
row, and leaves.
"""

from typing import get_args

import numpy as np
import pytest
import torch
from families import FAMILIES
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import pad_sequence

from lib.arm.activations import activation_module, watched
from lib.arm.moving import installed, redistribute
from lib.arm.settings import Arm, Mode, parse_arm
from lib.errors import InputError


def by_definition(x, draws, c, p1, mode, fraction):
    """What ARM makes of the numbers (n,) that share their statistics."""

    def median(values):
        return np.quantile(values, 0.5, method="lower")

    sizes = np.abs(x)
    near = sizes <= c * 1.4826 * median(np.abs(x - median(x)))
    least = int((0.02 if fraction is None else fraction) * len(x))
    most = int((0.25 if fraction is None else fraction) * len(x))
    count = np.clip(near.sum(), least, most)
    bound = np.sort(sizes)[count - 1] if count else -1
    chosen = sizes <= bound
    if chosen.sum() > most:  # of equal magnitudes all move or none
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
    statistics=st.sampled_from([None, "sequence"]),
    options=st.fixed_dictionaries(
        {name: st.sampled_from(values) for name, values in OPTIONS.items()}
    ),
)
def test_redistribution_is_its_definition(
    dtype, shape, seed, about, statistics, options
):
    # Quarters: many are equal, many zero, and none within a rounding of a bound.
    quarters = (4 * np.random.default_rng(seed).normal(*about, shape)).round()
    x = quarters.astype("float32") / 4
    activations = torch.tensor(x, dtype=dtype)
    moved = redistribute(activations, **options, statistics=statistics, seed=seed)

    of_tensor = options["mode"] == "code" and not statistics
    groups = x.reshape(1 if of_tensor else len(x), -1) if x.size else []
    draws = torch.rand(x.size, generator=torch.Generator().manual_seed(seed)).numpy()
    expected = [
        by_definition(group, draws[: len(group)], **options) for group in groups
    ]
    expected = torch.tensor(np.array(expected)).to(dtype).reshape(shape)
    torch.testing.assert_close(moved, expected)


def test_padding_counts_for_nothing_and_stays():
    rows = [torch.randn(length, 24) for length in (5, 9, 7)]
    padded = pad_sequence(rows, batch_first=True, padding_value=7.0)
    real = torch.arange(9) < torch.tensor([[5], [9], [7]])
    together = redistribute(padded, real=real)
    for row, moved in zip(rows, together, strict=True):
        assert torch.equal(moved[: len(row)], redistribute(row))
        assert (moved[len(row) :] == 7).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"c": -0.1},
        {"c": float("nan")},
        {"p1": 101},
        {"fraction": 1.5},
        {"mode": "both"},
    ],
)
def test_settings_out_of_range_are_named(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(InputError, match=f"{name}: must be .*not {value!r}"):
        redistribute(torch.zeros(1, 1, 1), **wrong)


def test_settings_are_read_from_a_condition():
    base = Arm(c=0.2, fraction=0.1)
    assert parse_arm("").over(base) == base
    assert parse_arm("p1=95").over(base) == Arm(c=0.2, p1=95.0, fraction=0.1)
    everything = Arm(c=0.1, p1=95.0, mode="code", layer=2)
    assert parse_arm("c=0.1:p1=95:layer=2:mode=code").over(base) == everything
    assert parse_arm("c=0.1").over(base) == Arm(c=0.1)  # a fraction would overrule it


@pytest.mark.parametrize(
    "text, message",
    [
        ("d=1", "'d=1'"),
        ("c=", "'c='"),
        ("c=one", "c: must be .* number"),
        ("layer=0", "layer: .* not '0'"),
    ],
)
def test_settings_that_cannot_be_read_are_named(text, message):
    with pytest.raises(InputError, match=message):
        parse_arm(text)


def seen(model, ids, layer, **inputs):
    """Return the activation of a layer in one forward."""
    activations = []

    def see(layer, gate, activation):
        activations.append(activation.clone())

    with watched(model, [layer], see), torch.inference_mode():
        model(ids, **inputs)
    return activations[0]


@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma3_text"])
@pytest.mark.parametrize("layer", [1, 3])
def test_it_works_on_its_layer_of_any_family_and_always_leaves(family, layer):
    model = FAMILIES[family]().eval()
    ids = torch.randint(1, 32, (2, 12))
    before = seen(model, ids, layer)
    with (
        pytest.raises(RuntimeError, match="on purpose"),
        installed(model, layer, c=0.3, seed=5),
    ):
        inside = seen(model, ids, layer)
        raise RuntimeError("on purpose")
    torch.testing.assert_close(inside, redistribute(before, c=0.3, seed=5))
    assert torch.equal(seen(model, ids, layer), before)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_is_left_out(side):
    model = FAMILIES["llama"]()
    ids = torch.randint(1, 32, (1, 9))
    pads = torch.zeros(1, 4, dtype=torch.long)
    padded = torch.cat([pads, ids] if side == "left" else [ids, pads], 1)
    mask = (padded > 0).long()
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    batch = {
        "attention_mask": mask.repeat(2, 1),
        "position_ids": positions.repeat(2, 1),
    }
    with installed(model):
        alone = seen(model, ids, 1)
        together = seen(model, padded.repeat(2, 1), 1, **batch)
    real = together[1][mask[0].bool()]
    torch.testing.assert_close(real, alone[0], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("mode", "expected"), [("text", 1), ("code", 4)])
def test_text_changes_the_prompt_alone_and_code_every_step(mode, expected, monkeypatch):
    model = FAMILIES["llama"]()
    calls = []

    def redistribute(x, *args, **options):
        calls.append(x.shape)
        return x

    monkeypatch.setattr("lib.arm.moving.redistribute", redistribute)
    ids = torch.randint(1, 32, (1, 6))
    with installed(model, mode=mode):
        model.generate(ids, max_new_tokens=4, min_new_tokens=4, do_sample=False)
    assert len(calls) == expected


def test_every_prompt_draws_from_the_seed_anew():
    model = FAMILIES["llama"]()
    ids = torch.randint(1, 32, (1, 9))
    with installed(model, c=0.3, seed=5):
        assert torch.equal(seen(model, ids, 1), seen(model, ids, 1))


def test_an_activation_is_found_without_a_gate():
    assert isinstance(activation_module(FAMILIES["opt"](), 1), torch.nn.Module)


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
def test_models_without_an_activation_are_refused_by_name(make, layer, message):
    with pytest.raises(InputError, match=message), installed(make(), layer):
        pass
