"""Build a model with the weights of a checkpoint, or with random weights as before
training; and find the free memory, within the limit of a job.

Weights are read only from safetensors.
"""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import torch
import transformers
from transformers.utils.logging import disable_progress_bar

from lib import paths
from lib.files.row_store import settings_key
from lib.models.checkpoint import require_all_tensors, require_weights

# Prefix of the decoder's tensors in a multimodal checkpoint, and its replacement.
TEXT_PREFIX = {r"^(?:model\.)?language_model\.(?:model\.)?": "model."}
# The control groups of this process, and the folder of their files.
OWN_GROUPS = Path("/proc/self/cgroup")
ALL_GROUPS = Path("/sys/fs/cgroup")
# Share of the free memory that weights may use before they stay on disk.
SHARE_OF_MEMORY = 0.5


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
        key: int(SHARE_OF_MEMORY * free_memory(name)) for key, name in devices.items()
    }


def free_memory(device: str = "cpu") -> int:
    """Return how many bytes of a device's memory this process may still use.

    On a CPU, this is within the limit of a Slurm job or a container, which may be set
    on any of its control groups (version 2).
    """
    if device.startswith("cuda"):
        # Otherwise memory that torch keeps after a batch would count as used.
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info(device)[0]
    return min([psutil.virtual_memory().available, *_left_by_limits()])


def _left_by_limits() -> Iterator[int]:
    """Yield the number of bytes that each limit on this process leaves."""
    if not OWN_GROUPS.is_file():  # not Linux
        return
    group = OWN_GROUPS.read_text().rpartition("0::/")[2].strip()
    # In a container the group's path may exist only on the host.
    for above in (Path(group), *Path(group).parents):
        folder = ALL_GROUPS / above
        try:
            left = int((folder / "memory.max").read_text())
            left -= int((folder / "memory.current").read_text())
        except (OSError, ValueError):  # no limit on this one, or "max"
            continue
        yield max(0, left + _inactive_files(folder))


def _inactive_files(folder: Path) -> int:
    """Return the bytes of cached files of a group, which the kernel can reclaim."""
    file = folder / "memory.stat"
    rows = file.read_text().splitlines() if file.is_file() else []
    sizes = dict(row.split() for row in rows)
    return int(sizes.get("inactive_file", 0))


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
