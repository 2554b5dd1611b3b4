"""Activation Redistribution Module: move the near-zero activations of an MLP outward, without inserted tokens.

The paper's Sec. 4, in two modes that differ where its text and its authors' code do:

    text  the draw is added; statistics per sequence; the prompt alone is changed; a zero stays zero
    code  the draw replaces the value; statistics over the whole tensor, in decoding too; a zero counts as positive

With x an activation, eps = c * 1.4826 * MAD(x) and fraction = clip(share of |x| <= eps, 0.02, 0.25), the fraction
of the elements that are smallest in magnitude is drawn towards [0, Q_p1(x)], or [min(x), 0] when negative.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from transformers import PreTrainedModel

from lib.activations import activation_module, kth_smallest, near_zero_bound
from lib.errors import InputError
from lib.models import known_models

MODES = ("text", "code")
STATISTICS = ("sequence", "tensor")
LEAST, MOST = 0.02, 0.25  # bounds of the fraction
# A condition may be one of a prompt, ARM, or both: mless, arm, mless+arm, arm:c=0.1:p1=95.
CONDITION = re.compile(r"((?P<prompt>[^+]+)\+)?arm(:(?P<settings>.*))?")
SETTING = re.compile(r"(?P<name>c|p1|mode|layer|fraction)=(?P<value>[-+\w.]+)")


@dataclass(frozen=True)
class Arm:
    """Settings of ARM; the defaults are the paper's for Qwen2.5-Math-1.5B on MATH-500.

    `fraction` replaces the share that c gives, as in the paper's runs of Gemma; `statistics` None: as the mode has it.
    """

    c: float = 0.13
    p1: float = 99.5
    mode: str = "text"
    layer: int = 1
    fraction: float | None = None
    statistics: str | None = None

    def __post_init__(self):
        """Raise InputError for a setting out of its range."""
        ranges = {
            "c": (self.c, self.c >= 0, "at least 0"),
            "p1": (self.p1, 0 <= self.p1 <= 100, "a percentile from 0 to 100"),
            "fraction": (self.fraction, self.fraction is None or 0 <= self.fraction <= 1, "from 0 to 1"),
            "mode": (self.mode, self.mode in MODES, f"one of {', '.join(MODES)}"),
            "layer": (self.layer, self.layer >= 1, "at least 1"),
            "statistics": (self.statistics, self.statistics in (None, *STATISTICS), f"one of {', '.join(STATISTICS)}"),
        }
        for name, (value, fine, expected) in ranges.items():
            if not fine:
                raise InputError(f"ARM's {name} is {value}: it must be {expected}")

    @property
    def per_tensor(self) -> bool:
        return (self.statistics or ("tensor" if self.mode == "code" else "sequence")) == "tensor"


def arm_for(spec: str, given: Arm | None = None) -> Arm:
    """Return ARM's settings for a model: those given, else the paper's for it (data/models.yaml), else the defaults."""
    return given or Arm(**known_models().get(spec, {}).get("arm", {}))


def uses_arm(condition: str) -> bool:
    """Say whether a condition changes the model by ARM."""
    return CONDITION.fullmatch(condition) is not None


def arm_text(condition: str) -> str:
    """Return the settings that a condition with ARM names, such as c=0.1:p1=95; empty without any."""
    match = CONDITION.fullmatch(condition)
    return (match["settings"] or "") if match else ""


def without_arm(condition: str) -> str:
    """Return the condition of the prompt alone: none for `arm`."""
    match = CONDITION.fullmatch(condition)
    return (match["prompt"] or "none") if match else condition


def parse_arm(text: str, base: Arm) -> Arm:
    """Return `base` with the settings of a text such as c=0.1:p1=95:layer=2:mode=code, which may be empty.

    Raises InputError for an unknown setting or a value out of its range.
    """
    changes = {}
    for part in filter(None, text.split(":")):
        match = SETTING.fullmatch(part)
        if not match:
            raise InputError(f"ARM setting {part!r}: give c, p1, fraction, layer or mode, such as c=0.1:p1=95")
        try:
            number = {"mode": str, "layer": int}.get(match["name"], float)
            changes[match["name"]] = number(match["value"])
        except ValueError as error:
            raise InputError(f"ARM setting {part!r} has no number") from error
    if "c" in changes:
        changes.setdefault("fraction", None)  # which would otherwise overrule c
    return replace(base, **changes)


def redistribute(
    x: torch.Tensor,
    c: float = Arm.c,
    p1: float = Arm.p1,
    *,
    mode: str = Arm.mode,
    fraction: float | None = None,
    statistics: str | None = None,
    real: torch.Tensor | None = None,
    generators: Sequence[torch.Generator] | None = None,
    seed: int = 0,
) -> torch.Tensor:
    """Return activations (B, T, F), or one sequence (T, F), with their near-zero part moved outward.

    real: (B, T) bool, the tokens that are no padding: the others stay and count in no sequence's statistics.
    generators: one per sequence, so that its draws do not depend on its batch; None: each starts from `seed`.
    Signs are kept and what moves stays within [min, Q_p1]. Raises InputError for settings out of range.
    """
    settings = Arm(c, p1, mode, fraction=fraction, statistics=statistics)
    if x.numel() == 0:
        return x
    if x.dim() < 3:
        return _per_sequence(torch.atleast_2d(x)[None], settings, real, generators, seed).view_as(x)
    return _per_sequence(x, settings, real, generators, seed)


def _per_sequence(x: torch.Tensor, settings: Arm, real, generators, seed: int) -> torch.Tensor:
    generators = generators or new_generators(len(x), seed, x.device)
    if settings.per_tensor:
        return _moved(x.flatten(), settings, generators[0]).view_as(x)
    moved = x.clone()
    for row, generator in enumerate(generators):
        kept = slice(None) if real is None or bool(real[row].all()) else real[row]
        part = x[row, kept]
        if part.numel():
            moved[row, kept] = _moved(part.flatten(), settings, generator).view_as(part)
    return moved


def new_generators(count: int, seed: int, device: torch.device | str) -> list[torch.Generator]:
    """Return a generator per sequence, all from the same seed: a sequence's draws do not depend on its place."""
    return [torch.Generator(device).manual_seed(seed) for _ in range(count)]


