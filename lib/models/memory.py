"""How much memory this process may still take: the machine's, or a job's own limit."""

from collections.abc import Iterator
from pathlib import Path

import psutil

# Which control groups this process is in, and where their files lie.
OWN_GROUPS = Path("/proc/self/cgroup")
ALL_GROUPS = Path("/sys/fs/cgroup")
# Of what is free, that weights may take before they stay on disk.
SHARE_OF_MEMORY = 0.5
# By controller, which has no name in version 2: the files of a limit and of what is
# used, and what of that the kernel drops when it needs room.
FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
}


def free_memory(device: str = "cpu") -> int:
    """Return how many bytes of a device's memory a process may still take.

    A job of Slurm's or a container has a limit of its own, which may be set on any of
    the groups that it is in.
    """
    if device.startswith("cuda"):
        # Not above: what is stored is planned and drawn without torch.
        import torch

        # Else what an earlier batch gave back would count as taken.
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info(device)[0]
    return min([psutil.virtual_memory().available, *_left_by_limits()])


def _left_by_limits() -> Iterator[int]:
    """Yield what each limit on this process leaves."""
    if not OWN_GROUPS.is_file():  # another system than Linux
        return
    for line in OWN_GROUPS.read_text().splitlines():
        _, controller, group = line.split(":", 2)
        if controller not in FILES:
            continue
        limit, used, dropped = FILES[controller]
        # In a container the group's path may be one that only its host has.
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
    """Return what a group's memory is used for, in bytes."""
    file = folder / "memory.stat"
    if not file.is_file():
        return {}
    rows = [line.split() for line in file.read_text().splitlines()]
    return {name: int(size) for name, size in rows}
