"""A checkpoint of transformers: a folder of config.json and safetensors shards.

What its config says, which of its tensors the first layers need, what makes it
unusable, in one line, and a digest that stands for its weights.
"""

import errno
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from huggingface_hub import constants

from lib import paths
from lib.errors import InputError
from lib.models.names import CONFIG_FIELDS

SHARD_INDEX = "model.safetensors.index.json"  # in which shard each tensor lies
ONLY_SHARD = "model.safetensors"  # where there is no index
ADAPTER = "adapter_config.json"  # of weights that change those of another model
# How safetensors calls what weights are quantised to.
QUANTISED = ("I8", "U8", "F8", "F6", "F4")
# Decoder layers are recognised by name, whatever the family: model.layers.12.,
# transformer.h.0.
LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
NOT_THE_DECODER = re.compile(
    r"(?:^|\.)(?:lm_head|embed_out|visual|vision\w*|audio\w*|\w*projector|embed_vision|embed_audio)\."
)
# Bytes of a file's beginning and of its end that stand for the whole.
DIGESTED_BYTES = 1 << 20
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def checkpoint_errors(name: str | Path, folder: Path | None = None) -> Iterator[None]:
    """Turn what the libraries raise for an unusable checkpoint into an InputError.

    A broken file makes each library fail in its own way, tokenizers with no exception
    class at all, so every exception counts. What speaks of the checkpoint's folder,
    which may be one of a cache, speaks of its name.
    """
    try:
        yield
    except Exception as error:
        message = str(error)
        if not isinstance(error, InputError):
            reason = (message.strip() or type(error).__name__).splitlines()[0]
            if reason.startswith("Couldn't instantiate the backend tokenizer"):
                reason = "no tokenizer.json"
            message = disk_full(error) or f"{name}: cannot be loaded: {reason}"
        if folder:
            message = message.replace(str(folder), str(name))
        raise InputError(message) from error


def disk_full(error: BaseException) -> str | None:
    """Return in a line what to do where an error says that a disk is full."""
    if not isinstance(error, OSError) or error.errno not in FULL_DISK:
        return None
    return (
        f"disk full: free space in {paths.CACHE} and {constants.HF_HUB_CACHE} and run"
        " again; what was fetched stays"
    )


def needed_tensors(names: Iterable[str], layers: int | None) -> set[str]:
    """Return which tensors belong to the decoder's embedding, first layers or final
    norm; with None for `layers` all are needed.
    """
    if layers is None:
        return set(names)
    needed = set()
    for name in names:
        layer = LAYER.search(name)
        if not NOT_THE_DECODER.search(name) and (not layer or int(layer[1]) < layers):
            needed.add(name)
    return needed


def shards_of(folder: Path) -> list[str]:
    """Return the names of the shards that hold a checkpoint.

    Raises InputError for one without safetensors.
    """
    if (folder / SHARD_INDEX).is_file():
        with checkpoint_errors(f"{folder}: {SHARD_INDEX}"):
            index = json.loads((folder / SHARD_INDEX).read_text(encoding="utf-8"))
            return sorted(set(index["weight_map"].values()))
    if (folder / ONLY_SHARD).is_file():
        return [ONLY_SHARD]
    raise InputError(
        f"{folder}: no weights; a checkpoint needs *.safetensors, pickles are refused"
    )


def has_shards(folder: Path) -> bool:
    """Say whether a folder holds all shards of a checkpoint."""
    try:
        return all((folder / shard).is_file() for shard in shards_of(folder))
    except InputError:  # no shard, no index yet, or no folder
        return False


def require_weights(folder: Path, layers: int | None = None) -> None:
    """Raise InputError for shards that are missing or damaged and, among the tensors
    that are needed, for one that is quantised.
    """
    # Not above: what is stored is planned and drawn without torch.
    from safetensors import safe_open

    dtypes = {}
    for shard in shards_of(folder):
        path = folder / shard
        with checkpoint_errors(path), safe_open(path, "pt") as stored:
            for name in stored.keys():  # noqa: SIM118
                dtypes[name] = stored.get_slice(name).get_dtype()
    for name in sorted(needed_tensors(dtypes, layers)):
        if dtypes[name].startswith(QUANTISED):
            raise InputError(
                f"{folder}: {name} is quantised to {dtypes[name]}, which is not"
                " supported: take the model that was quantised"
            )


def require_whole(
    report: Mapping[str, Collection[Any]], holder: str, layers: int | None = None
) -> None:
    """Raise InputError where transformers reports tensors that were not there, or have
    another shape, which it would fill with random numbers and only a warning.

    layers: the first ones, where they alone were asked for.
    """
    for name, stored, wanted in sorted(report["mismatched_keys"]):
        part = f" of the first {layers} layers: load the whole model" if layers else ""
        raise InputError(
            f"{holder} has {name} in the shape {list(stored)}, but config.json asks for"
            f" {list(wanted)}{part}"
        )
    missing = sorted(report["missing_keys"])
    if missing:
        raise InputError(
            f"{holder} lacks {len(missing)} tensors, the first is {missing[0]}"
        )


def require_config(folder: Path) -> None:
    """Raise InputError for a folder that holds no checkpoint, or an adapter, also
    beside one: whether it is meant cannot be told.
    """
    if (folder / ADAPTER).is_file():
        raise InputError(
            f"{folder}: {ADAPTER}: merge the adapter into its model, or remove it"
        )
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: no config.json, so this is not a model checkpoint")


def require_layers(layers: int, total: int, holder: str) -> None:
    """Raise InputError for first layers that a model lacks."""
    if not 1 <= layers <= total:
        raise InputError(f"{holder} has {total} layers; asked for the first {layers}")


def decoder_config(folder: Path) -> dict[str, Any]:
    """Return what a folder's config.json says of CONFIG_FIELDS.

    Raises InputError where there is none, or one that describes no model.
    """
    require_config(folder)
    path = folder / "config.json"
    with checkpoint_errors(path):
        config = json.loads(path.read_text(encoding="utf-8"))
    # A multimodal model has the decoder's own config inside.
    decoder = config.get("text_config", config) if isinstance(config, dict) else None
    if not isinstance(decoder, dict):
        raise InputError(f"{path}: describes no model")
    return {field: decoder.get(key) for field, key in CONFIG_FIELDS.items()}


def weights_digest(folder: Path) -> str:
    """Return 12 hex digits that stand for a checkpoint's config and weights."""
    shards = sorted(folder.glob("*.safetensors"))
    config = (folder / "config.json").read_bytes()
    return ends_digest(shards, config)[:12]


def ends_digest(files: Iterable[Path], start: bytes = b"") -> str:
    """Return a digest of `start` and of each file's name, size and both ends, so that
    gigabytes are not read.
    """
    digest = hashlib.sha256(start)
    for path in files:
        size = path.stat().st_size
        digest.update(path.name.encode())
        digest.update(str(size).encode())
        with open(path, "rb") as file:
            digest.update(file.read(DIGESTED_BYTES))
            file.seek(-min(DIGESTED_BYTES, size), os.SEEK_END)
            digest.update(file.read())
    return digest.hexdigest()
