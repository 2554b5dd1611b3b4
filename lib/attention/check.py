"""Whether received attention is what a model's own attention does.

It is tried on ten tokens when a model is loaded.
"""

from typing import Any, NamedTuple

import torch
from transformers import PreTrainedModel

from lib.attention.function import Recording, attending
from lib.errors import InputError

CHECK_TOKENS = 10
# Families that combine several softmax maps into one head: no single map is what a
# token receives.
COMBINED = ("diffllama",)
# From one input to one attention output, each of up to the dtype's epsilon.
ROUNDINGS = 4
# The tolerance where the epsilon is too small to matter: sums are taken in another
# order.
LEAST_TOLERANCE = 1e-4


class _Call(NamedTuple):
    """A call of an attention module in the model's own forward."""

    module: Any
    args: tuple
    options: dict
    output: Any


@torch.inference_mode()
def check_attention(model: PreTrainedModel) -> None:
    """Verify on ten tokens that this module computes what the model's own attention
    does, in every layer.

    Each attention module is given the very inputs it has in the model's own forward, so
    that rounding does not pile up. Raises InputError naming the model type when it does
    not: layers without softmax attention, another mask, an ingredient that is unknown
    here; and when the weights give NaN.
    """
    decoder = model.get_decoder()
    family = model.config.model_type
    refusal = f"model type {family} is not supported"
    if family in COMBINED:
        raise InputError(f"{refusal}: its heads combine several attention matrices")
    ids = torch.arange(1, CHECK_TOKENS + 1, device=model.device)[None]
    state, calls = _own_forward(decoder, ids)
    if not state.isfinite().all():
        raise InputError(
            f"weights of this {family} model give NaN or infinity: damaged, or wrong"
            f" for {state.dtype}"
        )

    # A model's own code may fail in any way on what it does not expect.
    recording = Recording()
    try:
        differences = _differences(decoder, ids, calls, recording)
    except Exception as error:
        raise InputError(f"{refusal}: {error}") from error

    numbers = range(decoder.config.num_hidden_layers)
    if silent := [i + 1 for i in numbers if i not in recording.windows]:
        raise InputError(f"{refusal}: layers {silent} show no attention matrix")
    windows = _expected_windows(decoder, recording)
    if unseen := [i + 1 for i in numbers if recording.windows[i] != windows[i]]:
        raise InputError(
            f"{refusal}: layers {unseen} do not say how far they look back"
        )
    worst = max(differences, key=lambda layer: differences[layer])
    tolerance = max(LEAST_TOLERANCE, ROUNDINGS * torch.finfo(state.dtype).eps)
    if not differences[worst] < tolerance:  # nor NaN
        raise InputError(
            f"{refusal}: the output of layer {worst + 1} differs by"
            f" {differences[worst]:.1g} from the model's own attention"
        )


def _own_forward(
    decoder: PreTrainedModel, ids: torch.Tensor
) -> tuple[torch.Tensor, list[_Call]]:
    """Return the last hidden state of the model's own forward, and the calls of its
    attention modules.
    """
    # Whatever calls the attention interface has a layer_idx; some layers have one
    # themselves, but keep the residual stream, beside which a wrong attention may look
    # small.
    layers = set(decoder.get_submodule("layers").children())
    calls = []

    def keep(*call) -> None:
        calls.append(_Call(*call))

    hooks = [
        module.register_forward_hook(keep, with_kwargs=True)
        for module in decoder.modules()
        if hasattr(module, "layer_idx") and module not in layers
    ]
    state = decoder(input_ids=ids, use_cache=False).last_hidden_state
    for hook in hooks:
        hook.remove()
    return state, calls


def _differences(
    decoder: PreTrainedModel,
    ids: torch.Tensor,
    calls: list[_Call],
    recording: Recording,
) -> dict[int, float]:
    """Return by layer how far this attention's output is from the model's own, relative
    to its norm; the recording learns of windows and masks.
    """
    differences: dict[int, float] = {}
    with attending(decoder, recording=recording):
        decoder(input_ids=ids, use_cache=False)
        for call in calls:
            expected = _attention_output(call.output)
            output = _attention_output(call.module(*call.args, **call.options))
            difference = float((output - expected).norm() / expected.norm())
            layer = call.module.layer_idx
            differences[layer] = max(difference, differences.get(layer, 0.0))
    return differences


def _attention_output(output: Any) -> torch.Tensor:
    return (output[0] if isinstance(output, tuple) else output).float()


def _expected_windows(
    decoder: PreTrainedModel, recording: Recording
) -> dict[int, int | None]:
    """Return how far each layer sees: as the masks made for its kind; None: all before
    it.
    """
    kinds = getattr(decoder.config, "layer_types", None)
    widest = max(recording.masks, default=None)
    return {
        i: widest if not kinds or kinds[i] == "sliding_attention" else None
        for i in range(decoder.config.num_hidden_layers)
    }
