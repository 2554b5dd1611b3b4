"""Choose the next token of each row from its logits: the largest, or a draw."""

from collections.abc import Sequence

import torch

from lib.generation.requests import Sampling


def choose(
    logits: torch.Tensor, sampling: Sampling, generators: Sequence[torch.Generator]
) -> list[int]:
    """Return the next token of each row of logits (N, vocabulary).

    It is the largest at temperature 0, else a draw from the nucleus `top_p`. Each row
    draws from its own generator, so that it does not depend on its batch.
    """
    if sampling.temperature == 0:
        return logits.argmax(-1).tolist()
    probabilities = (logits / sampling.temperature).softmax(-1)
    if sampling.top_p < 1:
        ranked, order = probabilities.sort(descending=True)
        outside = ranked.cumsum(-1) - ranked >= sampling.top_p
        outside = outside.scatter(1, order, outside)
        probabilities = probabilities.masked_fill(outside, 0)

    # In the vocabulary's order, which the last digits of a batch do not change as they
    # do the order of like ones.
    reached = probabilities.double().cumsum(-1)
    draws = [torch.rand(1, generator=own, dtype=torch.float64) for own in generators]
    places = torch.cat(draws)[:, None].to(logits.device) * reached[:, -1:]
    return torch.searchsorted(reached, places, right=True)[:, 0].tolist()
