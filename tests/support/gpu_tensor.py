"""Tensors and generators that say they are on a GPU, where there is none.

Their numbers lie in the host's memory, so what is computed with them is real.
"""

import ctypes
import sys
from pathlib import Path

import torch
from torch.overrides import TorchFunctionMode

CUDA = torch.device("cuda", 0)
CPU = torch.device("cpu")
RealGenerator = torch.Generator


class DeviceError(RuntimeError):
    """What a GPU would refuse."""


class OnGpu(torch.Tensor):
    """A tensor that says it is on cuda:0; `held` are its numbers, on the CPU.

    `run` is what carries out operations on such tensors while a GPU is pretended.
    """

    held: torch.Tensor
    run = None

    @staticmethod
    def __new__(cls, held):
        # Else it could be no view of a tensor that was made outside of inference mode.
        with torch.inference_mode(False):
            tensor = torch.Tensor._make_wrapper_subclass(
                cls,
                held.size(),
                strides=held.stride(),
                storage_offset=held.storage_offset(),
                dtype=held.dtype,
                device=CUDA,
            )
        tensor.held = held
        return tensor

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __repr__(self):
        return f"OnGpu({self.held!r})"

    def tolist(self):
        return self.cpu().tolist()

    def numpy(self, *args, **kwargs):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    __array__ = numpy

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if OnGpu.run is None:
            raise DeviceError(f"{function}: no GPU is pretended here")
        return OnGpu.run(function, args, kwargs or {})


class Generator(RealGenerator):
    """A generator that knows which kind of device it was made for."""

    def __new__(cls, device="cpu"):
        generator = super().__new__(cls, "cpu")
        generator.made_for = torch.device(device).type
        return generator

    def __init__(self, device="cpu"):
        pass


class Numbered(TorchFunctionMode):
    """Says cuda:0 where cuda is asked for, and holds generators to their devices.

    A torch without CUDA cannot look up which GPU is the current one.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        args = [_numbered(value) for value in args]
        kwargs = dict(kwargs or {})
        if "device" in kwargs:
            kwargs["device"] = _numbered(kwargs["device"])
        generator = kwargs.get("generator")
        # Here, since what it was made for is lost on the way to the dispatcher.
        if isinstance(generator, Generator):
            self._check(generator, args, kwargs)
        return function(*args, **kwargs)

    def _check(self, generator, args, kwargs):
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        default = tensors[0].device if tensors else CPU
        wanted = torch.device(kwargs.get("device") or default).type
        if generator.made_for != wanted:
            raise DeviceError(
                f"Expected a {wanted!r} device type for generator but found"
                f" {generator.made_for!r}"
            )


def _numbered(value):
    is_place = isinstance(value, str | torch.device)
    return CUDA if is_place and str(value) == "cuda" else value


def pinned(tensor, *args):
    """Copy a tensor into memory from which copies to the device need no wait."""
    copy = tensor.clone()
    copy.lies_pinned = True
    return copy


def lend_device_guard():
    """Give a torch without CUDA the device guard of meta, which does nothing, for cuda.

    Without any guard torch refuses to make a tensor that says it is on cuda.
    """
    torch._C._ensureCUDADeviceGuardSet()  # of a torch with CUDA, without a GPU
    name = "libc10.dylib" if sys.platform == "darwin" else "libc10.so"
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name))
    registry = "_ZN3c104impl26device_guard_impl_registryE"
    guards = (ctypes.c_void_p * 22).in_dll(library, registry)
    cuda, meta = 1, 14  # numbers of c10's DeviceType
    if not guards[cuda]:
        guards[cuda] = guards[meta]
