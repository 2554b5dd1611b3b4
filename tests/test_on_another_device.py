"""Code for a GPU, run on torch's `meta` device: this computes nothing, but an operation
on tensors of two devices, or a wait for a result, is an error.
"""

import pytest
import torch
from families import FAMILIES

from lib.arm import redistribution
from lib.arm.mlp_activations import measures_of
from lib.arm.settings import Arm
from lib.attention import received
from lib.attention.custom_attention import Recording, attending, hiding
from lib.attention.query_blocks import Step
from lib.generation.key_value_caches import SlotCache, prefill

ROWS = [[7, 30, 12, 45, 9], [7, 30, 1, 77, 5]]


@pytest.fixture(params=["llama", "qwen2-window", "gemma3-local-and-global"])
def model(request):
    with torch.device("meta"):
        return FAMILIES[request.param]().eval()


@torch.inference_mode()
def test_no_operation_waits_for_the_device_or_leaves_it(model, monkeypatch):
    # The meta device has no random generators.
    monkeypatch.setattr(
        redistribution, "new_generators", lambda rows, *_: [None] * rows
    )
    monkeypatch.setitem(redistribution.ELEMENTS_AT_ONCE, "meta", 1000)
    decoder = model.get_decoder()
    ids = torch.tensor(ROWS, device="meta")
    sums = torch.zeros(2, 2, 4, 1, 5, device="meta")
    rows = torch.ones(2, 1, 5, device="meta")
    with attending(decoder, Recording(sums, rows, index={0: 0, 1: 1})):
        decoder(ids, use_cache=True)  # without a cache transformers waits for a result

    assert received._queries(decoder, ids, [1, 2], [5, 4], None).is_meta

    last = [range(4, 5), range(4, 5)]
    with hiding(model, [slice(1, 3), slice(1, 2)], hidden=[1], silent=[2]):
        cache, logits = prefill(model, ROWS, last)
    slots = SlotCache(3, 9)
    slots.write(0, cache, [5, 5])
    positions = slots.next_positions(2, model.device)
    with (
        redistribution.installed(model, Arm(mode="code")),
        attending(decoder, step=Step(positions)),
    ):
        output = model(
            ids[:, :1], position_ids=positions[:, None], past_key_values=slots
        )
    assert logits.is_meta
    assert logits.shape == (2, 97)
    assert output.logits.is_meta
    assert output.logits.shape == (2, 1, 97)


def test_measures_of_activations_stay_on_the_device_that_computed_them():
    values = torch.zeros(4, 7, device="meta")
    bound = torch.zeros(1, 1, device="meta")
    assert measures_of(values, values, bound).is_meta
