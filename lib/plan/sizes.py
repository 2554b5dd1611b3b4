"""How large a model is, what of it is here, and what a task takes with it here.

    files = files_of("Qwen2.5-Math-7B", layers=3)
    shape = shape_of("Qwen2.5-Math-7B", files.folder)
    files.missing, shape.parameters(layers=3)

No weights are read. Torch is imported where it is needed: what cannot be had is refused
without it.
"""

import functools
import time
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import HfApi
from huggingface_hub.utils import filter_repo_objects

from lib.errors import InputError
from lib.models.card import (
    HUB_SECONDS,
    card,
    config_folder,
    conversion_of,
    gguf_parts,
)
from lib.models.checkpoint import checkpoint_errors, has_shards, shards_of
from lib.models.hub import DUPLICATES, hub_errors, layers_folder
from lib.models.memory import SHARE_OF_MEMORY, free_memory
from lib.models.names import Source, known_models, resolve
from lib.plan.tasks import Task

# Parts that score: what their models lack of memory stays on disk.
SCORING = ("likelihood", "draw_scores")
WORKING_MEMORY = 2.5e9  # bytes of Python, logits, and answers that grow at once
# Seconds that go by for each second of matrix products.
OVERHEAD = 1.4
# The product that is timed is one of a 1.5B's MLP: rows x width times width x inner.
ROWS, WIDTH, INNER = 128, 1536, 8960
TRIAL_SECONDS = 2


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
    operations = 2 * task.left * task.tokens * shape.multiplied(task.layers)
    return OVERHEAD * operations / _speed(*_placement(task))


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
