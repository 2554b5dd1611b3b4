"""ARM: laws of the pure function on any input, and that the hook changes one layer, row by row, and leaves."""

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, Gemma3TextConfig, LlamaConfig, MixtralConfig, OPTConfig, Qwen2Config

from lib.arm.activations import activation_module, watched
from lib.arm.moving import MOST, installed, redistribute
from lib.arm.settings import MODES, Arm, parse_arm
from lib.errors import InputError
from lib.models.names import arm_for

TINY = {"vocab_size": 32, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}
TINY |= {"num_key_value_heads": 1, "max_position_embeddings": 64, "pad_token_id": 0}
FAMILIES = {"llama": LlamaConfig, "qwen2": Qwen2Config, "gemma3_text": Gemma3TextConfig}
ZERO = st.just(0.0)


def activations(dtype):
    shapes = arrays.array_shapes(min_dims=3, max_dims=3, min_side=1, max_side=12)
    numbers = st.floats(-4, 4, width=32) | st.sampled_from([0.0, 0.25, -0.25])
    return arrays.arrays(np.float32, shapes, elements=numbers).map(lambda a: torch.from_numpy(a).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=60)
@given(data=st.data(), c=ZERO | st.floats(1e-9, 3), p1=ZERO | st.floats(1e-9, 100), seed=st.integers(0, 2**32))
def test_laws_of_redistribution(dtype, mode, data, c, p1, seed):
    x = data.draw(activations(dtype))
    new = redistribute(x, c, p1, mode=mode, statistics="sequence", seed=seed)
    assert new.shape == x.shape and new.dtype == x.dtype
    for before, after in zip(x.float().flatten(1), new.float().flatten(1), strict=True):
        changed = before != after
        assert (before * after >= 0).all()
        assert changed.sum() <= int(MOST * len(before))
        assert before[changed].abs().max() <= before[~changed].abs().max() if changed.any() else True
        high = max(0.0, float(before.double().quantile(p1 / 100)))
        assert (after[changed] <= high + 1e-6).all() and (after[changed] >= min(0.0, before.min())).all()
        if mode == "text":
            assert (after.abs() >= before.abs()).all()


@pytest.mark.parametrize("settings", [{"c": 0.0}, {"c": 0.05}, {"c": 50.0}, {"fraction": 0.4}, {"fraction": 0.0}])
def test_the_fraction_is_the_share_near_zero_within_its_bounds_or_the_one_given(settings):
    x = torch.randn(1, 40, 50)
    eps = settings.get("c", 0) * 1.4826 * (x - x.median()).abs().median()
    share = min(max(float((x.abs() <= eps).float().mean()), 0.02), 0.25)
    changed = (redistribute(x, **settings) != x).float().mean()
    assert changed == pytest.approx(settings.get("fraction", share), abs=1e-3)


def test_equal_magnitudes_do_not_let_more_than_the_fraction_move():
    x = torch.full((1, 10, 10), 0.5)
    x[0, 0] = 0.1
    assert ((redistribute(x, 3.0, 100, mode="code") != x) == (x < 0.5)).all()


@pytest.mark.parametrize("mode", MODES)
def test_nothing_and_zeros_stay_what_they_are(mode):
    for x in map(torch.zeros, [(0, 4, 3), (2, 0, 3), (2, 4, 0), (2, 4, 3)]):
        assert torch.equal(redistribute(x, mode=mode), x)


def test_text_adds_and_code_replaces():
    x = torch.randn(1, 30, 40)
    draws = torch.rand(x.numel(), generator=torch.Generator().manual_seed(0)).view_as(x)
    text, code = (redistribute(x, 0.1, 90, mode=mode) for mode in MODES)
    high, low = x.flatten().sort().values[int(0.9 * (x.numel() - 1))], x.min()
    for target, side in ((high, x > 0), (low, x < 0)):
        moved = (text != x) & side
        expected = (x[moved] + draws[moved] * target).clamp(low, high)
        torch.testing.assert_close(text[moved], expected, atol=1e-6, rtol=0)
        moved = (code != x) & side
        torch.testing.assert_close(code[moved], draws[moved] * target)


def test_a_zero_counts_as_positive_in_code_mode_and_stays_in_text_mode():
    x = torch.tensor([0.0] * 20 + [-1.0] * 40 + [2.0] * 40).view(1, 10, 10)
    text, code = (redistribute(x, fraction=0.2, p1=100, mode=mode) for mode in MODES)
    assert torch.equal(text, x)
    moved = code[code != x]
    assert len(moved) == 20 and (moved > 0).all() and (moved <= 2).all()


def test_between_two_elements_the_quantile_is_the_smaller_one():
    x = torch.tensor([[0.25, 1.0, 2.0, 4.0]])
    draw = torch.rand(4, generator=torch.Generator().manual_seed(0))[0]
    moved = redistribute(x, fraction=0.25, p1=60, mode="code")  # 0.6 of the way from the first to the fourth
    torch.testing.assert_close(moved, torch.tensor([[float(draw), 1.0, 2.0, 4.0]]))


