"""What an MLP's activation function puts out: where it is, how it is seen while a model
runs, and its measures.

`act_fn(gate)` is what the paper's Fig. 4 and 7 show and what ARM changes; `gate` is its
input. A forward hook sees both for one layer at a time, so nothing of a layer is held
after it has been reduced.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from transformers import PreTrainedModel

from lib.attention.function import LastLayerDone
from lib.errors import InputError

NAMES = (
    "act_fn",
    "activation_fn",
    "act",
)  # of the module in a decoder layer's MLP, by family
MEASURES = ("near zero", "L1", "L2", "Gini", "variance", "gate variance")
# standard deviations of a normal distribution in one median absolute deviation
SIGMA = 1.4826
# Bins of the histograms: SiLU and GELU put most of what they give near zero and nothing
# below -0.28.
BIN_EDGES = torch.linspace(-0.4, 2.0, 241)
See = Callable[
    [int, torch.Tensor, torch.Tensor], None
]  # layer from 1, gate and activation, (B, T, F) each


def activation_module(model: PreTrainedModel, layer: int) -> torch.nn.Module:
    """Return the activation module of a decoder layer's MLP; `layer` counts from 1.

    Raises InputError for a layer that the model lacks, a mixture of experts, and an MLP
    without such a module.
    """
    layers = list(model.get_decoder().get_submodule("layers").children())
    if not 1 <= layer <= len(layers):
        raise InputError(
            f"layer {layer} asked for; the model has layers 1 to {len(layers)}"
        )
    found, place = (
        layers[layer - 1],
        f"layer {layer} of this {model.config.get_text_config().model_type} model",
    )
    if any(name.rpartition(".")[2] == "experts" for name, _ in found.named_modules()):
        raise InputError(
            f"{place} is a mixture of experts, which has no one activation"
        )
    for part in (getattr(found, "mlp", None), found):
        for name in NAMES:
            if isinstance(getattr(part, name, None), torch.nn.Module):
                return getattr(part, name)
    raise InputError(f"{place} has no MLP activation module ({', '.join(NAMES)})")


@contextlib.contextmanager
def watched(
    model: PreTrainedModel, layers: Sequence[int], see: See, stop: bool = False
) -> Iterator[None]:
    """Call see(layer, gate, activation) in every forward inside the block, after any
    change that ARM makes.

    With `stop` a forward ends after the last of the layers, and the exception that ends
    it ends the block.
    """

    def seen(layer: int, module, inputs, output) -> None:
        see(layer, inputs[0], output)
        if stop and layer == max(layers):
            raise LastLayerDone

    with contextlib.suppress(LastLayerDone), contextlib.ExitStack() as hooks:
        for layer in layers:
            hooks.enter_context(
                activation_module(model, layer).register_forward_hook(
                    partial(seen, layer)
                )
            )
        yield


def near_zero_bound(
    values: torch.Tensor, c: float, median: torch.Tensor | None = None
) -> torch.Tensor:
    """Return eps = c * 1.4826 * MAD of groups (groups, n), (groups, 1): the near-zero
    bound of the paper's Sec. 4.

    `median` (groups, 1), where it is known.
    """
    values, middle = values.float(), (values.shape[1] - 1) // 2
    median = order_statistics(values, [middle])[0] if median is None else median
    return c * SIGMA * order_statistics((values - median).abs_(), [middle])[0]


def order_statistics(
    values: torch.Tensor, indices: Sequence[int]
) -> list[torch.Tensor]:
    """Return, (groups, 1) each, the elements of groups (groups, n) that `indices`, from
    0, would have in order.

    On a CPU by a selection for each, numpy's, which takes an eighth of the time of
    torch's kthvalue; elsewhere by one sort, of which kthvalue takes twenty times the
    time on CUDA.
    """
    if values.device.type == "cpu":
        found = (
            np.partition(values.detach().numpy(), index, -1)[:, index, None]
            for index in indices
        )
        return [torch.from_numpy(element) for element in found]
    ordered = values.sort(-1).values
    return [ordered[:, index, None] for index in indices]


def measure(
    gate: torch.Tensor, activation: torch.Tensor, bound: torch.Tensor
) -> torch.Tensor:
    """Return MEASURES (6,) of tokens (n, F).

    near zero: share of elements within the bound; L1 and L2: mean over tokens of the
    token's norm; Gini: of the magnitudes of all elements, 0 when all are equal and near
    1 when one holds everything; variance: over all elements, of the activation and of
    the gate.
    """
    values, magnitudes = activation.float(), activation.float().abs()
    norms = (magnitudes.sum(-1).mean(), values.square().sum(-1).sqrt().mean())
    spread = (values.var(correction=0), gate.float().var(correction=0))
    return torch.stack(
        [(magnitudes <= bound).float().mean(), *norms, gini(magnitudes), *spread]
    )


def gini(magnitudes: torch.Tensor) -> torch.Tensor:
    """Return the Gini coefficient of all elements, which must not be negative; 0 when
    all are zero.
    """
    flat = magnitudes.detach().flatten()
    # On a CPU numpy's sort takes a twelfth of the time of torch's.
    ordered = (
        torch.from_numpy(np.sort(flat.numpy()))
        if flat.device.type == "cpu"
        else flat.sort().values
    )
    ordered = ordered.double()
    n, total = len(ordered), ordered.sum()
    ranks = torch.arange(1, n + 1, device=ordered.device, dtype=torch.float64)
    uneven = 2 * (ranks * ordered).sum() / (n * total) - (n + 1) / n
    return torch.where(
        total > 0, uneven, 0.0
    ).float()  # without a look at the total, which would wait for the device


def histogram(activation: torch.Tensor) -> torch.Tensor:
    """Return how many elements fall into each bin of BIN_EDGES, int64 (240,); what lies
    outside is in the end bins.
    """
    low, high = float(BIN_EDGES[0]), float(BIN_EDGES[-1])
    inside = activation.float().clamp(low, high)
    return torch.histc(
        inside, len(BIN_EDGES) - 1, low, high
    ).long()  # float32 counts are exact up to 16 million
