"""Models whose first layers have no softmax attention can be scored; measuring the
attention of such layers is refused in one line.
"""

import pytest
import torch
from families import WITHOUT_ATTENTION, on_cpu, save, spread

from lib.attention.custom_attention import hiding
from lib.attention.received import received_attention
from lib.generation.engine_interface import Request, Sampling, engine_class
from lib.generation.key_value_caches import prefill

ROWS = [[5, 17, 3, 88, 41, 9], [5, 17, 60, 2]]
POSITIONS = [range(3, 5), range(1, 3)]


@pytest.fixture(params=WITHOUT_ATTENTION)
def other(request, tmp_path):
    """A complete model of each family, and its folder."""
    save(spread(WITHOUT_ATTENTION[request.param](), 0.15), tmp_path)
    return on_cpu(tmp_path), tmp_path


def test_logits_of_a_batch_equal_those_of_each_row_alone(other):
    model = other[0].model
    _, found = prefill(model, ROWS, POSITIONS)
    expected = []
    for row, at in zip(ROWS, POSITIONS, strict=True):
        with torch.inference_mode():
            alone = model(input_ids=torch.tensor([row]), use_cache=False).logits[0]
        expected.append(alone[at.start : at.stop])
    torch.testing.assert_close(found, torch.cat(expected), rtol=0, atol=1e-5)


def test_answers_equal_those_of_generate(other):
    loaded, _ = other
    requests = [Request(str(number), row) for number, row in enumerate(ROWS)]
    engine = engine_class("transformers")(loaded, 2)
    found = {
        completion.key: list(completion.token_ids)
        for completion in engine.complete(requests, Sampling(max_new_tokens=12))
    }
    for request in requests:
        ids = torch.tensor([request.input_ids])
        written = loaded.model.generate(ids, max_new_tokens=12, do_sample=False)
        assert found[request.key] == written[0, ids.shape[1] :].tolist()


def test_attention_is_measured_and_hidden_only_in_layers_that_have_it(other, refused):
    loaded, folder = other
    model = loaded.model
    ids = torch.tensor(ROWS[:1])
    message = refused(received_attention, model, ids, [1, 3])
    assert message.startswith("layers [1] of this ")
    assert "have no softmax attention" in message
    message = refused(on_cpu, folder, layers=1)
    assert message.endswith("layers [1] have no attention matrix")
    assert received_attention(model, ids, [3]).shape == (1, 1, 4, 6)

    def hide():
        with hiding(model, [slice(1, 3)], hidden=[2, 3]):
            model(ids)

    assert refused(hide).startswith("layers [2] of this ")
    assert "ARM needs" in refused(prefill, model, ROWS, POSITIONS, [2, 2])
