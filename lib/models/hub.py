"""Fetch a model from the hub: whole, or only the byte ranges that its first layers lie in.

    folder = first_layers("Qwen/Qwen2.5-Math-7B", layers=3)   # an ordinary checkpoint folder, in the cache
    folder = snapshot("Qwen/Qwen2.5-0.5B-Instruct")           # the whole model, in the usual hub cache

Only safetensors weights, configuration and tokenizer files are fetched: no pickles, no code. Where the
hub is comes from HF_ENDPOINT, as everywhere.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
from huggingface_hub import (
    HfApi,
    constants,
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    snapshot_download,
)
from huggingface_hub.errors import RemoteEntryNotFoundError
from huggingface_hub.utils import WeakFileLock, build_hf_headers, hf_raise_for_status, http_stream_backoff
from tqdm import tqdm

from lib.errors import InputError
from lib.models.checkpoints import SINGLE, LocalFiles, Tensor, needed_tensors, read_header, reduced_config, weight_files
from lib.models.failures import hub_errors
from lib.paths import cache_folder

SMALL_FILES = ["*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken"]
# Subfolders and consolidated files hold the same weights once more, in other formats.
DUPLICATES = ["*/*", "consolidated*.safetensors"]
WORTH_A_BAR = 50_000_000  # bytes
TRIES = 5  # requests in a row that bring no byte
WAIT = 1.0  # seconds before the next try


class RangeRefused(Exception):
    """The server sends whole files only."""


class Bar(tqdm):
    """A plain bar on stderr; outside a terminal only for what takes long, and then seldom redrawn."""

    def __init__(self, *args, **kwargs):
        terminal = sys.stderr.isatty()
        small = (kwargs.get("total") or 0) <= WORTH_A_BAR
        kwargs |= {"disable": small and not terminal, "mininterval": 0.2 if terminal else 30}
        super().__init__(*args, **kwargs)


def snapshot(repo: str, revision: str | None = None) -> Path:
    """Return the folder, named after its commit, that holds the whole model; raises InputError."""
    with hub_errors(repo, revision):
        folder = Path(
            snapshot_download(
                repo,
                revision=revision,
                allow_patterns=[*SMALL_FILES, "*.safetensors"],
                ignore_patterns=DUPLICATES,
                tqdm_class=Bar,
            )
        )
        files = HubFiles(repo, folder.name, folder)
        for file, promised in weight_files(files).items():
            read_header(files, file, promised)
    return folder


def first_layers(repo: str, layers: int, revision: str | None = None) -> Path:
    """Return a checkpoint folder `<commit>/layers-<n>` with the embedding and first layers only.

    It holds the original tensors of the decoder, its tokenizer, and a config with `layers` layers. A fetch
    that breaks off goes on where it stopped when it is called again. Raises InputError.
    """
    if layers < 1:
        raise InputError(f"{repo}: asked for the first {layers} layers; at least 1 is needed")
    with hub_errors(repo, revision):
        commit = HfApi().resolve_revision(repo, revision=revision).resolved
        folder = cache_folder() / "layers" / repo / commit / f"layers-{layers}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        with WeakFileLock(f"{folder}.lock"):
            if not folder.is_dir():
                _fetch(repo, commit, layers, folder)
    return folder


def _fetch(repo: str, commit: str, layers: int, folder: Path) -> None:
    small = snapshot_download(
        repo, revision=commit, allow_patterns=SMALL_FILES, ignore_patterns=DUPLICATES, tqdm_class=Bar
    )
    files = HubFiles(repo, commit, Path(small))
    config = reduced_config(files, layers)
    tensors = needed_tensors(files, layers)
    partial = folder.with_name(f"{folder.name}.partial")
    partial.mkdir(exist_ok=True)
    for source in files.folder.iterdir():
        if source.is_file() and not source.name.endswith((".safetensors", ".index.json")):
            shutil.copyfile(source, partial / source.name)
    config.save_pretrained(partial)
    write_tensors(files, tensors, partial / SINGLE)
    os.replace(partial, folder)


def write_tensors(files: LocalFiles, tensors: list[Tensor], target: Path) -> None:
    """Write `tensors` to one safetensors file, going on after the bytes that `target` already holds."""
    header = _header(tensors)
    total = len(header) + sum(tensor.stop - tensor.start for tensor in tensors)
    with open(target, "ab+") as out:
        out.seek(0)
        if out.read(len(header)) != header:  # nothing yet, or of another layout
            out.truncate(0)
            out.write(header)
        done = out.seek(0, os.SEEK_END)
        with Bar(total=total, initial=done, unit="B", unit_scale=True, desc=files.label) as bar:
            skip = done - len(header)
            for file, start, stop in _joined(tensors):
                for chunk in files.read(file, min(start + skip, stop), stop):
                    out.write(chunk)
                    bar.update(len(chunk))
                skip = max(skip - (stop - start), 0)


def _header(tensors: list[Tensor]) -> bytes:
    entries, position = {"__metadata__": {"format": "pt"}}, 0
    for tensor in tensors:
        end = position + tensor.stop - tensor.start
        entries[tensor.text_name] = {
            "dtype": tensor.dtype,
            "shape": tensor.shape,
            "data_offsets": [position, end],
        }
        position = end
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _joined(tensors: list[Tensor]) -> list[tuple[str, int, int]]:
    """Return (file, start, stop) with neighbours made one, so that few requests fetch them all."""
    ranges: list[tuple[str, int, int]] = []
    for tensor in tensors:
        if ranges and ranges[-1][0] == tensor.file and ranges[-1][2] == tensor.start:
            ranges[-1] = (tensor.file, ranges[-1][1], tensor.stop)
        else:
            ranges.append((tensor.file, tensor.start, tensor.stop))
    return ranges


class HubFiles(LocalFiles):
    """Shards of one commit: from the hub cache when they lie there, else by byte range from the hub."""

    def __init__(self, repo: str, commit: str, folder: Path):
        super().__init__(folder, label=repo)
        self.repo, self.commit = repo, commit

    def size(self, file: str) -> int | None:
        cached = super().size(file)
        if cached is not None:
            return cached
        try:
            return get_hf_file_metadata(self._url(file)).size
        except RemoteEntryNotFoundError:
            return None

    def names(self) -> list[str]:
        return HfApi().list_repo_files(self.repo, revision=self.commit)

    def read(self, file: str, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes from `start` to `stop`, in whatever portions they arrive."""
        if super().size(file) is None:
            try:
                for chunk in self._ranged(file, start, stop):
                    start += len(chunk)
                    yield chunk
                return
            except RangeRefused:
                hf_hub_download(self.repo, file, revision=self.commit, tqdm_class=Bar)
        yield from super().read(file, start, stop)

    def _ranged(self, file: str, start: int, stop: int) -> Iterator[bytes]:
        failures = 0
        while start < stop:
            try:
                for chunk in self._request(file, start, stop):
                    failures = 0
                    start += len(chunk)
                    yield chunk
            except httpx2.TransportError:
                failures += 1
                if failures >= TRIES:
                    raise
                time.sleep(WAIT)

    def _request(self, file: str, start: int, stop: int) -> Iterator[bytes]:
        wanted = f"bytes={start}-{stop - 1}"
        headers = build_hf_headers() | {"Range": wanted, "Accept-Encoding": "identity"}
        with http_stream_backoff(
            "GET",
            self._url(file),
            headers=headers,
            timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
            retry_on_exceptions=(),  # here, because a body that breaks off must go on in the middle
        ) as response:
            sent = response.headers.get("Content-Range", "").replace("bytes ", "bytes=")
            if response.status_code in (200, 416, 501) or (
                response.status_code == 206 and not sent.startswith(f"{wanted}/")
            ):
                raise RangeRefused
            hf_raise_for_status(response)
            yield from response.iter_raw()

    def _url(self, file: str) -> str:
        return hf_hub_url(self.repo, file, revision=self.commit)
