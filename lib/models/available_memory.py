"""Return the memory that this process may still use on this machine or in its job."""

from collections.abc import Iterator
from pathlib import Path

import psutil

# The control groups of this process, and the folder of their files.
OWN_GROUPS = Path("/proc/self/cgroup")
ALL_GROUPS = Path("/sys/fs/cgroup")
# Share of the free memory that weights may use before they stay on disk.
SHARE_OF_MEMORY = 0.5
# By controller, which has no name in version 2: the files with the limit and the usage,
# and the part of the usage that the kernel can reclaim.
FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
}


def free_memory(device: str = "cpu") -> int:
    """Return how many bytes of a device's memory this process may still use.

    On a CPU, this is within the limit of a Slurm job or a container, which may be set
    on any of its control groups.
    """
    if device.startswith("cuda"):
        # Imported here, because stored results are planned and drawn without torch.
        import torch

        # Otherwise memory that torch keeps after a batch would count as used.
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info(device)[0]
    return min([psutil.virtual_memory().available, *_left_by_limits()])


def _left_by_limits() -> Iterator[int]:
    """Yield the number of bytes that each limit on this process leaves."""
    if not OWN_GROUPS.is_file():  # not Linux
        return
    for line in OWN_GROUPS.read_text().splitlines():
        _, controller, group = line.split(":", 2)
        if controller not in FILES:
            continue
        limit, used, dropped = FILES[controller]
        # In a container the group's path may exist only on the host.
        path = Path(group.lstrip("/"))
        for above in (path, *path.parents):
            folder = ALL_GROUPS / controller / above
            try:
                left = int((folder / limit).read_text())
                left -= int((folder / used).read_text())
            except (OSError, ValueError):  # no limit on this one, or "max"
                continue
            yield max(0, left + _statistics(folder).get(dropped, 0))


def _statistics(folder: Path) -> dict[str, int]:
    """Return the parts of a group's memory usage, in bytes."""
    file = folder / "memory.stat"
    if not file.is_file():
        return {}
    rows = [line.split() for line in file.read_text().splitlines()]
    return {name: int(size) for name, size in rows}
