"""A process may take what its job's limits and the machine leave."""

from types import SimpleNamespace

import psutil
import pytest

from lib.models import memory

FREE = 200  # that the machine has
# The lines of a process's groups, the files of these groups, and what is left.
SLURM = "0::/job/step"
VERSION_1 = "4:memory:/job\n0::/"
LIMITS = [
    (SLURM, {"job/step/memory.max": "100", "job/step/memory.current": "30"}, 70),
    (SLURM, {"job/memory.max": "100", "job/memory.current": "30"}, 70),
    (SLURM, {"job/memory.max": "1000", "job/memory.current": "30"}, FREE),
    (SLURM, {"job/memory.max": "max", "job/memory.current": "30"}, FREE),
    (SLURM, {"job/memory.max": "20", "job/memory.current": "30"}, 0),
    (SLURM, {}, FREE),
    # A container that has the path of its host.
    (SLURM, {"memory.max": "100", "memory.current": "30"}, 70),
    # The tightest of several counts.
    (
        SLURM,
        {
            "job/step/memory.max": "100",
            "job/step/memory.current": "30",
            "job/memory.max": "110",
            "job/memory.current": "60",
        },
        50,
    ),
    # What was read of files is dropped when room is needed.
    (
        SLURM,
        {
            "job/memory.max": "100",
            "job/memory.current": "30",
            "job/memory.stat": "anon 5\ninactive_file 20\n",
        },
        90,
    ),
    (
        VERSION_1,
        {
            "memory/job/memory.limit_in_bytes": "100",
            "memory/job/memory.usage_in_bytes": "30",
            "memory/job/memory.stat": "inactive_file 1\ntotal_inactive_file 20\n",
        },
        90,
    ),
]


@pytest.mark.parametrize("groups, files, free", LIMITS)
def test_a_job_has_what_its_limits_and_the_machine_leave(
    tmp_path, monkeypatch, groups, files, free
):
    own = tmp_path / "cgroup"
    own.write_text(groups)
    monkeypatch.setattr(memory, "OWN_GROUPS", own)
    monkeypatch.setattr(memory, "ALL_GROUPS", tmp_path)
    machine = SimpleNamespace(available=FREE)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert memory.free_memory() == free


def test_where_a_system_has_no_groups_the_machine_alone_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "none")
    monkeypatch.setattr(
        psutil, "virtual_memory", lambda: SimpleNamespace(available=FREE)
    )
    assert memory.free_memory() == FREE
