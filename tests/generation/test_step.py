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
from lib.generation import Request, Sampling, step, transformers
from lib.generation.drawing import choose
from lib.generation.step import DecodeSteps
from lib.models.loading import Loaded

# Logits of a step may differ from a whole forward's by a few roundings of the dtype,
# relative to their norm.
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 0.05, torch.float16: 0.01}
# Operations of a step of three layers with its draw, views among them; nearly all are
# the family's own.
MOST = {"llama": 240, "qwen2": 240, "gemma3_text": 379}
WAITS = {"aten::_local_scalar_dense", "aten::item", "aten::nonzero", "aten::is_nonzero"}


@pytest.fixture
def as_graphs(monkeypatch):
    """Steps in the shapes of graphs, on a CPU: what would be recorded runs instead.
    Returns which shapes ran.
    """
    shapes = []

    class Fixed(DecodeSteps):
        def __init__(self, *given, eager=False):
            super().__init__(*given, eager)
            self.as_graphs = not eager

        def _write(self, rows, longest):
            shapes.append((rows, longest))
            super()._write(rows, longest)

    monkeypatch.setattr(step, "captured", lambda run, pool: SimpleNamespace(replay=run))
    monkeypatch.setattr(transformers, "DecodeSteps", Fixed)
    return SimpleNamespace(Steps=Fixed, shapes=shapes)


def step_and_whole(model, prompts, kind=DecodeSteps, slots=3):
    """Return the last tokens' logits (B, vocabulary) by a decode step from a cache, and
    those of whole forwards.
    """
    decoder = model.get_decoder()
    steps, whole = kind(model, slots, 256), []
    with torch.inference_mode():
        for row, ids in enumerate(prompts):
            prefilled = DynamicCache()
            decoder(input_ids=ids[None, :-1], past_key_values=prefilled, use_cache=True)
            steps.cache.write(row, prefilled, [len(ids) - 1])
            whole.append(model(input_ids=ids[None], use_cache=False).logits[0, -1])
    return steps([int(ids[-1]) for ids in prompts]), torch.stack(whole).float()


def apart(found, expected):
    return float(((found - expected).norm(dim=-1) / expected.norm(dim=-1)).max())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_gives_the_logits_of_a_whole_forward_in_every_dtype(family, device):
    model = spread(FAMILIES[family](), 0.1).to(device)
    prompts = [torch.randint(3, 97, (length,), device=device) for length in (21, 9, 30)]
    for dtype, tolerance in TOLERANCES.items():
        assert apart(*step_and_whole(model.to(dtype), prompts)) < tolerance, dtype


@pytest.mark.parametrize(
    "family", ["llama", "qwen2-window", "gemma3-local-and-global", "gemma2", "gpt_oss"]
)
def test_shapes_that_are_rounded_up_for_a_graph_change_no_logits(family, as_graphs):
    prompts = [torch.randint(3, 97, (length,)) for length in (121, 9, 130)]
    found, expected = step_and_whole(
        spread(FAMILIES[family](), 0.1), prompts, as_graphs.Steps, slots=20
    )
    assert (
        as_graphs.shapes == [(3, 256)] and found.shape == expected.shape
    )  # 3 is an eighth of 20 slots
    assert apart(found, expected) < TOLERANCES[torch.float32]


def test_a_step_of_a_real_model_is_no_further_from_float32_than_a_whole_forward(demo):
    text = (
        "Put the answer into a box. "
        + "/ " * 20
        + "What is the sum of the first ten odd numbers?"
    )
    ids, model = (
        demo.tokenizer(text, return_tensors="pt").input_ids[0],
        copy.deepcopy(demo.model),
    )
    floats = step_and_whole(model, [ids, ids[:15]])[1]
    for dtype in TOLERANCES:
        found, expected = step_and_whole(model.to(dtype), [ids, ids[:15]])
        most = max(TOLERANCES[torch.float32], 1.5 * apart(expected, floats))
        assert apart(found, expected) < most and apart(found, floats) < most, dtype


@pytest.fixture
def tiny(demo):
    return Loaded(
        spread(FAMILIES["llama"](), 0.2),
        demo.tokenizer,
        "tiny",
        "tiny",
        "none",
        "cpu",
        "float32",
        3,
    )


def answers(loaded, arm=None):
    """Complete prompts of several lengths, four at once."""
    made = transformers.Engine(loaded, 4)
    made.stops = set()
    prompts = [
        [n + 5, *(k % 80 + 9 for k in range(length - 1))]
        for n, length in enumerate((3, 9, 120, 4, 30))
    ]
    asked = [Request(str(n), prompt, n, arm) for n, prompt in enumerate(prompts)]
    return {done.key: done.text for done in made.complete(asked, Sampling(12))}


def test_a_run_by_graphs_gives_the_answers_of_eager_steps(tiny, request):
    eager = answers(tiny), answers(tiny, Arm(fraction=0.9))
    as_graphs = request.getfixturevalue("as_graphs")
    assert (answers(tiny), answers(tiny, Arm(fraction=0.9))) == eager and eager[
        0
    ] != eager[1]
    assert {longest for _, longest in as_graphs.shapes} == {
        128,
        144,
    }  # 144 is all that there is room for
    as_graphs.shapes.clear()
    answers(tiny, Arm(mode="code", statistics="sequence"))
    assert not as_graphs.shapes  # each row draws from a generator of its own


def test_a_model_that_waits_has_eager_steps_and_out_of_memory_is_passed_on(
    tiny, as_graphs, monkeypatch, capsys
):
    expected, captured = (
        answers(tiny),
        Mock(side_effect=RuntimeError("called a synchronizing CUDA operation")),
    )
    monkeypatch.setattr(step, "captured", captured)
    assert answers(tiny) == expected
    assert (
        capsys.readouterr().err
        == "steps are not replayed as graphs: called a synchronizing CUDA operation\n"
    )
    captured.side_effect = torch.OutOfMemoryError("CUDA out of memory")
    with pytest.raises(
        InputError, match="one prompt of 144 tokens does not fit into memory"
    ):
        answers(tiny)


@pytest.mark.parametrize("family", MOST)
def test_a_step_asks_for_few_operations_and_never_waits(family):
    model, prefilled, counts = FAMILIES[family](), DynamicCache(), Counter()

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            counts[function._schema.name] += 1
            return function(*args, **(kwargs or {}))

    model(input_ids=torch.ones(3, 4, dtype=torch.long), past_key_values=prefilled)
    steps = DecodeSteps(model, 3, 16)
    steps.cache.write(0, prefilled, [4] * 3)
    with Counting():
        # The one copy that hands all rows' tokens over is no operation.
        choose(
            steps([7, 8, 9]),
            Sampling(1, temperature=1.0, top_p=0.9),
            [torch.Generator()] * 3,
        )
    assert not WAITS & {*counts} and counts.total() <= MOST[family], counts
