"""Read and check a checkpoint of transformers: a folder with config.json and
safetensors shards.

The functions called `require_...` raise InputError for a checkpoint that cannot be
used; `weights_digest` identifies its content.
"""

import errno
import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from huggingface_hub import constants

from lib import paths
from lib.errors import InputError

SHARD_INDEX = "model.safetensors.index.json"  # maps tensors to shards
ONLY_SHARD = "model.safetensors"  # if there is no index
ADAPTER = "adapter_config.json"  # of an adapter for another model
# Prefixes of safetensors' names for quantised dtypes.
QUANTISED = ("I8", "U8", "F8", "F6", "F4")
# The digest reads this many blocks of a file, of this many bytes each.
DIGESTED_BLOCKS = 512
DIGESTED_BYTES = 1 << 16
# Files of a checkpoint that decide its numbers and answers, in addition to its shards.
DIGESTED_FILES = (
    *("config.json", "generation_config.json", "*.jinja", "chat_template.json"),
    # Of tokenizers, with their older files.
    *("*token*", "vocab*", "merges.txt", "*.model"),
)
# Numbers of a config.json that are used before its model is loaded.
COUNTS = ("num_hidden_layers", "num_attention_heads", "max_position_embeddings")
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def checkpoint_errors(name: str | Path, folder: Path | None = None) -> Iterator[None]:
    """Turn the exceptions that libraries raise for an unusable checkpoint into an
    InputError.

    A broken file makes each library fail in a different way, and tokenizers raise bare
    Exceptions, so every exception is caught. The message has the checkpoint's name
    instead of its folder, which may be inside a cache.
    """
    try:
        yield
    except Exception as error:
        message = str(error)
        if not isinstance(error, InputError):
            reason = " ".join(message.split()) or type(error).__name__
            if isinstance(error, KeyError):
                reason += " is missing, or transformers does not know it"
            message = disk_full(error) or f"{name}: cannot be loaded: {reason}"
        if folder:
            message = message.replace(str(folder), str(name))
        raise InputError(message) from error


def disk_full(error: BaseException) -> str | None:
    """Return one line of advice if an error says that a disk is full, else None."""
    if not isinstance(error, OSError) or error.errno not in FULL_DISK:
        return None
    return (
        f"disk full: free space in {paths.CACHE} and {constants.HF_HUB_CACHE} and run"
        " again; what was downloaded stays"
    )


def shards_of(folder: Path) -> list[Path]:
    """Return the files that have a checkpoint's weights.

    Raises InputError if there are no safetensors.
    """
    shards = sorted(folder.glob("*.safetensors"))
    if not shards:
        raise InputError(
            f"{folder}: no weights; a checkpoint needs *.safetensors, pickles are"
            " refused"
        )
    return shards


def has_all_shards(folder: Path) -> bool:
    """Return whether a folder exists and has all shards that its index names."""
    index = folder / SHARD_INDEX
    if not index.is_file():
        return (folder / ONLY_SHARD).is_file()
    with checkpoint_errors(index):
        shards = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
    return all((folder / shard).is_file() for shard in shards)


def require_weights(folder: Path) -> None:
    """Raise InputError if shards are missing, damaged or quantised."""
    # Imported here, because stored results are planned and drawn without torch.
    from safetensors import safe_open

    for path in shards_of(folder):
        with checkpoint_errors(path), safe_open(path, "pt") as stored:
            for name in stored.keys():  # noqa: SIM118
                dtype = stored.get_slice(name).get_dtype()
                if dtype.startswith(QUANTISED):
                    raise InputError(
                        f"{folder}: {name} is quantised to {dtype}, which is not"
                        " supported: use the original model"
                    )


def require_all_tensors(
    report: Mapping[str, Collection[Any]], holder: str, layers: int | None = None
) -> None:
    """Raise InputError if transformers reports tensors that were missing or have
    another shape. It would fill these with random numbers, after only a warning.

    report: the loading info of `from_pretrained`. holder: the checkpoint, for the
    message. layers: the number of first layers, if only these were requested.
    """
    for name, stored, wanted in sorted(report["mismatched_keys"]):
        part = (
            f" of the first {layers} layers: load the complete model" if layers else ""
        )
        raise InputError(
            f"{holder} has {name} in the shape {list(stored)}, but config.json requires"
            f" {list(wanted)}{part}"
        )
    missing = sorted(report["missing_keys"])
    if missing:
        raise InputError(
            f"{holder} lacks {len(missing)} tensors, the first is {missing[0]}"
        )


def require_config(folder: Path) -> None:
    """Raise InputError if a folder is no checkpoint, or has an adapter, because it is
    unclear whether the adapter should be applied.
    """
    if (folder / ADAPTER).is_file():
        raise InputError(
            f"{folder}: {ADAPTER}: merge the adapter into its model, or remove it"
        )
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: no config.json, so this is not a model checkpoint")


def require_layers(layers: int, total: int, holder: str) -> None:
    """Raise InputError if a model has fewer layers than were requested."""
    if not 1 <= layers <= total:
        raise InputError(
            f"{holder} has {total} layers; the first {layers} were requested"
        )


def decoder_config(folder: Path) -> dict[str, Any]:
    """Return the decoder's part of a folder's config.json.

    Raises InputError if there is none, if it describes no model, and for one of COUNTS
    that is not a positive integer.
    """
    require_config(folder)
    path = folder / "config.json"
    with checkpoint_errors(path):
        config = json.loads(path.read_text(encoding="utf-8"))
    # A multimodal model has the decoder's config inside.
    decoder = config.get("text_config", config) if isinstance(config, dict) else None
    if not isinstance(decoder, dict):
        raise InputError(f"{path}: describes no model")
    for name in COUNTS:
        count = decoder.get(name)
        if count is not None and not (type(count) is int and count > 0):
            raise InputError(
                f"{path}: {name} must be a positive integer, not {count!r}"
            )
    return decoder


def weights_digest(path: Path) -> str:
    """Return 12 hex digits that identify a GGUF file, or a checkpoint's shards, configs
    and tokenizer.

    The digest covers the files' names, sizes and blocks at equal distances, so that
    gigabytes need not be read. Raises InputError for a folder that is no checkpoint.
    """
    digest = hashlib.sha256()
    files = [path]
    if path.is_dir():
        require_config(path)
        small = {file for name in DIGESTED_FILES for file in path.glob(name)}
        files = [*sorted(filter(Path.is_file, small)), *shards_of(path)]
    for file in files:
        size = file.stat().st_size
        digest.update(file.name.encode())
        digest.update(str(size).encode())
        with open(file, "rb") as content:
            for offset in range(0, size, max(DIGESTED_BYTES, size // DIGESTED_BLOCKS)):
                content.seek(offset)
                digest.update(content.read(DIGESTED_BYTES))
            content.seek(-min(DIGESTED_BYTES, size), os.SEEK_END)
            digest.update(content.read())
    return digest.hexdigest()[:12]
