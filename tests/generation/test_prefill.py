"""When the common prefix of prompts is computed in a separate forward pass."""

import pytest
from families import FAMILIES
from launches import Launches

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
