"""A checkpoint's weights in a model of transformers: all, the first layers, or none.

Weights come from safetensors alone and no code is taken from a checkpoint.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from accelerate import init_empty_weights
from safetensors import safe_open

from lib.errors import InputError
from lib.models.checkpoint import is_needed, require_config, shards_of
from lib.models.load_errors import checkpoint_errors

# Of the decoder's tensors in a multimodal checkpoint.
TEXT_PREFIX = re.compile(r"^(?:model\.)?language_model\.(?:model\.)?")


def load_weights(
    folder: Path,
    layers: int | None,
    dtype: str,
    head: bool = True,
    seed: int | None = None,
) -> transformers.PreTrainedModel:
    """Load a whole model or, without an output head, the embedding, the first `layers`
    layers and the final norm.

    Without `head` that is all of the layers. With a `seed` weights are drawn as the
    family draws them before training. Raises InputError when the checkpoint does not
    hold what is needed.
    """
    whole = layers is None and head and seed is None
    require_config(folder)
    with checkpoint_errors(folder):
        config = _read_config(folder)
        decoder_config = _cut(config, layers, folder)
        model_class, config = _model_class(config, whole)
        number_format = getattr(torch, dtype)
        if seed is not None:
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                return model_class._from_config(config=config, dtype=number_format)

        wanted = None if whole else decoder_config.num_hidden_layers
        weights = read_tensors(folder, wanted, number_format)
        model = _of_tensors(model_class, config, weights, number_format, folder)
        if whole:
            _tell_origin(model, folder)
    return model


def filled(
    empty: transformers.PreTrainedModel, folder: Path, dtype: str
) -> transformers.PreTrainedModel:
    """Return an `empty_model` with the weights of its checkpoint.

    Its config is not read again. Raises InputError as `load_weights` does.
    """
    number_format = getattr(torch, dtype)
    with checkpoint_errors(folder):
        weights = read_tensors(folder, None, number_format)
        model = _of_tensors(type(empty), empty.config, weights, number_format, folder)
    model.name_or_path = str(folder)
    model.generation_config = empty.generation_config
    return model


def _of_tensors(
    model_class: Any,
    config: transformers.PretrainedConfig,
    weights: dict[str, torch.Tensor],
    dtype: torch.dtype,
    folder: Path,
) -> transformers.PreTrainedModel:
    """Return a model of these tensors of a checkpoint; InputError where some lack."""
    model, report = model_class.from_pretrained(
        None,
        config=config,
        dtype=dtype,
        state_dict=weights,
        output_loading_info=True,
    )
    require_whole(report, f"{folder}: the checkpoint")
    return model


def empty_model(folder: Path, dtype: str) -> transformers.PreTrainedModel:
    """Return the whole model of a checkpoint without any weights, which stay on disk.

    What is computed from its config, such as rotary frequencies, is there. Raises
    InputError for what is no checkpoint.
    """
    require_config(folder)
    with checkpoint_errors(folder):
        model_class, config = _model_class(_read_config(folder), whole=True)
        with init_empty_weights(include_buffers=False):
            model = model_class._from_config(config=config, dtype=getattr(torch, dtype))
        model.tie_weights()
        _tell_origin(model, folder)
    return model.eval()


def read_tensors(
    folder: Path, layers: int | None, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    """Return the tensors of a checkpoint, or of its first layers, floating-point ones
    in `dtype`.

    Only their shards are opened: of a fetched checkpoint the others are missing. They
    are copies: what stays mapped to a file would change with it, and differ in how it
    is aligned.
    """
    weights = {}
    for shard in shards_of(folder, layers):
        path = folder / shard
        with checkpoint_errors(path), safe_open(path, "pt") as stored:
            for name in stored.keys():  # noqa: SIM118
                if is_needed(name, layers):
                    plain = TEXT_PREFIX.sub("model.", name) if layers else name
                    weights[plain] = _copied(stored.get_tensor(name), name, path, dtype)
    return weights


def read_from_shards(
    folder: Path, shards: Mapping[str, str], dtype: torch.dtype | None
) -> dict[str, torch.Tensor]:
    """Return, as `read_tensors` does, these tensors, whose shards are given by name;
    None keeps the dtype that is stored.
    """
    weights = {}
    for shard in sorted(set(shards.values())):
        path = folder / shard
        with checkpoint_errors(path), safe_open(path, "pt") as stored:
            for name, place in shards.items():
                if place == shard:
                    weights[name] = _copied(stored.get_tensor(name), name, path, dtype)
    return weights


def _copied(
    tensor: torch.Tensor, name: str, path: Path, dtype: torch.dtype | None
) -> torch.Tensor:
    """Return a copy of a stored tensor, a floating-point one in `dtype`; InputError for
    one that is quantised.
    """
    if tensor.itemsize == 1 and tensor.dtype != torch.bool:
        raise InputError(
            f"{path.parent}: {name} is quantised to {tensor.dtype}, which is not"
            " supported"
        )
    return tensor.to(dtype if tensor.is_floating_point() else None, copy=True)


def require_whole(report: Mapping[str, Collection[str]], holder: str) -> None:
    """Raise InputError where transformers reports tensors that were not there, which it
    would fill with random numbers and only a warning.
    """
    missing = sorted(report["missing_keys"])
    if missing:
        raise InputError(
            f"{holder} lacks {len(missing)} tensors, the first is {missing[0]}"
        )


def _read_config(folder: Path) -> transformers.PretrainedConfig:
    return transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)


def _model_class(
    config: transformers.PretrainedConfig, whole: bool
) -> tuple[Any, transformers.PretrainedConfig]:
    """Return the class of a model, with or without an output head, and its config.

    Of a model that also sees pictures it is the language model alone, if there is one.
    """
    decoder_config = config.get_text_config()
    with_head: Any = transformers.MODEL_FOR_CAUSAL_LM_MAPPING
    without_head: Any = transformers.MODEL_MAPPING
    if whole:
        model_class = with_head[type(config)]
    else:
        model_class = without_head[type(decoder_config)]
    if model_class.config_class is type(config):
        return model_class, config
    return model_class, decoder_config


def _cut(
    config: transformers.PretrainedConfig, layers: int | None, folder: Path
) -> transformers.PretrainedConfig:
    """Let a config describe the first layers alone, and return its decoder's part.

    Raises InputError for layers that the model lacks.
    """
    decoder_config = config.get_text_config()
    if layers is None:
        return decoder_config
    total = decoder_config.num_hidden_layers
    if not 1 <= layers <= total:
        raise InputError(f"{folder} has {total} layers; asked for the first {layers}")
    for name, value in list(vars(decoder_config).items()):
        is_per_layer = isinstance(value, list) and len(value) == total
        if "layer" in name and is_per_layer:
            setattr(decoder_config, name, value[:layers])
    decoder_config.num_hidden_layers = layers
    return decoder_config


def _tell_origin(model: transformers.PreTrainedModel, folder: Path) -> None:
    """Tell a whole model where it comes from and what ends its answers."""
    model.name_or_path = str(folder)
    if (folder / "generation_config.json").is_file():
        model.generation_config = transformers.GenerationConfig.from_pretrained(folder)
