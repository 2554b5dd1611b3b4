"""Whether received attention is what a model's own attention does.

It is tried on ten tokens when a model is loaded.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from transformers import PreTrainedModel

from lib.attention.function import (
    LastLayerDone,
    Recording,
    attending,
    device_of,
    without_attention,
)
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


@torch.inference_mode()
def check_attention(model: PreTrainedModel) -> None:
    """Verify on ten tokens that this module computes what the model's own attention
    does, in every layer.

    Each attention module is given the very inputs it has in the model's own forward,
    while its layer's weights are there, so that rounding does not pile up. Raises
    InputError naming the model type when it does not: layers without softmax attention,
    another mask, an ingredient that is unknown here; and when the weights give NaN.
    """
    decoder = model.get_decoder()
    family = model.config.model_type
    refusal = f"model type {family} is not supported"
    if family in COMBINED:
        raise InputError(f"{refusal}: its heads combine several attention matrices")
    if "hybrid" in (getattr(decoder.config, "layer_types", None) or []):
        raise InputError(f"{refusal}: its layers mix tokens in a second way, too")
    if not hasattr(decoder, "layers"):
        raise InputError(f"{refusal}: it has no list of decoder layers")
    ids = torch.arange(1, CHECK_TOKENS + 1, device=device_of(model))[None]
    comparison = _Comparison(decoder, refusal)
    state = comparison.run(ids)
    if not state.isfinite().all():
        raise InputError(
            f"weights of this {family} model give NaN or infinity: damaged, or wrong"
            f" for {state.dtype}"
        )
    comparison.see_masks(ids)

    windows = comparison.recording.windows
    numbers = range(decoder.config.num_hidden_layers)
    silent = [i + 1 for i in numbers if i not in windows]
    if silent != without_attention(model) or not windows:
        raise InputError(f"{refusal}: layers {silent} show no attention matrix")
    expected = _expected_windows(decoder, comparison.recording)
    if unseen := [i + 1 for i in windows if windows[i] != expected[i]]:
        raise InputError(
            f"{refusal}: layers {unseen} do not say how far they look back"
        )
    differences = comparison.differences
    worst = max(differences, key=lambda layer: differences[layer])
    tolerance = max(LEAST_TOLERANCE, ROUNDINGS * torch.finfo(state.dtype).eps)
    if not differences[worst] < tolerance:  # nor NaN
        raise InputError(
            f"{refusal}: the output of layer {worst + 1} differs by"
            f" {differences[worst]:.1g} from the model's own attention"
        )


class _Comparison:
    """How far this attention is from a model's own; its recording learns of windows and
    masks.
    """

    def __init__(self, decoder: PreTrainedModel, refusal: str):
        self.decoder = decoder
        self.refusal = refusal
        self.recording = Recording()
        # By layer, relative to the norm of the model's own output.
        self.differences: dict[int, float] = {}
        self._is_comparing = False

    def run(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the last hidden state of the model's own forward, in which every
        attention module is compared as it is called.
        """
        # Whatever calls the attention interface has a layer_idx; some layers have one
        # themselves, but keep the residual stream, beside which a wrong attention may
        # look small.
        layers = set(self.decoder.get_submodule("layers").children())
        hooks = [
            module.register_forward_hook(self._compare, with_kwargs=True)
            for module in self.decoder.modules()
            if hasattr(module, "layer_idx") and module not in layers
        ]
        try:
            return self.decoder(input_ids=ids, use_cache=False).last_hidden_state
        finally:
            for hook in hooks:
                hook.remove()

    def see_masks(self, ids: torch.Tensor) -> None:
        """Let the model make its masks for this attention, which no layer need see."""

        def stop(module, inputs) -> None:
            raise LastLayerDone

        first = next(self.decoder.get_submodule("layers").children())
        ending = first.register_forward_pre_hook(stop, prepend=True)
        with ending, self._attending():
            self.decoder(input_ids=ids, use_cache=False)

    def _compare(self, module, args, options, output) -> None:
        """Call an attention module again, with this attention."""
        if self._is_comparing:  # the second call, which ends here too
            return
        self._is_comparing = True
        try:
            with self._attending():
                again = _attention_output(module(*args, **options))
        finally:
            self._is_comparing = False
        expected = _attention_output(output)
        difference = float((again - expected).norm() / expected.norm())
        layer = module.layer_idx
        self.differences[layer] = max(difference, self.differences.get(layer, 0.0))

    @contextlib.contextmanager
    def _attending(self) -> Iterator[None]:
        """Let the model attend by this module, and refuse it for whatever it raises.

        Its own code may fail in any way on what it does not expect.
        """
        try:
            with attending(self.decoder, recording=self.recording):
                yield
        except Exception as error:
            raise InputError(f"{self.refusal}: {error}") from error


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
