"""What this machine has free: memory, disk, and the device that computes."""

import os
from pathlib import Path
from typing import NamedTuple

import psutil
from huggingface_hub import constants

from lib.models.memory import free_memory


class Machine(NamedTuple):
    """What a plan holds its needs against; all sizes are in bytes."""

    device: str  # cpu or cuda
    memory: int  # free for weights: of the GPU where there is one
    disk: int  # free where the hub's cache lies

    def dtype(self, setting: str) -> str:
        """Return the dtype that a profile's setting stands for here."""
        if setting != "auto":
            return setting
        return "float32" if self.device == "cpu" else "bfloat16"


def this_machine() -> Machine:
    """Return what is free here and now."""
    # Not above: what is stored is planned and drawn without torch.
    import torch

    disk = psutil.disk_usage(str(existing(Path(constants.HF_HUB_CACHE)))).free
    if torch.cuda.is_available():
        free, _ = torch.cuda.mem_get_info()
        return Machine("cuda", free, disk)
    return Machine("cpu", free_memory(), disk)


def existing(folder: Path) -> Path:
    """Return the folder, or the nearest above it that exists."""
    while not folder.exists():
        folder = folder.parent
    return folder


def processor() -> str:
    """Return what speeds are kept under: another processor has others."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    capability = torch.backends.cpu.get_cpu_capability()
    threads = torch.get_num_threads()
    return f"{os.uname().machine} {capability}, {threads} threads"
