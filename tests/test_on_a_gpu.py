"""What a GPU computes otherwise: each test runs on a CPU too, so that its lines are tried where there is none."""

import pytest
import torch
from eager import matrices, received

from lib.arm.activations import order_statistics
from lib.arm.moving import redistribute
from lib.arm.settings import Arm
from lib.attention.received import received_attention
from lib.generation.interface import Request, Sampling, make_engine
from lib.models.loading import load

no_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
IDS = [[7, 300, 12, 45, 9, 1, 77, 5, 250, 3, 8, 19][: 8 + n % 5] for n in range(6)]


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=[pytest.mark.cuda, no_gpu])])
def device(request):
    return request.param


@pytest.fixture
def answers(device, tiny_llama):
    """Complete six prompts with so many at once; `change` may alter the engine."""
    loaded = load(str(tiny_llama), device=device, dtype="float32")

    def complete(at_once, arm=None, change=None):
        engine = make_engine("transformers", loaded, at_once, {})
        if change:
            engine._step = change(engine._step)
        asked = [Request(str(n), ids, seed=n) for n, ids in enumerate(IDS)]
        return {done.key: done.text for done in engine.complete(asked, Sampling(4), arm)}

    return complete


def test_received_attention_equals_eager(device, tiny_llama):
    model = load(str(tiny_llama), device=device, dtype="float32").model
    ids = torch.randint(0, 40_000, (500,), device=device)
    found, wanted = received_attention(model, ids)[0].cpu(), received(matrices(model, ids).cpu())
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-3, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_order_statistics_are_those_of_a_sort(device, dtype):
    values, indices = torch.randn(2, 50_001, device=device).to(dtype).float(), [0, 250, 25_000, 50_000]
    assert torch.equal(torch.cat(order_statistics(values, indices), 1), values.sort().values[:, indices])


@pytest.mark.parametrize("mode", ["text", "code"])
def test_arm_moves_the_same_elements_within_the_same_bounds(device, mode):
    x = torch.randn(1, 40, 300)
    moved = redistribute(x.to(device), c=0.5, p1=90, mode=mode).cpu()
    reference = redistribute(x, c=0.5, p1=90, mode=mode)
    assert torch.equal(moved != x, reference != x)  # the draws themselves are each device's own
    assert moved.max() <= x.max() and moved.min() >= x.min()


def test_answers_depend_neither_on_the_batch_nor_on_memory_that_runs_out(answers, capsys):
    def cramped(step):
        def change(batch):
            if len(batch.rows) > 2:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return step(batch)

        return change

    assert answers(4, change=cramped) == answers(4) and "going on with 2 prompts at once" in capsys.readouterr().err
    for mode in ("text", "code"):
        arm = Arm(mode=mode, statistics="sequence")
        assert answers(1, arm) == answers(6, arm)
