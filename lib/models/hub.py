"""Download a model from the hub: all of its files, or only the byte ranges of its first
layers.

    folder = snapshot("Qwen/Qwen2.5-0.5B-Instruct")   # .../snapshots/<commit>
    folder = first_layers("Qwen/Qwen2.5-Math-7B", layers=3)

Neither pickles nor code are downloaded. The header of a safetensors shard gives the
byte range of each tensor, so each tensor that is needed becomes a separate safetensors
file. Errors of the hub are reported in one line.
"""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx2
from huggingface_hub import HfApi, constants, errors, hf_hub_url, snapshot_download
from huggingface_hub.utils import (
    TensorInfo,
    build_hf_headers,
    disable_progress_bars,
    hf_raise_for_status,
    http_backoff,
)
from tqdm import tqdm

from lib import paths
from lib.errors import InputError
from lib.files.atomic import complete_folder, write_json
from lib.models.checkpoint import (
    SHARD_INDEX,
    decoder_config,
    disk_full,
    has_all_shards,
    require_layers,
)

SMALL_FILES = ["*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken"]
# The same weights in other formats.
DUPLICATES = ["*/*", "consolidated*.safetensors"]
PIECE = 1 << 26  # bytes per request, which a broken connection may lose
# Decoder layers are recognised by name, whatever the family: model.layers.12.,
# transformer.h.0.
LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
NOT_THE_DECODER = re.compile(
    r"(?:^|\.)(?:lm_head|embed_out|visual|vision\w*|audio\w*|\w*projector|embed_vision|embed_audio)\."
)
UNREACHABLE = (
    httpx2.TransportError,
    ConnectionError,
    TimeoutError,
    errors.RevisionResolutionError,
    errors.LocalEntryNotFoundError,
)
# An unknown or gated repository is an OSError. An unusable proxy, file of certificates
# or token gives one of the first three.
REFUSING = (
    *(ValueError, OSError, ImportError),
    *(errors.NotASafetensorsRepoError, errors.SafetensorsParsingError),
)


