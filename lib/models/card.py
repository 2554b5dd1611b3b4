"""What is known of a model before its weights are read."""

from dataclasses import replace

from lib.models.checkpoint import decoder_config
from lib.models.gguf_files import conversions_of, gguf_parts
from lib.models.hub import config_folder
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
