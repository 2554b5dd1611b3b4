"""A process may take what its job's limits and the machine leave."""

from types import SimpleNamespace

import psutil
import pytest

from lib.models import memory

FREE = 200  # that the machine has
SLURM = "0::/job/step"
VERSION_1 = "4:memory:/job\n0::/"


def limited(group, limit, used):
    """The files of a group that has this limit and uses so much."""
    return {f"{group}/memory.max": limit, f"{group}/memory.current": used}


DROPPED = {"job/memory.stat": "anon 5\ninactive_file 20\n"}
OF_VERSION_1 = {
    "memory/job/memory.limit_in_bytes": 100,
    "memory/job/memory.usage_in_bytes": 30,
    "memory/job/memory.stat": "inactive_file 1\ntotal_inactive_file 20\n",
}
# The lines of a process's groups, the files of these groups, and what is left.
LIMITS = [
    (SLURM, limited("job/step", 100, 30), 70),
    (SLURM, limited("job", 100, 30), 70),
    (SLURM, limited("job", 1000, 30), FREE),
    (SLURM, limited("job", "max", 30), FREE),
    (SLURM, limited("job", 20, 30), 0),
    (SLURM, {}, FREE),
    # Another system than Linux has no groups.
    (None, {}, FREE),
    # A container that has the path of its host.
    (SLURM, limited(".", 100, 30), 70),
    # The tightest of several counts.
    (SLURM, limited("job/step", 100, 30) | limited("job", 110, 60), 50),
    # What was read of files is dropped when room is needed.
    (SLURM, limited("job", 100, 30) | DROPPED, 90),
    (VERSION_1, OF_VERSION_1, 90),
]


@pytest.mark.parametrize("groups, files, free", LIMITS)
def test_a_job_has_what_its_limits_and_the_machine_leave(
    tmp_path, monkeypatch, groups, files, free
):
    own = tmp_path / "cgroup"
    if groups:
        own.write_text(groups)
    monkeypatch.setattr(memory, "OWN_GROUPS", own)
    monkeypatch.setattr(memory, "ALL_GROUPS", tmp_path)
    machine = SimpleNamespace(available=FREE)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(content))
    assert memory.free_memory() == free
