"""What touches a GPU, on one that is not there: the CPU's numbers, and few waits."""

import contextlib
import functools
import inspect
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
import torch.nn.attention.varlen
from families import FAMILIES, spread
from gpu_tensor import OnGpu
from pretend_gpu import PretendGpu

from lib.arm.activations import histogram, measures_of, near_zero_bound, watched
from lib.arm.moving import installed
from lib.arm.settings import Arm
from lib.attention import steps as attention_steps
from lib.attention.check import check_attention
from lib.attention.function import hiding
from lib.attention.received import observe, observe_uniform
from lib.evaluation.provenance import provenance
from lib.evaluation.scoring import TextToScore, log_likelihoods
from lib.generation import next_token, norms, transformers
from lib.generation.next_token import choose
from lib.generation.prefill import prefill
from lib.generation.requests import Request, Sampling
from lib.generation.step import DecodeSteps
from lib.generation.transformers import Engine
from lib.measurement.networks import free
from lib.models.loading import Loaded, load
from lib.models.names import Source
from lib.prompts.building import Prompt
from lib.prompts.conditions import parse_condition

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="a real GPU runs test_on_a_gpu.py"
)
MODELS = ["llama", "qwen2-window", "gemma3-local-and-global", "gpt_oss"]
EXPERTS = {"gpt_oss"}  # who have no one activation that ARM could change
LENGTHS = [30, 21, 12]
IDS = torch.randint(3, 97, (3, 30), generator=torch.Generator().manual_seed(5))
SPANS = [slice(3, 9), slice(2, 5), slice(1, 4)]
TEXT = Arm(fraction=0.3)
TINY = Source("tiny", "tiny")
CODE = Arm(mode="code", statistics="sequence")
GREEDY = Sampling(9)
STEP_FILES = ("generation/step.py", "generation/slots.py", "attention/")


sort = torch.Tensor.sort


def stable_sort(tensor, descending=False, stable=True):
    return sort(tensor, dim=-1, descending=descending, stable=True)


def made(family, scale=0.2):
    torch.manual_seed(1)
    return spread(FAMILIES[family](), scale)


def on_host(value):
    """Return numbers from wherever they lie."""
    if isinstance(value, OnGpu):
        return value.held.clone()
    if isinstance(value, list | tuple):
        return [on_host(part) for part in value]
    return value


def received(model):
    queries = torch.ones(3, 2, 30, dtype=torch.bool)
    queries[:, 1, 5:9] = False
    lengths = torch.tensor(LENGTHS)
    observed = observe(
        model, IDS, None, lengths, queries=queries, values=True, outputs=True
    )
    apart = observe(model, IDS, [1], positions=torch.arange(30).repeat(3, 1) * 2)
    even = observe_uniform(model, IDS, [1, 2], lengths, queries=queries)
    values = [*observed.values, *observed.outputs]
    return [observed.received, *values, apart.received, even.received]


def activations(model):
    measured = []

    def see(_, gate, activation):
        bound = near_zero_bound(activation.reshape(1, -1), 0.1)
        measured.append(measures_of(gate, activation, bound))
        measured.append(histogram(activation))

    with torch.inference_mode(), watched(model, [1, 2], see, stop=True):
        model.get_decoder()(input_ids=IDS.to(model.device), use_cache=False)
    return measured


def likelihood(model, arm=None):
    """The logits that score a text, with layers that hide the inserted tokens."""
    rows = [row[:length].tolist() for row, length in zip(IDS, LENGTHS, strict=True)]
    places = [range(len(row) - 5, len(row) - 1) for row in rows]
    with contextlib.ExitStack() as stack:
        stack.enter_context(hiding(model, SPANS, [2], [1]))
        changed = None
        if arm:
            stack.enter_context(installed(model, **arm.model_dump()))
            changed = [len(row) - 8 for row in rows]
        return prefill(model, rows, places, changed)[1]


def likelihood_under_arm(model):
    return likelihood(model, TEXT)


def scores(model, arm=None):
    """Log p of drawn texts at their temperature, as pass rates are weighted by."""
    texts = {}
    condition = parse_condition("dilution")
    for number, (row, span) in enumerate(zip(IDS, SPANS, strict=True)):
        prompt = Prompt(row[:-5], {"inserted": span}, torch.arange(25), "")
        text = TextToScore(
            problem=None,
            condition=condition,
            arm=arm,
            target="draw",
            prompt=prompt,
            lead=[],
            text=row[-5:].tolist(),
            temperature=0.7,
        )
        texts[f"{number:016x}"] = text
    place = str(model.device)
    loaded = Loaded(model, None, "tiny", TINY, "none", place, "float32", 3)
    return log_likelihoods(loaded, texts)


