"""Hide inserted tokens from later ones in the attention of some layers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from lib.attention.model_properties import device_of
from lib.errors import InputError


@dataclass(frozen=True)
class Hiding:
    """The inserted tokens of each row that are hidden from later tokens, as `hiding`
    describes.
    """

    # (2, B, 1, 1): start and stop of the inserted tokens, and of their visible part
    inserted: torch.Tensor
    visible: torch.Tensor
    # The layers, counted from zero, by "hidden" and "silent".
    layers: dict[str, frozenset[int]]

    def change(
        self,
        how: str,
        layer: int,
        block: torch.Tensor,
        start: int,
        first: int,
        value: float,
    ) -> None:
        """Set the elements of a block (B, H, Q, keys) at which later tokens attend to
        hidden ones to `value`, if the layer is one of `layers[how]`.

        how: "hidden" for scores, "silent" for weights. layer: counted from zero. start,
        first: positions of the block's first query and of its first key.
        """
        if layer not in self.layers[how]:
            return
        queries = torch.arange(start, start + block.shape[2], device=block.device)
        keys = torch.arange(first, first + block.shape[3], device=block.device)
        _, stops = self.inserted
        is_later = queries[:, None] >= stops
        is_inserted = _within(keys, self.inserted)
        is_visible = _within(keys, self.visible)
        hidden = (is_later & is_inserted & ~is_visible)[:, None]
        # The common prefix of all rows is computed as a batch of one row.
        block.masked_fill_(hidden[: len(block)], value)


def hidden_tokens(
    model: PreTrainedModel,
    spans: Sequence[slice],
    hidden: Collection[int],
    silent: Collection[int],
    visible: Sequence[slice] | None,
) -> Hiding:
    """Return the tokens that `lib.attention.custom_attention.hiding` hides, given its
    arguments.

    Raises InputError for a layer that the model lacks.
    """
    last = model.get_decoder().config.num_hidden_layers
    missing = {layer for layer in (*hidden, *silent) if not 1 <= layer <= last}
    if missing:
        raise InputError(
            f"hiding in layers {sorted(missing)} was requested; the model has layers 1"
            f" to {last}"
        )
    visible = visible or [slice(0, 0)] * len(spans)
    ends = [
        [[span.start for span in of_rows], [span.stop for span in of_rows]]
        for of_rows in (spans, visible)
    ]
    # (2, B, 1, 1) each
    inserted, shown = torch.tensor(ends, device=device_of(model))[..., None, None]
    layers = {
        "hidden": frozenset(n - 1 for n in hidden),
        "silent": frozenset(n - 1 for n in silent),
    }
    return Hiding(inserted, shown, layers)


def _within(positions: torch.Tensor, spans: torch.Tensor) -> torch.Tensor:
    """Return whether positions (T,) lie in spans (2, B, 1, 1), as (B, 1, T)."""
    starts, stops = spans
    return (positions >= starts) & (positions < stops)
