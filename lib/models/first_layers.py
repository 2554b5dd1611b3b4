"""A model from the hub: whole, or only the byte ranges that its first layers lie in.

    folder = first_layers("Qwen/Qwen2.5-Math-7B", layers=3)   # its shards with holes, in the cache
    folder = snapshot("Qwen/Qwen2.5-0.5B-Instruct")           # the whole model, in the usual hub cache

A safetensors shard is eight bytes of header length, a JSON header, then the tensors'
bytes: so any tensor can be had by its byte range. What is fetched is written where it
lies in the whole shard, the rest stays a hole that takes no disk. Neither pickles nor
code are fetched.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
from huggingface_hub import (
    HfApi,
    constants,
    hf_hub_download,
    hf_hub_url,
    snapshot_download,
)
from huggingface_hub.utils import (
    build_hf_headers,
    hf_raise_for_status,
    http_stream_backoff,
)

from lib import paths
from lib.errors import InputError
from lib.models.names import decoder_config, hub_errors, needed, shards_of
from lib.progress import Bar

SMALL_FILES = ["*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken"]
DUPLICATES = [
    "*/*",
    "consolidated*.safetensors",
]  # the same weights once more, in other formats
LARGEST_HEADER = 100_000_000  # bytes; the format's own limit
TRIES = 5  # requests in a row that bring no byte
WAIT = 1.0  # seconds before the next try


class RangeRefused(Exception):
    """The server sends whole files only."""


def snapshot(repo: str, revision: str | None = None, weights: bool = True) -> Path:
    """Return the folder, named after its commit, of the whole model or of all but its
    weights; raises InputError.
    """
    patterns = [*SMALL_FILES, "*.safetensors"] if weights else SMALL_FILES
    given = {
        "allow_patterns": patterns,
        "ignore_patterns": DUPLICATES,
        "tqdm_class": Bar,
    }
    with hub_errors(repo, revision):
        folder = Path(snapshot_download(repo, revision=revision, **given))
        if weights:
            shards_of(folder, repo)  # which refuses pickles
    return folder


def first_layers(repo: str, layers: int, revision: str | None = None) -> Path:
    """Return a checkpoint folder `<commit>/layers-<n>` whose shards hold the embedding
    and first layers only.

    Where the hub's cache has the shards already, or its server sends no byte ranges, it
    is the cache's own `<commit>`. A fetch that breaks off goes on where it stopped when
    it is called again. Raises InputError.
    """
    with hub_errors(repo, revision):
        commit = HfApi().resolve_revision(repo, revision=revision).resolved
        folder = paths.CACHE / "layers" / repo / commit / f"layers-{layers}"
        if folder.is_dir():
            return folder
        small = snapshot(repo, commit, weights=False)
        total = decoder_config(small / "config.json")["layers"] or layers
        if not 1 <= layers <= total:
            raise InputError(f"{repo} has {total} layers; asked for the first {layers}")
        shards = shards_of(small, repo, layers)
        if not all((small / shard).is_file() for shard in shards):
            try:
                return paths.whole_folder(
                    folder, lambda partial: _fetch(repo, small, shards, layers, partial)
                )
            except RangeRefused:
                for shard in shards:
                    hf_hub_download(repo, shard, revision=commit, tqdm_class=Bar)
        return small


def _fetch(
    repo: str, small: Path, shards: list[str], layers: int, folder: Path
) -> None:
    """Write a snapshot's small files, each shard's header and its needed tensors; those
    go on after what is there.
    """
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
                done = out.seek(
                    0, os.SEEK_END
                )  # it grows from its beginning to its end
                for start, stop in ranges:
                    begin = min(max(start, done), stop)
                    bar.update(begin - start)
                    out.seek(begin)
                    for chunk in _ranged(urls[shard], begin, stop):
                        out.write(chunk)
                        bar.update(len(chunk))
                out.truncate(size)


def _needed_ranges(
    repo: str, shard: str, url: str, layers: int
) -> tuple[list[tuple[int, int]], int]:
    """Return the byte ranges of a shard's header and needed tensors, and its size;
    raises InputError if damaged.
    """
    try:
        begin = 8 + int.from_bytes(b"".join(_ranged(url, 0, 8)), "little")
        if begin > LARGEST_HEADER:
            raise ValueError(f"header of {begin} bytes")
        header = json.loads(b"".join(_ranged(url, 8, begin)))
        header.pop("__metadata__", None)
        places = {
            name: [begin + place for place in entry["data_offsets"]]
            for name, entry in header.items()
        }
        ranges = [(0, begin)]
        for start, stop in sorted(
            place for name, place in places.items() if needed(name, layers)
        ):
            first = (
                ranges.pop()[0] if ranges[-1][1] == start else start
            )  # neighbours come as one
            ranges.append((first, stop))
        return ranges, max(stop for _, stop in places.values())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{repo}: {shard} is damaged or no safetensors file"
        ) from error


def _ranged(url: str, start: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes from `start` to `stop` as they arrive; a connection that breaks
    off costs no byte twice.
    """
    failures = 0
    while start < stop:
        wanted = f"bytes={start}-{stop - 1}"
        headers = build_hf_headers() | {"Range": wanted, "Accept-Encoding": "identity"}
        timing = {
            "timeout": constants.HF_HUB_DOWNLOAD_TIMEOUT,
            "retry_on_exceptions": (),
        }
        try:
            with http_stream_backoff("GET", url, headers=headers, **timing) as response:
                sent = (
                    response.headers.get("Content-Range", "")
                    .replace("bytes ", "bytes=")
                    .startswith(f"{wanted}/")
                )
                if response.status_code in (200, 416, 501) or (
                    response.status_code == 206 and not sent
                ):
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
