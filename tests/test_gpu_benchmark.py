"""What `make gpu` would measure, on tiny models: every row, and in which order."""

import ast
import json
import re
import subprocess
import sys
from unittest.mock import Mock

import pytest
import torch
from pretend_gpu import PretendGpu

from lib.paths import ROOT

sys.path.append(str(ROOT / "benchmarks"))
gpu = pytest.importorskip("gpu")
import gpu_decode  # noqa: E402 (as scripts that stand in one folder import each other)
import gpu_device  # noqa: E402
import gpu_rows  # noqa: E402

pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="a real GPU is measured by make gpu"
)
# What the Python of a node has that has torch and transformers.
NODE = {
    *("accelerate", "huggingface_hub", "lazy_loader", "numpy", "packaging", "pandas"),
    *("psutil", "safetensors", "scipy", "tokenizers", "torch", "tqdm", "transformers"),
    *("xarray", "yaml"),
}


@pytest.fixture
def quick(monkeypatch):
    """Rows that time a call once, and start no tests of their own and no profiler."""
    monkeypatch.setattr(gpu_decode, "kernels_of", lambda device, step: {})
    monkeypatch.setattr(gpu_device, "PATIENCE", 0)
    monkeypatch.setattr(gpu_decode, "STEPS", 2)
    monkeypatch.setattr(gpu_decode, "IN_A_ROW", 2)
    ended = Mock(returncode=0, stdout="20 passed", stderr="")
    run = Mock(return_value=ended)
    monkeypatch.setattr(gpu_rows.subprocess, "run", run)
    return run


def names():
    return [name for name, _ in gpu.rows(gpu_device.Gpu("cpu"))]


def test_the_first_decode_and_extraction_rows_come_before_the_tests():
    kinds = [name.partition(",")[0] for name in names()]
    assert kinds[:2] == ["versions", "decode"]
    assert kinds.index("decode") < kinds.index("extraction") < kinds.index("tests")


def test_no_two_rows_have_the_same_name():
    assert len({*names()}) == len(names())


def test_its_tests_take_four_minutes_at_most(quick):
    assert gpu_rows.tests(gpu_device.Gpu("cpu")) == {"ended": "20 passed"}
    assert quick.call_args.kwargs["timeout"] == 240


def test_tests_that_take_longer_are_an_error_and_no_end(quick):
    quick.side_effect = subprocess.TimeoutExpired("pytest", 240)
    row = gpu.measured(lambda: gpu_rows.tests(gpu_device.Gpu("cpu")))
    assert row["error"].startswith("TimeoutExpired")
    assert "240" in row["error"]


def test_every_row_runs_on_a_gpu(quick, monkeypatch):
    """A GPU that is not there: its numbers say nothing, but every line has run."""
    # Other threads would see no GPU.
    monkeypatch.setenv("HF_DEACTIVATE_ASYNC_LOAD", "1")
    errors = {}
    with PretendGpu():
        for name, measure in gpu.rows(gpu_device.Gpu("cuda", large=False)):
            row = gpu.measured(measure)
            json.dumps(row)
            if "error" in row:
                errors[name] = row["error"]
    assert not errors


def test_tokens_that_are_fed_back_are_those_that_the_host_would_feed(monkeypatch):
    device = gpu_device.Gpu("cpu")
    steps = gpu_decode.steps_of(device, gpu_device.QWEN, 3)
    fed = [[1, 1, 1]]
    for _ in range(4):
        fed.append(steps(fed[-1]).argmax(-1).tolist())

    read = []

    def of_step(gpu, steps, step):
        read.extend(step() for _ in fed)
        return {}

    monkeypatch.setattr(gpu_decode, "_of_step", of_step)
    gpu_decode.decode_fed_back(device, gpu_device.QWEN, 3)
    assert read == fed


def test_a_run_goes_on_with_what_is_missing(tmp_path, monkeypatch, capsys):
    calls = []

    def measure(name):
        calls.append(name)
        return {"seconds": 0.5}

    three = [(name, lambda name=name: measure(name)) for name in ("a", "b", "c")]
    monkeypatch.setattr(gpu, "rows", lambda device: three)
    for only in ("b", ""):
        command = ["gpu.py", f"--out={tmp_path}", "--device=cpu", f"--only={only}"]
        monkeypatch.setattr(sys, "argv", command)
        assert gpu.main() == 0
    assert calls == ["b", "a", "c"]

    # One that ended the process twice is left out.
    file = gpu.RowsFile(tmp_path / "other")
    for _ in range(2):
        assert file.is_due("a")
        file.write({"row": "a", "begun": "12:00:00"})
        file = gpu.RowsFile(tmp_path / "other")
    assert not file.is_due("a")


def test_no_row_begins_after_the_time_is_over(tmp_path, monkeypatch, capsys):
    measure = Mock(return_value={})
    monkeypatch.setattr(gpu, "rows", lambda device: [("a", measure)])
    command = ["gpu.py", f"--out={tmp_path}", "--device=cpu", "--minutes=0"]
    monkeypatch.setattr(sys, "argv", command)
    assert gpu.main() == 0
    measure.assert_not_called()
    assert "start it again to go on" in capsys.readouterr().out


def test_the_guide_says_how_rows_come_back_and_what_each_decides():
    guide = (ROOT / "CLUSTER.md").read_text()
    assert "--out $OUT" in guide
    table = guide.partition("What the rows decide")[2]
    decided = re.findall(r"^\| .*", table, re.MULTILINE)
    words = " ".join(decided)
    for kind in {name.partition(",")[0] for name in names()} - {"versions"}:
        assert f"`{kind}`" in words, kind


def files_of(module):
    """Return where a module of this repository lies, also a benchmark; else nothing."""
    name = module.replace(".", "/")
    places = [f"{name}.py", f"{name}/__init__.py", f"benchmarks/{name}.py"]
    return [ROOT / place for place in places if (ROOT / place).exists()]


def packages_of(path, seen):
    """Return what a file imports of others, at its top and through its own kind."""
    seen.add(path)
    modules = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module)
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            modules |= {module for module in inner if files_of(module)}

    packages = {module.partition(".")[0] for module in modules if not files_of(module)}
    for module in modules:
        for own in files_of(module):
            if own not in seen:
                packages |= packages_of(own, seen)
    return packages


def test_the_folder_for_a_node_holds_what_the_node_lacks():
    needed = packages_of(ROOT / "benchmarks" / "gpu.py", set())
    listed = (ROOT / "requirements" / "gpu.txt").read_text().splitlines()
    assert "torch" in needed
    assert needed - {*sys.stdlib_module_names} - NODE <= {*listed}
