"""When the common prefix of prompts is computed in a separate forward pass, and which
tokens ARM changes.
"""

import pytest
import torch
from families import FAMILIES
from launches import Launches

from lib.arm.redistribution import installed
from lib.arm.settings import Arm
from lib.generation.key_value_caches import prefill


@pytest.mark.parametrize(
    "device, rows, shared, forwards",
    [
        ("cpu", 1, 30, 1),  # a single prompt shares its prefix with no other
        ("cpu", 2, 1, 2),
        ("meta", 2, 100, 1),  # the meta device stands for a GPU
        ("meta", 20, 100, 2),
    ],
)
def test_a_common_prefix_is_computed_separately_only_if_that_saves_work(
    device, rows, shared, forwards
):
    model = FAMILIES["llama"]().to(device)
    calls = []
    model.get_decoder().register_forward_hook(lambda *_: calls.append(1))
    ids = [[5] * shared + [row, 7] for row in range(rows)]
    with Launches():
        prefill(model, ids, [range(shared + 1, shared + 2)] * rows)
    assert len(calls) == forwards


def test_tokens_after_those_that_arm_changes_are_attended_to_as_ever():
    model = FAMILIES["llama"]().eval()
    prompt, text = [5, 7, 30, 12, 9], [3, 4, 8]
    others = [11, 6, 2, 14, 10, 21, 16, 17]
    ends = [range(len(others) - 1, len(others))] * 2
    with torch.inference_mode(), installed(model, Arm(c=1.0)) as arm:
        first = model(torch.tensor([prompt]), use_cache=True)
        cache = first.past_key_values
        expected = model(torch.tensor([text]), past_key_values=cache).logits[0, -1]
        arm.lengths = [len(prompt), 2]
        _, logits = prefill(model, [prompt + text, others], ends, arm)
    torch.testing.assert_close(logits[0], expected, atol=1e-5, rtol=1e-4)
