"""The script for a short session on a GPU, and the steps that a second call repeats."""

import functools
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
import zipfile

import pytest

from lib.paths import ROOT
from lib.prompts.problems import load_problems

# A stand-in for Python that records each command; one of them may fail or hang.
PYTHON = f"""#!/usr/bin/env bash
[ "$2" = zipfile ] && exec {sys.executable} "$@"
echo "$*" >> "$CALLS"
case "$*" in
  *"$FAILS"*) exit 3 ;;
  *"$HANGS"*) trap "echo interrupted >> '$CALLS'; exit 130" INT
    for _ in $(seq 300); do sleep 0.1; done ;;
esac
"""
STEPS = {
    "parts": "benchmarks/gpu_parts.py",
    "bench": "benchmarks/gpu.py",
    "draws": "-m lib evaluate",
    "scores": "-m lib likelihood",
}


@pytest.fixture
def session(tmp_path):
    """A copy of the script, with a stand-in for Python."""
    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    (results / "gpu.csv").write_text("measured here\n")
    shutil.copy(ROOT / "benchmarks" / "gpu_session.sh", results.parent)
    stand_in = tmp_path / "python"
    stand_in.write_text(PYTHON)
    stand_in.chmod(0o755)
    return Session(tmp_path)


class Session:
    """Calls of the script in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.calls = folder / "calls"
        self.script = str(folder / "benchmarks" / "gpu_session.sh")

    def environment(self, fails="no step", hangs="no step", **settings):
        values = {"PYTHON": self.folder / "python", "CALLS": self.calls}
        values |= {"OUT": self.folder / "out"}
        values |= {"FAILS": STEPS.get(fails, fails), "HANGS": STEPS.get(hangs, hangs)}
        return os.environ | {name: str(values[name]) for name in values} | settings

    def run(self, **how):
        """Call the script and return its exit status and the steps that it began."""
        self.calls.unlink(missing_ok=True)
        done = subprocess.run(
            self.script, env=self.environment(**how), capture_output=True
        )
        return done.returncode, self.steps()

    def steps(self):
        calls = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [step for call in calls for step in STEPS if STEPS[step] in call]


def test_a_second_call_repeats_only_what_has_not_succeeded(session):
    assert session.run(fails="draws") == (3, ["parts", "bench", "draws"])
    assert session.run(fails="scores") == (3, ["draws", "scores"])
    assert session.run() == (0, ["scores"])
    assert session.run() == (0, [])
    assert session.run(OUT=str(session.folder / "other")) == (0, list(STEPS))


def test_a_rehearsal_leaves_out_what_needs_cuda(session):
    assert session.run(REHEARSE="1") == (0, ["parts", "draws", "scores"])
    parts, draws, _ = session.calls.read_text().splitlines()
    assert parts.endswith("--tiny")
    problems = session.folder / "out" / "problems.jsonl"
    assert f"--model demo --problems {problems}" in draws
    first, *_ = load_problems(str(problems))
    assert first.problem == r"What is $2 + 1$? It is $\boxed{3}$ or $\boxed{4}$."


def test_only_generation_continues_after_its_time_limit(session):
    status = session.run(hangs="parts", PARTS_SECONDS="0.3", fails="draws")
    assert status == (3, ["parts", "bench", "draws"])
    assert session.run(hangs="draws", DRAW_SECONDS="0.3") == (124, ["draws"])
    assert session.run() == (0, ["draws", "scores"])


def test_a_measurement_is_copied_to_the_output_once(session):
    kept = session.folder / "out" / "gpu.csv"
    assert session.run(fails="bench") == (0, list(STEPS))
    assert not kept.exists()
    assert session.run() == (0, ["bench"])
    assert kept.read_text() == "measured here\n"
    # A new machine has only the repository's file, which must not replace the output.
    (session.folder / "benchmarks" / "results" / "gpu.csv").write_text("older\n")
    session.run()
    assert kept.read_text() == "measured here\n"


def test_wheels_are_unpacked_whenever_they_arrive(session):
    (session.folder / ".whl").mkdir()
    for name in ("one", "two"):
        wheel = session.folder / ".whl" / f"{name}-1-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"shared/{name}.py", "")
        assert session.run(fails="draws")[0] == 3
        wheel.unlink()
    unpacked = (session.folder / ".site" / "shared").iterdir()
    assert sorted(path.name for path in unpacked) == ["one.py", "two.py"]


def _in_terminal(end):
    """Attach a terminal, and accept Ctrl-C, which background jobs of a shell ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.login_tty(end)


@pytest.mark.parametrize("step", ["parts", "draws"])
def test_ctrl_c_reaches_the_step_and_ends_the_script(session, step):
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        session.script,
        env=session.environment(hangs=step),
        preexec_fn=functools.partial(_in_terminal, end),
    )
    deadline = time.monotonic() + 30
    while step not in session.steps() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    os.write(terminal, b"\x03")
    assert process.wait(30) == 130
    assert session.calls.read_text().endswith("interrupted\n")
    assert session.steps()[-1] == step
    # The next call begins with the interrupted step.
    assert session.run()[1][0] == step


def test_a_table_is_made_from_the_lines_of_a_session_that_was_cut_off(
    tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import gpu_parts

    monkeypatch.setattr(gpu_parts, "RESULTS", tmp_path)
    log = tmp_path / "parts.log"
    log.write_text(
        "a warning\n"
        '{"device": "one GPU", "torch": "2", "transformers": "5"}\n'
        '{"shape": "0.5B", "dtype": "torch.float32", "way": "step", "rows": 660,'
        ' "ms": 35.242, "host_ms": 0.1234, "kernels": 1187, "longest": [["gemm", 1]]}\n'
        '{"shape": "0.5B", "dtype": "tor'
    )
    gpu_parts.write_table(log)
    assert (tmp_path / "gpu_parts.csv").read_text().splitlines() == [
        ",".join(gpu_parts.COLUMNS),
        "0.5B,float32,step,660,,,35.2,0.123,1187,one GPU,2,5",
    ]
