"""The first layers of a model on the hub: only the byte ranges that they lie in.

    folder = first_layers("Qwen/Qwen2.5-Math-7B", layers=3)   # shards with holes

A safetensors shard is eight bytes of header length, a JSON header, then the tensors'
bytes: so any tensor can be had by its byte range. What is fetched is written where it
lies in the whole shard, the rest stays a hole that takes no disk.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx2
from huggingface_hub import HfApi, constants, hf_hub_download, hf_hub_url
from huggingface_hub.utils import (
    build_hf_headers,
    hf_raise_for_status,
    http_stream_backoff,
)

from lib import paths
from lib.errors import InputError
from lib.models.checkpoint import decoder_config, is_needed
from lib.models.hub import hub_shards, snapshot
from lib.models.load_errors import hub_errors
from lib.progress import Bar

LARGEST_HEADER = 100_000_000  # bytes; the format's own limit
TRIES = 5  # requests in a row that bring no byte
WAIT = 1.0  # seconds before the next try
WHOLE_FILE_STATUS = (200, 416, 501)  # of a server that knows no byte ranges


class RangeRefused(Exception):
    """The server sends whole files only."""


class TensorPlace(NamedTuple):
    """Where the bytes of a tensor lie on the hub, and what they mean."""

    url: str
    start: int
    stop: int
    dtype: str  # as safetensors calls it
    shape: list[int]


class RemoteShard(NamedTuple):
    """Which bytes of a shard on the hub are needed."""

    name: str
    url: str
    ranges: list[tuple[int, int]]  # of the header and of tensors, in order
    size: int  # bytes of the whole shard


def first_layers(repo: str, layers: int, revision: str | None = None) -> Path:
    """Return a checkpoint folder `<commit>/layers-<n>` whose shards hold the embedding
    and first layers only.

    Where the hub's cache has the shards already, or its server sends no byte ranges, it
    is the cache's own `<commit>`. A fetch that breaks off goes on where it stopped when
    it is called again. Raises InputError.
    """
    with hub_errors(repo, revision):
        resolved = HfApi().resolve_revision(
            repo, revision=revision, local_files_only=constants.HF_HUB_OFFLINE
        )
        commit = resolved.resolved
        folder = paths.CACHE / "layers" / repo / commit / f"layers-{layers}"
        if folder.is_dir():
            return folder

        small = snapshot(repo, commit, weights=False)
        total = decoder_config(small)["layers"] or layers
        if not 1 <= layers <= total:
            raise InputError(f"{repo} has {total} layers; asked for the first {layers}")
        shards = hub_shards(repo, small, layers)
        if all((small / shard).is_file() for shard in shards):
            return small

        def fill(partial: Path) -> None:
            _fetch(repo, small, shards, layers, partial)

        try:
            return paths.whole_folder(folder, fill)
        except RangeRefused:
            for shard in shards:
                hf_hub_download(repo, shard, revision=commit, tqdm_class=Bar)
            return small


def _fetch(
    repo: str, small: Path, shards: list[str], layers: int, folder: Path
) -> None:
    """Fill a folder with a snapshot's small files and the needed bytes of its shards.

    It goes on after the bytes that are there.
    """
    for source in small.iterdir():
        if source.is_file() and source.suffix != ".safetensors":
            shutil.copyfile(source, folder / source.name)
    remote = []
    for name in shards:
        url = hf_hub_url(repo, name, revision=small.name)
        remote.append(_remote_shard(repo, name, url, layers))
    total = sum(stop - start for shard in remote for start, stop in shard.ranges)
    with Bar(total=total, unit="B", unit_scale=True, desc=repo) as bar:
        for shard in remote:
            _fetch_shard(shard, folder / shard.name, bar)


def _fetch_shard(shard: RemoteShard, path: Path, bar: Bar) -> None:
    """Write a shard's needed bytes where they lie, after those that are there."""
    path.touch()
    with open(path, "rb+") as file:
        # It grows from its beginning to its end.
        done = file.seek(0, os.SEEK_END)
        for start, stop in shard.ranges:
            begin = min(max(start, done), stop)
            bar.update(begin - start)
            file.seek(begin)
            for chunk in bytes_between(shard.url, begin, stop):
                file.write(chunk)
                bar.update(len(chunk))
        file.truncate(shard.size)


def _remote_shard(repo: str, name: str, url: str, layers: int) -> RemoteShard:
    """Return the byte ranges of a shard's header and needed tensors.

    Raises InputError for one that is damaged.
    """
    places = tensor_places(repo, name, url)
    header = (0, min(place.start for place in places.values()))
    needed = [
        (place.start, place.stop)
        for tensor, place in places.items()
        if is_needed(tensor, layers)
    ]
    size = max(place.stop for place in places.values())
    return RemoteShard(name, url, _joined([header, *sorted(needed)]), size)


def tensor_places(repo: str, name: str, url: str) -> dict[str, TensorPlace]:
    """Return by name what a shard's header says of its tensors.

    Raises InputError for one that is damaged.
    """
    try:
        length = int.from_bytes(b"".join(bytes_between(url, 0, 8)), "little")
        begin = 8 + length
        if begin > LARGEST_HEADER:
            raise ValueError(f"header of {begin} bytes")
        header = json.loads(b"".join(bytes_between(url, 8, begin)))
        header.pop("__metadata__", None)
        places = {}
        for tensor, entry in header.items():
            start, stop = entry["data_offsets"]
            places[tensor] = TensorPlace(
                url, begin + start, begin + stop, entry["dtype"], entry["shape"]
            )
        if not places:
            raise ValueError("no tensors")
        return places
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{repo}: {name} is damaged or no safetensors file") from error


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return sorted ranges with neighbours as one, which come in one request."""
    joined = [ranges[0]]
    for start, stop in ranges[1:]:
        last_start, last_stop = joined[-1]
        if start == last_stop:
            joined[-1] = (last_start, stop)
        else:
            joined.append((start, stop))
    return joined


def bytes_between(url: str, start: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes from `start` to `stop` as they arrive; a connection that breaks
    off costs no byte twice.
    """
    failures = 0
    while start < stop:
        try:
            for chunk in _one_request(url, start, stop):
                failures = 0
                start += len(chunk)
                yield chunk
        except httpx2.TransportError:
            failures += 1
            if failures >= TRIES:
                raise
            time.sleep(WAIT)


def _one_request(url: str, start: int, stop: int) -> Iterator[bytes]:
    """Yield what one request for a byte range brings.

    Raises RangeRefused where the server would send another range or the whole file.
    """
    wanted = f"{start}-{stop - 1}"
    headers = build_hf_headers()
    headers["Range"] = f"bytes={wanted}"
    headers["Accept-Encoding"] = "identity"
    with http_stream_backoff(
        "GET",
        url,
        headers=headers,
        timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
        retry_on_exceptions=(),
    ) as response:
        status = response.status_code
        sent = response.headers.get("Content-Range", "")
        is_other_range = status == 206 and not sent.startswith(f"bytes {wanted}/")
        if status in WHOLE_FILE_STATUS or is_other_range:
            raise RangeRefused
        hf_raise_for_status(response)
        yield from response.iter_raw()
