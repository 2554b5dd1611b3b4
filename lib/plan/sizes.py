"""How large a model is, and what of it is here.

    files = files_of("Qwen2.5-Math-7B", layers=3)
    shape = shape_of("Qwen2.5-Math-7B", files.folder)
    files.missing, shape.parameters(layers=3)

No weights are read, and `files_of` imports no torch.
"""

from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import HfApi
from huggingface_hub.utils import filter_repo_objects

from lib.errors import InputError
from lib.models.card import HUB_SECONDS, card, config_folder
from lib.models.checkpoint import has_shards, shards_of
from lib.models.gguf_files import conversion_of, gguf_parts
from lib.models.hub import DUPLICATES, layers_folder
from lib.models.load_errors import checkpoint_errors, hub_errors
from lib.models.names import Source, known_models, resolve


class Files(NamedTuple):
    """The bytes of a model's weights that are missing and here, and the folder of its
    config, where there is one.
    """

    missing: int
    here: int
    folder: Path | None


class Shape(NamedTuple):
    """How many parameters a decoder and its parts have."""

    whole: int
    embedding: int
    layer: int

    def parameters(self, layers: int | None) -> int:
        """Return how many the embedding and first layers have; None: all."""
        return self.whole if layers is None else self.embedding + layers * self.layer

    def multiplied(self, layers: int | None) -> int:
        """Return how many a token is multiplied with: an embedding is looked up, and
        once more, as the head of the whole, multiplied.
        """
        return self.whole if layers is None else layers * self.layer


def files_of(spec: str, layers: int | None = None) -> Files:
    """Return what is missing and here of a model, or of its first layers.

    Raises InputError for what cannot be had.
    """
    source = card(spec)
    if source.repo:
        return _on_hub(source, layers)
    folder = source.folder or conversion_of(source)
    if folder:
        shards_of(folder)  # which refuses pickles
        return Files(0, _bytes_in(folder), folder)
    parts = [path.stat().st_size for path in gguf_parts(source)]
    return Files(0, sum(parts), None)


def _on_hub(source: Source, layers: int | None) -> Files:
    """Return the files of a model on the hub, which is asked for what is not here."""
    folder = config_folder(source)
    cut = layers_folder(source.repo, folder.name, layers or 0)
    for whole in (folder, cut):
        if has_shards(whole):
            return Files(0, _bytes_in(whole), whole)
    with hub_errors(source.repo, source.revision):
        model: Any = HfApi().model_info(
            source.repo,
            revision=folder.name,
            timeout=HUB_SECONDS,
            files_metadata=True,
        )
    sizes = {file.rfilename: file.size for file in model.siblings}
    shards = filter_repo_objects(
        sizes, allow_patterns="*.safetensors", ignore_patterns=DUPLICATES
    )
    stored = sum(sizes[shard] for shard in shards)
    if not stored:
        raise InputError(f"{source.repo}: no weights in *.safetensors")
    here = _bytes_in(folder)
    return Files(stored - here, here, folder)


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def shape_of(spec: str, folder: Path | None) -> Shape:
    """Return the shape of a model from its config alone; raises InputError.

    folder: of its config, where data/models.yaml has none.
    """
    # Not above: what cannot be had is refused without torch.
    import transformers
    from accelerate import init_empty_weights
    from accelerate.utils import compute_module_sizes

    source = resolve(spec)
    entry = known_models().get(spec.partition("@")[0], {})
    with checkpoint_errors(spec):
        if "config" in entry:
            config = transformers.AutoConfig.for_model(**entry["config"])
        else:
            place = folder or Path(source.gguf).parent
            file = {} if folder else {"gguf_file": Path(source.gguf).name}
            config = transformers.AutoConfig.from_pretrained(
                place, trust_remote_code=False, **file
            )
        with init_empty_weights():
            model = transformers.AutoModelForCausalLM.from_config(
                config.get_text_config()
            )
        model.tie_weights()
        sizes = compute_module_sizes(model, dtype="int8")  # a byte for each
        names = {module: name for name, module in model.named_modules()}
        embedding = sizes[names[model.get_input_embeddings()]]
        layer = sizes[names[model.get_decoder().layers[0]]]
        return Shape(sizes[""], embedding, layer)
