"""Whether received attention is what a model's own attention does, tried on ten tokens
when it is loaded.
"""

import torch
from transformers import PreTrainedModel

from lib.attention.function import Recording, attending
from lib.errors import InputError

CHECK_TOKENS = 10
# Families that combine several softmax maps into one head: no single map is what a
# token receives.
COMBINED = ("diffllama",)
ROUNDINGS = (
    4  # from one input to one attention output, each of up to the dtype's epsilon
)
# tolerance where the epsilon is too small to matter: sums are taken in another order
LEAST = 1e-4


@torch.inference_mode()
def check_attention(model: PreTrainedModel) -> None:
    """Verify on ten tokens that this module computes what the model's own attention
    does, in every layer.

    Each attention module is given the very inputs it has in the model's own forward, so
    that rounding does not pile up. Raises InputError naming the model type when it does
    not: layers without softmax attention, another mask, an ingredient that is unknown
    here; and when the weights give NaN.
    """
    decoder, family = model.get_decoder(), model.config.model_type
    if family in COMBINED:
        raise InputError(
            f"model type {family} is not supported: its heads combine several attention"
            " matrices"
        )
    ids = torch.arange(1, CHECK_TOKENS + 1, device=model.device)[None]
    # Whatever calls the attention interface has a layer_idx; some layers have one
    # themselves, but keep the residual stream, beside which a wrong attention may look
    # small.
    layers, calls = set(decoder.get_submodule("layers").children()), []
    modules = [
        m for m in decoder.modules() if hasattr(m, "layer_idx") and m not in layers
    ]
    hooks = [
        m.register_forward_hook(lambda *call: calls.append(call), with_kwargs=True)
        for m in modules
    ]
    state = decoder(input_ids=ids, use_cache=False).last_hidden_state
    for hook in hooks:
        hook.remove()
    if not state.isfinite().all():
        raise InputError(
            f"weights of this {family} model give NaN or infinity: damaged, or wrong"
            f" for {state.dtype}"
        )
    recording, numbers = Recording(), range(decoder.config.num_hidden_layers)
    differences: dict[
        int, float
    ] = {}  # of each layer's outputs, relative to their norm
    try:
        with attending(decoder, recording=recording):
            decoder(input_ids=ids, use_cache=False)
            for module, args, given, output in calls:
                both = output, module(*args, **given)
                expected, found = (
                    (one[0] if isinstance(one, tuple) else one).float() for one in both
                )
                off = float((found - expected).norm() / expected.norm())
                differences[module.layer_idx] = max(
                    off, differences.get(module.layer_idx, 0.0)
                )
    except (
        Exception
    ) as error:  # a model's own code may fail in any way on what it does not expect
        raise InputError(f"model type {family} is not supported: {error}") from error
    if silent := [i + 1 for i in numbers if i not in recording.windows]:
        raise InputError(
            f"model type {family} is not supported: layers {silent} show no attention"
            " matrix"
        )
    # A layer sees as far as the masks made for its kind; None: all before it.
    kinds, widest = (
        getattr(decoder.config, "layer_types", None),
        max(recording.masks, default=None),
    )
    seen = {
        i: widest if not kinds or kinds[i] == "sliding_attention" else None
        for i in numbers
    }
    if unseen := [i + 1 for i in numbers if recording.windows[i] != seen[i]]:
        raise InputError(
            f"model type {family} is not supported: layers {unseen} do not say how far"
            " they look back"
        )
    worst = max(differences, key=lambda layer: differences[layer])
    if not differences[worst] < max(
        LEAST, ROUNDINGS * torch.finfo(state.dtype).eps
    ):  # nor NaN
        off = (
            f"the output of layer {worst + 1} differs by {differences[worst]:.1g} from"
            " the model's own attention"
        )
        raise InputError(f"model type {family} is not supported: {off}")
