"""Compute attention for every architecture by one function, and record it.

The function replaces a model's attention while `attending` runs. It is registered with
transformers and receives queries and keys after RoPE and norms, so it serves every
architecture that calls transformers' attention interface. The queries of complete
prompts are processed in blocks of rows: a `Recording` adds up their columns, and
`hiding` masks inserted tokens for later ones. `decoding_step` has the steps of
generation. Scores are kept in float32, because those of Qwen2.5 reach 140,000 in layer
1: rounded to bfloat16, they would change a token's output by a tenth.
"""

import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, cast

import torch
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from lib.attention.blocks import is_gpu, score_blocks, softmax_weights
from lib.attention.decoding_step import Step
from lib.attention.recording import Hiding, Recording, StopForward
from lib.errors import InputError

ATTENTION_NAME = "meaningless_tokens"  # under which transformers knows the function
# What transformers calls layers that mix tokens by a state or a convolution: those of
# Qwen3-Next, Qwen3.5 and LFM2.
OTHER_WAYS = ("linear_attention", "conv")
# Keywords that a model may pass and that change nothing in an inference forward over a
# whole prompt.
HARMLESS = (
    "position_ids",
    "cache_position",
    "use_cache",
    "output_attentions",
    "output_router_logits",
    "is_causal",
    "position_embeddings",
)


# What the attention does beside attending.
Work = tuple[Recording | None, Hiding | None, Step | None]
_work: ContextVar[Work] = ContextVar("work", default=(None, None, None))


def layers_without_attention(model: PreTrainedModel) -> list[int]:
    """Return the layers, counted from 1, that mix tokens in one of OTHER_WAYS."""
    kinds = getattr(model.get_decoder().config, "layer_types", None) or []
    return [layer for layer, kind in enumerate(kinds, 1) if kind in OTHER_WAYS]


def require_attention(model: PreTrainedModel, layers: Iterable[int]) -> None:
    """Raise InputError for layers that have no attention to read or to hide from."""
    if missing := sorted(set(layers_without_attention(model)).intersection(layers)):
        raise InputError(
            f"layers {missing} of this {model.config.model_type} model have no softmax"
            " attention: answers and likelihoods alone can be had of it"
        )


def device_of(model: PreTrainedModel) -> torch.device:
    """Return where a model computes, also one whose first weights lie on disk."""
    places = getattr(model, "hf_device_map", {}).values()
    if "disk" in places and model.device.type == "meta":
        return torch.device("cpu")
    return model.device


def on_device(model: PreTrainedModel, input_ids: torch.Tensor) -> torch.Tensor:
    """Return token ids on the device where a model computes.

    Raises InputError for an id that the model's embedding does not have: on a GPU it
    would end the process.
    """
    embedding = cast(torch.nn.Embedding, model.get_input_embeddings())
    size = len(embedding.weight)
    if input_ids.numel() and (largest := int(input_ids.max())) >= size:
        raise InputError(
            f"the tokenizer gives token {largest}, but the model's embedding ends with"
            f" token {size - 1}: use the tokenizer that belongs to these weights"
        )
    return input_ids.to(device_of(model))


@contextlib.contextmanager
def attending(
    decoder: PreTrainedModel,
    recording: Recording | None = None,
    view: Hiding | None = None,
    step: Step | None = None,
) -> Iterator[None]:
    """Make a decoder use this module's attention until the block ends, in addition to
    the settings of enclosing blocks.

    If the recording has a last layer, the forward pass and the block end after it:
    StopForward ends both, and is caught here.
    """
    before = _work.get()
    work = (recording or before[0], view or before[1], step or before[2])
    token = _work.set(work)
    # What transformers' setter changes after a walk through all modules, which takes a
    # millisecond of every step of generation. The check at load refuses a model whose
    # layers do not read it.
    config = decoder.config
    previous = config._attn_implementation
    config._attn_implementation = ATTENTION_NAME
    try:
        with contextlib.suppress(StopForward):
            yield
    finally:
        config._attn_implementation = previous
        _work.reset(token)


