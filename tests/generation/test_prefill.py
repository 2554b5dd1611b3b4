"""When what rows begin with is computed in a forward of its own."""

import pytest
from families import FAMILIES
from launches import Launches

from lib.generation.cache import prefill


@pytest.mark.parametrize(
    "device, rows, shared, forwards",
    [
        ("cpu", 1, 30, 1),  # which would save nothing
        ("cpu", 2, 1, 2),
        ("meta", 2, 100, 1),  # a GPU, as torch's meta device shows it
        ("meta", 20, 100, 2),
    ],
)
def test_a_shared_beginning_has_a_forward_where_it_saves_one(
    device, rows, shared, forwards
):
    model = FAMILIES["llama"]().to(device)
    calls = []
    model.get_decoder().register_forward_hook(lambda *_: calls.append(1))
    ids = [[5] * shared + [row, 7] for row in range(rows)]
    with Launches():
        prefill(model, ids, [range(shared + 1, shared + 2)] * rows)
    assert len(calls) == forwards
