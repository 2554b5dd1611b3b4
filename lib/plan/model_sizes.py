"""Compute the size of a model, the part of it on this disk, and the memory that a task
needs.

    source = source_with_config("Qwen2.5-Math-7B")
    missing, here = files_of(source, layers=3)
    shape_of(source).parameters(layers=3)

No weights are read. Torch is imported only if needed, so that an unavailable model is
refused without it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import HfApi
from huggingface_hub.utils import filter_repo_objects

from lib.errors import InputError
from lib.models.availability import HUB_SECONDS, config_folder, gguf_parts
from lib.models.available_memory import SHARE_OF_MEMORY, free_memory
from lib.models.checkpoint import checkpoint_errors, has_all_shards, shards_of
from lib.models.hub import DUPLICATES, hub_errors, layers_folder
from lib.models.name_resolution import Source
from lib.plan.tasks import ALL_LAYERS, Task

GB = 1e9
# Parts that score texts, for which some of the weights may stay on disk.
SCORING = ("likelihood", "ablations", "draw_scores")
# Bytes that a run needs besides weights: Python, logits, and the cache of a batch.
WORKING_MEMORY = 2.5e9


class Shape(NamedTuple):
    """The numbers of parameters of a model and its parts."""

    total: int  # with the output head
    embedding: int
    layer: int  # the first one

    def parameters(self, layers: float = ALL_LAYERS) -> float:
        """Return the number of parameters of the embedding and the first layers."""
        return min(self.total, self.embedding + layers * self.layer)


def files_of(source: Source, layers: float = ALL_LAYERS) -> tuple[int, int]:
    """Return (missing, stored): how many bytes of a model's weights have to be
    downloaded, and how many are on this disk.

    source: as `source_with_config` returns it. Raises InputError for an unavailable
    model.
    """
    if source.gguf:
        return 0, _bytes_of(gguf_parts(source))
    if source.folder:
        return 0, _bytes_of(shards_of(source.folder))
    return _on_hub(source, layers)


def _on_hub(source: Source, layers: float) -> tuple[int, int]:
    """Return `files_of` a model on the hub, which is queried only if files are missing.

    The missing size is that of the complete model, even if only first layers are
    needed.
    """
    folder = config_folder(source)
    cut = layers_folder(source.repo, folder.name, layers)
    for checkpoint in (folder, cut):
        if has_all_shards(checkpoint):
            return 0, _bytes_of(shards_of(checkpoint))
    with hub_errors(source.repo, source.revision):
        model: Any = HfApi().model_info(
            source.repo,
            revision=folder.name,
            timeout=HUB_SECONDS,
            files_metadata=True,
        )
    shards = filter_repo_objects(
        model.siblings,
        allow_patterns="*.safetensors",
        ignore_patterns=DUPLICATES,
        key=lambda file: file.rfilename,
    )
    sizes = {shard.rfilename: shard.size for shard in shards}
    if not sizes:
        raise InputError(f"{source.repo}: no weights in *.safetensors")
    # The folder may also have copies of the weights in other formats.
    here = _bytes_of(path for path in folder.iterdir() if path.name in sizes)
    return sum(sizes.values()) - here, here


def _bytes_of(files: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in files)


def shape_of(source: Source) -> Shape:
    """Return the shape of a model from its config; raise InputError if that fails.

    source: as `source_with_config` returns it. A GGUF file that data/models.yaml does
    not list contains its config.
    """
    import torch
    import transformers

    with checkpoint_errors(source.spec), torch.device("meta"):
        if source.config:
            config = transformers.AutoConfig.for_model(**source.config)
        else:
            file = Path(source.gguf)
            config = transformers.AutoConfig.from_pretrained(
                file.parent, gguf_file=file.name
            )
        decoder = config.get_text_config()
        model = transformers.AutoModelForCausalLM.from_config(decoder)
        parts = (model, model.get_input_embeddings(), model.get_decoder().layers[0])
        total, embedding, layer = (
            sum(weight.numel() for weight in part.parameters()) for part in parts
        )
        return Shape(total, embedding, layer)


def memory_for_models() -> int:
    """Return the free memory, in bytes, of the device that models run on."""
    import torch

    return free_memory("cuda" if torch.cuda.is_available() else "cpu")


def memory_of(task: Task, shape: Shape) -> float:
    """Return how many bytes of memory a task needs on the device that `auto` chooses.

    Scoring needs at most its share of the free memory for weights, because the others
    stay on disk.
    """
    import torch

    from lib.models.loading import placement

    _, dtype = placement("auto", task.dtype)
    needed = shape.parameters(task.layers) * getattr(torch, dtype).itemsize
    if task.part in SCORING:
        needed = min(needed, SHARE_OF_MEMORY * memory_for_models())
    return needed + WORKING_MEMORY


def gigabytes(size: float) -> str:
    """Return a number of bytes as text in units of 10^9 bytes."""
    return f"{size / GB:.1f} GB"
