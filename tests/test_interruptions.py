"""Evaluation that is killed, interrupted or out of disk, as a whole: nothing is lost and nothing stands there twice."""

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

from lib import paths
from lib.__main__ import main
from lib.evaluation import store
from lib.evaluation.run import evaluate
from lib.profiles import Accuracy
from lib.prompts.conditions import Filler

# Where each of several runs dies: a function of os, which of its calls, and how far that comes. In this order they
# meet an empty folder, one with settings alone, half a line, its mending, whole lines, and all but the summary.
KILLS = [
    ("replace", 1, "before"),
    ("replace", 1, "after"),
    ("write", 1, "half"),
    ("ftruncate", 1, "before"),
    ("write", 5, "after"),
    ("write", 9, "half"),
    ("write", 20, "before"),
    ("replace", 1, "before"),
]
SECONDS = 100  # to wait for a process


@pytest.fixture(scope="module")
def processes():
    """What starts processes in a moment: one that has imported everything is forked for each."""
    context = multiprocessing.get_context("forkserver")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")  # the model is tiny: more threads would only wait for each other
        context.set_forkserver_preload(["lib.evaluation.run"])
        yield context


def begin(processes, work, *given):
    process = processes.Process(target=work, args=given)
    process.start()
    return process


def options(checkpoint):
    names = ("problems", "limit", "conditions", "format", "max_new_tokens", "elicit", "elicit_tokens")
    values = ("embedded", 8, ["none", "mless:5", "arm"], "plain", 12, True, 4)
    decoding = {"temperature": 0.9, "top_p": 0.9, "samples": 3, "batch_size": 7}
    return {"models": [str(checkpoint)], **dict(zip(names, values, strict=True)), **decoding}


def run(checkpoint, folder, call="", nth=0, reach=""):
    """Evaluate, to the end or to the nth call of a function of os; every such process continues the same run."""
    if call:
        killing = vars(os) | {call: dying(getattr(os, call), nth, reach)}
        store.os = paths.os = types.SimpleNamespace(**killing)
    evaluate(Accuracy(**options(checkpoint)), Filler(length=5), 0, folder)


def dying(function, nth, reach):
    """Return the function, of which the nth call kills the process: before it, after it, or with half its bytes."""
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


def lines(folder):
    return sorted((folder / "completions.jsonl").read_text().splitlines())


def test_kills_at_every_step_end_in_the_completions_of_an_undisturbed_run(processes, tiny_checkpoint, tmp_path):
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "killed"
    whole = begin(processes, run, tiny_checkpoint, undisturbed)
    for kill in KILLS:
        process = begin(processes, run, tiny_checkpoint, folder, *kill)
        process.join(SECONDS)
        assert process.exitcode == -signal.SIGKILL, kill
    last = begin(processes, run, tiny_checkpoint, folder)
    for process in (last, whole):
        process.join(SECONDS)
    assert last.exitcode == whole.exitcode == 0
    assert lines(folder) == lines(undisturbed) and len(lines(folder)) == 72
    assert (folder / "summary.json").read_text() == (undisturbed / "summary.json").read_text()


def command(checkpoint, folder):
    settings = ["--limit", "24", "--format", "plain", "--max-new-tokens", "60", "--batch-size", "4"]
    return ["evaluate", "--model", str(checkpoint), "--out", str(folder), "--conditions", "none,arm", *settings]


def type_command(arguments, shown, most=resource.RLIM_INFINITY):
    """Run the command line as a terminal does, in a group of its own; no file may have more than `most` bytes."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in a shell's background ignores
    os.dup2(os.open(shown, os.O_WRONLY | os.O_CREAT), sys.stderr.fileno())
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    sys.exit(main(arguments))


def completed(checkpoint, folder):
    """Run the command to its end and check that each of its keys is there once."""
    assert main(command(checkpoint, folder)) == 0
    keys = [json.loads(line)["key"] for line in lines(folder)]
    return len(keys) == len(set(keys)) == 48


def test_ctrl_c_twice_ends_in_one_line_and_keeps_what_is_done(processes, tiny_checkpoint, tmp_path):
    folder, shown = tmp_path / "out", tmp_path / "shown"
    process, file = (
        begin(processes, type_command, command(tiny_checkpoint, folder), shown),
        folder / "completions.jsonl",
    )
    while process.is_alive() and not (file.is_file() and file.read_text().count("\n") > 3):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the command
    time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):  # where the first was enough
        os.killpg(process.pid, signal.SIGINT)
    process.join(SECONDS)
    assert process.exitcode == 130 and "Traceback" not in shown.read_text()
    last = shown.read_text().splitlines()[-1]
    assert last == "interrupted: what is done is kept; run the same command again to continue"
    kept = lines(folder)
    assert len(kept) < 48 and completed(tiny_checkpoint, folder)
    assert set(kept) <= set(lines(folder))


def test_a_disk_that_fills_up_ends_in_one_line_and_is_recovered_from(processes, tiny_checkpoint, tmp_path):
    folder, shown = tmp_path / "out", tmp_path / "shown"
    process = begin(processes, type_command, command(tiny_checkpoint, folder), shown, 8 << 10)
    process.join(SECONDS)
    assert process.exitcode == 2 and "Traceback" not in shown.read_text()
    assert shown.read_text().splitlines()[-1] == (
        f"error: disk full at {folder / 'completions.jsonl'}: nothing lost; free space and run again"
    )
    kept = lines(folder)
    assert 0 < len(kept) < 48 and all(json.loads(line)["key"] for line in kept)
    assert completed(tiny_checkpoint, folder)
    assert set(kept) <= set(lines(folder))
