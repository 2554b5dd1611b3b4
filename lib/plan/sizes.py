"""How large a model is, what of it is here, and what a task takes with it here.

    source = card("Qwen2.5-Math-7B")
    missing, here = files_of(source, layers=3)
    shape_of(source).parameters(layers=3)

No weights are read. Torch is imported where it is needed: what cannot be had is refused
without it.
"""

import functools
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import HfApi
from huggingface_hub.utils import filter_repo_objects

from lib.errors import InputError
from lib.models.checkpoint import checkpoint_errors, has_all_shards, shards_of
from lib.models.hub import DUPLICATES, hub_errors, layers_folder
from lib.models.memory import SHARE_OF_MEMORY, free_memory
from lib.models.names import HUB_SECONDS, Source, config_folder, gguf_parts
from lib.plan.tasks import ALL_LAYERS, Task

# Parts that score: what their models lack of memory stays on disk.
SCORING = ("likelihood", "draw_scores")
WORKING_MEMORY = 2.5e9  # bytes of Python, logits, and answers that grow at once
# Seconds that go by for each second of matrix products.
OVERHEAD = 1.4
# The product that is timed is one of a 1.5B's MLP: rows x width times width x inner.
WIDTH, INNER = 1536, 8960
PROMPT_ROWS = 128
TRIAL_SECONDS = 1
# What a step of generation takes beside its rows: as long as a product of so few, for
# reading all weights, and Python's calls.
STEP_ROWS = 8
CALL_SECONDS = 0.0005  # of a layer


class Shape(NamedTuple):
    """How many parameters a decoder and its parts have."""

    whole: int
    embedding: int
    layer: int
    depth: int  # layers of the whole

    def parameters(self, layers: float = ALL_LAYERS) -> float:
        """Return how many the embedding and first layers have."""
        return min(self.whole, self.embedding + layers * self.layer)

    def multiplied(self, layers: float) -> float:
        """Return how many a token is multiplied with: an embedding is looked up, and
        once more, as the head of the whole, multiplied.
        """
        return min(self.whole, layers * self.layer)


def files_of(source: Source, layers: float = ALL_LAYERS) -> tuple[int, int]:
    """Return the bytes that are missing and here of a model's weights, or of its first
    layers.

    source: a card. Raises InputError for what cannot be had.
    """
    if source.gguf:
        return 0, _bytes_of(gguf_parts(source))
    if source.folder:
        return 0, _bytes_of(shards_of(source.folder))
    return _on_hub(source, layers)


def _on_hub(source: Source, layers: float) -> tuple[int, int]:
    """Return the files of a model on the hub, which is asked for what is not here."""
    folder = config_folder(source)
    cut = layers_folder(source.repo, folder.name, layers)
    for whole in (folder, cut):
        if has_all_shards(whole):
            return 0, _bytes_of(shards_of(whole))
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
    stored = sum(shard.size for shard in shards)
    if not stored:
        raise InputError(f"{source.repo}: no weights in *.safetensors")
    here = _bytes_of(folder.glob("*.safetensors"))
    return stored - here, here


def _bytes_of(files: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in files)


def shape_of(source: Source) -> Shape:
    """Return the shape of a model from its config alone; raises InputError.

    source: a card. Of a GGUF file that data/models.yaml does not know the config is in
    the file.
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
        layers = model.get_decoder().layers
        parts = (model, model.get_input_embeddings(), layers[0])
        whole, embedding, layer = (
            sum(weight.numel() for weight in part.parameters()) for part in parts
        )
        return Shape(whole, embedding, layer, len(layers))


def room_for_weights() -> int:
    """Return how many bytes are free where weights lie."""
    import torch

    return free_memory("cuda" if torch.cuda.is_available() else "cpu")


def memory_of(task: Task, shape: Shape) -> float:
    """Return how many bytes of memory a task needs.

    What a model that scores lacks of it stays on disk.
    """
    _, dtype = _placement(task)
    needed = shape.parameters(task.layers) * dtype.itemsize
    if task.part in SCORING:
        needed = min(needed, SHARE_OF_MEMORY * room_for_weights())
    return needed + WORKING_MEMORY


def seconds_of(task: Task, shape: Shape) -> float:
    """Return how long it takes to compute what is left of a task."""
    place = _placement(task)
    seconds = task.left * task.tokens / _speed(*place, PROMPT_ROWS)
    calls = task.steps * shape.depth * CALL_SECONDS
    if task.steps:
        seconds += task.steps * STEP_ROWS / _speed(*place, STEP_ROWS)
    return OVERHEAD * seconds * shape.multiplied(task.layers) + calls


def _placement(task: Task) -> tuple[str, Any]:
    """Return the device of a task, and its dtype as torch has it."""
    import torch

    from lib.models.loading import placement

    device, dtype = placement("auto", task.dtype)
    return device, getattr(torch, dtype)


@functools.cache
def _speed(device: str, dtype: Any, rows: int) -> float:
    """Return how many weights a second are multiplied with a token, of so many at once.

    On a CPU the processor's time counts, so that what else runs meanwhile does not.
    """
    import torch

    form: Any = {"device": device, "dtype": dtype}
    weights = torch.ones(INNER, WIDTH, **form)
    inputs = torch.ones(rows, WIDTH, **form)
    clock = time.process_time if device == "cpu" else time.monotonic
    threads = torch.get_num_threads() if device == "cpu" else 1
    products = 0
    begun = clock()
    while clock() < begun + TRIAL_SECONDS * threads:
        # Reading a number waits for a GPU to be done.
        torch.nn.functional.linear(inputs, weights)[0, 0].item()
        products += 1
    return products * rows * WIDTH * INNER * threads / (clock() - begun)
