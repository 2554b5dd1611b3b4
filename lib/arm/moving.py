"""Activation Redistribution Module: move the near-zero activations of an MLP outward,
without inserted tokens.

`redistribute` is the move itself, `installed` a forward hook that lets it change what
an activation module gives.

The paper's Sec. 4, in two modes that differ where its text and its authors' code do:

    text  the draw is added; statistics per sequence; the prompt alone is changed; a zero stays zero
    code  the draw replaces the value; statistics over the whole tensor, in decoding too; a zero counts as positive

With x an activation, eps = c * 1.4826 * MAD(x) and fraction = clip(share of |x| <= eps,
0.02, 0.25), the fraction of the elements that are smallest in magnitude is drawn
towards [0, Q_p1(x)], or [min(x), 0] when negative.
"""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from transformers import PreTrainedModel

from lib.arm.activations import activation_module, near_zero_bound, order_statistics
from lib.arm.settings import Arm
from lib.errors import validated

PAPER = Arm()
LEAST, MOST = 0.02, 0.25  # bounds of the fraction
AT_ONCE = {
    "cpu": 1 << 19,
    "cuda": 1 << 27,
}  # elements: 2 MiB stay near a processor's cache, a GPU wants more


def redistribute(
    x: torch.Tensor,
    c: float = PAPER.c,
    p1: float = PAPER.p1,
    *,
    mode: str = PAPER.mode,
    fraction: float | None = None,
    statistics: str | None = None,
    real: torch.Tensor | None = None,
    generators: Sequence[torch.Generator] | None = None,
    seed: int = 0,
) -> torch.Tensor:
    """Return activations (B, T, F), or one sequence (T, F), with their near-zero part
    moved outward.

    real: (B, T) bool, the tokens that are no padding: the others stay and count in no
    sequence's statistics. generators: one per sequence, so that its draws do not depend
    on its batch; None: each starts from `seed`. Signs are kept and what moves stays
    within [min, Q_p1]. Raises InputError for settings out of range.
    """
    given = {
        "c": c,
        "p1": p1,
        "mode": mode,
        "fraction": fraction,
        "statistics": statistics,
    }
    settings = validated(Arm, given, "ARM's settings")
    if x.numel() == 0:
        return x
    moved = x.clone().view(-1, *torch.atleast_2d(x).shape[-2:])
    batch, tokens, width = moved.shape
    generators = generators or new_generators(batch, seed, x.device)
    if settings.per_tensor:
        return _moved(x.reshape(1, -1), settings, generators[:1]).view_as(x)
    lengths = [tokens] * batch if real is None else real.sum(1).tolist()
    for length in sorted({*lengths} - {0}):
        alike = [row for row, own in enumerate(lengths) if own == length]
        size = max(1, AT_ONCE[x.device.type] // (length * width))
        for rows in (
            alike[begin : begin + size] for begin in range(0, len(alike), size)
        ):
            part, kept = (
                moved[rows],
                slice(None) if real is None or length == tokens else real[rows],
            )
            values = part[kept]
            found = _moved(
                values.reshape(len(rows), -1),
                settings,
                [generators[row] for row in rows],
            )
            part[kept] = found.view_as(values)
            moved[rows] = part
    return moved.view_as(x)


def new_generators(
    count: int, seed: int, device: torch.device | str
) -> list[torch.Generator]:
    """Return a generator per sequence, all from the same seed: a sequence's draws do
    not depend on its place.
    """
    return [torch.Generator(device).manual_seed(seed) for _ in range(count)]


def _moved(
    x: torch.Tensor, settings: Arm, generators: Sequence[torch.Generator]
) -> torch.Tensor:
    """Return groups of shared statistics, (groups, n), after the move; each draws from
    its own generator.
    """
    values, n = (
        x.float(),
        x.shape[1],
    )  # bfloat16 has too few digits for a median of deviations
    # The largest element that does not exceed the quantile p1.
    median, high = order_statistics(
        values, [(n - 1) // 2, int(settings.p1 / 100 * (n - 1))]
    )
    # The fraction smallest in magnitude: the share within a bound grows with the bound,
    # so clipping the share is clipping the bound between two order statistics. What
    # equals the bound stays where it would be too many.
    counts = [
        int((share if settings.fraction is None else settings.fraction) * n)
        for share in (LEAST, MOST)
    ]
    magnitudes, none = values.abs(), torch.full_like(median, -1.0)
    found = order_statistics(magnitudes, [max(count - 1, 0) for count in counts])
    below, above = (
        bound if count else none for bound, count in zip(found, counts, strict=True)
    )
    bound = torch.minimum(
        torch.maximum(near_zero_bound(values, settings.c, median), below), above
    )
    within = magnitudes <= bound
    chosen = torch.where(
        within.sum(1, keepdim=True) <= counts[1], within, magnitudes < bound
    )
    high, low = high.clamp(min=0), values.amin(1, keepdim=True).clamp(max=0)
    draws = torch.stack(
        [torch.rand(n, generator=own, device=values.device) for own in generators]
    )
    if settings.mode == "code":
        target = draws.mul_(torch.where(values >= 0, high, low))
    else:
        target = torch.minimum(
            draws.mul_(torch.where(values > 0, high, low)).add_(values).maximum(low),
            high,
        )
        chosen &= (values != 0) & (values <= high)  # a zero has no sign to keep
    return torch.where(chosen, target.to(x.dtype), x)


class Installed:
    """ARM at work in a model; `generators`, one per row, are what the next forwards
    draw from where they are given.
    """

    def __init__(self, settings: Arm, seed: int):
        self.settings, self.seed = settings, seed
        self.generators: Sequence[torch.Generator] | None = None
        self._own: list[torch.Generator] = []
        self._real: torch.Tensor | None = None
        self._prompt = True

    def _before(self, decoder, args, kwargs) -> None:
        """Look at a forward's arguments for padding and for whether it begins a prompt."""
        past, mask = kwargs.get("past_key_values"), kwargs.get("attention_mask")
        self._real = (
            mask.bool() if isinstance(mask, torch.Tensor) and mask.dim() == 2 else None
        )
        self._prompt = past is None or past.get_seq_length() == 0

    def _change(self, module, inputs, output: torch.Tensor) -> torch.Tensor:
        if self.settings.mode == "text" and not self._prompt:
            return output
        if self._prompt or len(self._own) != len(output):
            self._own = new_generators(len(output), self.seed, output.device)
        real = (
            None
            if self._real is None
            else self._real[:, -output.shape[1] :].to(output.device)
        )
        settings = self.settings.model_dump(exclude={"layer"})
        return redistribute(
            output, **settings, real=real, generators=self.generators or self._own
        )


@contextlib.contextmanager
def installed(
    model: PreTrainedModel, layer: int = 1, *, seed: int = 0, **settings
) -> Iterator[Installed]:
    """Let ARM work on the MLP activations of a decoder layer, counted from 1, until the
    block ends, however it does.

    `settings` are those of `Arm`; no modeling code is replaced, a forward hook changes
    what `act_fn` gives. Padding is known from a forward's attention_mask. Raises
    InputError for a layer or MLP that ARM cannot work on.
    """
    arm = Installed(
        validated(Arm, {"layer": layer, **settings}, "ARM's settings"), seed
    )
    changed = activation_module(model, layer).register_forward_hook(arm._change)
    with (
        changed,
        model.get_decoder().register_forward_pre_hook(arm._before, with_kwargs=True),
    ):
        yield arm
