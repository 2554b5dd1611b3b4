"""Activation Redistribution Module (ARM): move the near-zero activations of an MLP away
from zero, without inserted tokens.

There are two modes, because the text of the paper's Sec. 4 and the authors' code
differ:

    text  a random number is added to the value; only the prompt is changed; a zero
          stays zero
    code  a random number replaces the value; new tokens are changed, too; a zero counts
          as positive

Statistics are of each sequence, so that the other prompts of a batch have no influence;
the authors' code computes them over a batch, which has a single prompt. Let x be the
activations, eps = c * 1.4826 * MAD(x), and fraction = clip(share of |x| <= eps, 0.02,
0.25). The fraction of elements with the smallest magnitudes is changed. The random
number is uniform in [0, Q_p1(x)], or in [min(x), 0] for negative elements. In mode
text, the sum is clipped to [min(x), Q_p1(x)].
"""

import contextlib
import itertools
from collections.abc import Iterator, Sequence

import torch
from transformers import PreTrainedModel

from lib.arm.mlp_activations import activation_module, near_zero_bound, order_statistics
from lib.arm.settings import Arm
from lib.errors import InputError

PAPER_ARM = Arm()
MIN_FRACTION = 0.02
MAX_FRACTION = 0.25
# Elements per step: 2 MiB fit into a processor's cache; a GPU is faster with more.
ELEMENTS_AT_ONCE = {"cpu": 1 << 19, "cuda": 1 << 27}


def redistribute(
    x: torch.Tensor,
    settings: Arm = PAPER_ARM,
    *,
    lengths: Sequence[int] | None = None,
    generators: Sequence[torch.Generator] | None = None,
    seed: int = 0,
) -> torch.Tensor:
    """Return activations (B, T, F), or those of one sequence (T, F), whose near-zero
    elements are moved away from zero.

    lengths: how many first tokens of each sequence change; the others, such as padding,
    stay unchanged and are excluded from the statistics; None: all change. generators:
    one for each sequence, so that its random numbers do not depend on its batch; None:
    each starts from `seed`. Signs are kept, and moved elements stay within [min, Q_p1].
    """
    if x.numel() == 0:
        return x
    moved = x.clone().view(-1, *torch.atleast_2d(x).shape[-2:])
    batch, tokens, _ = moved.shape
    generators = generators or new_generators(batch, seed, x.device)
    lengths = lengths or [tokens] * batch
    for rows in _slices_of_equal_length(lengths, moved):
        part = moved[rows, : lengths[rows.start]]
        values = _moved(part.flatten(1), settings, generators[rows])
        part.copy_(values.view_as(part))
    return moved.view_as(x)


