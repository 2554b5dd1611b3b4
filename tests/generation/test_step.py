"""One step of generation: its logits in every dtype, the shapes of its graphs, and what
it asks of a device.
"""

import copy
from collections import Counter
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from families import FAMILIES, spread
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import DynamicCache

from lib.arm.settings import Arm
from lib.errors import InputError
from lib.generation import step, transformers
from lib.generation.next_token import choose
from lib.generation.requests import Request, Sampling
from lib.generation.step import DecodeSteps
from lib.models.loading import Loaded
from lib.models.names import Source

# Logits of a step may differ from a whole forward's by a few roundings of the dtype,
# relative to their norm.
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 0.05, torch.float16: 0.01}
# Operations of a step of three layers with its draw, views among them; nearly all are
# the family's own.
MOST_OPERATIONS = {"llama": 240, "qwen2": 240, "gemma3_text": 379}
WAITS = {"aten::_local_scalar_dense", "aten::item", "aten::nonzero", "aten::is_nonzero"}
MASKED = ["llama", "qwen2-window", "gemma3-local-and-global", "gemma2", "gpt_oss"]
TEXT = Arm(fraction=0.9)
CODE = Arm(mode="code", statistics="sequence")


@pytest.fixture
def as_graphs(monkeypatch):
    """Steps in the shapes of graphs, on a CPU: what would be recorded runs instead.

    Gives the class of these steps, and the shapes that ran.
    """
    shapes = []

    class Rehearsed(DecodeSteps):
        def __init__(self, *args):
            super().__init__(*args)
            self.rounded = True

        def _write(self, rows, longest):
            shapes.append((rows, longest))
            super()._write(rows, longest)

    def captured(run, pool):
        return SimpleNamespace(replay=run)

    monkeypatch.setattr(step, "captured", captured)
    monkeypatch.setattr(transformers, "DecodeSteps", Rehearsed)
    return SimpleNamespace(DecodeSteps=Rehearsed, shapes=shapes)


def step_and_whole(model, prompts, kind=DecodeSteps, slots=3, capacity=256):
    """Return the last tokens' logits (B, vocabulary) by a step, and by whole forwards.

    The step goes on from a cache of all tokens but the last.
    """
    decoder = model.get_decoder()
    steps = kind(model, slots, capacity)
    whole = []
    with torch.inference_mode():
        for row, ids in enumerate(prompts):
            prefilled = DynamicCache()
            decoder(input_ids=ids[None, :-1], past_key_values=prefilled, use_cache=True)
            steps.cache.write(row, prefilled, [len(ids) - 1])
            whole.append(model(input_ids=ids[None], use_cache=False).logits[0, -1])
    last = [int(ids[-1]) for ids in prompts]
    return steps(last), torch.stack(whole).float()


def random_prompts(*lengths, device="cpu"):
    return [torch.randint(3, 97, (length,), device=device) for length in lengths]


def apart(logits, expected):
    """The largest distance of a row's logits, relative to their norm."""
    distance = (logits - expected).norm(dim=-1)
    return float((distance / expected.norm(dim=-1)).max())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_gives_the_logits_of_a_whole_forward_in_every_dtype(family, device):
    model = spread(FAMILIES[family](), 0.1).to(device)
    prompts = random_prompts(21, 9, 30, device=device)
    for dtype, tolerance in TOLERANCES.items():
        logits, expected = step_and_whole(model.to(dtype), prompts)
        assert apart(logits, expected) < tolerance, dtype


@pytest.mark.parametrize("family", MASKED)
def test_shapes_that_are_rounded_up_for_a_graph_change_no_logits(family, as_graphs):
    model = spread(FAMILIES[family](), 0.1)
    prompts = random_prompts(121, 9, 130)
    kind = as_graphs.DecodeSteps
    logits, expected = step_and_whole(model, prompts, kind, slots=20, capacity=512)
    # 3 is an eighth of 20 slots, and the longest row has 130 positions.
    assert as_graphs.shapes == [(3, 256)]
    assert logits.shape == expected.shape
    assert apart(logits, expected) < TOLERANCES[torch.float32]


