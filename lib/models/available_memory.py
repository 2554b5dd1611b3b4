"""Return the memory that this process may still use on this machine or in its job."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import torch

# The control groups of this process, and the folder of their files.
OWN_GROUPS = Path("/proc/self/cgroup")
ALL_GROUPS = Path("/sys/fs/cgroup")


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
