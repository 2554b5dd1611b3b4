"""What is known of a model before its weights are read."""

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
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
from lib.models.gguf_files import conversion_of, gguf_parts
from lib.models.load_errors import hub_errors
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
        if not conversion_of(source):
            gguf_parts(source)  # which refuses what could not be converted
        return source
    if source.folder:
        return replace(source, **decoder_config(source.folder))
    folder = config_folder(source)
    return replace(source, revision=folder.name, **decoder_config(folder))


def cards(specs: Collection[str]) -> dict[str, Source]:
    """Return the card of each model.

    Raises InputError for all that cannot be had; a reason of several is said once.
    """
    found = {}
    models_by_reason: dict[str, list[str]] = {}  # what stands before the reason
    with ThreadPoolExecutor() as pool:
        waiting = {spec: pool.submit(card, spec) for spec in specs}
    for spec, answer in waiting.items():
        try:
            found[spec] = answer.result()
        except InputError as error:
            model, colon, reason = str(error).partition(": ")
            models_by_reason.setdefault(colon + reason, []).append(model)
    if models_by_reason:
        said = [", ".join(models) + why for why, models in models_by_reason.items()]
        raise InputError("; ".join(said))
    return found


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
