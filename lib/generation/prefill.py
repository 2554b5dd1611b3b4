"""Take whole prompts through a model, for their caches and for logits where needed."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch
from transformers import DynamicCache, PreTrainedModel

from lib.attention.turns import in_own_turn
from lib.prompts.batches import pad

# Has another forward go through each layer just before that of the block.
Behind = Callable[[Callable[[], object]], contextlib.AbstractContextManager[None]]


class AfterBeginning(DynamicCache):
    """What rows see of their common beginning, whose forward is a layer ahead; of the
    rows themselves nothing is kept.
    """

    def __init__(self, beginning: DynamicCache, length: int):
        super().__init__()
        self.beginning = beginning
        self.length = length

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *_
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values of the beginning and the rows, (B, K, T, D)."""
        first: Any = self.beginning.layers[layer_idx]
        rows = len(key_states)
        keys = torch.cat([first.keys.expand(rows, -1, -1, -1), key_states], 2)
        values = torch.cat([first.values.expand(rows, -1, -1, -1), value_states], 2)
        return keys, values

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return the tokens of the beginning, also before its first layer."""
        return self.length

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """Return how many keys queries see, and that the first of them is here."""
        return self.length + query_length, 0


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
    says how many first tokens of each row it changes.
    """
    cache = DynamicCache()
    shared = _shared(rows, places, changed)
    if shared:
        _begin(model, shared, cache)
        cache.batch_repeat_interleave(len(rows))
    return cache, _logits(model, rows, places, changed, len(shared), cache)


@torch.inference_mode()
def logits_of(
    model: PreTrainedModel,
    rows: Sequence[list[int]],
    places: Sequence[range],
    changed: list[int] | None = None,
    behind: Behind | None = None,
) -> torch.Tensor:
    """Return what `prefill` does without its cache, which grows with every layer.

    What all rows begin with is computed once where their forward can go `behind` it.
    """
    shared = _shared(rows, places, changed)
    if behind is None or not shared:
        return _logits(model, rows, places, changed)
    beginning = DynamicCache()
    seen = AfterBeginning(beginning, len(shared))
    with behind(functools.partial(_begin, model, shared, beginning)):
        return _logits(model, rows, places, changed, len(shared), seen)


def _shared(
    rows: Sequence[list[int]], places: Sequence[range], changed: list[int] | None
) -> list[int]:
    """Return the ids that all rows begin with before their places; none with ARM."""
    if changed:
        return []
    before = [row[: at.start] for row, at in zip(rows, places, strict=True)]
    return list(os.path.commonprefix(before))  # noqa: RUF071 (of any sequences, here ids)


def _begin(model: PreTrainedModel, shared: list[int], cache: DynamicCache) -> None:
    """Fill a cache with what rows begin with."""
    ids = torch.tensor([shared], device=model.device)
    model.get_decoder()(input_ids=ids, past_key_values=cache, use_cache=True)


def _logits(
    model: PreTrainedModel,
    rows: Sequence[list[int]],
    places: Sequence[range],
    changed: list[int] | None,
    begun: int = 0,
    cache: DynamicCache | None = None,
) -> torch.Tensor:
    """Return the logits (N, vocabulary) in float32 at each row's places, of whose rows
    a cache holds the first `begun` tokens.
    """
    device = model.device
    ids = pad([torch.tensor(row[begun:]) for row in rows])[0].to(device)
    flat = [(row, place - begun) for row, at in enumerate(places) for place in at]
    with logits_at(model, *torch.tensor(flat, device=device).T):
        output = model(
            input_ids=ids,
            attention_mask=_real(ids, changed),
            past_key_values=cache,
            use_cache=cache is not None,
        )
    return output.logits[0].float()


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
    handle = head.register_forward_pre_hook(in_own_turn(only_these))
    try:
        yield
    finally:
        handle.remove()
