"""A checkpoint's tensors, a few at a time: from a folder, or from the hub.

From the hub a stage of a model comes by its byte ranges, the next one while this one
computes. Each lies in a file of its own in the cache, which stays where the disk has
room for all of them.
"""

import json
import math
import shutil
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path

import torch
from huggingface_hub import hf_hub_url
from huggingface_hub.utils import WeakFileLock
from safetensors import safe_open

from lib import paths
from lib.models.checkpoint import shards_of
from lib.models.first_layers import TensorPlace, bytes_between, tensor_places
from lib.models.hub import hub_shards
from lib.models.load_errors import checkpoint_errors, hub_errors
from lib.models.weights import read_from_shards
from lib.paths import settings_key
from lib.progress import Bar


class FolderTensors:
    """The tensors of a checkpoint in a folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.elements = 0  # numbers in all tensors
        self.files: dict[str, str] = {}  # where each tensor lies
        for shard in shards_of(folder):
            path = folder / shard
            with checkpoint_errors(path), safe_open(path, "pt") as stored:
                for name in stored.keys():  # noqa: SIM118
                    self.files[name] = shard
                    self.elements += math.prod(stored.get_slice(name).get_shape())

    def read(
        self, files: Mapping[str, str], dtype: torch.dtype | None
    ) -> dict[str, torch.Tensor]:
        """Return these tensors, floating-point ones in `dtype`, as stored for None."""
        return read_from_shards(self.folder, files, dtype)

    def expect(self, files: Mapping[str, str]) -> None:
        """Be told what will be read next."""


class HubTensors:
    """The tensors of a model on the hub, of which none need be here.

    small: its snapshot without weights. Raises InputError, and RangeRefused where the
    server sends whole files only.
    """

    def __init__(self, repo: str, small: Path):
        self.repo = repo
        self._places: dict[str, TensorPlace] = {}
        self.files: dict[str, str] = {}
        with hub_errors(repo, small.name):
            for shard in hub_shards(repo, small):
                url = hf_hub_url(repo, shard, revision=small.name)
                places = tensor_places(repo, shard, url)
                self._places |= places
                self.files |= dict.fromkeys(places, shard)
        self.elements = sum(math.prod(place.shape) for place in self._places.values())
        self.folder = paths.CACHE / "stages" / repo / small.name
        self._fetching: dict[str, Future] = {}

    def read(
        self, files: Mapping[str, str], dtype: torch.dtype | None
    ) -> dict[str, torch.Tensor]:
        """Return these tensors as `FolderTensors` does; InputError where the hub does
        not send them.
        """
        if not files:
            return {}
        name = self._name(files)
        fetched = self._start(files)
        del self._fetching[name]
        with hub_errors(self.repo, self.folder.name):
            fetched.result()
        tensors = read_from_shards(self.folder, dict.fromkeys(files, name), dtype)
        if not self._has_room():
            (self.folder / name).unlink()
        return tensors

    def expect(self, files: Mapping[str, str]) -> None:
        """Begin to fetch what will be read next."""
        self._start(files)

    def _start(self, files: Mapping[str, str]) -> Future:
        name = self._name(files)
        if name not in self._fetching:
            fetched = self._fetching[name] = Future()

            def fetch() -> None:
                try:
                    fetched.set_result(self._fetch(sorted(files), name))
                except BaseException as error:
                    fetched.set_exception(error)

            # A daemon, so that whoever interrupts the run need not wait for it.
            threading.Thread(target=fetch, daemon=True).start()
        return self._fetching[name]

    def _name(self, files: Mapping[str, str]) -> str:
        """Return the name of the cache's file that holds these tensors."""
        return f"{settings_key(tensors=sorted(files))}.safetensors"

    def _has_room(self) -> bool:
        """Say whether the disk can keep what is still missing of the model."""
        total = sum(place.stop - place.start for place in self._places.values())
        here = sum(path.stat().st_size for path in self.folder.iterdir())
        return shutil.disk_usage(self.folder).free > 1.1 * (total - here)

    def _fetch(self, tensors: list[str], name: str) -> None:
        """Write a safetensors file of these tensors, which is whole or absent."""
        path = self.folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        with WeakFileLock(f"{path}.lock"):
            if not path.is_file():
                partial = path.with_suffix(".partial")
                self._write(tensors, partial)
                partial.replace(path)

    def _write(self, tensors: list[str], path: Path) -> None:
        """Write a safetensors file of these tensors, as their bytes arrive."""
        header = {}
        end = 0
        for tensor in tensors:
            place = self._places[tensor]
            begin, end = end, end + place.stop - place.start
            header[tensor] = {
                "dtype": place.dtype,
                "shape": place.shape,
                "data_offsets": [begin, end],
            }
        encoded = json.dumps(header).encode()
        encoded += b" " * (-len(encoded) % 8)  # so that the numbers are aligned
        bar = Bar(total=end, unit="B", unit_scale=True, desc=self.repo, leave=False)
        with bar, open(path, "wb") as file:
            file.write(len(encoded).to_bytes(8, "little"))
            file.write(encoded)
            for tensor in tensors:
                place = self._places[tensor]
                for chunk in bytes_between(place.url, place.start, place.stop):
                    file.write(chunk)
                    bar.update(len(chunk))
