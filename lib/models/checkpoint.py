"""A checkpoint of transformers: a folder of config.json and safetensors shards.

Which shards it has, which of its tensors the first layers need, what its config says,
and a digest that stands for its weights.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lib.errors import InputError
from lib.models.load_errors import checkpoint_errors
from lib.models.names import CONFIG_FIELDS

SHARD_INDEX = "model.safetensors.index.json"  # in which shard each tensor lies
ONLY_SHARD = "model.safetensors"  # where there is no index
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
# Decoder layers are recognised by name, whatever the family: model.layers.12.,
# transformer.h.0.
LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
NOT_THE_DECODER = re.compile(
    r"(?:^|\.)(?:lm_head|embed_out|visual|vision\w*|audio\w*|\w*projector|embed_vision|embed_audio)\."
)
# Bytes of a file's beginning and of its end that stand for the whole.
DIGESTED_BYTES = 1 << 20


def is_needed(tensor: str, layers: int | None) -> bool:
    """Say whether a tensor belongs to the decoder's embedding, first layers or final
    norm; with None for `layers` every tensor is needed.
    """
    if layers is None:
        return True
    if NOT_THE_DECODER.search(tensor):
        return False
    layer = LAYER.search(tensor)
    return layer is None or int(layer[1]) < layers


def shards_of(
    folder: Path,
    layers: int | None = None,
    *,
    files: Iterable[str] | None = None,
    label: str = "",
) -> list[str]:
    """Return the names of the shards that hold a checkpoint, or its first layers.

    files: what the whole checkpoint consists of, where the folder holds only a part of
    it; label: how a message names it. Raises InputError for one without safetensors.
    """
    label = label or str(folder)
    if (folder / SHARD_INDEX).is_file():
        with checkpoint_errors(f"{label}: {SHARD_INDEX}"):
            shard_by_tensor = json.loads((folder / SHARD_INDEX).read_text())
            shards = {
                shard
                for tensor, shard in shard_by_tensor["weight_map"].items()
                if is_needed(tensor, layers)
            }
            return sorted(shards)
    names = sorted(os.listdir(folder) if files is None else files)
    if ONLY_SHARD in names:
        return [ONLY_SHARD]
    problem = "no weights"
    pickles = [name for name in names if name.endswith(PICKLES)]
    if pickles:
        problem = f"only pickle weights ({', '.join(pickles[:3])}), which are refused"
    raise InputError(f"{label}: {problem}; a checkpoint needs *.safetensors")


def require_config(folder: Path) -> None:
    """Raise InputError for a folder that holds no checkpoint."""
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: no config.json, so this is not a model checkpoint")


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
