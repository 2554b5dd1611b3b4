"""Find the output of an MLP's activation function, and measure it.

`act_fn(gate)` is the quantity of the paper's Figs. 4 and 7, which ARM changes; `gate`
is its input. A forward hook receives both, one layer at a time, so that a layer's
tensors can be freed before the next layer runs.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from transformers import PreTrainedModel

from lib.attention.custom_attention import StopForward
from lib.errors import InputError

# Names of the activation module in a decoder layer's MLP, which differ by architecture.
ACTIVATION_NAMES = ("act_fn", "activation_fn", "act")
ACTIVATION_MEASURES = ("near zero", "L1", "L2", "Gini", "variance", "gate variance")
# The standard deviation of a normal distribution divided by its median absolute
# deviation.
SIGMA = 1.4826
# Bins of the histograms. Most outputs of SiLU and GELU are near zero, and none is below
# -0.28.
BIN_EDGES = torch.linspace(-0.4, 2.0, 241)
# Called with a layer (counted from 1), its gate and its activation, (B, T, F) each.
See = Callable[[int, torch.Tensor, torch.Tensor], None]


def activation_module(model: PreTrainedModel, layer: int) -> torch.nn.Module:
    """Return the activation module of a decoder layer's MLP; `layer` counts from 1.

    Raises InputError if the model lacks the layer, if the layer is a mixture of
    experts, or if its MLP has no such module.
    """
    layers = list(model.get_decoder().get_submodule("layers").children())
    if not 1 <= layer <= len(layers):
        raise InputError(
            f"layer {layer} was requested; the model has layers 1 to {len(layers)}"
        )
    decoder_layer = layers[layer - 1]
    family = model.config.get_text_config().model_type
    name = f"layer {layer} of this {family} model"
    modules = [path.rpartition(".")[2] for path, _ in decoder_layer.named_modules()]
    if "experts" in modules:
        raise InputError(
            f"{name} is a mixture of experts, which has no single activation"
        )
    for part in (getattr(decoder_layer, "mlp", None), decoder_layer):
        for attribute in ACTIVATION_NAMES:
            module = getattr(part, attribute, None)
            if isinstance(module, torch.nn.Module):
                return module
    known = ", ".join(ACTIVATION_NAMES)
    raise InputError(f"{name} has no MLP activation module ({known})")


@contextlib.contextmanager
def watched(model: PreTrainedModel, layers: Sequence[int], see: See) -> Iterator[None]:
    """Call see(layer, gate, activation) for each of the layers (from 1) in a forward
    pass, after ARM has made its changes.

    The forward pass ends after the last of the layers, which also ends the block
    without an error.
    """

    def seen(layer: int, module, inputs, output) -> None:
        see(layer, inputs[0], output)
        if layer == max(layers):
            raise StopForward

    with contextlib.suppress(StopForward), contextlib.ExitStack() as hooks:
        for layer in layers:
            module = activation_module(model, layer)
            hook = partial(seen, layer)
            hooks.enter_context(module.register_forward_hook(hook))
        yield


def near_zero_bound(
    values: torch.Tensor, c: float, median: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the bound eps = c * 1.4826 * MAD of the paper's Sec. 4, below which an
    activation counts as near zero, as (groups, 1).

    values: (groups, n); each group has its own bound. median: (groups, 1) of the
    values; None: it is computed.
    """
    values = values.float()
    middle = (values.shape[1] - 1) // 2
    if median is None:
        (median,) = order_statistics(values, [middle])
    deviations = (values - median).abs_()
    (deviation,) = order_statistics(deviations, [middle])
    return c * SIGMA * deviation


def order_statistics(
    values: torch.Tensor, indices: Sequence[int]
) -> list[torch.Tensor]:
    """Return the elements that would be at `indices` if each group of values (groups,
    n) were sorted in ascending order, as (groups, 1) each.

    On a CPU, numpy's selection takes an eighth of the time of torch's kthvalue. On
    CUDA, one sort takes a twentieth of the time of kthvalue.
    """
    if values.device.type == "cpu":
        array = values.detach().numpy()
        selected = []
        for index in indices:
            partitioned = np.partition(array, index, -1)
            column = partitioned[:, index, None]
            selected.append(torch.from_numpy(column))
        return selected
    ordered = values.sort(-1).values
    return [ordered[:, index, None] for index in indices]


def measures_of(
    gate: torch.Tensor, activation: torch.Tensor, bound: torch.Tensor
) -> torch.Tensor:
    """Return ACTIVATION_MEASURES (6,) of n tokens.

    gate, activation: (n, F). bound: see `near_zero_bound`. The measures are:

    - near zero: the share of elements whose magnitude is at most `bound`.
    - L1, L2: the norm of a token's activation, averaged over tokens.
    - Gini: the Gini coefficient of the magnitudes of all elements.
    - variance, gate variance: over all elements of the activation and of the gate.
    """
    values = activation.float()
    magnitudes = values.abs()
    measures = [
        (magnitudes <= bound).float().mean(),
        magnitudes.sum(-1).mean(),
        values.square().sum(-1).sqrt().mean(),
        gini(magnitudes),
        values.var(correction=0),
        gate.float().var(correction=0),
    ]
    return torch.stack(measures)


def gini(magnitudes: torch.Tensor) -> torch.Tensor:
    """Return the Gini coefficient of all elements, which must not be negative: 0 if all
    are equal, and near 1 if one element has nearly the complete sum.
    """
    flat = magnitudes.detach().flatten()
    if flat.device.type == "cpu":
        # numpy's sort takes a twelfth of the time of torch's.
        ordered = torch.from_numpy(np.sort(flat.numpy())).double()
    else:
        ordered = flat.sort().values.double()
    n = len(ordered)
    total = ordered.sum()
    ranks = torch.arange(1, n + 1, device=ordered.device, dtype=torch.float64)
    weighted = (ranks * ordered).sum()
    unevenness = 2 * weighted / (n * total) - (n + 1) / n
    # torch.where, because reading the total on the host would wait for the device.
    return torch.where(total > 0, unevenness, 0.0).float()


def histogram(activation: torch.Tensor) -> torch.Tensor:
    """Return how many elements are in each bin of BIN_EDGES, int64 (240,).

    Elements outside the range are counted in the first or the last bin.
    """
    low = float(BIN_EDGES[0])
    high = float(BIN_EDGES[-1])
    bins = len(BIN_EDGES) - 1
    inside = activation.float().clamp(low, high)
    # float32 counts are exact up to 16 million.
    counts = torch.histc(inside, bins, low, high)
    return counts.long()
