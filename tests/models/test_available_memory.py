"""The free memory of a process under the limits of its job and of the machine."""

from types import SimpleNamespace

import psutil
import pytest

from lib.models import available_memory

FREE = 200  # free memory of the machine
SLURM = "0::/job/step"


def limited(group, limit, used):
    """Return the files of a control group with this limit and usage."""
    return {f"{group}/memory.max": limit, f"{group}/memory.current": used}


DROPPED = {"job/memory.stat": "anon 5\ninactive_file 20\n"}
# The control groups of a process, their files, and the free memory.
LIMITS = [
    (SLURM, limited("job/step", 100, 30), 70),
    (SLURM, limited("job", 100, 30), 70),
    (SLURM, limited("job", 1000, 30), FREE),
    (SLURM, limited("job", "max", 30), FREE),
    (SLURM, limited("job", 20, 30), 0),
    (SLURM, {}, FREE),
    # Systems other than Linux have no control groups.
    (None, {}, FREE),
    # A container sees its own group at the root, under the path of its host.
    (SLURM, limited(".", 100, 30), 70),
    # The smallest of several limits decides.
    (SLURM, limited("job/step", 100, 30) | limited("job", 110, 60), 50),
    # The kernel frees cached file content when memory is needed.
    (SLURM, limited("job", 100, 30) | DROPPED, 90),
]


@pytest.mark.parametrize("groups, files, free", LIMITS)
def test_free_memory_is_what_the_limits_of_a_job_and_the_machine_leave(
    tmp_path, monkeypatch, groups, files, free
):
    own = tmp_path / "cgroup"
    if groups:
        own.write_text(groups)
    monkeypatch.setattr(available_memory, "OWN_GROUPS", own)
    monkeypatch.setattr(available_memory, "ALL_GROUPS", tmp_path)
    machine = SimpleNamespace(available=FREE)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(content))
    assert available_memory.free_memory() == free
