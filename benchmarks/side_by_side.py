"""Received attention against what it cannot do without, on the demo model.

    python benchmarks/side_by_side.py [--tokens 128 256 1024] [--repeats 15]

All layers against a plain forward with SDPA, and layer 1 against its floor: embedding,
norm, the q and k projections, causal scores, exp and column sums in the best torch
calls, without what the model adds to them (rotary positions, values). The ways take
turns in one process, on one thread. Times are of the processor, which other work on the
machine disturbs least. Writes benchmarks/results/side_by_side.csv and prints the table:
milliseconds and ratios, medians over the turns.
"""

import statistics
import time

import pandas as pd
import torch
from measuring import in_turns, keep, lengths_and_repeats, random_ids

from lib.attention.function import BLOCK_ELEMENTS
from lib.attention.received import received_attention
from lib.models.loading import load

# A ratio is of two ways in the same turn.
RATIOS = (("all", "sdpa"), ("layer1", "floor"))


def floor(decoder, ids: torch.Tensor) -> torch.Tensor:
    """Return column sums (H, T) of the first layer's attention.

    Positions and values are left out.
    """
    attention = decoder.layers[0].self_attn
    heads = decoder.config.num_attention_heads
    groups = decoder.config.num_key_value_heads
    width = decoder.config.head_dim
    tokens = ids.shape[1]

    hidden = decoder.layers[0].input_layernorm(decoder.embed_tokens(ids))
    query = attention.q_proj(hidden).view(tokens, groups, -1, width)
    query = query.permute(1, 2, 0, 3) * width**-0.5
    key = attention.k_proj(hidden).view(tokens, groups, width).permute(1, 2, 0)

    sums = torch.zeros(heads, 1, tokens)
    size = max(16, min(tokens, BLOCK_ELEMENTS // (heads * tokens)))
    for start in range(0, tokens, size):
        stop = min(start + size, tokens)
        scores = query[:, :, start:stop].flatten(1, 2) @ key[..., :stop]
        weights = scores.view(heads, stop - start, stop).exp_()
        weights[..., start:].tril_()
        sums[..., :stop] += weights.sum(-1).reciprocal_()[:, None] @ weights
    return sums


def row(model, tokens: int, repeats: int) -> dict:
    """Return the medians of one length."""
    decoder = model.get_decoder()
    ids = random_ids(tokens)
    ways = {
        "all": lambda: received_attention(model, ids),
        "sdpa": lambda: decoder(ids, use_cache=False),
        "layer1": lambda: received_attention(model, ids, [1]),
        "floor": lambda: floor(decoder, ids),
    }
    with torch.inference_mode():
        times = in_turns(ways, repeats, time.process_time)

    medians: dict[str, float] = {"tokens": tokens}
    for name, seconds in times.items():
        medians[f"{name}_ms"] = 1000 * statistics.median(seconds)
    for ours, other in RATIOS:
        pairs = zip(times[ours], times[other], strict=True)
        medians[f"{ours}_of_{other}"] = statistics.median(a / b for a, b in pairs)
    return medians


def main() -> None:
    """Measure every length and write the table."""
    options = lengths_and_repeats(__doc__, [128, 256, 512, 1024, 2048, 4096], 15)
    torch.set_num_threads(1)
    model = load("demo", device="cpu", dtype="float32").model
    rows = [row(model, tokens, options.repeats) for tokens in options.tokens]
    table = pd.DataFrame(rows)
    keep("side_by_side", table, repeats=options.repeats)
    print(table.round(2).to_string(index=False))


if __name__ == "__main__":
    main()
