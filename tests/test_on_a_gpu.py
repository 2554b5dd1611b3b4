"""What a GPU computes otherwise: each test runs on a CPU too, so that its lines are
tried where there is none.
"""

from types import SimpleNamespace

import pytest
import torch
from eager import matrices, received
from families import FAMILIES, spread

from lib.arm.activations import order_statistics
from lib.arm.moving import redistribute
from lib.arm.settings import Arm
from lib.attention.received import received_attention
from lib.generation.requests import Request, Sampling
from lib.generation.transformers import Engine
from lib.models.loading import Loaded
from lib.models.names import Source

IDS = [[7, 30, 12, 45, 9, 1, 77, 5, 25, 3, 8, 19][: 8 + n % 5] for n in range(6)]


@pytest.fixture
def model(device):
    torch.manual_seed(1)
    return spread(FAMILIES["llama"](), 0.2).to(device)


@pytest.mark.parametrize(
    "dtype, tolerance", [(torch.float32, 1e-5), (torch.bfloat16, 3e-3)]
)
def test_received_attention_equals_eager(device, model, dtype, tolerance):
    model, ids = model.to(dtype), torch.randint(0, 97, (500,), device=device)
    found, wanted = (
        received_attention(model, ids)[0].cpu(),
        received(matrices(model, ids).float().cpu()),
    )
    torch.testing.assert_close(
        found, wanted, atol=tolerance, rtol=100 * tolerance, equal_nan=True
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_order_statistics_are_those_of_a_sort(device, dtype):
    values, indices = (
        torch.randn(2, 50_001, device=device).to(dtype).float(),
        [0, 250, 25_000, 50_000],
    )
    assert torch.equal(
        torch.cat(order_statistics(values, indices), 1),
        values.sort().values[:, indices],
    )


@pytest.mark.parametrize("mode", ["text", "code"])
def test_arm_moves_the_same_elements_within_the_same_bounds(device, mode):
    x = torch.randn(1, 40, 300)
    moved = redistribute(x.to(device), c=0.5, p1=90, mode=mode).cpu()
    reference = redistribute(x, c=0.5, p1=90, mode=mode)
    assert torch.equal(
        moved != x, reference != x
    )  # the draws themselves are each device's own
    assert moved.max() <= x.max() and moved.min() >= x.min()


@pytest.mark.parametrize("mode", [None, "text", "code"])
def test_answers_do_not_depend_on_the_batch(device, model, mode):
    spoken = SimpleNamespace(
        eos_token_id=None,
        decode=lambda ids, skip_special_tokens: " ".join(map(str, ids)),
    )
    source = Source("tiny", "tiny")
    loaded = Loaded(model, spoken, "tiny", source, "none", device, "float32", 3)
    arm = mode and Arm(mode=mode, statistics="sequence")
    asked = [Request(str(n), ids, n, arm) for n, ids in enumerate(IDS)]
    runs = (
        Engine(loaded, at_once).complete(asked, Sampling(4)) for at_once in (1, 4, 6)
    )
    one, *others = (sorted((done.key, done.text) for done in found) for found in runs)
    assert [key for key, _ in one] == [request.key for request in asked] and others == [
        one,
        one,
    ]