def _slices_of_equal_length(lengths: Sequence[int], x: torch.Tensor) -> Iterator[slice]:
    """Yield slices of neighbouring rows of (B, T, F) with the same number of tokens.

    lengths: of the rows, without padding. Slices are so short that little memory is
    needed. Unlike a list of rows, a slice needs no synchronisation with the device.
    """
    begin = 0
    for length, rows in itertools.groupby(lengths):
        stop = begin + len(list(rows))
        size = max(1, ELEMENTS_AT_ONCE[x.device.type] // (length * x.shape[2]))
        for first in range(begin, stop, size):
            yield slice(first, min(first + size, stop))
        begin = stop


def new_generators(
    count: int, seed: int, device: torch.device | str
) -> list[torch.Generator]:
    """Return one generator for each sequence, all with the same seed, so that random
    numbers do not depend on the sequence's index in the batch.
    """
    return [torch.Generator(device).manual_seed(seed) for _ in range(count)]


def _moved(
    x: torch.Tensor, settings: Arm, generators: Sequence[torch.Generator]
) -> torch.Tensor:
    """Return groups of elements (groups, n) after redistribution; each group has its
    own statistics and generator.
    """
    values = x.float()  # bfloat16 has too few digits for a median of deviations
    n = x.shape[1]
    # The largest element that does not exceed the quantile p1.
    at_quantile = int(settings.p1 / 100 * (n - 1))
    median, high = order_statistics(values, [(n - 1) // 2, at_quantile])
    chosen = _smallest(values, median, settings)

    high = high.clamp(min=0)
    low = values.amin(1, keepdim=True).clamp(max=0)
    device = values.device
    draws = torch.stack(
        [torch.rand(n, generator=generator, device=device) for generator in generators]
    )
    if settings.mode == "code":
        target = draws.mul_(torch.where(values >= 0, high, low))
    else:
        draws = draws.mul_(torch.where(values > 0, high, low))
        target = torch.minimum(draws.add_(values).maximum(low), high)
        chosen &= (values != 0) & (values <= high)  # a zero has no sign to keep
    return torch.where(chosen, target.to(x.dtype), x)


def _smallest(
    values: torch.Tensor, median: torch.Tensor, settings: Arm
) -> torch.Tensor:
    """Return the mask (groups, n) of the elements that are moved: the share with the
    smallest magnitudes.

    The share of elements within a bound grows with the bound, so the share is clipped
    by clipping the bound between two order statistics. Elements that equal the bound
    are left out if they would make the share too large.
    """
    n = values.shape[1]
    shares = (MIN_FRACTION, MAX_FRACTION)
    if settings.fraction is not None:
        shares = (settings.fraction, settings.fraction)
    fewest, most = (int(share * n) for share in shares)
    magnitudes = values.abs()
    indices = [max(count - 1, 0) for count in (fewest, most)]
    lowest, highest = order_statistics(magnitudes, indices)
    none = torch.full_like(median, -1.0)  # a bound that no element is within
    lowest = lowest if fewest else none
    highest = highest if most else none
    bound = near_zero_bound(values, settings.c, median)
    bound = torch.minimum(torch.maximum(bound, lowest), highest)
    within = magnitudes <= bound
    is_few = within.sum(1, keepdim=True) <= most
    return torch.where(is_few, within, magnitudes < bound)


class Installed:
    """ARM while it is active in a model.

    The next forward passes use `generators`, one for each row of the batch. None: each
    row starts from `seed` with its prompt. In the next prompts, so many first tokens of
    each row change as `lengths` says; a batch with padding needs it. None: all tokens.
    """

    def __init__(self, settings: Arm, seed: int):
        self.settings = settings
        self.seed = seed
        self.generators: Sequence[torch.Generator] | None = None
        self.lengths: Sequence[int] | None = None
        self._default_generators: list[torch.Generator] = []
        self._prompt = True

    def _before(self, decoder, args, kwargs) -> None:
        """Note whether a forward pass begins a prompt."""
        cache = kwargs.get("past_key_values")
        self._prompt = cache is None or cache.get_seq_length() == 0

    def _change(self, module, inputs, output: torch.Tensor) -> torch.Tensor:
        """Return the redistributed output of the activation module."""
        if self.settings.mode == "text" and not self._prompt:
            return output
        lengths = None
        if self._prompt:
            lengths = self.lengths
            if lengths and len(lengths) > 1 and output.dim() == 2:
                raise InputError(
                    "this model joins the prompts of a batch before its MLP, where ARM"
                    " needs them apart: set batch_size to 1"
                )
            each = new_generators(len(output), self.seed, output.device)
            self._default_generators = each
        generators = self.generators or self._default_generators
        return redistribute(
            output, self.settings, lengths=lengths, generators=generators
        )


@contextlib.contextmanager
def installed(
    model: PreTrainedModel, settings: Arm = PAPER_ARM, *, seed: int = 0
) -> Iterator[Installed]:
    """Apply ARM to the MLP activations of the decoder layer `settings.layer` until the
    block ends.

    In ARM's default mode, text, only the activations of the prompt change, and not
    those of generated tokens. The block receives the `Installed`, whose random
    generators and lengths of prompts can be replaced.

    A forward hook changes the output of `act_fn`, so no modeling code is replaced.
    Raises InputError for a layer or an MLP that ARM does not support.
    """
    arm = Installed(settings, seed)
    module = activation_module(model, settings.layer)
    change = module.register_forward_hook(arm._change)
    with change:
        decoder = model.get_decoder()
        before = decoder.register_forward_pre_hook(arm._before, with_kwargs=True)
        with before:
            yield arm