@contextlib.contextmanager
def hiding(
    model: PreTrainedModel,
    spans: Sequence[slice],
    hidden: Collection[int] = (),
    silent: Collection[int] = (),
    visible: Sequence[slice] | None = None,
) -> Iterator[None]:
    """Hide each row's inserted tokens from later tokens in the `hidden` layers until
    the block ends.

    In the `silent` layers they are seen as keys, which enlarges the softmax's
    denominator, but their values count as zero. Positions stay; spans: one per row of
    the batch, in positions of the whole prompt, also where a cache holds its beginning.
    `visible`: the part of each span that stays as it is; None: nothing of it. Layers
    count from 1. Raises InputError for a layer that the model lacks.
    """
    decoder = model.get_decoder()
    last = decoder.config.num_hidden_layers
    missing = {layer for layer in (*hidden, *silent) if not 1 <= layer <= last}
    if missing:
        raise InputError(
            f"hiding in layers {sorted(missing)} was requested; the model has layers 1"
            f" to {last}"
        )
    require_attention(model, (*hidden, *silent))
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
    with attending(decoder, view=Hiding(inserted, shown, layers)):
        yield


def _attend(
    module,
    query: torch.Tensor,  # (B, H, T, D)
    key: torch.Tensor,  # (B, K, T, D): K key heads, each serving H / K query heads
    value: torch.Tensor,
    attention_mask,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    # (H,) score of the sink, a place outside the prompt that takes mass
    s_aux: torch.Tensor | None = None,
    dropout: float = 0.0,
    **others,
) -> tuple[torch.Tensor, None]:
    _refuse_unknown(module, others)
    recording, view, step = _work.get()
    layer = module.layer_idx
    tokens = key.shape[2]
    if step and softcap is None and s_aux is None:
        return step.attend(query, key, value, sliding_window, scaling), None
    mask = step.mask(tokens, sliding_window, query.dtype) if step else None

    recorded = None
    if recording:
        recording.windows[layer] = sliding_window
        recorded = recording if layer in recording.index else None
    ends = recorded is not None and layer == recorded.last
    is_mixed = not ends or (recorded and recorded.outputs is not None)

    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    if not is_gpu(query):  # where products of halves have no sums in float32
        query, key = query.float(), key.float()
    # Queries are scaled instead of all scores, where that rounds nothing.
    power_of_two = math.frexp(scaling)[0] == 0.5
    if query.dtype == torch.float32 or power_of_two:
        query = query * scaling
        scaling = 1.0
    grouped = query.unflatten(1, (key.shape[1], -1))  # (B, K, groups, T, D)
    values = value.flatten(0, 1)
    mixed = []
    blocks = score_blocks(grouped, key, scaling, sliding_window, softcap, mask)
    for start, first, scores in blocks:
        stop = start + scores.shape[2]
        if view:
            view.change("hidden", layer, scores, start, first, -torch.inf)
        weights = softmax_weights(scores, s_aux)
        if view:
            view.change("silent", layer, weights, start, first, 0.0)
        if recorded:
            recorded.add(layer, weights, start, first)
        if is_mixed:
            weights = weights.to(value.dtype).view(len(values), -1, stop - first)
            outputs = weights @ values[:, first:stop]
            mixed.append(outputs.view(*query.shape[:2], -1, value.shape[-1]))
    # (B, T, H, D), or nothing
    output = torch.cat(mixed, 2).transpose(1, 2) if is_mixed else value.new_empty(0)
    if recorded:
        recorded.keep(layer, value, output)
    if ends:
        raise StopForward
    return output.contiguous(), None


def _refuse_unknown(module, keywords: dict[str, Any]) -> None:
    """Raise InputError for what a model passes and this attention would leave out."""
    unknown = sorted(
        name
        for name, value in keywords.items()
        if value is not None and name not in HARMLESS
    )
    if unknown:
        raise InputError(
            f"{type(module).__name__} uses {', '.join(unknown)}, which this attention"
            " lacks"
        )


def _no_mask(
    *,
    mask_function: Callable,
    config,
    local_size: int | None = None,
    use_vmap: bool = False,
    **_,
) -> None:
    """Build no mask, because `score_blocks` hides later tokens.

    Raises InputError if the model's mask is neither causal nor a causal window: chunks,
    or blocks of images.
    """
    recording, _, step = _work.get()
    # Zero is of models whose windows are switched off, used by none of their layers.
    if step or local_size == 0:
        return
    window = local_size or 2
    for query, key in (
        (0, 1),
        (0, 0),
        (window - 1, 0),
        (window, 0),
        (window + 1, 1),
        (window + 1, 2),
    ):
        expected = key <= query and (local_size is None or query - key < window)
        place = (torch.tensor(query), torch.tensor(key))
        if use_vmap or bool(mask_function(torch.tensor(0), 0, *place)) != expected:
            raise InputError(
                f"{config.model_type} masks its attention in a way that received"
                " attention lacks"
            )
    if recording and local_size:
        recording.masks.add(local_size)


AttentionInterface.register(ATTENTION_NAME, _attend)
AttentionMaskInterface.register(ATTENTION_NAME, _no_mask)
