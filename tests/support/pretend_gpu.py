"""A GPU that is not there, for tests of everything that would run on one.

    with PretendGpu() as gpu:
        gpu.take(model)
        ...                     # real numbers come out
    gpu.waits                   # where the host waited for the device, and why

It obeys a GPU's rules: tensors of two devices do not meet, a generator belongs to its
device, numpy cannot read a tensor, nothing waits inside a capture. A CUDA graph is
recorded call by call. Capturing changes no memory; a replay runs the same calls on the
same memory, after all that lies between was overwritten with NaN. So an input that is
not filled, a number of the host's that was baked in, and a tensor made outside of the
graph give wrong numbers, as on a GPU. What it cannot show: speed, CUDA's own rounding,
shapes that a CUDA kernel refuses, races of streams.
"""

import collections
import contextlib
import itertools
import sys
from types import SimpleNamespace
from unittest import mock

import torch
from gpu_rules import Call, effect
from gpu_tensor import (
    CPU,
    CUDA,
    DeviceError,
    Generator,
    Numbered,
    OnGpu,
    lend_device_guard,
    pinned,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from lib.paths import ROOT

LIB = f"{ROOT}/lib/"
GIB = 2**30
BROKEN_CAPTURE = "operation failed due to a previous error during capture"


class Event:
    """A place in a stream: all before it has happened, since nothing takes any time."""

    def record(self):
        pass

    def synchronize(self):
        pass


class Graph:
    """What was captured: calls, and the tensors that they make."""

    def __init__(self):
        self.calls = []
        self.made = []
        self.storages = set()

    def replay(self):
        # Nothing that a graph computes outlives its replay, nor comes before it.
        for tensor in self.made:
            if tensor.is_floating_point():
                tensor.fill_(torch.nan)
            else:
                tensor.fill_(True if tensor.dtype == torch.bool else -1)
        for function, args, kwargs, outputs in self.calls:
            results = tree_flatten(function(*args, **kwargs))[0]
            for kept, new in zip(outputs, results, strict=True):
                is_other = isinstance(new, torch.Tensor) and kept is not new
                if is_other and kept.data_ptr() != new.data_ptr():
                    kept.copy_(new)


class PretendGpu(TorchDispatchMode):
    """Pretends a GPU until the block ends; counts what the host asks of it."""

    def __init__(self, free=100 * GIB):
        super().__init__()
        self.free = free
        self.waits = collections.Counter()  # by (why, where)
        self.copies = collections.Counter()  # by (way, where)
        self.calls = collections.Counter()  # by name
        self.graphs = []
        self.replays = 0
        self.capture_modes = set()
        self.pools = set()  # memory that graphs were captured into
        self.handles = itertools.count()
        self.emptied = 0  # how often torch's unused blocks were given back
        self.main_stream = SimpleNamespace(name="main")
        self.stream = self.main_stream
        self._sync_mode = "default"
        self._capturing = None
        self._saved = {}

    def __enter__(self):
        lend_device_guard()
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(Numbered())
        for name, stand_in in self._stand_ins().items():
            patch = mock.patch.object(torch.cuda, name, stand_in)
            self._stack.enter_context(patch)
        for owner, name, stand_in in (
            (torch, "Generator", Generator),
            (torch.Tensor, "pin_memory", pinned),
            (OnGpu, "run", self._run),
        ):
            self._stack.enter_context(mock.patch.object(owner, name, stand_in))
        self._keep_kinds_of_tensors()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._stack.close()

    def _stand_ins(self):
        """Return what stands in for functions of torch.cuda."""
        return {
            "is_available": lambda: True,
            "_lazy_init": lambda: None,
            "synchronize": lambda *args: None,
            "current_device": lambda: 0,
            "device_count": lambda: 1,
            "get_device_capability": lambda *args: (9, 0),
            "get_device_name": lambda *args: "a GPU that is not there",
            "mem_get_info": lambda *args: (self.free, 139 * GIB),
            "empty_cache": self._empty_cache,
            "memory_allocated": lambda *args: 0,
            "max_memory_allocated": lambda *args: 0,
            "reset_peak_memory_stats": lambda *args: None,
            "Event": Event,
            "set_sync_debug_mode": self._set_sync_mode,
            "current_stream": lambda *args: self.stream,
            "set_stream": self._set_stream,
            "graph_pool_handle": lambda: (0, next(self.handles)),
            "CUDAGraph": self._new_graph,
            "graph": self._capture,
        }

    def _empty_cache(self):
        self.emptied += 1

    def _set_sync_mode(self, mode):
        self._sync_mode = mode

    def _set_stream(self, stream):
        self.stream = stream

    def _new_graph(self):
        graph = Graph()
        self.graphs.append(graph)
        replay = graph.replay

        def counted():
            self.replays += 1
            # On the host's own tensors: what is replayed asks nothing anew.
            with torch.utils._python_dispatch._disable_current_modes():
                replay()

        graph.replay = counted
        return graph

    def _keep_kinds_of_tensors(self):
        """Let a parameter that is moved, and a number that is read, stay on the GPU."""
        future = torch.__future__
        overwrites = future.get_overwrite_module_params_on_conversion()
        future.set_overwrite_module_params_on_conversion(True)
        self._stack.callback(
            future.set_overwrite_module_params_on_conversion, overwrites
        )
        lifts = torch._C._only_lift_cpu_tensors()
        torch._C._set_only_lift_cpu_tensors(True)
        self._stack.callback(torch._C._set_only_lift_cpu_tensors, lifts)

    def take(self, model):
        """Put a model on the GPU, and count from now on."""
        torch.nn.Module.to(model, "cuda")
        for counter in (self.waits, self.copies, self.calls):
            counter.clear()
        return model

    @contextlib.contextmanager
    def _capture(self, graph, pool=None, stream=None, capture_error_mode="global"):
        """Record what the block calls, as torch.cuda.graph does.

        Like that one it ends a capture that breaks with an error of its own, and leaves
        its stream the current one then.
        """
        self.capture_modes.add(capture_error_mode)
        self.pools.add(pool)
        before = self.stream
        self.stream = SimpleNamespace(name="side")
        self._capturing = graph
        self._saved = {}  # what was written to, as it was: capturing runs nothing
        try:
            yield
        except Exception:
            raise RuntimeError(BROKEN_CAPTURE)  # noqa: B904 (as torch's, in a context)
        else:
            self.stream = before
        finally:
            self._capturing = None
            for tensor, was in self._saved.values():
                tensor.copy_(was)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return self._run(function, args, kwargs or {})

    def _run(self, function, args, kwargs):
        """Carry out one operation on the numbers that its tensors hold."""
        flat, spec = tree_flatten((args, kwargs))
        call = _call(function, args, kwargs, flat)
        for_gpu = call.device is not None and call.device.type == "cuda"
        if not call.on_gpu and not for_gpu:
            return function(*args, **kwargs)  # the host's own business
        self._follow_rules(call)
        self.calls[call.name] += 1

        held = [_held(value) for value in flat]
        args, kwargs = tree_unflatten(held, spec)
        if self._capturing is not None:
            self._save(function._schema, args, kwargs)
        real = _on_cpu(call)
        outputs, shape = tree_flatten(real(*args, **kwargs))

        wrapped = {id(tensor.held): tensor for tensor in call.on_gpu}
        if self._target(call).type == "cpu":
            # A copy, even where the numbers lay here before.
            outputs = [
                value.clone() if id(value) in wrapped else value for value in outputs
            ]
            return tree_unflatten(outputs, shape)
        if self._capturing is not None:
            self._capturing.calls.append((real, args, kwargs, outputs))
            self._remember_made(outputs, held)
        outputs = [
            wrapped.get(id(value)) if id(value) in wrapped else _wrapped(value)
            for value in outputs
        ]
        return tree_unflatten(outputs, shape)

    def _target(self, call):
        """Return where the result of a call lies."""
        if call.device is not None:
            return call.device
        if call.name == "copy_":
            return call["self"].device
        return CUDA if call.on_gpu else CPU

    def _follow_rules(self, call):
        """Count what a call does beside, and refuse what may not be now."""
        beside = effect(call)
        if not beside.copy and not beside.wait:
            return
        where = _where()
        if beside.copy:
            self.copies[beside.copy, where] += 1
        if beside.wait:
            self.waits[beside.wait, where] += 1
            if self._capturing is not None:
                raise DeviceError(
                    f"operation not permitted when stream is capturing ({beside.wait})"
                )
            if self._sync_mode == "error":
                raise DeviceError(
                    f"called a synchronizing CUDA operation: {beside.wait} at {where}"
                )
        if self._capturing is not None and not beside.capturable:
            raise DeviceError("Cannot copy between CPU and CUDA tensors during capture")

    def _save(self, schema, args, kwargs):
        """Remember what a call is about to change, unless the graph made it itself."""
        names = [argument.name for argument in schema.arguments]
        values = dict(zip(names, args, strict=False)) | kwargs
        for argument in schema.arguments:
            tensor = values.get(argument.name)
            is_written = argument.alias_info and argument.alias_info.is_write
            if not is_written or not isinstance(tensor, torch.Tensor):
                continue
            storage = tensor.untyped_storage()
            place = storage.data_ptr()
            if place in self._capturing.storages or place in self._saved:
                continue
            whole = tensor.new_empty(0).set_(storage)
            self._saved[place] = whole, whole.clone()

    def _remember_made(self, outputs, held):
        """Keep the tensors that a captured call has made, and not merely viewed."""
        given = {_storage(value) for value in held if isinstance(value, torch.Tensor)}
        graph = self._capturing
        for tensor in outputs:
            if not isinstance(tensor, torch.Tensor) or not tensor.numel():
                continue
            place = _storage(tensor)
            if place not in given and place not in graph.storages:
                graph.storages.add(place)
                graph.made.append(tensor)


def _call(function, args, kwargs, flat):
    """Return an operation with its arguments by name, and all of them in a row."""
    names = [argument.name for argument in function._schema.arguments]
    arguments = dict(zip(names, args, strict=False)) | kwargs
    device = arguments.get("device")
    if device is None and function._overloadname == "other" and "other" in arguments:
        device = arguments["other"].device
    device = None if device is None else torch.device(device)
    return Call(function, arguments, flat, device)


def _held(value):
    """Return an argument as the CPU takes it."""
    if isinstance(value, OnGpu):
        return value.held
    return CPU if isinstance(value, torch.device) else value


def _wrapped(value):
    return OnGpu(value) if isinstance(value, torch.Tensor) else value


def _storage(tensor):
    return tensor.untyped_storage().data_ptr()


def _on_cpu(call):
    """Return what computes a call on a CPU, also where only a GPU has it."""
    function = call.function
    if call.name in ("bmm", "baddbmm") and call["out_dtype"] is not None:

        def product(*args, out_dtype=None, **kwargs):
            tensors = [value.to(out_dtype) for value in args if torch.is_tensor(value)]
            return getattr(torch, call.name)(*tensors, **kwargs)

        def with_wide_sums(*args, **kwargs):
            out_dtype = call["out_dtype"]
            kwargs.pop("out_dtype", None)
            return product(*args, out_dtype=out_dtype, **kwargs)

        return with_wide_sums
    if call.name == "histc":  # which a GPU has for whole numbers too

        def counted(values, *args, **kwargs):
            return function(values.float(), *args, **kwargs).to(values.dtype)

        return counted
    return function


def _where():
    """Return the innermost line of lib that is being run."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(LIB):
            return f"{file.removeprefix(LIB)}:{frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere"