@contextlib.contextmanager
def hub_errors(repo: str) -> Iterator[None]:
    """Turn the hub's errors into an InputError; other exceptions pass unchanged."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        refused: BaseException = error
        if isinstance(error, errors.LocalEntryNotFoundError):
            # If the file is not cached either, report the hub's reason.
            refused = error.__cause__ or error
        reason = _refusal(repo, refused)
        if not reason:
            raise
        raise InputError(reason) from error


def _refusal(repo: str, error: BaseException) -> str | None:
    """Return in one line why an exception prevents a download; None for other
    exceptions.
    """
    if isinstance(error, httpx2.UnsupportedProtocol):
        return (
            f"{repo}: cannot be downloaded, because HF_ENDPOINT is"
            f" {constants.ENDPOINT!r}: give an address that begins with https://, or"
            " unset it"
        )
    if isinstance(error, UNREACHABLE):
        return (
            f"{repo}: cannot be downloaded, {constants.ENDPOINT} does not answer or"
            " HF_HUB_OFFLINE is set; downloaded files stay: try again later, or give a"
            " local folder, or a model that is in the cache already"
        )
    if isinstance(error, REFUSING):
        return disk_full(error) or f"{repo}: {' '.join(str(error).split())}"
    return None


def snapshot(repo: str, revision: str | None = None, weights: bool = True) -> Path:
    """Download a complete model, unless the hub's cache has it, and return its folder,
    which is named after the commit.

    weights: False downloads all files except the weights. Raises InputError if the
    download fails.
    """
    patterns = SMALL_FILES.copy()
    if weights:
        patterns.append("*.safetensors")
    with hub_errors(repo):
        folder = snapshot_download(
            repo,
            revision=revision,
            allow_patterns=patterns,
            ignore_patterns=DUPLICATES,
            local_files_only=constants.HF_HUB_OFFLINE,
        )
    return Path(folder)


def first_layers(repo: str, layers: int, revision: str | None = None) -> Path:
    """Return a checkpoint folder, named after its commit, that has only the embedding
    and the first layers.

    If the hub's cache has the complete model, that folder is returned. An interrupted
    download continues after its last complete tensor. Raises InputError if the model
    has fewer layers, or if the download fails.
    """
    small = snapshot(repo, revision, weights=False)
    require_layers(layers, decoder_config(small).get("num_hidden_layers", layers), repo)
    if has_all_shards(small):
        return small

    def fill(partial: Path) -> None:
        for source in small.iterdir():
            if source.is_file() and source.suffix != ".safetensors":
                shutil.copyfile(source, partial / source.name)
        _fetch(repo, small.name, layers, partial)

    with hub_errors(repo):
        of_repo = paths.CACHE / "tensors" / repo
        return complete_folder(of_repo / f"layers-{layers}" / small.name, fill)


def needed_tensors(names: Iterable[str], layers: int) -> set[str]:
    """Return the names of tensors of the decoder's embedding, first layers and final
    norm.
    """
    needed = set()
    for name in names:
        layer = LAYER.search(name)
        if not NOT_THE_DECODER.search(name) and (not layer or int(layer[1]) < layers):
            needed.add(name)
    return needed


def _fetch(repo: str, commit: str, layers: int, folder: Path) -> None:
    """Download each needed tensor that is missing into a safetensors file, or link it
    if it was downloaded for another number of layers, and write the index.
    """
    disable_progress_bars()  # of the hub's library, for headers
    shards = HfApi().get_safetensors_metadata(repo, revision=commit)
    needed = needed_tensors(shards.weight_map, layers)
    files = {}
    for number, name in enumerate(sorted(shards.weight_map)):
        if name in needed:  # the tensor's name could contain a path
            files[name] = f"tensor-{number}.safetensors"
    with tqdm(desc=repo, total=len(needed), unit="tensor") as bar:
        for shard, header in shards.files_metadata.items():
            url = hf_hub_url(repo, shard, revision=commit)
            begin = 8 + int.from_bytes(_bytes(url, 0, 8), "little")
            for name in needed & header.tensors.keys():
                others = paths.CACHE / "tensors" / repo
                for known in others.glob(f"layers-*/{commit}/{files[name]}"):
                    with contextlib.suppress(OSError):  # a file system without links
                        os.link(known, folder / files[name])
                if not (folder / files[name]).is_file():
                    _write(folder / files[name], name, header.tensors[name], url, begin)
                bar.update()
    write_json(folder / SHARD_INDEX, {"metadata": {}, "weight_map": files})


def _write(path: Path, name: str, tensor: TensorInfo, url: str, begin: int) -> None:
    """Write a safetensors file of one tensor atomically.

    url, begin: the shard that contains it, and the offset of the shard's numbers.
    """
    start, stop = (begin + offset for offset in tensor.data_offsets)
    entry = {
        "dtype": tensor.dtype,
        "shape": tensor.shape,
        "data_offsets": [0, stop - start],
    }
    encoded = json.dumps({"__metadata__": {"format": "pt"}, name: entry}).encode()
    encoded += b" " * (-len(encoded) % 8)  # so that the numbers are aligned
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as file:
        file.write(len(encoded).to_bytes(8, "little"))
        file.write(encoded)
        for offset in range(start, stop, PIECE):
            file.write(_bytes(url, offset, min(offset + PIECE, stop)))
    partial.rename(path)


def _bytes(url: str, start: int, stop: int) -> bytes:
    """Return the bytes from `start` to `stop` of a file on the hub; a request whose
    connection breaks is repeated.

    Raises InputError if the number of bytes is another one, because the file is damaged
    or the server sends only complete files.
    """
    headers = build_hf_headers()
    headers["Range"] = f"bytes={start}-{stop - 1}"
    response = http_backoff("GET", url, headers=headers, follow_redirects=True)
    hf_raise_for_status(response)
    if len(response.content) != stop - start:
        raise InputError(
            f"{url}: not the bytes that were requested: the file is damaged, or its"
            " server sends only complete files; fetch the model with `hf download`"
        )
    return response.content
