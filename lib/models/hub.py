"""Fetch a model from the hub: whole, or only the byte ranges that its first layers lie in.

    folder = first_layers("Qwen/Qwen2.5-Math-7B", layers=3)   # an ordinary checkpoint folder, in the cache
    folder = snapshot("Qwen/Qwen2.5-0.5B-Instruct")           # the whole model, in the usual hub cache

Only safetensors weights, configuration and tokenizer files are fetched: no pickles, no code. Where the
hub is comes from HF_ENDPOINT, as everywhere.
"""

import shutil
from dataclasses import replace
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download

from lib.errors import InputError
from lib.models.checkpoints import SINGLE, Bar, stored_tensors, whole_folder, write_tensors
from lib.models.failures import hub_errors
from lib.models.ranges import HubFiles, read_joined
from lib.models.weights import needed_tensors, read_config, text_name
from lib.paths import cache_folder

SMALL_FILES = ["*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken"]
# Subfolders and consolidated files hold the same weights once more, in other formats.
DUPLICATES = ["*/*", "consolidated*.safetensors"]


def snapshot(repo: str, revision: str | None = None, weights: bool = True) -> Path:
    """Return the folder, named after its commit, of the whole model or of all but its weights; raises InputError."""
    with hub_errors(repo, revision):
        folder = _download(repo, revision, [*SMALL_FILES, "*.safetensors"] if weights else SMALL_FILES)
        if weights:
            stored_tensors(HubFiles(repo, folder.name, folder))  # which names what is missing, pickled or cut short
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
        return whole_folder(folder, lambda partial: _fetch(repo, commit, layers, partial))


def _fetch(repo: str, commit: str, layers: int, folder: Path) -> None:
    files = HubFiles(repo, commit, _download(repo, commit, SMALL_FILES))
    config = read_config(files, layers)
    tensors = needed_tensors(files, layers)
    for source in files.folder.iterdir():
        if source.is_file() and not source.name.endswith((".safetensors", ".index.json")):
            shutil.copyfile(source, folder / source.name)
    config.save_pretrained(folder)
    renamed = [replace(tensor, name=text_name(tensor.name)) for tensor in tensors]
    write_tensors(renamed, lambda skip: read_joined(files, tensors, skip), folder / SINGLE, repo)


def _download(repo: str, revision: str | None, patterns: list[str]) -> Path:
    return Path(
        snapshot_download(repo, revision=revision, allow_patterns=patterns, ignore_patterns=DUPLICATES, tqdm_class=Bar)
    )
