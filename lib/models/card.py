"""What is known of a model before its weights are read."""

from dataclasses import replace
from pathlib import Path

from huggingface_hub import (
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    try_to_load_from_cache,
)
from huggingface_hub.utils import disable_progress_bars

from lib.models.checkpoint import decoder_config
from lib.models.gguf_files import conversions_of, gguf_parts
from lib.models.load_errors import hub_errors
from lib.models.names import Source, resolve


def card(spec: str) -> Source:
    """Return what a model's config.json, on disk or on the hub, says of it.

    Of a model that comes as GGUF only what data/models.yaml says is known before it is
    converted. Raises InputError for a spec that means nothing, a wheel that is not
    installed, what holds no model, and what the hub refuses.
    """
    source = resolve(spec)
    if source.gguf:
        converted = conversions_of(source).glob("[!.]*/config.json")
        if not any(converted):
            gguf_parts(source)  # which refuses what could not be converted
        return source
    if source.folder:
        return replace(source, **decoder_config(source.folder))
    folder = config_folder(source.repo, source.revision)
    return replace(source, revision=folder.name, **decoder_config(folder))


def config_folder(repo: str, revision: str | None = None) -> Path:
    """Return the folder, named after its commit, that holds a model's config.json.

    Nothing else is fetched. Raises InputError.
    """
    disable_progress_bars()  # the hub's own: a config is a kilobyte
    place = {"repo_id": repo, "filename": "config.json", "revision": revision}
    with hub_errors(repo, revision):
        if not isinstance(try_to_load_from_cache(**place), str):
            # Without a hub this fails at once, where the download would try again for
            # half a minute.
            get_hf_file_metadata(hf_hub_url(**place))
        return Path(hf_hub_download(**place)).parent
