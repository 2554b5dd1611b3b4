"""Whether received attention is what a model's own attention does, tried on ten tokens when it is loaded."""

import torch
from transformers import PreTrainedModel

from lib.attention.function import Recording, record
from lib.errors import InputError

CHECK_TOKENS = 10
# Families that combine several softmax maps into one head: no single map is what a token receives.
COMBINED = ("diffllama",)
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 5e-2, torch.float16: 1e-2}  # of the hidden state's norm


def check_attention(model: PreTrainedModel) -> None:
    """Verify on ten tokens that this module computes what the model's own attention does, in every layer.

    Raises InputError naming the model type when it does not: layers without softmax attention, another mask,
    an ingredient that is unknown here; and when the weights give NaN.
    """
    decoder, family = model.get_decoder(), model.config.model_type
    if family in COMBINED:
        raise InputError(f"model type {family} is not supported: its heads combine several attention matrices")
    count, heads = len(decoder.layers), decoder.config.num_attention_heads
    ids = torch.arange(1, CHECK_TOKENS + 1, device=model.device)[None]
    with torch.inference_mode():
        own = decoder(input_ids=ids, use_cache=False).last_hidden_state
    if not bool(own.isfinite().all()):
        raise InputError(f"the weights of this {family} model give NaN or infinity: damaged, or wrong for {own.dtype}")
    sums = torch.zeros(1, count, heads, 1, CHECK_TOKENS, device=model.device)
    recording = Recording(sums, None, {i: i for i in range(count)}, last=None, keep=False)
    try:
        found = record(decoder, ids, recording).last_hidden_state
    except Exception as error:  # a model's own code may fail in any way on what it does not expect
        raise InputError(f"model type {family} is not supported: {error}") from error
    if silent := [i + 1 for i in range(count) if i not in recording.row_error]:
        raise InputError(f"model type {family} is not supported: layers {silent} show no attention matrix")
    if unseen := [i + 1 for i in range(count) if recording.windows[i] != _window(decoder.config, recording, i)]:
        raise InputError(f"model type {family} is not supported: layers {unseen} do not say how far they look back")
    rows, state = max(recording.row_error.values()), float((found - own).norm() / own.norm())
    if not (rows < 1e-3 and state < TOLERANCE[own.dtype]):
        raise InputError(
            f"model type {family} is not supported: rows of attention miss one by {rows:.1g} "
            f"and the hidden state differs by {state:.1g} from the model's own attention"
        )


def _window(config, recording: Recording, layer: int) -> int | None:
    """Return how many tokens a layer, counted from 0, sees according to the masks made; None for all before it."""
    kinds = getattr(config, "layer_types", None)
    slides = recording.masks and (not kinds or kinds[layer] == "sliding_attention")
    return max(recording.masks) if slides else None
