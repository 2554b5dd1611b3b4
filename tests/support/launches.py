"""Count the kernels that a computation would launch on a GPU, on torch's meta
device.
"""

from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
# Operators without a kernel: they allocate an empty tensor or return a view.
NO_KERNEL = (
    aten.empty,
    aten.new_empty,
    aten.empty_like,
    aten.empty_strided,
    aten._unsafe_view,
)

# In inference mode compound operators arrive undecomposed; on CUDA these are a kernel.
ONE_KERNEL = (aten.scaled_dot_product_attention, aten.rms_norm)


class Launches(TorchDispatchMode):
    """Counts kernels by name in `kernels` within its `with` block.

    A truth value read from a meta tensor, which has no numbers, is False after `any`
    and otherwise True: nothing is padded, nothing is NaN.
    """

    def __init__(self):
        super().__init__()
        self.kernels = Counter()
        self.last = None

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        operator = function.overloadpacket
        if operator not in ONE_KERNEL:
            with self:
                parts = function.decompose(*args, **(kwargs or {}))
            if parts is not NotImplemented:
                return parts
        if operator is aten._local_scalar_dense and args[0].is_meta:
            return self.last is not aten.any
        self.last = operator
        if operator not in NO_KERNEL and not is_view(function):
            self.kernels[str(operator)] += 1
        return function(*args, **(kwargs or {}))


def is_view(function):
    """Return whether an operator returns a view of its input without changing it."""
    returned = [value.alias_info for value in function._schema.returns]
    return any(alias is not None and not alias.is_write for alias in returned)
