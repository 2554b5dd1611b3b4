"""How large a model is, what of it is here, and what a task takes with it here.

    source = card("Qwen2.5-Math-7B")
    files_of(source, layers=3).missing
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
from lib.plan.tasks import Task

# Parts that score: what their models lack of memory stays on disk.
SCORING = ("likelihood", "draw_scores")
WORKING_MEMORY = 2.5e9  # bytes of Python, logits, and answers that grow at once
# Seconds that go by for each second of matrix products.
OVERHEAD = 1.4
# The product that is timed is one of a 1.5B's MLP: rows x width times width x inner.
ROWS, WIDTH, INNER = 128, 1536, 8960
TRIAL_SECONDS = 2
# What a step of generation takes beside its rows: as much as so many more of them, for
# reading all weights, and Python's calls.
STEP_ROWS = 8
CALL_SECONDS = 0.0005  # of a layer


class Files(NamedTuple):
    """The bytes of a model's weights that are missing and here."""

    missing: int
    here: int


class Shape(NamedTuple):
    """How many parameters a decoder and its parts have."""

    whole: int
    embedding: int
    layer: int
    depth: int  # layers of the whole

    def parameters(self, layers: int | None) -> int:
        """Return how many the embedding and first layers have; None: all."""
        return self.whole if layers is None else self.embedding + layers * self.layer

    def multiplied(self, layers: int | None) -> int:
        """Return how many a token is multiplied with: an embedding is looked up, and
        once more, as the head of the whole, multiplied.
        """
        return self.whole if layers is None else layers * self.layer


def files_of(source: Source, layers: int | None = None) -> Files:
    """Return what is missing and here of a model, or of its first layers.

    source: a card. Raises InputError for what cannot be had.
    """
    if source.gguf:
        return Files(0, _bytes_of(gguf_parts(source)))
    if source.folder:
        return Files(0, _bytes_of(shards_of(source.folder)))
    return _on_hub(source, layers)


def _on_hub(source: Source, layers: int | None) -> Files:
    """Return the files of a model on the hub, which is asked for what is not here."""
    folder = config_folder(source)
    cut = layers_folder(source.repo, folder.name, layers or 0)
    for whole in (folder, cut):
        if has_all_shards(whole):
            return Files(0, _bytes_of(shards_of(whole)))
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
    return Files(stored - here, here)


def _bytes_of(files: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in files)


def shape_of(source: Source) -> Shape:
    """Return the shape of a model from its config alone; raises InputError.

    source: a card. Of a GGUF file that data/models.yaml does not know the config is in
    the file.
    """
    import transformers
    from accelerate import init_empty_weights
    from accelerate.utils import compute_module_sizes

    with checkpoint_errors(source.spec):
        if source.config:
            config = transformers.AutoConfig.for_model(**source.config)
        else:
            file = Path(source.gguf)
            config = transformers.AutoConfig.from_pretrained(
                file.parent, gguf_file=file.name
            )
        with init_empty_weights():
            model = transformers.AutoModelForCausalLM.from_config(
                config.get_text_config()
            )
        model.tie_weights()
        sizes = compute_module_sizes(model, dtype="int8")  # a byte for each
        names = {module: name for name, module in model.named_modules()}
        embedding = sizes[names[model.get_input_embeddings()]]
        layers = model.get_decoder().layers
        layer = sizes[names[layers[0]]]
        return Shape(sizes[""], embedding, layer, len(layers))


def room_for_weights() -> int:
    """Return how many bytes are free where weights lie."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.mem_get_info()[0]
    return free_memory()


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
    tokens = task.left * task.tokens + task.steps * STEP_ROWS
    operations = 2 * tokens * shape.multiplied(task.layers)
    calls = task.steps * shape.depth * CALL_SECONDS
    return OVERHEAD * operations / _speed(*_placement(task)) + calls


def _placement(task: Task) -> tuple[str, Any]:
    """Return the device of a task, and its dtype as torch has it."""
    import torch

    from lib.models.loading import placement

    device, dtype = placement("auto", task.dtype)
    return device, getattr(torch, dtype)


@functools.cache
def _speed(device: str, dtype: Any) -> float:
    """Return how many operations a second products in this dtype do.

    On a CPU the processor's time counts, so that what else runs meanwhile does not.
    """
    import torch

    form: Any = {"device": device, "dtype": dtype}
    weights = torch.ones(INNER, WIDTH, **form)
    inputs = torch.ones(ROWS, WIDTH, **form)
    clock = time.process_time if device == "cpu" else time.monotonic
    threads = torch.get_num_threads() if device == "cpu" else 1
    products = 0
    begun = clock()
    while clock() < begun + TRIAL_SECONDS * threads:
        # Reading a number waits for a GPU to be done.
        torch.nn.functional.linear(inputs, weights)[0, 0].item()
        products += 1
    return products * 2 * ROWS * WIDTH * INNER * threads / (clock() - begun)
