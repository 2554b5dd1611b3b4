"""Activation Redistribution Module: move the near-zero activations of an MLP outward, without inserted tokens.

The paper's Sec. 4, in two modes that differ where its text and its authors' code do:

    text  the draw is added; statistics per sequence; the prompt alone is changed; a zero stays zero
    code  the draw replaces the value; statistics over the whole tensor, in decoding too; a zero counts as positive

With x an activation, eps = c * 1.4826 * MAD(x) and fraction = clip(share of |x| <= eps, 0.02, 0.25), the fraction
of the elements that are smallest in magnitude is drawn towards [0, Q_p1(x)], or [min(x), 0] when negative.
"""

from collections.abc import Sequence

import torch

from lib.arm.activations import kth_smallest, near_zero_bound
from lib.arm.settings import Arm
from lib.errors import valid

PAPER = Arm()
LEAST, MOST = 0.02, 0.25  # bounds of the fraction


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
    """Return activations (B, T, F), or one sequence (T, F), with their near-zero part moved outward.

    real: (B, T) bool, the tokens that are no padding: the others stay and count in no sequence's statistics.
    generators: one per sequence, so that its draws do not depend on its batch; None: each starts from `seed`.
    Signs are kept and what moves stays within [min, Q_p1]. Raises InputError for settings out of range.
    """
    given = {"c": c, "p1": p1, "mode": mode, "fraction": fraction, "statistics": statistics}
    settings = valid(Arm, given, "ARM's settings")
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