@pytest.mark.parametrize(
    ("slots", "capacity", "fitting"),
    [(2, 64, True), (1, 20, True), (3, 64, False), (2, 65, False)],
)
def test_steps_fit_what_is_no_larger(slots, capacity, fitting):
    steps = DecodeSteps(FAMILIES["llama"](), 2, 64)
    assert steps.fits(slots, capacity) is fitting


def test_a_step_of_a_real_model_is_no_further_from_float32_than_a_whole_forward(demo):
    question = "What is the sum of the first ten odd numbers?"
    text = f"Put the answer into a box. {'/ ' * 20}{question}"
    ids = demo.tokenizer(text, return_tensors="pt").input_ids[0]
    prompts = [ids, ids[:15]]
    model = copy.deepcopy(demo.model)
    _, exact = step_and_whole(model, prompts)
    for dtype in TOLERANCES:
        logits, expected = step_and_whole(model.to(dtype), prompts)
        most = max(TOLERANCES[torch.float32], 1.5 * apart(expected, exact))
        assert apart(logits, expected) < most, dtype
        assert apart(logits, exact) < most, dtype


@pytest.fixture
def tiny(demo):
    model = spread(FAMILIES["llama"](), 0.2)
    source = Source("tiny", "tiny")
    return Loaded(model, demo.tokenizer, "tiny", source, "none", "cpu", "float32", 3)


def answers(loaded, arm=None):
    """Complete prompts of several lengths, four at once; return texts by key."""
    engine = transformers.Engine(loaded, 4)
    engine.stops = set()
    requests = []
    for number, length in enumerate((3, 9, 120, 4, 30)):
        prompt = [number + 5, *(k % 80 + 9 for k in range(length - 1))]
        requests.append(Request(str(number), prompt, number, arm))
    completions = engine.complete(requests, Sampling(12))
    return {completion.key: completion.text for completion in completions}


def test_a_run_by_graphs_gives_the_answers_of_eager_steps(tiny, request):
    eager = answers(tiny)
    eager_under_arm = answers(tiny, TEXT)
    assert eager != eager_under_arm
    as_graphs = request.getfixturevalue("as_graphs")
    assert answers(tiny) == eager
    assert answers(tiny, TEXT) == eager_under_arm
    # 132 is all that there is room for: the longest prompt and its answer.
    assert {longest for _, longest in as_graphs.shapes} == {128, 132}
    as_graphs.shapes.clear()
    answers(tiny, CODE)
    assert not as_graphs.shapes  # each row draws from a generator of its own


def test_a_model_that_waits_has_eager_steps_and_out_of_memory_is_passed_on(
    tiny, as_graphs, monkeypatch, capsys
):
    expected = answers(tiny)
    waits = RuntimeError("called a synchronizing CUDA operation")
    captured = Mock(side_effect=waits)
    monkeypatch.setattr(step, "captured", captured)
    assert answers(tiny) == expected
    line = "steps are not replayed as graphs: called a synchronizing CUDA operation\n"
    assert capsys.readouterr().err == line
    captured.side_effect = torch.OutOfMemoryError("CUDA out of memory")
    message = "one prompt of 132 tokens does not fit into memory"
    with pytest.raises(InputError, match=message):
        answers(tiny)


class CountingOperations(TorchDispatchMode):
    """Counts by name what a device is asked for."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.counts[function._schema.name] += 1
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("family", MOST_OPERATIONS)
def test_a_step_asks_for_few_operations_and_never_waits(family):
    model = FAMILIES[family]()
    prefilled = DynamicCache()
    ids = torch.ones(3, 4, dtype=torch.long)
    model(input_ids=ids, past_key_values=prefilled)
    steps = DecodeSteps(model, 3, 16)
    steps.cache.write(0, prefilled, [4] * 3)
    generators = [torch.Generator()] * 3
    with CountingOperations() as operations:
        # The one copy that hands all rows' tokens over is no operation.
        choose(steps([7, 8, 9]), Sampling(1, temperature=1.0, top_p=0.9), generators)
    counts = operations.counts
    assert not WAITS & {*counts}
    assert counts.total() <= MOST_OPERATIONS[family], counts
