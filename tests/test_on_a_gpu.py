"""What a GPU computes otherwise: each test runs on a CPU too, so that its lines are tried where there is none."""

import pytest
import torch
from transformers import AutoModelForCausalLM

from lib.arm.activations import kth_smallest
from lib.arm.moving import redistribute
from lib.arm.settings import Arm
from lib.attention.received import received_attention
from lib.generation.engines import make_engine
from lib.generation.interface import Request, Sampling
from lib.models.loading import load

no_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.cuda, no_gpu])]
IDS = [[7, 300, 12, 45, 9, 1, 77, 5, 250, 3, 8, 19][: 8 + n % 5] for n in range(6)]


def requests():
    return [Request(str(n), ids, seed=n) for n, ids in enumerate(IDS)]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def test_received_attention_equals_eager(device, tiny_llama):
    model = AutoModelForCausalLM.from_pretrained(tiny_llama, attn_implementation="eager").to(device)
    ids = torch.randint(0, 40_000, (1, 500), device=device)
    with torch.inference_mode():
        patterns = model(ids, output_attentions=True).attentions
        found = received_attention(load(str(tiny_llama), device=device, dtype="float32").model, ids)[0]
    later = torch.arange(499, -1, -1.0, device=device).clamp(min=1)
    wanted = torch.stack([(p[0].sum(-2) - p[0].diagonal(dim1=-2, dim2=-1)) / later for p in patterns])
    torch.testing.assert_close(found[..., :-1].float(), wanted[..., :-1], atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_order_statistics_are_those_of_a_sort(device, dtype):
    values = torch.randn(50_001, device=device).to(dtype).float()
    found = [float(kth_smallest(values, index)) for index in (0, 250, 25_000, 50_000)]
    assert found == values.sort().values[[0, 250, 25_000, 50_000]].tolist()


@pytest.mark.parametrize("mode", ["text", "code"])
def test_arm_moves_the_same_elements_within_the_same_bounds(device, mode):
    x = torch.randn(1, 40, 300)
    moved = redistribute(x.to(device), c=0.5, p1=90, mode=mode).cpu()
    reference = redistribute(x, c=0.5, p1=90, mode=mode)
    assert torch.equal(moved != x, reference != x)  # the draws themselves are each device's own
    assert moved.max() <= x.max() and moved.min() >= x.min()


def test_out_of_memory_halves_the_batch(device, tiny_llama, monkeypatch, capsys):
    engine = make_engine("transformers", load(str(tiny_llama), device=device, dtype="float32"), 4, {})
    step, sampling = engine._step, Sampling(3)
    calm = {done.key: done.text for done in engine.complete(requests(), sampling)}

    def cramped(rows, *others):
        if len(rows) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return step(rows, *others)

    monkeypatch.setattr(engine, "_step", cramped)
    assert {done.key: done.text for done in engine.complete(requests(), sampling)} == calm
    assert "going on with 2 prompts at once" in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["text", "code"])
def test_answers_under_arm_do_not_depend_on_the_batch(device, tiny_llama, mode):
    loaded, arm = load(str(tiny_llama), device=device, dtype="float32"), Arm(mode=mode, statistics="sequence")
    one, many = (
        {d.key: d.text for d in make_engine("transformers", loaded, n, {}).complete(requests(), Sampling(4), arm)}
        for n in (1, 6)
    )
    assert one == many
