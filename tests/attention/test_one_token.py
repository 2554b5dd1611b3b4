"""The attention of one new token per row: scores of any size."""

from types import SimpleNamespace

import pytest
import torch

from lib.attention import function


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
