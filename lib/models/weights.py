"""Build a model with the weights of a checkpoint, or with random weights as before
training.

Weights are read only from safetensors.
"""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.utils.logging import disable_progress_bar

from lib import paths
from lib.files.row_store import settings_key
from lib.models import available_memory
from lib.models.checkpoint import require_all_tensors, require_weights

# Prefix of the decoder's tensors in a multimodal checkpoint, and its replacement.
TEXT_PREFIX = {r"^(?:model\.)?language_model\.(?:model\.)?": "model."}


def random_model(
    config: transformers.PretrainedConfig, device: str, dtype: str, seed: int
) -> transformers.PreTrainedModel:
    """Return a decoder, without output head, with random weights from a seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = transformers.AutoModel.from_config(config, dtype=dtype)
    torch.nn.Module.to(model, device)
    return model.eval()


def checkpoint_model(
    folder: Path,
    config: transformers.PretrainedConfig,
    has_head: bool,
    device: str,
    dtype: str,
    offload: bool = False,
) -> transformers.PreTrainedModel:
    """Return a model with the weights of a checkpoint.

    has_head: whether the output head is loaded, too; otherwise only the decoder, which
    may have fewer layers than the checkpoint. offload: as in `lib.models.loading.load`.
    Raises InputError if the weights cannot be used or do not fit the config.
    """
    auto: Any = (
        transformers.AutoModelForCausalLM if has_head else transformers.AutoModel
    )
    layers = None if has_head else config.get_text_config().num_hidden_layers
    require_weights(folder)
    offloaded = settings_key(checkpoint=str(folder), dtype=dtype)
    with quiet():
        model, report = auto.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            device_map="auto" if offload else device,
            max_memory=_memory_for_weights(device) if offload else None,
            # For offloaded weights whose layout differs from the checkpoint's, such as
            # experts.
            offload_folder=paths.CACHE / "offload" / offloaded,
            key_mapping={} if has_head else TEXT_PREFIX,
            use_safetensors=True,
            # Mismatches are reported below, in one line.
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    require_all_tensors(report, f"{folder}: the checkpoint", layers)
    return model


def _memory_for_weights(device: str) -> dict[int | str, int]:
    """Return how many bytes weights may use, by accelerate's name of the device."""
    devices: dict[int | str, str] = {"cpu": "cpu"}
    if device.startswith("cuda"):
        devices = {torch.device(device).index or 0: device, **devices}
    return {
        key: int(available_memory.SHARE_OF_MEMORY * available_memory.free_memory(name))
        for key, name in devices.items()
    }


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings and progress bars of the libraries, such as those about tensors
    that a model does not need.
    """
    disable_progress_bar()
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