# What is measured, and how often the host may wait for the device at most.
MEASURED = {
    check_attention: 8,
    received: 17,
    activations: 3,
    likelihood: 3,
    likelihood_under_arm: 11,
    scores: 5,
}


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("work", MEASURED, ids=lambda work: work.__name__)
def test_what_is_measured_is_what_a_cpu_finds(family, work):
    if family in EXPERTS and work in (activations, likelihood_under_arm):
        pytest.skip("a mixture of experts has no one activation")
    with PretendGpu() as gpu:
        results = on_host(work(gpu.take(made(family))))
    expected = work(made(family))
    torch.testing.assert_close(results, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
    assert gpu.waits.total() <= MEASURED[work], gpu.waits


def test_scores_of_halves_are_summed_in_float32():
    with PretendGpu() as gpu:
        model = gpu.take(made("llama", 1.0).bfloat16())
        results = on_host(observe(model, IDS, [1]).received)
    expected = observe(made("llama", 1.0).bfloat16(), IDS, [1]).received
    torch.testing.assert_close(results, expected, rtol=1e-4, atol=1e-5, equal_nan=True)


def decode(ids, skip_special_tokens=True):
    return " ".join(map(str, ids))


def engine_of(model, slots=4):
    """An engine whose texts are token ids."""
    spoken = SimpleNamespace(eos_token_id=None, decode=decode)
    place = str(model.device)
    loaded = Loaded(model, spoken, "tiny", TINY, "none", place, "float32", 3)
    engine = Engine(loaded, slots)
    engine.stops = {11, 12, 13}
    return engine


def requests(arm=None):
    """Prompts of several lengths, one of which grows over 128 positions."""
    made = []
    for number, length in enumerate((3, 9, 125, 4, 30, 60, 7)):
        prompt = [number + 5, *(k % 80 + 9 for k in range(length - 1))]
        made.append(Request(str(number), prompt, number, arm))
    return made


def answers(engine, sampling=GREEDY, arm=None):
    """Return the tokens of each answer, by key."""
    completions = engine.complete(requests(arm), sampling)
    return {completion.key: completion.token_ids for completion in completions}


# Kinds of answers, and how often the host may wait at most: once a step for its tokens,
# of which there are 20 at most, and a few times for each prefill.
ANSWERS = {
    "greedy": (None, GREEDY, 31),
    "drawn": (None, Sampling(9, temperature=0.8, top_p=0.9), 22),
    "ARM, text": (TEXT, GREEDY, 41),
    "ARM, code": (CODE, GREEDY, 46),
}


@pytest.mark.parametrize(
    "family, kind",
    [
        *(("llama", kind) for kind in ANSWERS),
        ("qwen2-window", "drawn"),
        ("qwen2-window", "ARM, code"),
        ("gemma3-local-and-global", "greedy"),
        ("gemma4_text", "greedy"),
        ("gpt_oss", "greedy"),
    ],
)
def test_answers_are_those_of_a_cpu_and_a_step_waits_once(family, kind):
    arm, sampling, most_waits = ANSWERS[kind]
    with PretendGpu() as gpu:
        engine = engine_of(gpu.take(made(family)))
        results = answers(engine, sampling, arm)
    assert results == answers(engine_of(made(family)), sampling, arm)
    assert gpu.waits.total() <= most_waits, gpu.waits
    of_steps = [where for _, where in gpu.waits if where.startswith(STEP_FILES)]
    assert not of_steps
    assert bool(gpu.graphs) == (arm is not CODE)
    assert gpu.replays >= len(gpu.graphs)


@pytest.mark.parametrize("nucleus", [3, 40, 97])
@pytest.mark.parametrize("like_ones", [False, True])
def test_draws_from_few_tokens_are_those_from_all(nucleus, like_ones, monkeypatch):
    logits = 3 * torch.randn(60, 97)
    if like_ones:
        logits = logits.round()
    sampling = Sampling(1, temperature=0.8, top_p=0.9)
    monkeypatch.setattr(next_token, "NUCLEUS", nucleus)
    with PretendGpu() as gpu:
        generators = [torch.Generator().manual_seed(row) for row in range(60)]
        tokens = choose(logits.to("cuda"), sampling, generators)
        assert gpu.waits.total() <= 3  # the logits' way there, and at most two choices
    generators = [torch.Generator().manual_seed(row) for row in range(60)]
    # Of like ones the first count there, which a CPU's sort does not promise.
    monkeypatch.setattr(torch.Tensor, "sort", stable_sort)
    assert tokens == choose(logits, sampling, generators)


def test_graphs_stay_while_they_fit_and_text_mode_shares_them():
    with PretendGpu() as gpu:
        engine = engine_of(gpu.take(made("llama")))
        plain = answers(engine)
        steps = engine._steps
        assert gpu.graphs
        under_arm = answers(engine, arm=TEXT)
        assert answers(engine) == plain
        assert engine._steps is steps
        assert len(gpu.graphs) == len(steps.graphs)  # each shape once
        assert gpu.capture_modes == {"thread_local"}
        assert gpu.pools == {steps.pool}
        # Code mode, which no graph holds, is over with its answers.
        answers(engine, arm=CODE)
        replays = gpu.replays
        assert answers(engine) == plain
        assert gpu.replays > replays
    assert under_arm == answers(engine_of(made("llama")), arm=TEXT)


def test_a_prompt_that_is_longer_than_the_cache_gets_another():
    longer = Request("longer", [*range(5, 95)] * 3)
    with PretendGpu() as gpu:
        engine = engine_of(gpu.take(made("llama")))
        answers(engine)
        (completion,) = engine.complete([longer], GREEDY)
    (expected,) = engine_of(made("llama")).complete([longer], GREEDY)
    assert completion.token_ids == expected.token_ids


def test_eager_steps_have_few_shapes_too(monkeypatch):
    """Kernels plan anew for some: of attention those that cuDNN has."""
    shapes = set()
    attend = torch.nn.functional.scaled_dot_product_attention

    def spy(query, key, value, attn_mask=None, **kwargs):
        if attn_mask is not None and attn_mask.shape[2] == 1:  # of a step
            shapes.add((key.shape[2], key.stride()))
        return attend(query, key, value, attn_mask=attn_mask, **kwargs)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    with PretendGpu() as gpu:
        answers(engine_of(gpu.take(made("llama"))), arm=CODE)
    positions = {length for length, _ in shapes}
    assert positions == {128, 256}
    assert len(shapes) == len(positions)


def attend_to_lengths(query, key, value, **asked):
    """What torch says of its kernel, which only a GPU has, for one query a row."""
    assert asked["max_q"] == 1
    assert asked["enable_gqa"]
    lengths = asked["seqused_k"][:, None]
    window = asked["window_size"][0]
    place = torch.arange(asked["max_k"], device=query.device)
    hidden = place >= lengths
    if window >= 0:
        hidden |= place < lengths - 1 - window

    places = asked["cu_seq_k"][:-1, None] + place  # (B, max_k)
    groups = query.shape[1] // key.shape[1]
    keys, values = (
        part[places].repeat_interleave(groups, 2).transpose(1, 2)
        for part in (key, value)
    )  # (B, H, max_k, D)
    scores = (keys @ query[..., None])[..., 0] * asked["scale"]
    weights = scores.masked_fill(hidden[:, None], -torch.inf).softmax(-1)
    return (weights[:, :, None] @ values)[:, :, 0]


@pytest.mark.parametrize("family", ["llama", "qwen2-window"])
def test_steps_that_stop_at_each_rows_length_give_the_same_answers(family, monkeypatch):
    calls = 0
    real = torch.nn.attention.varlen.varlen_attn

    @functools.wraps(real)
    def kernel(*args, **kwargs):
        nonlocal calls
        calls += 1
        inspect.signature(real).bind(*args, **kwargs)  # else a TypeError
        return attend_to_lengths(*args, **kwargs)

    monkeypatch.setattr(torch.nn.attention.varlen, "varlen_attn", kernel)
    monkeypatch.setattr(attention_steps, "RAGGED", True)
    monkeypatch.setattr(attention_steps, "RAGGED_DTYPES", (torch.float32,))
    with PretendGpu() as gpu:
        engine = engine_of(gpu.take(made(family)))
        results = answers(engine)
        assert gpu.waits.total() <= ANSWERS["greedy"][2], gpu.waits
        # No graph for each length: there is no longest row to go by.
        capacity = engine._steps.cache.capacity
        assert {positions for _, positions in engine._steps.graphs} == {capacity}
        assert calls == 2 * 3 * len(gpu.graphs)  # a warm-up and a capture, of 3 layers
    assert results == answers(engine_of(made(family)))


def test_steps_read_all_positions_where_no_kernel_stops_at_lengths(monkeypatch):
    with PretendGpu() as gpu:
        model = gpu.take(made("llama"))
        half = torch.bfloat16
        assert not DecodeSteps(model.to(half), 2, 128).ragged
        monkeypatch.setattr(attention_steps, "RAGGED", True)
        assert DecodeSteps(model, 2, 128).ragged
        assert not DecodeSteps(model.to(torch.float32), 2, 128).ragged
        older = Mock(__signature__=inspect.signature(lambda scale, seqused_k: None))
        monkeypatch.setattr(torch.nn.attention.varlen, "varlen_attn", older)
        assert not DecodeSteps(model.to(half), 2, 128).ragged
    assert not DecodeSteps(made("llama").to(half), 2, 128).ragged


# How many norms one kernel has of three layers: one of Gemma adds 1 to its weights.
@pytest.mark.parametrize("family, count", [("llama", 7), ("gemma3_text", 0)])
def test_fused_norms_give_the_same_answers(family, count, monkeypatch):
    monkeypatch.setattr(norms, "FUSED_NORMS", True)
    with PretendGpu() as gpu:
        model = gpu.take(made(family))
        engine = engine_of(model)
        results = answers(engine)
        assert len(engine._steps.norms) == count
        assert not any("forward" in vars(module) for module in model.modules())
    assert results == answers(engine_of(made(family)))


def test_norms_that_are_another_than_torchs_are_not_fused(monkeypatch):
    monkeypatch.setattr(norms, "FUSED_NORMS", True)
    model = made("llama")
    norm = model.get_decoder().norm
    own = norm.forward
    norm.forward = lambda x: own(x) + 1
    assert len(norms.fusable_norms(model)) == 6


class BreakingSteps(DecodeSteps):
    """Runs out of memory while the first graph is captured."""

    broken = 0

    def _write(self, rows, longest):
        super()._write(rows, longest)
        capturing = torch.cuda.current_stream().name == "side"
        if capturing and not BreakingSteps.broken:
            BreakingSteps.broken += 1
            raise torch.OutOfMemoryError("CUDA out of memory")


def test_a_capture_without_memory_goes_on_with_half_of_the_slots(monkeypatch, capsys):
    monkeypatch.setattr(transformers, "DecodeSteps", BreakingSteps)
    with PretendGpu() as gpu:
        engine = engine_of(gpu.take(made("llama")))
        results = answers(engine)
        assert gpu.stream is gpu.main_stream
        assert engine._steps.cache.slots == 2
        assert gpu.replays
    message = "out of memory: going on with 2 prompts at once\n"
    assert capsys.readouterr().err == message
    assert results == answers(engine_of(made("llama")))


def test_a_batch_without_a_size_takes_four_fifths_of_the_memory():
    position = 2 * 3 * 2 * 8 * 4  # keys and values, layers, heads, numbers, bytes
    rows = 4 * position * 256  # what the longest prompt needs, rounded up
    with PretendGpu(free=rows / 0.8 + 1) as gpu:
        engine = engine_of(gpu.take(made("llama")), slots=None)
        results = answers(engine)
        assert engine._steps.cache.slots == 4  # five would fit into all of it
        assert gpu.emptied
    assert results == answers(engine_of(made("llama")))


def test_rows_of_a_worker_need_no_gpu_where_they_are_written():
    name = "a GPU that is not there"
    with PretendGpu() as gpu:
        engine = engine_of(gpu.take(made("llama")))
        too_long = Request("too long", [5] * 600)
        completions = list(engine.complete([*requests()[:1], too_long], GREEDY))
    assert {completion.finish_reason for completion in completions} > {"context"}
    for completion in completions:
        assert provenance(engine.loaded, completion.processor)["processor"] == name


def test_a_model_is_loaded_without_cudnn_attention(tiny_llama, monkeypatch):
    enabled = Mock()
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", enabled)
    load(str(tiny_llama), device="cpu")
    enabled.assert_not_called()
    with PretendGpu():
        loaded = load(str(tiny_llama), device="cuda", dtype="float32")
        assert loaded.model.device.type == "cuda"
    enabled.assert_called_once_with(False)


def test_a_model_that_is_let_go_of_leaves_its_memory_to_others():
    with PretendGpu() as gpu:
        free()
        assert gpu.emptied == 1