def _moved(x: torch.Tensor, settings: Arm, generator: torch.Generator) -> torch.Tensor:
    """Return the elements (n,) of one group of shared statistics after the move."""
    values = x.float()  # bfloat16 has too few digits for a median of deviations
    chosen = _smallest(values, settings)
    # The largest element that does not exceed the quantile p1.
    high = kth_smallest(values, int(settings.p1 / 100 * (len(values) - 1))).clamp(min=0)
    low = values.min().clamp(max=0)
    draws = torch.rand(values.shape, generator=generator, device=values.device)
    if settings.mode == "code":
        target = draws.mul_(torch.where(values >= 0, high, low))
    else:
        target = draws.mul_(torch.where(values > 0, high, low)).add_(values).clamp_(low, high)
        chosen &= (values != 0) & (values <= high)  # a zero has no sign to keep
    return torch.where(chosen, target.to(x.dtype), x)


def _smallest(values: torch.Tensor, settings: Arm) -> torch.Tensor:
    """Return which elements (n,) are the chosen fraction smallest in magnitude, never more of them.

    The share within a bound grows with the bound, so clipping the share is clipping the bound between two order
    statistics: selections instead of a sort. Elements equal to the bound stay where they would be too many.
    """
    magnitudes, n = values.abs(), len(values)
    least, most = (int(share * n) for share in (LEAST, MOST))
    if settings.fraction is not None:
        least = most = int(settings.fraction * n)
    below, above = (
        kth_smallest(magnitudes, count - 1) if count else magnitudes.new_tensor(-1) for count in (least, most)
    )
    bound = torch.minimum(torch.maximum(near_zero_bound(values, settings.c), below), above)
    within = magnitudes <= bound
    return torch.where(within.sum() <= most, within, magnitudes < bound)


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
    arm, hooks = Installed(Arm(layer=layer, **settings), seed), []
    try:
        hooks.append(activation_module(model, layer).register_forward_hook(arm._change))
        hooks.append(model.get_decoder().register_forward_pre_hook(arm._before, with_kwargs=True))
        yield arm
    finally:
        for hook in hooks:
            hook.remove()
