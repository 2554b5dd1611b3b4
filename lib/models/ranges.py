"""Shards on the hub, read by byte range; a connection that breaks off costs no byte twice."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
from huggingface_hub import HfApi, constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.errors import RemoteEntryNotFoundError
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, http_stream_backoff

from lib.models.checkpoints import Bar, LocalFiles, Tensor

TRIES = 5  # requests in a row that bring no byte
WAIT = 1.0  # seconds before the next try


class RangeRefused(Exception):
    """The server sends whole files only."""


class HubFiles(LocalFiles):
    """Shards of one commit: from the hub cache when they lie there, else by byte range from the hub."""

    def __init__(self, repo: str, commit: str, folder: Path):
        super().__init__(folder, label=repo)
        self.repo, self.commit = repo, commit

    def size(self, file: str) -> int | None:
        try:
            return super().size(file) or get_hf_file_metadata(self._url(file)).size
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


def read_joined(files: LocalFiles, tensors: list[Tensor], skip: int) -> Iterator[bytes]:
    """Yield the bytes of all tensors without the first `skip`, neighbours in one request."""
    ranges: list[tuple[str, int, int]] = []
    for tensor in tensors:
        neighbour = ranges and (ranges[-1][0], ranges[-1][2]) == (tensor.file, tensor.start)
        start = ranges.pop()[1] if neighbour else tensor.start
        ranges.append((tensor.file, start, tensor.stop))
    for file, start, stop in ranges:
        yield from files.read(file, min(start + skip, stop), stop)
        skip = max(skip - (stop - start), 0)
