"""Find out on which device a model computes, and how long its context is."""

from typing import cast

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from lib.errors import InputError

# transformers' names for positions that change with the longest row of a batch, if it
# exceeds the original context.
EXTENDING = ("longrope", "dynamic")


def longest_context(config: PreTrainedConfig) -> int | None:
    """Return the maximum number of tokens of a prompt with its answer, by the config of
    a decoder; None if it names none.

    For positions of the types in EXTENDING it is the context before the extension,
    because beyond it the longest row of a batch would change the others.
    """
    rope = getattr(config, "rope_parameters", None) or {}
    # One for all layers, or one for each type of layer.
    for one in (rope, *rope.values()):
        extends = isinstance(one, dict) and one.get("rope_type") in EXTENDING
        if extends and "original_max_position_embeddings" in one:
            return one["original_max_position_embeddings"]
    return getattr(config, "max_position_embeddings", None)


def device_of(model: PreTrainedModel) -> torch.device:
    """Return the device on which a model computes, even if its weights are on disk."""
    devices = getattr(model, "hf_device_map", {}).values()
    if "disk" in devices and model.device.type == "meta":
        return torch.device("cpu")
    return model.device


def on_device(model: PreTrainedModel, input_ids: torch.Tensor) -> torch.Tensor:
    """Return token ids on the device on which a model computes.

    Raises InputError for an id beyond the model's embedding, which on a GPU would abort
    the process.
    """
    embedding = cast(torch.nn.Embedding, model.get_input_embeddings())
    size = len(embedding.weight)
    if input_ids.numel() and (largest := int(input_ids.max())) >= size:
        raise InputError(
            f"the tokenizer gives token {largest}, but the model's embedding ends with"
            f" token {size - 1}: use the tokenizer that belongs to these weights"
        )
    return input_ids.to(device_of(model))
