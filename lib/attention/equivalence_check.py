"""Check, when a model is loaded, that this package computes the model's attention.

Received attention is read from this package's attention function. The check runs ten
tokens through it and through the model's own attention, and compares the outputs.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from lib.attention.custom_attention import Recording, StopForward, attending
from lib.attention.model_properties import device_of
from lib.errors import InputError

CHECK_TOKENS = 10
# Architectures that combine several attention matrices into one head, so that no single
# matrix says what a token receives.
COMBINING_HEADS = ("diffllama",)
# Roundings between the input and the output of an attention module, each by up to the
# dtype's epsilon.
ROUNDINGS = 4
# The tolerance in float32, where sums in another order differ by more than the epsilon.
MIN_TOLERANCE = 1e-4


@torch.inference_mode()
def check_attention(model: PreTrainedModel) -> None:
    """Raise InputError if this package's attention differs from the model's.

    Ten tokens run through the model. Each attention module is then called again with
    the same inputs and this package's attention function, while its layer's weights are
    loaded, so that rounding errors do not accumulate over layers. The message names the
    model type and the first difference found: a layer without softmax attention, an
    unknown mask or sliding window, or the first layer whose output differs by more than
    rounding, relative to the norm of the model's output. Weights that give NaN or
    infinity are refused, too.
    """
    decoder = model.get_decoder()
    family = model.config.model_type
    refusal = f"model type {family} is not supported"
    if family in COMBINING_HEADS:
        raise InputError(f"{refusal}: its heads combine several attention matrices")
    if "hybrid" in (getattr(decoder.config, "layer_types", None) or []):
        raise InputError(f"{refusal}: its layers mix tokens by more than attention")
    if not hasattr(decoder, "layers"):
        raise InputError(f"{refusal}: it has no list of decoder layers")
    ids = torch.arange(1, CHECK_TOKENS + 1, device=device_of(model))[None]
    comparison = _Comparison(decoder, refusal)
    state = comparison.run(ids)
    if not state.isfinite().all():
        raise InputError(
            f"weights of this {family} model give NaN or infinity: the files are"
            f" invalid, or {state.dtype} overflows"
        )
    comparison.record_masks(ids)

    windows = comparison.recording.windows
    layers = range(1, decoder.config.num_hidden_layers + 1)
    if missing := [layer for layer in layers if layer - 1 not in windows]:
        raise InputError(f"{refusal}: layers {missing} have no attention matrix")
    expected = _expected_windows(decoder, comparison.recording)
    if unknown := [i + 1 for i in windows if windows[i] != expected[i]]:
        raise InputError(f"{refusal}: layers {unknown} have an unknown sliding window")
    tolerance = max(MIN_TOLERANCE, ROUNDINGS * torch.finfo(state.dtype).eps)
    for layer, difference in comparison.differences.items():
        if not difference < tolerance:  # also true for NaN
            raise InputError(
                f"{refusal}: the output of layer {layer + 1} differs by"
                f" {100 * difference:.3g} % from the model's own attention"
            )


class _Comparison:
    """The differences in output between this package's attention and a model's.

    `recording` receives the sliding windows and the masks of the layers.
    """

    def __init__(self, decoder: PreTrainedModel, refusal: str):
        self.decoder = decoder
        self.refusal = refusal
        self.recording = Recording()
        # The largest difference of each layer (from 0), relative to the norm of the
        # model's output; NaN if one difference is NaN.
        self.differences: dict[int, float] = {}

    def run(self, ids: torch.Tensor) -> torch.Tensor:
        """Run the model, compare every attention module when it is called, and return
        the last hidden state.
        """
        # Every module that calls the attention interface has a layer_idx. Some decoder
        # layers have one, too; they are left out, because their output contains the
        # residual stream, which would hide a wrong attention.
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

    def record_masks(self, ids: torch.Tensor) -> None:
        """Make the model build its attention masks, and stop before the first layer.

        `attending` catches the exception that stops the forward pass.
        """

        def stop(module, inputs) -> None:
            raise StopForward

        first = next(self.decoder.get_submodule("layers").children())
        ending = first.register_forward_pre_hook(stop, prepend=True)
        with ending, self._attending():
            self.decoder(input_ids=ids, use_cache=False)

    def _compare(self, module, args, options, output) -> None:
        """Call an attention module again with this package's attention function, and
        store the difference.
        """
        with self._attending():
            # Unlike a call of the module, this does not call its hooks, such as this.
            recomputed = _attention_output(module.forward(*args, **options))
        expected = _attention_output(output)
        difference = float((recomputed - expected).norm() / expected.norm())
        layer = module.layer_idx
        before = self.differences.get(layer, 0.0)
        # Unlike max, np.maximum returns NaN if either number is.
        self.differences[layer] = float(np.maximum(difference, before))

    @contextlib.contextmanager
    def _attending(self) -> Iterator[None]:
        """Make the model use this package's attention function, and turn any exception
        into an InputError.

        The code of an unknown architecture may fail in any way.
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
    """Return the sliding window, in tokens, of each layer (from 0) according to its
    config and the masks that the model built; None: all earlier tokens.
    """
    kinds = getattr(decoder.config, "layer_types", None)
    # `masks` are the sizes of the windows that the model built masks for.
    widest = max(recording.masks, default=None)
    return {
        i: widest if not kinds or kinds[i] == "sliding_attention" else None
        for i in range(decoder.config.num_hidden_layers)
    }
