"""Load a tokenizer and a decoder, whole or only its first layers, from what a `spec` names.

A short name stands in data/models.yaml (`demo` is one); `org/name` or `org/name@revision` is a hub id; anything else
is a local folder or a .gguf file. Weights come from safetensors or GGUF alone and no code is taken from a checkpoint.
To *change* a model, see `arm`; to read its attention, see `attention`.
"""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import torch
from transformers import AutoTokenizer, PreTrainedModel
from transformers.utils import logging as transformers_logging

from lib.attention.check import check_attention
from lib.errors import InputError
from lib.models import hub
from lib.models.card import Card
from lib.models.failures import checkpoint_errors, named
from lib.models.names import Dtype, Source, resolve
from lib.models.packaged import converted, ends_digest
from lib.models.weights import load_weights, untrained, without_weights


@dataclass(frozen=True)
class Loaded:
    """A model ready to run, and what a record must say about it."""

    model: PreTrainedModel
    tokenizer: object
    name: str  # as a figure prints it
    spec: str  # as it was asked for
    revision: str  # commit on the hub, or a digest of the files that were read
    device: str
    dtype: str
    layers: int  # decoder layers present
    weights: str = ""  # what a caption says of them when they are not the original ones

    @property
    def card(self) -> Card:
        """What a caption or a file says of the model, which holds no weights."""
        known = self.name, self.spec, self.revision, self.heads, self.layers, self.context, self.dtype, self.weights
        return Card(*known)

    @property
    def heads(self) -> int:
        return self.model.config.get_text_config().num_attention_heads

    @property
    def context(self) -> int:
        """Positions that prompt, inserted and new tokens share."""
        return self.model.config.get_text_config().max_position_embeddings


def load(
    spec: str,
    layers: int | None = None,
    device: str = "auto",
    dtype: str = "auto",
    seed: int | None = None,
    *,
    head: bool = True,
) -> Loaded:
    """Load `spec`; with `layers` only the embedding and the first decoder layers, without output head.

    Without `head` there are all layers but no output head, which only answers need: an eighth of a 1.5B's memory.
    With a `seed` the weights, without output head, are fresh: drawn as the family draws them before training.
    `device` auto is CUDA when there is one; `dtype` auto is float32 on CPU and bfloat16 on CUDA.
    Raises InputError for an unknown spec, missing, damaged or pickled weights, too many layers, a device that
    is not there, and a model whose attention is not one that `attention` computes (tried on ten tokens).
    """
    transformers_logging.disable_progress_bar()
    source = resolve(spec)
    if dtype not in get_args(Dtype):
        raise InputError(f"unknown dtype {dtype!r}: choose from {', '.join(get_args(Dtype))}")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device {device} was asked for, but torch {torch.__version__} sees no GPU: use device cpu")
    dtype = _usual_dtype(device) if dtype == "auto" else dtype
    folder = _checkpoint_folder(source, layers, dtype)
    with named(folder, spec):
        model = load_weights(folder, layers, dtype, head) if seed is None else untrained(folder, layers, dtype, seed)
        tokenizer = _tokenizer(folder)
    if not tokenizer.is_fast:
        raise InputError(f"{spec}: its tokenizer gives no character offsets, so token spans cannot be exact")
    decoder_layers = getattr(model.get_decoder(), "layers", None)
    if decoder_layers is None:
        raise InputError(f"{spec}: model type {model.config.model_type} has no list of decoder layers")
    torch.nn.Module.to(model, device)
    model.eval()
    check_attention(model)
    fresh = "" if seed is None else f" untrained {seed}"
    names = source.name + fresh, spec, _revision(source, folder, layers) + fresh
    return Loaded(model, tokenizer, *names, device, dtype, len(decoder_layers), "" if fresh else source.weights)


def load_without_weights(spec: str, device: str, dtype: str = "auto") -> Loaded:
    """Return what `load` would on another machine's `device`, but for the weights, which are not fetched either."""
    source, dtype = resolve(spec), _usual_dtype(device) if dtype == "auto" else dtype
    folder = _checkpoint_folder(source, None, dtype, False)
    with named(folder, spec):
        model, tokenizer = without_weights(folder, dtype), _tokenizer(folder)
    names = source.name, spec, _revision(source, folder, None)
    layers = model.config.get_text_config().num_hidden_layers
    return Loaded(model, tokenizer, *names, device, dtype, layers, source.weights)


def _usual_dtype(device: str) -> str:
    return "float32" if device == "cpu" else "bfloat16"


@functools.lru_cache(maxsize=2)
def _tokenizer(folder: Path) -> Any:
    """Read a tokenizer once for all loads of a model, so that prompts made with it need not be made again."""
    with checkpoint_errors(folder):
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=False)


def _checkpoint_folder(source: Source, layers: int | None, dtype: str, weights: bool = True) -> Path:
    if source.gguf:
        return converted(source.gguf, dtype)
    if source.folder:
        return source.folder
    if layers is None:
        return hub.snapshot(source.repo, source.revision, weights)
    return hub.first_layers(source.repo, layers, source.revision)


def _revision(source: Source, folder: Path, layers: int | None) -> str:
    """Return the commit after which the hub's folders are named, else a digest of the checkpoint's files."""
    if source.repo:
        return folder.name if layers is None else folder.parent.name
    return ends_digest(sorted(folder.glob("*.safetensors")), (folder / "config.json").read_bytes())[:12]
