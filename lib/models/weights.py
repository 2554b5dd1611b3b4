"""A model from its safetensors, whole or only what its first decoder layers need.

Decoder layers are recognised by name, whatever the family: `model.layers.12.`, `language_model.model.layers.3.`,
`transformer.h.0.`. Memory is the finished model plus one chunk: no file stays mapped beside it.

    model = load_weights(folder, layers=3, dtype="float32")
"""

import math
import re
from pathlib import Path
from typing import Any

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    GenerationConfig,
    PretrainedConfig,
    PreTrainedModel,
)

from lib.errors import InputError
from lib.models.checkpoints import LocalFiles, Tensor, few, read_tensor, stored_tensors
from lib.models.failures import checkpoint_errors

LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
NOT_THE_DECODER = re.compile(
    r"(?:^|\.)(?:lm_head|embed_out|visual|vision\w*|audio\w*|\w*projector|embed_vision|embed_audio)\."
)
TEXT_PREFIX = re.compile(r"^(?:model\.)?language_model\.(?:model\.)?")


def load_weights(folder: Path, layers: int | None, dtype: str, head: bool = True) -> PreTrainedModel:
    """Load a whole model or, without an output head, the embedding, the first `layers` layers and the final norm.

    Without `head` that is all of the layers. Raises InputError when the checkpoint does not hold what is needed.
    """
    files, target = LocalFiles(folder), getattr(torch, dtype)
    with checkpoint_errors(folder):
        if layers is None and not head:
            layers = read_config(files, None).get_text_config().num_hidden_layers
        config = read_config(files, layers)
        if layers is None:
            model_class, config = _whole(config)
            weights = {t.name: read_tensor(files, t, target) for t in stored_tensors(files)}
        else:
            model_class: Any = MODEL_MAPPING[type(config)]
            weights = {text_name(t.name): read_tensor(files, t, target) for t in needed_tensors(files, layers)}
        model, info = model_class.from_pretrained(
            None, config=config, state_dict=weights, dtype=target, output_loading_info=True
        )
        if layers is None:
            _settle(model, folder)
    # What is missing would be filled with random numbers and only a warning.
    if info["missing_keys"]:
        raise InputError(f"{folder}: the checkpoint lacks {few(info['missing_keys'])}")
    return model


def without_weights(folder: Path, dtype: str) -> PreTrainedModel:
    """Return a whole model that holds no weights, only what its folder says of it."""
    with checkpoint_errors(folder), torch.device("meta"):
        model_class, config = _whole(read_config(LocalFiles(folder), None))
        return _settle(model_class._from_config(config, dtype=getattr(torch, dtype)), folder)


def _whole(config: PretrainedConfig) -> tuple[Any, PretrainedConfig]:
    """Return the class with an output head, and the config it takes: of the language model alone, of several."""
    model_class: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    return model_class, config if model_class.config_class is type(config) else config.get_text_config()


def _settle(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Tell a whole model where it comes from and what ends its answers."""
    model.name_or_path = str(folder)
    if LocalFiles(folder).size("generation_config.json") is not None:
        model.generation_config = GenerationConfig.from_pretrained(folder)
    return model


def untrained(folder: Path, layers: int | None, dtype: str, seed: int) -> PreTrainedModel:
    """Return the decoder, or its first layers, with weights drawn as transformers draws them; none are read."""
    config = read_config(LocalFiles(folder), layers).get_text_config()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return AutoModel.from_config(config, dtype=getattr(torch, dtype))


def read_config(files: LocalFiles, layers: int | None) -> PretrainedConfig:
    """Return the model's config or, of its first layers, the decoder's own config cut to them."""
    if files.size("config.json") is None:
        raise InputError(f"{files.label}: no config.json, so this is not a model checkpoint")
    with checkpoint_errors(files.label):
        config = AutoConfig.from_pretrained(files.folder, trust_remote_code=False)
    return config if layers is None else _reduced(config, layers, files.label)


def _reduced(config: PretrainedConfig, layers: int, label: str) -> PretrainedConfig:
    text = config.get_text_config()
    total = text.num_hidden_layers
    if not 1 <= layers <= total:
        raise InputError(f"{label} has {total} layers; asked for the first {layers}")
    if text is not config:
        text.dtype = config.dtype
        decoder_class: Any = MODEL_MAPPING[type(text)]
        text.architectures = [decoder_class.__name__]
    text.num_hidden_layers = layers
    for name, value in list(vars(text).items()):
        if "layer" in name and isinstance(value, list) and len(value) == total:
            setattr(text, name, value[:layers])
    return text


def needed_tensors(files: LocalFiles, layers: int) -> list[Tensor]:
    """Return the tensors of embedding, first `layers` layers and final norm, in the order they lie in."""
    found = stored_tensors(files, lambda name: _needed(name, layers))
    numbers = {int(match[1]) for tensor in found if (match := LAYER.search(tensor.name))}
    if missing := sorted(set(range(layers)) - numbers):
        raise InputError(f"{files.label}: no weights found for layer {missing[0] + 1}")
    # Wide elements first keeps every tensor aligned once they stand in one file.
    return sorted(found, key=lambda t: (-t.size // max(math.prod(t.shape), 1), t.file, t.start))


def text_name(name: str) -> str:
    """Return a tensor's name in the decoder alone; it differs only inside a multimodal checkpoint."""
    return TEXT_PREFIX.sub("model.", name)


def _needed(name: str, layers: int) -> bool:
    if NOT_THE_DECODER.search(name):
        return False
    layer = LAYER.search(name)
    return layer is None or int(layer[1]) < layers
