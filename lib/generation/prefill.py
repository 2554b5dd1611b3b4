"""Take whole prompts through a model, for their caches and for logits where needed."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import cast

import torch
from transformers import DynamicCache, PreTrainedModel

from lib.attention.function import device_of, without_attention
from lib.errors import InputError
from lib.prompts.batches import pad


@torch.inference_mode()
def prefill(
    model: PreTrainedModel,
    rows: Sequence[list[int]],
    places: Sequence[range],
    changed: list[int] | None = None,
) -> tuple[DynamicCache, torch.Tensor]:
    """Run rows of ids through a model.

    Return its cache, and the logits (N, vocabulary) in float32 at each row's `places`.
    What all rows begin with is computed once, unless ARM is at work: then `changed`
    says how many first tokens of each row it changes. Of a model with other layers than
    those of attention the cache is of use for one row alone: several are padded.
    """
    plain = not without_attention(model)
    if changed and not plain:
        raise InputError(
            f"{model.config.model_type}: ARM needs a model whose layers all have"
            " attention"
        )
    device = device_of(model)
    # Sliding windows of the family's own cache would drop what rows may still share.
    cache = DynamicCache(config=None if plain else model.config.get_text_config())
    shared: list[int] = []
    if plain and not changed:
        before = [row[: at.start] for row, at in zip(rows, places, strict=True)]
        shared += os.path.commonprefix(before)  # noqa: RUF071 (of any sequences, here ids)
    if shared:
        beginning = torch.tensor([shared], device=device)
        decoder = model.get_decoder()
        decoder(input_ids=beginning, past_key_values=cache, use_cache=True)
        cache.batch_repeat_interleave(len(rows))

    begun = len(shared)
    ids = pad([torch.tensor(row[begun:]) for row in rows])[0].to(device)
    flat = [(row, place - begun) for row, at in enumerate(places) for place in at]
    with logits_at(model, *torch.tensor(flat, device=device).T):
        output = model(
            input_ids=ids,
            attention_mask=_real(ids, changed),
            past_key_values=cache,
            use_cache=True,
        )
    return cache, output.logits[0].float()


def _real(ids: torch.Tensor, changed: list[int] | None) -> torch.Tensor | None:
    """Return the mask that tells ARM which tokens it changes; None without ARM.

    From attention it hides the padding alone, which no real token sees.
    """
    if not changed:
        return None
    place = torch.arange(ids.shape[1], device=ids.device)
    return (place < torch.tensor(changed, device=ids.device)[:, None]).long()


@contextlib.contextmanager
def logits_at(
    model: PreTrainedModel, rows: torch.Tensor, places: torch.Tensor
) -> Iterator[None]:
    """Let a model give the logits (1, N, vocabulary) of these places alone.

    `rows` and `places` (N,) name them in the whole batch of a forward.
    """

    def only_these(_, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        return (inputs[0][rows, places][None],)

    head = cast(torch.nn.Module, model.get_output_embeddings())
    handle = head.register_forward_pre_hook(only_these)
    try:
        yield
    finally:
        handle.remove()
