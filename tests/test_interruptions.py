"""Evaluation that is killed, interrupted or out of disk, as a whole: nothing is lost
and nothing stands there twice.
"""

import contextlib
import itertools
import json
import multiprocessing
import os
import resource
import signal
import sys
import time
import types

import pytest

from lib.__main__ import main
from lib.files import atomic, store

# Where each of several runs dies: a function of os, which of its calls, and how far
# that comes. In this order they meet an empty folder, one with settings alone, half a
# line, its mending, and all but the summary.
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
# By Ctrl-C, or by a disk that takes no more than so many bytes of a file.
STOPPED = [
    (None, 130, "interrupted: finished work is stored"),
    (8 << 10, 2, "error: disk full at "),
]
GREEDY = "--limit 24 --conditions none,arm --max-new-tokens 60 --batch-size 4"


@pytest.fixture
def begin(tiny_checkpoint, monkeypatch):
    """Start `evaluate` in a process of its own; `kill` is one of KILLS."""
    # Processes start in a moment: one that has imported everything is forked for each.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lib.evaluation.run"])
    # The model is tiny: more threads would only wait for each other.
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
    """Run the command line as a terminal does, in a group of its own; no file may have
    more than `most` bytes.
    """
    os.setsid()
    # A job in a shell's background ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(shown, os.O_WRONLY | os.O_CREAT), sys.stderr.fileno())
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    if kill:
        name, *when = kill
        deadly = {name: dying(getattr(os, name), *when)}
        store.os = atomic.os = types.SimpleNamespace(**vars(os) | deadly)
    sys.exit(main(arguments))


def dying(function, nth, reach):
    """Return the function, of which the nth call kills the process: before it, after
    it, or with half its bytes.
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


def test_kills_at_every_step_end_in_the_completions_of_an_undisturbed_run(
    begin, tmp_path
):
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "killed"
    whole = begin(undisturbed, DRAWN)
    for kill in KILLS:
        assert ended(begin(folder, DRAWN, kill)) == -signal.SIGKILL, kill
    assert ended(begin(folder, DRAWN)) == ended(whole) == 0
    assert lines(folder) == lines(undisturbed)
    assert len(lines(folder)) == 72
    summary, expected = (place / "summary.json" for place in (folder, undisturbed))
    assert summary.read_text() == expected.read_text()


def interrupted(begin, folder):
    """Press Ctrl-C twice as a terminal does, for every process of the command."""
    process = begin(folder)
    file = folder / "completions.jsonl"
    while not file.is_file() or len(lines(folder)) < 4:
        assert process.is_alive()
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):  # where the first was enough
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.02)
    return process


@pytest.mark.parametrize("most, code, said", STOPPED)
def test_what_stops_a_run_ends_in_one_line_and_it_continues(
    begin, tmp_path, most, code, said
):
    folder = tmp_path / "out"
    process = begin(folder, most=most) if most else interrupted(begin, folder)
    assert ended(process) == code
    shown = (tmp_path / "out.shown").read_text()
    assert "Traceback" not in shown
    assert shown.splitlines()[-1].startswith(said)
    kept = store.read(folder / "completions.jsonl")
    assert 0 < len(kept) < 48
    assert ended(begin(folder)) == 0
    rows = [json.loads(line) for line in lines(folder)]
    assert len(rows) == len({row["key"] for row in rows}) == 48
    assert all(row in rows for row in kept)
