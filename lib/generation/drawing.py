"""Choose the next token of each row from its logits: the largest, or a draw."""

from collections.abc import Sequence

import torch

from lib.generation import Sampling


def choose(
    logits: torch.Tensor, sampling: Sampling, generators: Sequence[torch.Generator]
) -> list[int]:
    """Return the next token of each row of logits (N, vocabulary).

    It is the largest at temperature 0, else a draw from the nucleus `top_p`. Each row
    draws from its own generator, so that it does not depend on its batch; all rows
    together wait for the device once.
    """
    if sampling.temperature == 0:
        return logits.argmax(-1).tolist()
    probabilities = (logits / sampling.temperature).softmax(-1)
    if sampling.top_p < 1:
        ranked, order = probabilities.sort(descending=True)
        before = ranked.cumsum(-1) - ranked
        outside = before >= sampling.top_p
        probabilities = probabilities.masked_fill(outside.scatter(1, order, outside), 0)

    # In the vocabulary's order, which the last digits of a batch do not change as they
    # do the order of like ones.
    reached = probabilities.double().cumsum(-1)
    draws = [torch.rand(1, generator=own, dtype=torch.float64) for own in generators]
    heights = on_device(torch.cat(draws)[:, None], logits.device) * reached[:, -1:]
    return torch.searchsorted(reached, heights, right=True)[:, 0].tolist()


def on_device(values: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return a tensor of the host's on a device, without a wait.

    A copy from ordinary memory waits; one from pinned memory does not.
    """
    if device.type != "cuda":
        return values
    return values.pin_memory().to(device, non_blocking=True)
