"""What a machine has free, as its files and libraries say it."""

from types import SimpleNamespace

import psutil
import pytest
import torch
from huggingface_hub import constants

from lib.plan import machine
from lib.plan.machine import Machine, existing, processor, this_machine


def test_a_folder_that_is_yet_to_be_made_lies_where_the_next_one_above_does(tmp_path):
    assert existing(tmp_path) == tmp_path
    assert existing(tmp_path / "cache" / "hub" / "models") == tmp_path


@pytest.mark.parametrize(
    "has_gpu, expected",
    [(False, Machine("cpu", memory=7, disk=5)), (True, Machine("cuda", 3, disk=5))],
)
def test_free_are_the_memory_of_the_device_and_the_disk_of_the_hubs_cache(
    tmp_path, monkeypatch, has_gpu, expected
):
    disks = {str(tmp_path): SimpleNamespace(free=5, total=50)}
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(psutil, "disk_usage", lambda path: disks[path])
    monkeypatch.setattr(machine, "free_memory", lambda: 7)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (3, 30))
    assert this_machine() == expected


@pytest.mark.parametrize(
    "device, setting, dtype",
    [
        ("cpu", "auto", "float32"),
        ("cuda", "auto", "bfloat16"),
        ("cuda", "float16", "float16"),
    ],
)
def test_auto_stands_for_the_dtype_that_a_device_computes_in(device, setting, dtype):
    assert Machine(device, 0, 0).dtype(setting) == dtype


def test_a_processor_with_more_threads_is_another(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    names = set()
    for threads in (1, 2):
        monkeypatch.setattr(torch, "get_num_threads", lambda count=threads: count)
        names.add(processor())
    assert len(names) == 2
