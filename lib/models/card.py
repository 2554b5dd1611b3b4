"""What is known of a model from its config alone: enough to check a profile before any weights are read."""

import json
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.utils import disable_progress_bars

from lib.errors import InputError
from lib.models.failures import checkpoint_errors, hub_errors
from lib.models.names import Source, resolve


@dataclass(frozen=True)
class Card:
    """A model without its weights; None is what its family decides or what is known only once it is loaded."""

    name: str  # as a figure prints it
    spec: str  # as it was asked for
    revision: str | None  # commit on the hub, or a digest of a local checkpoint's files
    heads: int | None
    layers: int | None
    context: int | None  # positions that prompt, inserted and new tokens share
    dtype: str | None = None
    weights: str = ""  # what a caption says of them when they are not the original ones

    @property
    def label(self) -> str:
        """How a caption names the model: with its weights, when they are not the original ones."""
        name = f"{self.name} @ {self.revision[:12]}" if self.revision else self.name
        return ", ".join(filter(None, [name, self.weights, self.dtype]))


def card(spec: str) -> Card:
    """Read a model's config.json, from disk or the hub, and no weights.

    Of a model that comes as GGUF only what data/models.yaml says is known before it is converted. Raises InputError
    for a spec that means nothing, a folder that holds no model, a damaged config, and what the hub refuses.
    """
    source = resolve(spec)
    revision, text = None, source.gguf.config if source.gguf else None
    if not source.gguf:
        path = _config_path(source)
        revision = path.parent.name if source.repo else None  # the hub cache names a snapshot after its commit
        with checkpoint_errors(path):
            config = json.loads(path.read_text(encoding="utf-8"))
            text = config.get("text_config", config) if isinstance(config, dict) else None
    if not isinstance(text, dict):
        raise InputError(f"{spec}: its config.json describes no model")
    numbers = map(text.get, ("num_attention_heads", "num_hidden_layers", "max_position_embeddings"))
    return Card(source.name, spec, revision, *numbers, weights=source.weights)


def _config_path(source: Source) -> Path:
    if source.folder:
        if not (source.folder / "config.json").is_file():
            raise InputError(f"{source.folder}: no config.json, so this is not a model checkpoint")
        return source.folder / "config.json"
    disable_progress_bars()  # the hub's own: a config is a kilobyte
    with hub_errors(source.repo, source.revision):
        if not isinstance(try_to_load_from_cache(source.repo, "config.json", revision=source.revision), str):
            # Without a hub this fails at once, where the download would try again for half a minute.
            get_hf_file_metadata(hf_hub_url(source.repo, "config.json", revision=source.revision))
        return Path(hf_hub_download(source.repo, "config.json", revision=source.revision))
