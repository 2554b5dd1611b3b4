"""Apply ARM to a model by a forward hook, which redistributes the output of a layer's
activation module.
"""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from transformers import PreTrainedModel

from lib.arm.mlp_activations import activation_module
from lib.arm.redistribution import new_generators, redistribute
from lib.arm.settings import Arm
from lib.errors import validated


class Installed:
    """ARM while it is active in a model.

    The next forward passes use `generators`, one for each row of the batch. None: each
    row starts from `seed` with its prompt.
    """

    def __init__(self, settings: Arm, seed: int):
        self.settings = settings
        self.seed = seed
        self.generators: Sequence[torch.Generator] | None = None
        self._default_generators: list[torch.Generator] = []
        self._real: torch.Tensor | None = None
        self._prompt = True

    def _before(self, decoder, args, kwargs) -> None:
        """Note which tokens of a forward pass are padding, and whether the pass begins
        a prompt.
        """
        mask = kwargs.get("attention_mask")
        is_padding_mask = isinstance(mask, torch.Tensor) and mask.dim() == 2
        self._real = mask.bool() if is_padding_mask else None
        cache = kwargs.get("past_key_values")
        past = 0 if cache is None else cache.get_seq_length()
        self._prompt = past == 0

    def _change(self, module, inputs, output: torch.Tensor) -> torch.Tensor:
        """Return the redistributed output of the activation module."""
        if self.settings.mode == "text" and not self._prompt:
            return output
        rows, tokens = output.shape[:2]
        if self._prompt or len(self._default_generators) != rows:
            self._default_generators = new_generators(rows, self.seed, output.device)
        real = self._real
        if real is not None:
            real = real[:, -tokens:].to(output.device)
        settings = self.settings.model_dump(exclude={"layer"})
        generators = self.generators or self._default_generators
        return redistribute(output, **settings, real=real, generators=generators)


@contextlib.contextmanager
def installed(
    model: PreTrainedModel, layer: int = 1, *, seed: int = 0, **settings
) -> Iterator[Installed]:
    """Apply ARM to the MLP activations of a decoder layer (counted from 1) until the
    block ends.

    settings: the fields of `Arm`. In its default mode, text, only the activations of
    the prompt change, and not those of generated tokens. The block receives the
    `Installed`, whose random generators can be replaced.

    A forward hook changes the output of `act_fn`, so no modeling code is replaced. The
    attention_mask of a forward pass tells which tokens are padding. Raises InputError
    for settings out of range, and for a layer or an MLP that ARM does not support.
    """
    checked = validated(Arm, {"layer": layer, **settings}, "ARM's settings")
    arm = Installed(checked, seed)
    module = activation_module(model, layer)
    change = module.register_forward_hook(arm._change)
    with change:
        decoder = model.get_decoder()
        before = decoder.register_forward_pre_hook(arm._before, with_kwargs=True)
        with before:
            yield arm
