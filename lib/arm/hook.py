"""ARM at work in a model: a forward hook that lets `redistribute` change what an activation module gives."""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from transformers import PreTrainedModel

from lib.arm.activations import activation_module
from lib.arm.moving import new_generators, redistribute
from lib.arm.settings import Arm
from lib.errors import valid


class Installed:
    """ARM at work in a model; `rows` says whose tokens the next forwards hold when their order is not the batch's."""

    def __init__(self, settings: Arm, seed: int):
        self.settings, self.seed = settings, seed
        self._generators: list[torch.Generator] | None = None
        self._real: torch.Tensor | None = None
        self._prompt, self._told = True, False

    @contextlib.contextmanager
    def rows(self, generators: Sequence[torch.Generator], prompt: bool) -> Iterator[None]:
        """Tell which generator each row draws from, and whether the rows hold prompts or single new tokens."""
        self._generators, self._prompt, self._told = list(generators), prompt, True
        try:
            yield
        finally:
            self._told = False

    def _before(self, decoder, args, kwargs) -> None:
        """Look at a forward's arguments for padding and for whether it begins a prompt."""
        past, mask = kwargs.get("past_key_values"), kwargs.get("attention_mask")
        self._real = mask.bool() if isinstance(mask, torch.Tensor) and mask.dim() == 2 else None
        if not self._told:
            self._prompt = past is None or past.get_seq_length() == 0
            if self._prompt:
                self._generators = None

    def _change(self, module, inputs, output: torch.Tensor) -> torch.Tensor:
        if self.settings.mode == "text" and not self._prompt:
            return output
        if self._generators is None or len(self._generators) != len(output):
            self._generators = new_generators(len(output), self.seed, output.device)
        real = None if self._real is None else self._real[:, -output.shape[1] :].to(output.device)
        s = self.settings
        options = {"mode": s.mode, "fraction": s.fraction, "statistics": s.statistics}
        return redistribute(output, s.c, s.p1, **options, real=real, generators=self._generators)


@contextlib.contextmanager
def installed(model: PreTrainedModel, layer: int = 1, *, seed: int = 0, **settings) -> Iterator[Installed]:
    """Let ARM work on the MLP activations of a decoder layer, counted from 1, until the block ends, however it does.

    `settings` are those of `Arm`; no modeling code is replaced, a forward hook changes what `act_fn` gives. Padding
    is known from a forward's attention_mask. Raises InputError for a layer or MLP that ARM cannot work on.
    """
    arm, hooks = Installed(valid(Arm, {"layer": layer, **settings}, "ARM's settings"), seed), []
    try:
        hooks.append(activation_module(model, layer).register_forward_hook(arm._change))
        hooks.append(model.get_decoder().register_forward_pre_hook(arm._before, with_kwargs=True))
        yield arm
    finally:
        for hook in hooks:
            hook.remove()
