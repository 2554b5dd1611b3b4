"""A checkpoint of transformers: a folder of config.json and safetensors shards.

What its config says, which of its tensors the first layers need, what makes its weights
unusable, and a digest that stands for them.
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
ADAPTER = "adapter_config.json"  # of weights that change those of another model
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
# How safetensors calls what weights are quantised to.
QUANTISED = ("I8", "U8", "F8", "F6", "F4")
# Decoder layers are recognised by name, whatever the family: model.layers.12.,
# transformer.h.0.
LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
NOT_THE_DECODER = re.compile(
    r"(?:^|\.)(?:lm_head|embed_out|visual|vision\w*|audio\w*|\w*projector|embed_vision|embed_audio)\."
)
HEAD = "lm_head.weight"
EMBEDDING = "embed_tokens.weight"
# Bytes of a file's beginning and of its end that stand for the whole.
DIGESTED_BYTES = 1 << 20


def needed_tensors(names: Iterable[str], layers: int | None) -> set[str]:
    """Return which tensors belong to the decoder's embedding, first layers or final
    norm; with None for `layers` all are needed.
    """
    names = set(names)
    if layers is None:
        return names
    needed = set()
    for name in names:
        layer = LAYER.search(name)
        if not NOT_THE_DECODER.search(name) and (not layer or int(layer[1]) < layers):
            needed.add(name)
    if is_only_head(names):
        needed.add(HEAD)
    return needed


def is_only_head(names: Iterable[str]) -> bool:
    """Say whether a checkpoint keeps its embedding under the name of its head."""
    names = set(names)
    return HEAD in names and not any(name.endswith(EMBEDDING) for name in names)


def shards_of(folder: Path) -> list[str]:
    """Return the names of the shards that hold a checkpoint.

    Raises InputError for one without safetensors.
    """
    if (folder / SHARD_INDEX).is_file():
        with checkpoint_errors(f"{folder}: {SHARD_INDEX}"):
            index = json.loads((folder / SHARD_INDEX).read_text(encoding="utf-8"))
            return sorted(set(index["weight_map"].values()))
    names = sorted(os.listdir(folder))
    if ONLY_SHARD in names:
        return [ONLY_SHARD]
    problem = "no weights"
    pickles = [name for name in names if name.endswith(PICKLES)]
    if pickles:
        problem = f"only pickle weights ({', '.join(pickles[:3])}), which are refused"
    raise InputError(f"{folder}: {problem}; a checkpoint needs *.safetensors")


def has_shards(folder: Path) -> bool:
    """Say whether a folder holds all shards of a checkpoint."""
    try:
        return all((folder / shard).is_file() for shard in shards_of(folder))
    except (InputError, OSError):  # no shard, no index yet, or no folder
        return False


def stored_tensors(folder: Path, layers: int | None = None) -> set[str]:
    """Return the names of a checkpoint's tensors.

    Raises InputError for shards that are missing or damaged and, among the tensors that
    are needed, for one that is quantised.
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
    return set(dtypes)


def require_config(folder: Path) -> None:
    """Raise InputError for a folder that holds no checkpoint."""
    if (folder / "config.json").is_file():
        return
    if (folder / ADAPTER).is_file():
        raise InputError(
            f"{folder}: an adapter (base {adapter_base(folder)}): merge it first, since"
            " only whole models are read"
        )
    raise InputError(f"{folder}: no config.json, so this is not a model checkpoint")


def adapter_base(folder: Path) -> str:
    """Return the model that an adapter in a folder changes; raises InputError."""
    with checkpoint_errors(folder / ADAPTER):
        settings = json.loads((folder / ADAPTER).read_text(encoding="utf-8"))
        return settings.get("base_model_name_or_path") or "unknown"


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
