"""What a step of generation asks of a device: no layer waits for it, and few operations per layer."""

from collections import Counter

import pytest
from families import SMALL
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoConfig, AutoModelForCausalLM

from lib.generation.engine import Engine
from lib.generation.interface import Request, Sampling
from lib.models.loading import Loaded

MOST = 64  # operations of a layer; most are the family's own
WAITS = {"aten::_local_scalar_dense", "aten::item", "aten::nonzero", "aten::is_nonzero"}


class Counting(TorchDispatchMode):
    """Counts every operation that is dispatched."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.counts[function._schema.name] += 1
        return function(*args, **(kwargs or {}))


def step_counts(kind, layers, demo, rows=3, **sampling):
    """Return the operations of one decode step of a model with so many layers."""
    config = AutoConfig.for_model(kind, **{**SMALL, "num_hidden_layers": layers})
    model = AutoModelForCausalLM.from_config(config).eval()
    engine = Engine(Loaded(model, demo.tokenizer, "tiny", "tiny", "none", "cpu", "float32", layers), rows)
    engine.stops = set()
    requests = [Request(str(row), [7 + row, 8, 9, 10 + row]) for row in range(rows)]
    found = []
    for new in (3, 4):
        with Counting() as counting:
            assert len(list(engine.complete(requests, Sampling(new, **sampling)))) == rows
        found.append(counting.counts)
    return found[1] - found[0]


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_a_step_asks_for_few_operations_per_layer_and_waits_in_none(kind, demo):
    few, many = step_counts(kind, 2, demo), step_counts(kind, 6, demo)
    per_layer = {name: (many[name] - few[name]) / 4 for name in many}
    assert sum(per_layer.values()) <= MOST, sorted(per_layer.items(), key=lambda item: -item[1])
    assert not any(per_layer.get(name) for name in WAITS)


def test_rows_wait_together_for_their_tokens(demo):
    few, many = (step_counts("llama", 2, demo, rows, temperature=1.0) for rows in (2, 5))
    assert sum(many[name] for name in WAITS) == sum(few[name] for name in WAITS)
