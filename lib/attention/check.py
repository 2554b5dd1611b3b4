"""Whether received attention is what a model's own attention does, tried on ten tokens when it is loaded."""

import torch
from torch import nn
from transformers import PreTrainedModel

from lib.attention.function import Recording, record
from lib.errors import InputError

CHECK_TOKENS = 10
# Families that combine several softmax maps into one head: no single map is what a token receives.
COMBINED = ("diffllama",)
ROUNDINGS = 4  # from one input to one attention output, each of up to the dtype's epsilon
LEAST = 1e-4  # tolerance where the epsilon is too small to matter: sums are taken in another order


def check_attention(model: PreTrainedModel) -> None:
    """Verify on ten tokens that this module computes what the model's own attention does, in every layer.

    Each attention module is given the very inputs it has in the model's own forward, so that rounding does not pile
    up. Raises InputError naming the model type when it does not: layers without softmax attention, another mask,
    an ingredient that is unknown here; and when the weights give NaN.
    """
    decoder, family = model.get_decoder(), model.config.model_type
    if family in COMBINED:
        raise InputError(f"model type {family} is not supported: its heads combine several attention matrices")
    count, heads = decoder.config.num_hidden_layers, decoder.config.num_attention_heads
    ids = torch.arange(1, CHECK_TOKENS + 1, device=model.device)[None]
    own = _Own(decoder, ids)
    if not own.finite:
        raise InputError(f"the weights of this {family} model give NaN or infinity: damaged, or wrong for {own.dtype}")
    sums = torch.zeros(1, count, heads, 1, CHECK_TOKENS, device=model.device)
    recording = Recording(sums, None, {i: i for i in range(count)}, last=None)
    try:
        differences = own.differences(recording)
    except Exception as error:  # a model's own code may fail in any way on what it does not expect
        raise InputError(f"model type {family} is not supported: {error}") from error
    if silent := [i + 1 for i in range(count) if i not in recording.row_error]:
        raise InputError(f"model type {family} is not supported: layers {silent} show no attention matrix")
    if unseen := [i + 1 for i in range(count) if recording.windows[i] != _window(decoder.config, recording, i)]:
        raise InputError(f"model type {family} is not supported: layers {unseen} do not say how far they look back")
    rows = max(recording.row_error.values())
    worst, off = max(differences.items(), key=lambda item: item[1])
    if not (rows < 1e-3 and off < max(LEAST, ROUNDINGS * torch.finfo(own.dtype).eps)):
        raise InputError(
            f"model type {family} is not supported: rows of attention miss one by {rows:.1g} "
            f"and the output of layer {worst + 1} differs by {off:.1g} from the model's own attention"
        )


class _Own:
    """The model's own forward over `ids`: what went into each attention module and what came out."""

    def __init__(self, decoder: PreTrainedModel, ids: torch.Tensor):
        self.decoder, self.ids = decoder, ids
        # Whatever calls the attention interface has a layer_idx; some layers have one themselves, but keep the
        # residual stream, beside which a wrong attention may look small.
        layers = set(decoder.get_submodule("layers").children())
        self.modules = [m for m in decoder.modules() if hasattr(m, "layer_idx") and m not in layers]
        self.inputs: dict[nn.Module, torch.Tensor] = {}
        self.outputs: dict[nn.Module, torch.Tensor] = {}
        handles = [m.register_forward_hook(self._keep, with_kwargs=True) for m in self.modules]
        with torch.inference_mode():
            state = decoder(input_ids=ids, use_cache=False).last_hidden_state
        for handle in handles:
            handle.remove()
        self.dtype, self.finite = state.dtype, bool(state.isfinite().all())

    def _keep(self, module, args, kwargs, output) -> None:
        self.inputs[module] = args[0] if args else kwargs["hidden_states"]
        self.outputs[module] = _first(output)

    def differences(self, recording: Recording) -> dict[int, float]:
        """Run with received attention; return per layer, from 0, how far outputs are off, relative to their norm."""
        found: dict[int, float] = {}

        def give(module, args, kwargs):
            given = self.inputs[module]
            return ((given, *args[1:]), kwargs) if args else (args, kwargs | {"hidden_states": given})

        def compare(module, args, output):
            expected = self.outputs[module].float()
            difference = float((_first(output).float() - expected).norm() / expected.norm())
            found[module.layer_idx] = max(difference, found.get(module.layer_idx, 0.0))

        handles = [m.register_forward_pre_hook(give, with_kwargs=True) for m in self.modules]
        handles += [m.register_forward_hook(compare) for m in self.modules]
        try:
            record(self.decoder, self.ids, recording)
        finally:
            for handle in handles:
                handle.remove()
        return found


def _first(output) -> torch.Tensor:
    return output[0] if isinstance(output, tuple) else output


def _window(config, recording: Recording, layer: int) -> int | None:
    """Return how many tokens a layer, counted from 0, sees according to the masks made; None for all before it."""
    kinds = getattr(config, "layer_types", None)
    slides = recording.masks and (not kinds or kinds[layer] == "sliding_attention")
    return max(recording.masks) if slides else None
