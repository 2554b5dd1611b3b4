"""Computations that take other code paths on a GPU. Each test also runs on a CPU, so
that its code is tried on machines without a GPU.
"""

from types import SimpleNamespace

import pytest
import torch
from eager import matrices, received
from families import FAMILIES, spread

from lib.arm.mlp_activations import order_statistics
from lib.arm.redistribution import redistribute
from lib.arm.settings import Arm
from lib.attention.received import received_attention
from lib.generation.engine_interface import Request, Sampling
from lib.generation.transformers_engine import Engine
from lib.models.loading import Loaded
from lib.models.sources import Source

IDS = [[7, 30, 12, 45, 9, 1, 77, 5, 25, 3, 8, 19][: 8 + n % 5] for n in range(6)]


@pytest.fixture
def model(device):
    torch.manual_seed(1)
    return spread(FAMILIES["llama"](), 0.2).to(device)


@pytest.mark.parametrize(
    "dtype, tolerance", [(torch.float32, 1e-5), (torch.bfloat16, 3e-3)]
)
def test_received_attention_equals_eager_attention(device, model, dtype, tolerance):
    model = model.to(dtype)
    ids = torch.randint(0, 97, (500,), device=device)
    found = received_attention(model, ids)[0].cpu()
    wanted = received(matrices(model, ids).float().cpu())
    torch.testing.assert_close(
        found, wanted, atol=tolerance, rtol=100 * tolerance, equal_nan=True
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_order_statistics_equal_those_of_a_sort_on_this_device(device, dtype):
    values = torch.randn(2, 50_001, device=device).to(dtype).float()
    ranks = [0, 250, 25_000, 50_000]
    found = torch.cat(order_statistics(values, ranks), 1)
    assert torch.equal(found, values.sort().values[:, ranks])


@pytest.mark.parametrize("mode", ["text", "code"])
def test_arm_moves_the_same_elements_as_on_a_cpu_within_the_same_bounds(device, mode):
    x = torch.randn(1, 40, 300)
    arm = Arm(c=0.5, p1=90, mode=mode)
    moved = redistribute(x.to(device), arm).cpu()
    reference = redistribute(x, arm)
    # The random numbers differ between devices.
    assert torch.equal(moved != x, reference != x)
    assert moved.max() <= x.max()
    assert moved.min() >= x.min()


@pytest.mark.parametrize("mode", [None, "text", "code"])
def test_answers_do_not_depend_on_the_batch_size(device, model, mode):
    spoken = SimpleNamespace(
        eos_token_id=None,
        chat_template=None,
        decode=lambda ids: " ".join(map(str, ids)),
    )
    source = Source(name="tiny", spec="tiny", revision="none")
    loaded = Loaded(model, spoken, source, device, "float32")
    arm = mode and Arm(mode=mode)
    requests = [Request(str(n), ids, n, arm) for n, ids in enumerate(IDS)]
    runs = []
    for batch_size in (1, 4, None):
        completions = Engine(loaded, batch_size).complete(requests, Sampling(4))
        runs.append({done.key: done.text for done in completions})
    assert len(runs[0]) == len(IDS)
    assert runs == [runs[0]] * 3
