"""Hiding inserted tokens from later ones, on tiny random models,
compared with masks made by hand in eager attention.
"""

import pytest
import torch
from eager import hidden_by_hand
from transformers import DynamicCache

from lib.attention import query_blocks
from lib.attention.custom_attention import hiding
from lib.attention.received import received_attention

SPAN = slice(4, 9)
EVERY_LAYER = (1, 2, 3)


def states(model, ids, **others):
    decoder = model.get_decoder()
    ids = torch.atleast_2d(ids)
    with torch.inference_mode():
        return decoder(input_ids=ids, use_cache=False, **others).last_hidden_state


def same(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4, equal_nan=True)


def cut_by_hand(visible=slice(0, 0)):
    """Return the mask (query, key) of hidden pairs, (20, 20): queries after SPAN and
    keys in SPAN that are not visible.
    """
    position = torch.arange(20)
    is_later = position[:, None] >= SPAN.stop
    is_inserted = (position >= SPAN.start) & (position < SPAN.stop)
    is_visible = (position >= visible.start) & (position < visible.stop)
    return is_later & is_inserted & ~is_visible


@pytest.mark.parametrize("hidden", [(), (1,), (2, 3), EVERY_LAYER], ids=str)
def test_hiding_a_span_equals_a_mask_made_by_hand(model, hidden, monkeypatch):
    monkeypatch.setattr(query_blocks, "BLOCK_ELEMENTS", 1)
    ids = torch.randint(3, 97, (20,))
    with hiding(model, [SPAN], hidden=hidden):
        by_module = states(model, ids)
    with hidden_by_hand(model, cut_by_hand(), hidden):
        same(by_module, states(model, ids))


@pytest.mark.parametrize("visible", [slice(4, 5), slice(5, 7), slice(8, 9)], ids=str)
def test_hiding_all_but_some_tokens_equals_a_mask_made_by_hand(model, visible):
    ids = torch.randint(3, 97, (20,))
    with hiding(model, [SPAN], hidden=EVERY_LAYER, visible=[visible]):
        by_module = states(model, ids)
    with hidden_by_hand(model, cut_by_hand(visible), EVERY_LAYER):
        same(by_module, states(model, ids))


def test_a_span_that_is_visible_in_full_is_not_hidden(model):
    ids = torch.randint(3, 97, (20,))
    with hiding(model, [SPAN], hidden=EVERY_LAYER, visible=[SPAN]):
        shown = states(model, ids)
    same(shown, states(model, ids))


def test_each_row_hides_another_span_and_a_cached_prefix_changes_nothing(llama):
    spans = [slice(4, 9), slice(6, 7)]
    ids = torch.randint(3, 97, (2, 20))
    ids[1, :5] = ids[0, :5]
    expected = []
    for row, span in zip(ids, spans, strict=True):
        with hiding(llama, [span], hidden=[1], silent=[2]):
            expected.append(states(llama, row)[0, 5:])
    cached = {"past_key_values": DynamicCache(), "use_cache": True}
    with hiding(llama, spans, hidden=[1], silent=[2]), torch.inference_mode():
        llama.model(input_ids=ids[:1, :5], **cached)
        cached["past_key_values"].batch_repeat_interleave(2)
        together = llama.model(input_ids=ids[:, 5:], **cached).last_hidden_state
    same(together, torch.stack(expected))


def test_hidden_and_silent_tokens_receive_no_attention_and_others_are_unchanged(llama):
    ids = torch.randint(3, 97, (20,))
    (before,) = received_attention(llama, ids, [1])[0]
    with hiding(llama, [SPAN], hidden=[2], silent=[1]):
        silenced, hidden = received_attention(llama, ids, [1, 2])[0]
    for received in (silenced, hidden):
        assert float(received[:, SPAN.stop - 1].abs().max()) == 0
    same(silenced[:, : SPAN.start], before[:, : SPAN.start])
    same(silenced[:, SPAN.stop :], before[:, SPAN.stop :])


def test_tokens_can_be_silent_in_a_model_that_hides_them_in_no_layer(llama):
    ids = torch.randint(3, 97, (20,))
    with hiding(llama, [SPAN], silent=[1]):
        (silenced,) = received_attention(llama, ids, [1])[0]
    assert float(silenced[:, SPAN.stop - 1].abs().max()) == 0


def test_the_model_attends_as_before_when_the_block_ends(llama, refused):
    ids = torch.randint(3, 97, (20,))
    before = states(llama, ids)
    with pytest.raises(ZeroDivisionError), hiding(llama, [SPAN], hidden=EVERY_LAYER):
        raise ZeroDivisionError
    said = "layers [0, 4] was requested; the model has layers 1 to 3"
    assert said in refused(hiding(llama, [SPAN], hidden=[0, 4]).__enter__)
    torch.testing.assert_close(states(llama, ids), before, rtol=0, atol=0)