def test_a_sequence_depends_on_its_seed_and_not_on_its_batch_or_its_padding():
    rows = [torch.randn(length, 24) for length in (5, 9, 7)]
    alone = [redistribute(row) for row in rows]
    assert torch.equal(redistribute(rows[0]), alone[0]) and not torch.equal(redistribute(rows[0], seed=4), alone[0])
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=7.0)
    real = torch.arange(9) < torch.tensor([[5], [9], [7]])
    together = redistribute(padded, real=real)
    for row, expected in zip(together, alone, strict=True):
        assert torch.equal(row[: len(expected)], expected) and (row[len(expected) :] == 7).all()
    # But for the authors' statistics over the whole tensor.
    rows = torch.stack([torch.randn(8, 24), 5 * torch.randn(8, 24)])
    for options in ({"mode": "code"}, {"mode": "code", "statistics": "sequence"}):
        alone, together = redistribute(rows[:1], **options), redistribute(rows, **options)
        assert torch.equal(together[:1], alone) == ("statistics" in options)


@pytest.mark.parametrize("wrong", [{"c": -0.1}, {"c": float("nan")}, {"p1": 101}, {"fraction": 1.5}, {"mode": "both"}])
def test_settings_out_of_range_are_named(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(InputError, match=f"{name}: must be .*not {value!r}"):
        redistribute(torch.zeros(1, 1, 1), **wrong)


def test_settings_are_read_from_a_condition():
    base = Arm(c=0.2, fraction=0.1)
    assert parse_arm("").over(base) == base
    assert parse_arm("p1=95").over(base) == Arm(c=0.2, p1=95.0, fraction=0.1)
    assert parse_arm("c=0.1:p1=95:layer=2:mode=code").over(base) == Arm(c=0.1, p1=95.0, mode="code", layer=2)
    assert parse_arm("c=0.1").over(base) == Arm(c=0.1)  # a fraction would overrule it
    for text, named in (
        ("d=1", "'d=1'"),
        ("c=", "'c='"),
        ("c=one", "c: must be .* number"),
        ("layer=0", "layer: .* not '0'"),
    ):
        with pytest.raises(InputError, match=named):
            parse_arm(text)


def test_the_papers_settings_belong_to_their_models():
    assert arm_for("Llama-3.1-8B-Instruct") == Arm(c=0.32, p1=90)
    assert arm_for("Gemma-3-4b-it") == Arm(fraction=0.25, p1=85)
    assert arm_for("Llama-3.1-8B-Instruct", Arm(c=1)) == Arm(c=1) and arm_for("a/model") == Arm()


def tiny(family):
    extra = {"head_dim": 4} if family == "gemma3_text" else {}
    return AutoModelForCausalLM.from_config(FAMILIES[family](**TINY, **extra)).eval()


def seen(model, ids, layer, **inputs):
    found = []
    with watched(model, [layer], lambda _, gate, output: found.append(output.clone())), torch.inference_mode():
        model(ids, **inputs)
    return found[0]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layer", [1, 3])
def test_it_works_on_its_layer_of_any_family_and_always_leaves(family, layer):
    model, ids = tiny(family), torch.randint(1, 32, (2, 12))
    before = seen(model, ids, layer)
    with pytest.raises(RuntimeError, match="on purpose"), installed(model, layer, c=0.3, seed=5):
        inside = seen(model, ids, layer)
        raise RuntimeError("on purpose")
    torch.testing.assert_close(inside, redistribute(before, c=0.3, seed=5))
    assert torch.equal(seen(model, ids, layer), before)


def test_padding_on_either_side_is_left_out():
    model, ids = tiny("llama"), torch.randint(1, 32, (1, 9))
    with installed(model):
        alone = seen(model, ids, 1)
        for side in ("left", "right"):
            pads = torch.zeros(1, 4, dtype=torch.long)
            padded = torch.cat([pads, ids] if side == "left" else [ids, pads], 1)
            mask = (padded > 0).long()
            positions = (mask.cumsum(1) - 1).clamp(min=0)
            batch = {"attention_mask": mask.repeat(2, 1), "position_ids": positions.repeat(2, 1)}
            found = seen(model, padded.repeat(2, 1), 1, **batch)[1]
            torch.testing.assert_close(found[mask[0].bool()], alone[0], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("mode", "expected"), [("text", 1), ("code", 4)])
def test_text_changes_the_prompt_alone_and_code_every_step(mode, expected, monkeypatch):
    model, calls = tiny("llama"), []
    monkeypatch.setattr("lib.arm.moving.redistribute", lambda x, *args, **options: calls.append(x.shape) or x)
    with installed(model, mode=mode):
        model.generate(torch.randint(1, 32, (1, 6)), max_new_tokens=4, min_new_tokens=4, do_sample=False)
    assert len(calls) == expected


def test_an_activation_is_found_without_a_gate_and_models_without_one_are_refused_by_name():
    mixture, bare = AutoModelForCausalLM.from_config(MixtralConfig(**TINY, num_local_experts=2)), tiny("llama")
    del bare.model.layers[0].mlp.act_fn
    bare.model.layers[0].mlp.act_fn = torch.nn.functional.silu
    ungated = OPTConfig(**TINY | {"num_hidden_layers": 2}, ffn_dim=16, word_embed_proj_dim=8)
    assert isinstance(activation_module(AutoModelForCausalLM.from_config(ungated), 1), torch.nn.Module)
    for model, layer, named in (
        (tiny("llama"), 4, "layers 1 to 3"),
        (mixture, 1, "mixtral model is a mixture of experts"),
        (bare, 1, "layer 1 of this llama model has no MLP activation module"),
    ):
        with pytest.raises(InputError, match=named), installed(model, layer):
            pass
