"""An evaluation that is killed, interrupted or stopped by a full disk loses no answer
and stores none twice.
"""

import contextlib
import itertools
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
import types

import pytest

from lib.files import atomic, row_store, text_files
from reproduction import paths
from reproduction.__main__ import main

# When each of several runs is killed: a function of os, the number of its call, and
# whether before, in the middle of, or after that call. In this order the folder is then
# empty, has only settings, a half-written line, a repaired line, and all but the
# summary.
KILLS = [
    ("replace", 1, "after"),
    ("write", 9, "half"),
    ("ftruncate", 1, "before"),
    ("write", 20, "after"),
    ("replace", 1, "before"),
]
SECONDS = 100  # to wait for a process
DRAWN = (
    "--limit 8 --conditions none,mless:5,arm --max-new-tokens 12 --elicit"
    " --elicit-tokens 4 --temperature 0.9 --top-p 0.9 --samples 3 --batch-size 7"
)
# Stopped by Ctrl-C, or by a limit of so many bytes per file; exit code and message.
STOPPED = [
    (None, 130, "interrupted: finished work is stored"),
    (8 << 10, 2, "error: disk full at "),
]
GREEDY = "--limit 24 --conditions none,arm --max-new-tokens 60 --batch-size 4"


@pytest.fixture
def begin(tiny_checkpoint, monkeypatch):
    """A function that starts `evaluate` in a separate process; `kill` is one of
    KILLS.
    """
    # Each process is forked from a server that has imported everything, to start fast.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["reproduction.evaluation.answer_run"])
    # The model is so tiny that more threads would only wait for each other.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def run(folder, options=GREEDY, kill=(), most=resource.RLIM_INFINITY):
        command = f"evaluate --model {tiny_checkpoint} --out {folder} --format plain"
        arguments = [*command.split(), *options.split()]
        given = (arguments, f"{folder}.shown", kill, most)
        process = context.Process(target=typed, args=given)
        process.start()
        return process

    return run


def typed(arguments, shown, kill, most):
    """Run the command line like a terminal, in a separate process group, with a limit
    of `most` bytes per file.
    """
    os.setsid()
    # Background jobs of a shell ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(shown, os.O_WRONLY | os.O_CREAT), sys.stderr.fileno())
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    if kill:
        name, *when = kill
        deadly = {name: dying(getattr(os, name), *when)}
        row_store.os = atomic.os = types.SimpleNamespace(**vars(os) | deadly)
    sys.exit(main(arguments))


def dying(function, nth, reach):
    """Return a function that calls another one and kills the process at the nth call:
    before it, after it, or after writing half of its bytes.
    """
    counted = itertools.count(1)

    def killing(*given):
        if next(counted) < nth:
            return function(*given)
        if reach == "half":
            function(given[0], given[1][: len(given[1]) // 2])
        elif reach == "after":
            function(*given)
        os.kill(os.getpid(), signal.SIGKILL)

    return killing


def ended(process):
    process.join(SECONDS)
    return process.exitcode


def lines(folder):
    return sorted((folder / "completions.jsonl").read_text().splitlines())


def test_a_run_killed_at_every_step_ends_with_the_completions_of_an_undisturbed_run(
    begin, tmp_path
):
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "killed"
    complete = begin(undisturbed, DRAWN)
    for kill in KILLS:
        assert ended(begin(folder, DRAWN, kill)) == -signal.SIGKILL, kill
    assert ended(begin(folder, DRAWN)) == ended(complete) == 0
    assert lines(folder) == lines(undisturbed)
    assert len(lines(folder)) == 72


def interrupted(begin, folder):
    """Return a run to which Ctrl-C was sent twice, to every process of the command."""
    process = begin(folder)
    file = folder / "completions.jsonl"
    while not file.is_file() or len(lines(folder)) < 4:
        assert process.is_alive()
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):  # if the first one was enough
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.02)
    return process


@pytest.mark.parametrize("most, code, said", STOPPED)
def test_ctrl_c_and_a_full_disk_end_a_run_in_one_line_and_it_continues(
    begin, tmp_path, most, code, said
):
    folder = tmp_path / "out"
    process = begin(folder, most=most) if most else interrupted(begin, folder)
    assert ended(process) == code
    shown = (tmp_path / "out.shown").read_text()
    assert "Traceback" not in shown
    assert shown.splitlines()[-1].startswith(said)
    kept = text_files.read(folder / "completions.jsonl")
    assert 0 < len(kept) < 48
    assert ended(begin(folder)) == 0
    rows = [json.loads(line) for line in lines(folder)]
    assert len(rows) == len({row["key"] for row in rows}) == 48
    assert all(row in rows for row in kept)


def test_an_interruption_while_the_command_starts_is_silent():
    code = (
        "import runpy, signal, sys\n"
        # A shell may start the tests with this signal ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'pydantic': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "runpy.run_module('reproduction', run_name='__main__')"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (130, "")
