"""Choose the next token of each row from its logits: the largest, or a draw."""

from collections.abc import Sequence

import torch

from lib.generation.requests import Sampling

# Tokens among which a nucleus is looked for before the whole vocabulary is sorted.
NUCLEUS = 1024


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
    draws = [torch.rand(1, generator=own, dtype=torch.float64) for own in generators]
    draws = on_device(torch.cat(draws)[:, None], logits.device)
    probabilities = (logits / sampling.temperature).softmax(-1)
    if sampling.top_p == 1:
        return _draw_tokens(probabilities, draws)[:, 0].tolist()

    if logits.device.type == "cuda":
        # A sort of whole vocabularies would take longer than a layer.
        chosen = _drawn_among_few(probabilities, draws, sampling.top_p).tolist()
        if -1 not in chosen:
            return chosen
    nucleus = _nucleus(probabilities, sampling.top_p)
    return _draw_tokens(nucleus, draws)[:, 0].tolist()


def _nucleus(probabilities: torch.Tensor, top_p: float) -> torch.Tensor:
    """Return probabilities (N, tokens) with 0 for what is outside of the nucleus.

    Of like ones on a GPU the first count.
    """
    stable = probabilities.device.type == "cuda"
    ranked, order = probabilities.sort(descending=True, stable=stable)
    outside = ranked.cumsum(-1) - ranked >= top_p
    return probabilities.masked_fill(outside.scatter(1, order, outside), 0)


def _drawn_among_few(
    probabilities: torch.Tensor, draws: torch.Tensor, top_p: float
) -> torch.Tensor:
    """Return the tokens (N,) that draws fall on in each row's nucleus.

    It is looked for among the NUCLEUS most probable tokens. -1 stands where these are
    not enough: where they do not hold the nucleus, with all that is as probable as its
    last token.
    """
    count = min(NUCLEUS, probabilities.shape[1])
    # In the vocabulary's order, which a stable sort leaves among like ones.
    tokens = probabilities.topk(count, sorted=False).indices.sort().values
    among = probabilities.gather(1, tokens)
    nucleus = _nucleus(among, top_p)
    last = nucleus.masked_fill(nucleus == 0, torch.inf).amin(-1)
    enough = last > among.amin(-1)
    chosen = tokens.gather(1, _draw_tokens(nucleus, draws))[:, 0]
    return torch.where(enough, chosen, -1)


def _draw_tokens(probabilities: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """Return the places (N, 1) that draws from [0, 1) fall on."""
    # In the vocabulary's order, which the last digits of a batch do not change as they
    # do the order of like ones.
    reached = probabilities.double().cumsum(-1)
    return torch.searchsorted(reached, draws * reached[:, -1:], right=True)


def on_device(values: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return a tensor of the host's on a device, without a wait.

    A copy from ordinary memory waits; one from pinned memory does not.
    """
    if device.type != "cuda":
        return values
    return values.pin_memory().to(device, non_blocking=True)
