"""What a GPU refuses, and what makes the host wait for it, operation by operation."""

from dataclasses import dataclass
from typing import Any

import torch
from gpu_tensor import CUDA, DeviceError, OnGpu

# Operations of which the host needs a number.
READS = {
    *("_local_scalar_dense", "item", "is_nonzero", "nonzero", "equal", "allclose"),
    *("masked_select", "unique", "_unique2", "unique_consecutive", "unique_dim"),
    *("bincount", "linalg_svdvals"),
}
COPIES = {"copy_", "_to_copy", "to"}
INDEXED = {
    *("index", "index_put", "index_put_", "_index_put_impl_"),
    *("_unsafe_index", "_unsafe_index_put"),
}
# Operations that take no single number of the host's among a GPU's tensors either.
STRICT = {
    *("embedding", "gather", "scatter", "scatter_", "index_select", "searchsorted"),
    *("cat", "stack", "mm", "bmm"),
}


@dataclass
class Call:
    """One operation on tensors of which some lie on the GPU."""

    function: Any
    arguments: dict[str, Any]  # by name
    flat: list[Any]  # all arguments, out of their lists
    device: torch.device | None  # that was asked for

    def __post_init__(self):
        self.name = self.function._schema.name.removeprefix("aten::")
        self.tensors = [value for value in self.flat if isinstance(value, torch.Tensor)]
        self.on_gpu = [tensor for tensor in self.tensors if isinstance(tensor, OnGpu)]

    def __getitem__(self, name: str) -> Any:
        return self.arguments.get(name)


@dataclass
class Effect:
    """What a call does beside its computation."""

    wait: str = ""  # why the host waits for the device, if it does
    copy: str = ""  # in which direction numbers travel, if they do
    capturable: bool = True  # whether a graph may hold it


def effect(call: Call) -> Effect:
    """Return what a call does beside; DeviceError for what a GPU would refuse."""
    if call.name in READS:
        return Effect(wait=f"{call.name} reads a number")
    if call.name == "repeat_interleave":
        by_tensor = call.function._overloadname in ("Tensor", "self_Tensor")
        if by_tensor and not call["output_size"]:
            return Effect(wait="repeat_interleave without output_size")
    if call.name == "histc" and (call["min"] or 0) == (call["max"] or 0):
        return Effect(wait="histc without bounds")
    if call.name in COPIES:
        return _copy(call)
    if call.name in INDEXED:
        return _indexing(call)
    return _meeting(call)


def _copy(call: Call) -> Effect:
    in_place = call.name == "copy_"
    source = call["src"] if in_place else call["self"]
    target = call["self"].device if in_place else call.device or source.device
    if source.device.type == target.type or not source.numel():
        return Effect()
    to_host = target.type == "cpu"
    way = "to the host" if to_host else "to the device"
    if in_place and source.dim() == 0 and not to_host:
        return Effect(copy=way)  # filled in as a number
    lies_pinned = getattr(source, "lies_pinned", False)
    if call["non_blocking"] and (lies_pinned or to_host):
        return Effect(copy=way, capturable=lies_pinned or to_host)
    return Effect(wait=f"copy {way}", copy=way, capturable=False)


def _indexing(call: Call) -> Effect:
    if not isinstance(call["self"], OnGpu):
        raise DeviceError("indices should be on the same device as the tensor (cpu)")
    values = call["values"]
    of_host = values is not None and not isinstance(values, OnGpu)
    if of_host and values.dim():
        raise DeviceError(f"{call.name}: expected values on cuda")
    indices = [index for index in call["indices"] if index is not None]
    masks = [index for index in indices if index.dtype in (torch.bool, torch.uint8)]
    fills_one_number = of_host and values.numel() == 1 and len(indices) == 1
    if masks and not fills_one_number:
        return Effect(wait=f"{call.name} by a mask, whose places are counted")
    if not all(isinstance(index, OnGpu) for index in indices):
        return Effect(wait=f"{call.name} by indices of the host's")
    return Effect()


def _meeting(call: Call) -> Effect:
    """Refuse tensors of two devices in one call, but for single numbers."""
    of_host = [tensor for tensor in call.tensors if not isinstance(tensor, OnGpu)]
    for tensor in of_host:
        if tensor.dim() or call.name in STRICT:
            raise DeviceError(
                f"{call.name}: Expected all tensors to be on the same device, but found"
                f" {CUDA} and cpu {tuple(tensor.shape)}"
            )
    return Effect()
