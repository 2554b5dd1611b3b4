"""A model from the hub: whole, or only the byte ranges that its first layers lie in.

    folder = first_layers("Qwen/Qwen2.5-Math-7B", layers=3)   # its shards with holes, in the cache
    folder = snapshot("Qwen/Qwen2.5-0.5B-Instruct")           # the whole model, in the usual hub cache

A safetensors shard is eight bytes of header length, a JSON header, then the tensors' bytes: so any tensor can be had by
its byte range. What is fetched is written where it lies in the whole shard, the rest stays a hole that takes no disk.
Neither pickles nor code are fetched.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
from huggingface_hub import HfApi, constants, hf_hub_download, hf_hub_url, snapshot_download
from huggingface_hub.utils import WeakFileLock, build_hf_headers, hf_raise_for_status, http_stream_backoff
from transformers import AutoConfig, PretrainedConfig

from lib.errors import InputError
from lib.models.names import checkpoint_errors, hub_errors
from lib.paths import cache_folder
from lib.progress import Bar

INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
SMALL_FILES = ["*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken"]
DUPLICATES = ["*/*", "consolidated*.safetensors"]  # the same weights once more, in other formats
LARGEST_HEADER = 100_000_000  # bytes; the format's own limit
TRIES = 5  # requests in a row that bring no byte
WAIT = 1.0  # seconds before the next try
# Decoder layers are recognised by name, whatever the family: model.layers.12., transformer.h.0.
LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
NOT_THE_DECODER = re.compile(
    r"(?:^|\.)(?:lm_head|embed_out|visual|vision\w*|audio\w*|\w*projector|embed_vision|embed_audio)\."
)


class RangeRefused(Exception):
    """The server sends whole files only."""


def snapshot(repo: str, revision: str | None = None, weights: bool = True) -> Path:
    """Return the folder, named after its commit, of the whole model or of all but its weights; raises InputError."""
    patterns = [*SMALL_FILES, "*.safetensors"] if weights else SMALL_FILES
    given = {"allow_patterns": patterns, "ignore_patterns": DUPLICATES, "tqdm_class": Bar}
    with hub_errors(repo, revision):
        folder = Path(snapshot_download(repo, revision=revision, **given))
        for shard in shards_of(folder, repo) if weights else ():
            if not (folder / shard).is_file():
                raise InputError(f"{repo}: {INDEX} names {shard}, which is missing")
    return folder


def first_layers(repo: str, layers: int, revision: str | None = None) -> Path:
    """Return a checkpoint folder `<commit>/layers-<n>` whose shards hold the embedding and first layers only.

    Where the hub's cache has the shards already, or its server sends no byte ranges, it is the cache's own `<commit>`.
    A fetch that breaks off goes on where it stopped when it is called again. Raises InputError.
    """
    with hub_errors(repo, revision):
        commit = HfApi().resolve_revision(repo, revision=revision).resolved
        folder = cache_folder() / "layers" / repo / commit / f"layers-{layers}"
        if folder.is_dir():
            return folder
        small = snapshot(repo, commit, weights=False)
        read_config(small, layers, repo)  # which refuses layers that the model lacks
        shards = shards_of(small, repo, layers)
        if not all((small / shard).is_file() for shard in shards):
            try:
                return whole_folder(folder, lambda partial: _fetch(repo, small, shards, layers, partial))
            except RangeRefused:
                for shard in shards:
                    hf_hub_download(repo, shard, revision=commit, tqdm_class=Bar)
        return small


def shards_of(folder: Path, repo: str = "", layers: int | None = None) -> list[str]:
    """Return the shards that hold a checkpoint, or its first layers; of `repo` the folder may lack the weights.

    Raises InputError for one without safetensors.
    """
    label = repo or folder
    if (folder / INDEX).is_file():
        with checkpoint_errors(f"{label}: {INDEX}"):
            weight_map = json.loads((folder / INDEX).read_text())["weight_map"]
            return sorted({shard for name, shard in weight_map.items() if needed(name, layers)})
    found = sorted(HfApi().list_repo_files(repo, revision=folder.name) if repo else os.listdir(folder))
    if SINGLE in found:
        return [SINGLE]
    pickles = [name for name in found if name.endswith(PICKLES)]
    held = f"only pickle weights ({', '.join(pickles[:3])}), which are refused" if pickles else "no weights"
    raise InputError(f"{label}: {held}; a checkpoint needs *.safetensors")


def needed(name: str, layers: int | None) -> bool:
    """Say whether a tensor belongs to embedding, first layers or final norm of the decoder; any does where None."""
    layer = LAYER.search(name)
    return layers is None or (not NOT_THE_DECODER.search(name) and (layer is None or int(layer[1]) < layers))


def read_config(folder: Path, layers: int | None, repo: str = "", decoder: bool = True) -> PretrainedConfig:
    """Return a checkpoint's config, or that of its decoder alone, cut to its first layers, or all of them.

    Raises InputError where there is none, or a damaged one, and for layers that the model lacks.
    """
    if not (folder / "config.json").is_file():
        raise InputError(f"{repo or folder}: no config.json, so this is not a model checkpoint")
    with checkpoint_errors(repo or folder):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    if not decoder:
        return config
    text = config.get_text_config()
    total = text.num_hidden_layers
    layers = total if layers is None else layers
    if not 1 <= layers <= total:
        raise InputError(f"{repo or folder} has {total} layers; asked for the first {layers}")
    text.num_hidden_layers = layers
    for name, value in list(vars(text).items()):
        if "layer" in name and isinstance(value, list) and len(value) == total:
            setattr(text, name, value[:layers])
    return text


def _fetch(repo: str, small: Path, shards: list[str], layers: int, folder: Path) -> None:
    """Write a snapshot's small files, each shard's header and its needed tensors; those go on after what is there."""
    for source in small.iterdir():
        if source.is_file() and source.suffix != ".safetensors":
            shutil.copyfile(source, folder / source.name)
    urls = {shard: hf_hub_url(repo, shard, revision=small.name) for shard in shards}
    plan = {shard: _needed_ranges(repo, shard, urls[shard], layers) for shard in shards}
    total = sum(stop - start for ranges, _ in plan.values() for start, stop in ranges)
    with Bar(total=total, unit="B", unit_scale=True, desc=repo) as bar:
        for shard, (ranges, size) in plan.items():
            (folder / shard).touch()
            with open(folder / shard, "rb+") as out:
                done = out.seek(0, os.SEEK_END)  # it grows from its beginning to its end
                for start, stop in ranges:
                    begin = min(max(start, done), stop)
                    bar.update(begin - start)
                    out.seek(begin)
                    for chunk in _ranged(urls[shard], begin, stop):
                        out.write(chunk)
                        bar.update(len(chunk))
                out.truncate(size)


def _needed_ranges(repo: str, shard: str, url: str, layers: int) -> tuple[list[tuple[int, int]], int]:
    """Return the byte ranges of a shard's header and needed tensors, and its size; raises InputError if damaged."""
    try:
        begin = 8 + int.from_bytes(b"".join(_ranged(url, 0, 8)), "little")
        if begin > LARGEST_HEADER:
            raise ValueError(f"header of {begin} bytes")
        header = json.loads(b"".join(_ranged(url, 8, begin)))
        places = {name: entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"}
        ranges = [(0, begin)]
        for start, stop in sorted((begin + i, begin + j) for name, (i, j) in places.items() if needed(name, layers)):
            first = ranges.pop()[0] if ranges[-1][1] == start else start  # neighbours come as one
            ranges.append((first, stop))
        return ranges, begin + max(stop for _, stop in places.values())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{repo}: {shard} is damaged or no safetensors file") from error


def _ranged(url: str, start: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes from `start` to `stop` as they arrive; a connection that breaks off costs no byte twice."""
    failures = 0
    while start < stop:
        wanted = f"bytes={start}-{stop - 1}"
        headers = build_hf_headers() | {"Range": wanted, "Accept-Encoding": "identity"}
        timing = {"timeout": constants.HF_HUB_DOWNLOAD_TIMEOUT, "retry_on_exceptions": ()}
        try:
            with http_stream_backoff("GET", url, headers=headers, **timing) as response:
                sent = response.headers.get("Content-Range", "").replace("bytes ", "bytes=").startswith(f"{wanted}/")
                if response.status_code in (200, 416, 501) or (response.status_code == 206 and not sent):
                    raise RangeRefused
                hf_raise_for_status(response)
                for chunk in response.iter_raw():
                    failures, start = 0, start + len(chunk)
                    yield chunk
        except httpx2.TransportError:
            failures += 1
            if failures >= TRIES:
                raise
            time.sleep(WAIT)


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
            partial = folder.with_name(f".{folder.name}.partial")
            partial.mkdir(exist_ok=True)
            fill(partial)
            os.replace(partial, folder)
    return folder
