"""The part of a safetensors checkpoint that its first decoder layers need, and nothing else.

A shard is eight bytes of header length, a JSON header, then the tensors' bytes; so any tensor can be had by
its byte range, from a file on disk here and over the network in `hub`. Decoder layers are recognised by
name, whatever the family: `model.layers.12.`, `language_model.model.layers.3.`, `transformer.h.0.`.

    model = load_first_layers(folder, layers=3, dtype="float32", attn_implementation="sdpa")

Memory is the finished model plus one chunk; to load a whole model use `from_pretrained`.
"""

import json
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import MODEL_MAPPING, AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel

from lib.errors import InputError
from lib.models.failures import checkpoint_errors

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
CHUNK = 1 << 20  # bytes; divisible by every element size
LARGEST_HEADER = 100_000_000  # bytes; the format's own limit
LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
NOT_THE_DECODER = re.compile(
    r"(?:^|\.)(?:lm_head|embed_out|visual|vision\w*|audio\w*|\w*projector|embed_vision|embed_audio)\."
)
TEXT_PREFIX = re.compile(r"^(?:model\.)?language_model\.(?:model\.)?")
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
    def text_name(self) -> str:
        """The name in the decoder alone; differs only inside a multimodal checkpoint."""
        return TEXT_PREFIX.sub("model.", self.name)

    @property
    def item_size(self) -> int:
        return (self.stop - self.start) // max(math.prod(self.shape), 1)


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


def load_first_layers(folder: Path, layers: int, dtype: str, **options) -> PreTrainedModel:
    """Load the embedding, the first `layers` decoder layers and the final norm, without an output head.

    `options` go to `from_pretrained`. Raises InputError when the checkpoint does not hold what is needed.
    """
    files = LocalFiles(folder)
    target = getattr(torch, dtype)
    with checkpoint_errors(folder):
        config = reduced_config(files, layers)
        weights = {t.text_name: read_tensor(files, t, target) for t in needed_tensors(files, layers)}
        model, info = MODEL_MAPPING[type(config)].from_pretrained(
            None, config=config, state_dict=weights, dtype=target, output_loading_info=True, **options
        )
    if info["missing_keys"]:
        raise InputError(f"{folder}: the checkpoint lacks {_few(info['missing_keys'])}")
    return model


def untrained_layers(folder: Path, layers: int, dtype: str, seed: int) -> PreTrainedModel:
    """Return what `load_first_layers` does with weights drawn as transformers draws them; none are read."""
    config = reduced_config(LocalFiles(folder), layers)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return AutoModel.from_config(config, dtype=getattr(torch, dtype))


def reduced_config(files: LocalFiles, layers: int) -> PretrainedConfig:
    """Return the decoder's own config, cut to its first `layers` layers."""
    if files.size("config.json") is None:
        raise InputError(f"{files.label}: no config.json, so this is not a model checkpoint")
    with checkpoint_errors(files.label):
        config = AutoConfig.from_pretrained(files.folder, trust_remote_code=False)
    text = config.get_text_config()
    total = text.num_hidden_layers
    if not 1 <= layers <= total:
        raise InputError(f"{files.label} has {total} layers; asked for the first {layers}")
    if text is not config:
        text.dtype = config.dtype
        text.architectures = [MODEL_MAPPING[type(text)].__name__]
    text.num_hidden_layers = layers
    for name, value in list(vars(text).items()):
        if "layer" in name and isinstance(value, list) and len(value) == total:
            setattr(text, name, value[:layers])
    return text


def needed_tensors(files: LocalFiles, layers: int) -> list[Tensor]:
    """Return the tensors of embedding, first `layers` layers and final norm, in the order they lie in."""
    found = [
        tensor
        for file, promised in weight_files(files, layers).items()
        for tensor in read_header(files, file, promised)
        if _needed(tensor.name, layers)
    ]
    numbers = {int(match[1]) for tensor in found if (match := LAYER.search(tensor.name))}
    if missing := sorted(set(range(layers)) - numbers):
        raise InputError(f"{files.label}: no weights found for layer {missing[0] + 1}")
    # Wide elements first keeps every tensor aligned once they stand in one file.
    return sorted(found, key=lambda tensor: (-tensor.item_size, tensor.file, tensor.start))


def weight_files(files: LocalFiles, layers: int | None = None) -> dict[str, set[str]]:
    """Return the shards of the first `layers` layers (None: all), each with the tensors promised in it."""
    index = files.folder / INDEX
    if not index.is_file():
        if files.size(SINGLE) is None:
            raise InputError(_no_safetensors(files))
        return {SINGLE: set()}
    shards: dict[str, set[str]] = {}
    with checkpoint_errors(f"{files.label}: {INDEX}"):
        for name, file in json.loads(index.read_text())["weight_map"].items():
            if layers is None or _needed(name, layers):
                shards.setdefault(file, set()).add(name)
    return shards


def read_header(files: LocalFiles, file: str, promised: set[str] = frozenset()) -> list[Tensor]:
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
            Tensor(
                name,
                file,
                entry["dtype"],
                tuple(entry["shape"]),
                *(8 + length + n for n in entry["data_offsets"]),
            )
            for name, entry in header.items()
            if name != "__metadata__"
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{files.label}: {file} is damaged or no safetensors file; fetch it again") from error
    expected = max((tensor.stop for tensor in tensors), default=8 + length)
    if size != expected:
        raise InputError(f"{files.label}: {file} is cut short or damaged: {size:,} of {expected:,} bytes")
    if lacking := promised - {tensor.name for tensor in tensors}:
        raise InputError(f"{files.label}: {INDEX} places {_few(lacking)} in {file}, which lacks it")
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


def _needed(name: str, layers: int) -> bool:
    if NOT_THE_DECODER.search(name):
        return False
    layer = LAYER.search(name)
    return layer is None or int(layer[1]) < layers


def _no_safetensors(files: LocalFiles) -> str:
    pickles = [name for name in files.names() if name.endswith(PICKLES)]
    found = f"only pickle weights ({_few(pickles)}), which are refused" if pickles else "no weights"
    return f"{files.label}: {found}; a checkpoint needs *.safetensors"


def _few(names) -> str:
    names = sorted(names)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
