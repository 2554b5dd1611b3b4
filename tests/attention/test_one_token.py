"""One decode step against a whole forward: tiny models of every family, and scores of any size."""

from types import SimpleNamespace

import pytest
import torch
from families import FAMILIES, spread
from transformers import DynamicCache

from lib.attention import function
from lib.generation.engine import SlotCache

# Logits of a step may differ from a whole forward's by a few roundings of the dtype, relative to their norm.
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 0.05, torch.float16: 0.01}


def assert_a_step_is_a_whole_forward(model, prompts, tolerance):
    """Compare the last tokens' logits (B, vocabulary) by a decode step from a cache with those of whole forwards."""
    decoder, head = model.get_decoder(), model.get_output_embeddings()
    lengths = torch.tensor([len(ids) - 1 for ids in prompts])
    cache, whole = SlotCache(len(prompts), 64 + int(lengths.max())), []
    with torch.inference_mode():
        for row, ids in enumerate(prompts):
            prefilled = DynamicCache()
            decoder(input_ids=ids[None, :-1], past_key_values=prefilled, use_cache=True)
            cache.write(row, prefilled, 0, len(ids) - 1)
            whole.append(head(decoder(input_ids=ids[None], use_cache=False).last_hidden_state[0, -1]))
        cache.begin_step(len(prompts), lengths.device)
        with function.attending_from_one_token(decoder, lengths):
            given = {"position_ids": lengths[:, None], "past_key_values": cache, "use_cache": True}
            step = decoder(input_ids=torch.stack([ids[-1:] for ids in prompts]), **given)
        found, expected = head(step.last_hidden_state[:, -1]).float(), torch.stack(whole).float()
    assert float(((found - expected).norm(dim=-1) / expected.norm(dim=-1)).max()) < tolerance


@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_gives_the_logits_of_a_whole_forward_in_every_dtype(family):
    torch.manual_seed(1)
    model = spread(FAMILIES[family](), 0.1)
    prompts = [torch.randint(3, 97, (length,)) for length in (21, 9, 30)]
    for dtype, tolerance in TOLERANCES.items():
        assert_a_step_is_a_whole_forward(model.to(dtype), prompts, tolerance)


@pytest.mark.parametrize("ingredients", [{}, {"softcap": 1e6}, {"sliding_window": 5}, {"s_aux": torch.full((6,), 8.0)}])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.bfloat16, 1e-2), (torch.float16, 2e-3)])
def test_scores_in_the_hundred_thousands_keep_their_differences(dtype, tolerance, ingredients):
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(4, *shape, generator=generator) for shape in ((6, 1, 8), (2, 12, 8), (2, 12, 8)))
    common = torch.full((8,), 220.0)  # puts every score near 8 * 220 * 220 = 387,200
    query, key, value = (part.to(dtype) for part in (query + common, key + common, value))
    lengths = torch.tensor([11, 3, 7, 0])
    decoder = SimpleNamespace(config=SimpleNamespace(_attn_implementation="eager"))
    with function.attending_from_one_token(decoder, lengths):
        given = (torch.nn.Identity(), query, key, value, None)
        found, _ = function._attend_from_one_token(*given, scaling=1.0, **ingredients)
    for row, last in enumerate(lengths.tolist()):
        first = max(0, last - 4) if "sliding_window" in ingredients else 0
        for head in range(6):
            seen = slice(first, last + 1)
            scores = key[row, head // 3, seen].double() @ query[row, head, 0].double()
            if "softcap" in ingredients:
                scores = torch.tanh(scores / 1e6) * 1e6
            if "s_aux" in ingredients:
                scores = torch.cat([scores, torch.tensor([8.0]).double()])
            weights = scores.softmax(0)[: last + 1 - first]
            expected = weights @ value[row, head // 3, seen].double()
            torch.testing.assert_close(found[row, 0, head].double(), expected, rtol=0, atol=4 * tolerance)
