"""Hiding inserted tokens, on tiny random models of every family, against masks made by
hand in eager attention.
"""

import pytest
import torch
from eager import hidden_by_hand
from transformers import DynamicCache

from lib.attention.function import hiding
from lib.attention.received import received_attention
from lib.errors import InputError

SPAN, EVERY = slice(4, 9), (1, 2, 3)


def states(model, ids, **others):
    with torch.inference_mode():
        return model.get_decoder()(
            input_ids=torch.atleast_2d(ids), use_cache=False, **others
        ).last_hidden_state


def same(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("hidden", [(), (1,), (2, 3), EVERY], ids=str)
def test_equals_a_mask_made_by_hand(model, hidden):
    ids, place = torch.randint(3, 97, (20,)), torch.arange(20)
    with hiding(model, [SPAN], hidden=hidden):
        found = states(model, ids)
    cut = (place[:, None] >= SPAN.stop) & (place >= SPAN.start) & (place < SPAN.stop)
    with hidden_by_hand(model, cut, hidden):
        same(found, states(model, ids))


def test_each_row_has_a_span_of_its_own_and_a_cache_may_hold_the_beginning(llama):
    spans, ids = [slice(4, 9), slice(6, 7)], torch.randint(3, 97, (2, 20))
    ids[1, :5] = ids[0, :5]
    expected = []
    for row, span in zip(ids, spans, strict=True):
        with hiding(llama, [span], hidden=[1], silent=[2]):
            expected.append(states(llama, row)[0, 5:])
    cache = DynamicCache()
    with hiding(llama, spans, hidden=[1], silent=[2]), torch.inference_mode():
        llama.model(input_ids=ids[:1, :5], past_key_values=cache, use_cache=True)
        cache.batch_repeat_interleave(2)
        found = llama.model(
            input_ids=ids[:, 5:], past_key_values=cache, use_cache=True
        ).last_hidden_state
    same(found, torch.stack(expected))


def test_what_is_hidden_receives_nothing_from_later_tokens(llama):
    ids = torch.randint(3, 97, (20,))
    with hiding(llama, [SPAN], hidden=[2]):
        found = received_attention(llama, ids, [1, 2])[0]
    same(found[0], received_attention(llama, ids, [1])[0, 0])
    assert float(found[1, :, SPAN.stop - 1].abs().max()) == 0


def test_the_model_attends_as_before_when_the_block_ends(llama):
    ids = torch.randint(3, 97, (20,))
    before = states(llama, ids)
    with pytest.raises(ZeroDivisionError), hiding(llama, [SPAN], hidden=EVERY):
        raise ZeroDivisionError
    with pytest.raises(
        InputError, match=r"layers \[0, 4\] was asked for; the model has layers 1 to 3"
    ):
        hiding(llama, [SPAN], hidden=[0, 4]).__enter__()
    torch.testing.assert_close(states(llama, ids), before, rtol=0, atol=0)
