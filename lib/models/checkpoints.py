"""Safetensors checkpoints: which tensors lie where, any of them by its bytes, and a new file of some of them.

A shard is eight bytes of header length, a JSON header, then the tensors' bytes; so any tensor can be had by
its byte range, from a file on disk here and over the network in `ranges`.
"""

import itertools
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from huggingface_hub.utils import WeakFileLock
from tqdm.asyncio import tqdm

from lib.errors import InputError
from lib.models.failures import checkpoint_errors

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
CHUNK = 1 << 20  # bytes; divisible by every element size
LARGEST_HEADER = 100_000_000  # bytes; the format's own limit
WORTH_A_BAR = 50_000_000  # bytes
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "BOOL": torch.bool,
}


@dataclass(frozen=True)
class Tensor:
    """One stored tensor: bytes `start` to `stop` of `file`."""

    name: str
    file: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Bytes."""
        return self.stop - self.start


class LocalFiles:
    """Shards in a folder, read by byte range; `label` is what messages call the checkpoint."""

    def __init__(self, folder: Path, label: str | None = None):
        self.folder = folder
        self.label = label or str(folder)

    def size(self, file: str) -> int | None:
        """Return the bytes of `file`, None when there is no such file."""
        path = self.folder / file
        return path.stat().st_size if path.is_file() else None

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def read(self, file: str, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes from `start` to `stop`, at most CHUNK at a time."""
        with open(self.folder / file, "rb", buffering=0) as stream:
            if hasattr(os, "posix_fadvise"):
                # Readahead would fetch megabytes of the layers that follow.
                os.posix_fadvise(stream.fileno(), start, stop - start, os.POSIX_FADV_RANDOM)
            stream.seek(start)
            while start < stop:
                chunk = stream.read(min(CHUNK, stop - start))
                if not chunk:
                    raise InputError(f"{self.label}: {file} ends early, at byte {start}")
                start += len(chunk)
                yield chunk


def stored_tensors(files: LocalFiles, wanted: Callable[[str], bool] = lambda name: True) -> list[Tensor]:
    """Return the tensors whose names are wanted; raises InputError when a shard of theirs is missing or damaged."""
    return [
        tensor
        for file, promised in _shards(files, wanted).items()
        for tensor in _read_header(files, file, promised)
        if wanted(tensor.name)
    ]


def _shards(files: LocalFiles, wanted: Callable[[str], bool]) -> dict[str, set[str]]:
    """Return the shards that hold wanted tensors, each with those that the index promises in it."""
    index = files.folder / INDEX
    if not index.is_file():
        if files.size(SINGLE) is not None:
            return {SINGLE: set()}
        pickles = [name for name in files.names() if name.endswith(PICKLES)]
        found = f"only pickle weights ({few(pickles)}), which are refused" if pickles else "no weights"
        raise InputError(f"{files.label}: {found}; a checkpoint needs *.safetensors")
    shards: dict[str, set[str]] = {}
    with checkpoint_errors(f"{files.label}: {INDEX}"):
        for name, file in json.loads(index.read_text())["weight_map"].items():
            if wanted(name):
                shards.setdefault(file, set()).add(name)
    return shards


def _read_header(files: LocalFiles, file: str, promised: set[str]) -> list[Tensor]:
    """Return all tensors of a shard; raises InputError when it is missing, cut short or damaged."""
    size = files.size(file)
    if size is None:
        raise InputError(f"{files.label}: {INDEX} names {file}, which is missing")
    try:
        length = int.from_bytes(b"".join(files.read(file, 0, min(8, size))), "little")
        if not 2 <= length <= LARGEST_HEADER:
            raise ValueError(f"header of {length} bytes")
        header = json.loads(b"".join(files.read(file, 8, min(8 + length, size))))
        tensors = [
            Tensor(name, file, entry["dtype"], tuple(entry["shape"]), *(8 + length + n for n in entry["data_offsets"]))
            for name, entry in header.items()
            if name != "__metadata__"
        ]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{files.label}: {file} is damaged or no safetensors file; fetch it again") from error
    expected = max((tensor.stop for tensor in tensors), default=8 + length)
    if size != expected:
        raise InputError(f"{files.label}: {file} is cut short or damaged: {size:,} of {expected:,} bytes")
    if lacking := promised - {tensor.name for tensor in tensors}:
        raise InputError(f"{files.label}: {INDEX} places {few(lacking)} in {file}, which lacks it")
    return tensors


def read_tensor(files: LocalFiles, tensor: Tensor, target: torch.dtype) -> torch.Tensor:
    """Return one tensor; floating-point ones are converted to `target` chunk by chunk."""
    if tensor.dtype not in DTYPES:
        raise InputError(f"{files.label}: {tensor.name} is stored as {tensor.dtype}, which is not supported")
    stored = DTYPES[tensor.dtype]
    values = torch.empty(math.prod(tensor.shape), dtype=target if stored.is_floating_point else stored)
    position = 0
    for chunk in files.read(tensor.file, tensor.start, tensor.stop):
        part = torch.frombuffer(bytearray(chunk), dtype=stored)
        values[position : position + len(part)] = part
        position += len(part)
    return values.reshape(tensor.shape)


def write_tensors(
    tensors: list[Tensor], read: Callable[[int], Iterator[bytes | memoryview]], target: Path, label: str
) -> None:
    """Write `tensors` to one safetensors file in the order given, going on after the bytes that `target` holds.

    `read(skip)` yields their bytes, without the first `skip` of them; `label` stands before the bar.
    """
    header = _header(tensors)
    total = len(header) + sum(tensor.size for tensor in tensors)
    with open(target, "ab+") as out:
        out.seek(0)
        if out.read(len(header)) != header:  # nothing yet, or of another layout
            out.truncate(0)
            out.write(header)
        done = out.seek(0, os.SEEK_END)
        with Bar(total=total, initial=done, unit="B", unit_scale=True, desc=label) as bar:
            for chunk in read(done - len(header)):
                out.write(chunk)
                bar.update(len(chunk))


def _header(tensors: list[Tensor]) -> bytes:
    entries: dict[str, dict] = {"__metadata__": {"format": "pt"}}
    for tensor, end in zip(tensors, itertools.accumulate(tensor.size for tensor in tensors), strict=True):
        place = [end - tensor.size, end]
        entries[tensor.name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": place}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


class Bar(tqdm):
    """A plain bar on stderr; outside a terminal only for what takes long, and then seldom redrawn."""

    def __init__(self, *args, **kwargs):
        terminal = sys.stderr.isatty()
        small = (kwargs.get("total") or 0) <= WORTH_A_BAR
        kwargs |= {"disable": small and not terminal, "mininterval": 0.2 if terminal else 30}
        super().__init__(*args, **kwargs)


def whole_folder(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Return `folder`, whole or absent whoever is killed: `fill` makes it in a partial one, renamed at the end.

    One process at a time fills it, and may go on from what another left there. Raises InputError when the cache
    cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write the cache folder {folder.parent}: {error.strerror}") from error
    with WeakFileLock(f"{folder}.lock"):
        if not folder.is_dir():
            partial = folder.with_name(f"{folder.name}.partial")
            partial.mkdir(exist_ok=True)
            fill(partial)
            os.replace(partial, folder)
    return folder


def few(names: Iterable[str]) -> str:
    """Return the first three names in a phrase that fits a message."""
    names = sorted(names)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
