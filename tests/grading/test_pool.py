"""Bounds that only another process can keep: time, memory, and a worker that dies or outlives its parent."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from lib.errors import InputError
from lib.grading import STATUSES, Grade, grade, grade_many, pool
from lib.paths import ROOT


def boxed(answer: str) -> str:
    return rf"So the answer is $\boxed{{{answer}}}$."


def left(gold: str, answer: str) -> Grade:
    """Let the worker of this thread compare two answers."""
    return pool._finished(Grade(False, answer, "math-verify"), (gold, answer))


def alive(process: psutil.Process) -> bool:
    """Tell whether a process runs; one that has ended may stay a zombie."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("answer", ["9^{9^{9^9}}", "2^{63}!"], ids=["tower of powers", "huge factorial"])
def test_an_answer_that_takes_too_long_ends_in_a_status_and_the_next_is_graded(answer, monkeypatch):
    left("2x", "x+x")
    monkeypatch.setattr(pool, "SECONDS", 1)
    found = left("12", answer)
    assert not found.correct and found.method in STATUSES
    monkeypatch.undo()
    assert left("2x", "x+x").correct


def test_a_worker_has_its_memory_limited_and_a_group_of_its_own():
    left("2x", "x+x")
    pid = pool._local.worker[0].pid
    assert resource.prlimit(pid, resource.RLIMIT_AS) == (pool.MEMORY, pool.MEMORY)
    assert os.getpgid(pid) == pid


def test_a_killed_worker_is_replaced():
    assert left("2x", "x+x").correct
    process = pool._local.worker[0]
    process.kill()
    process.wait()
    assert left("3x", "x+2x") == Grade(True, "x+2x", "math-verify")


def test_a_worker_that_dies_over_an_answer_is_a_crash_of_that_answer_alone():
    assert left("2x", "x+x").correct
    threading.Timer(0.5, pool._local.worker[0].kill).start()
    assert left("12", "9^{9^{9^9}}").method == "crash"
    assert left("2x", "x+x").correct


# No guard of __main__, as in a notebook: a worker never imports what started it.
SCRIPT = r"""
from lib.grading import pool
assert pool.grade("2x", r"\boxed{x+x}").correct
pool.SECONDS = 2
hanging = [pool.submit("12", r"\boxed{9^{9^{9^9}}}") for _ in range(8)]
print("busy", flush=True)
hanging[-1].result()
"""


def test_workers_do_not_outlive_a_parent_that_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", SCRIPT], cwd=ROOT, stdout=subprocess.PIPE)
    assert parent.stdout.readline() == b"busy\n"
    time.sleep(1)
    workers = psutil.Process(parent.pid).children()
    parent.kill()
    parent.communicate()
    end = time.monotonic() + 60
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.1)
    assert workers and not any(map(alive, workers))


@pytest.mark.parametrize("program", ["/bin/false", "/no/such/program"])
def test_a_worker_that_never_starts_is_told_in_one_line(monkeypatch, program):
    monkeypatch.setattr(pool, "_local", threading.local())
    monkeypatch.setattr(pool.sys, "executable", program)
    with pytest.raises(InputError, match="no grading worker starts"):
        left("2x", "x+x")


def test_grades_keep_their_order_and_come_to_several_threads():
    found = {}

    def ask(n: int) -> None:
        # Every second answer needs algebra: both ways must end up in their places.
        answers = [rf"\sqrt{{{d * d}}}" if d % 2 else str(d) for d in range(n, n + 6)]
        found[n] = grade_many((str(d), boxed(answer)) for d, answer in enumerate(answers, n)), answers

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(2, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(2, 8))
    for grades, answers in found.values():
        assert [(one.correct, one.extracted) for one in grades] == [(True, answer) for answer in answers]


def test_a_forked_child_grades_with_a_pool_of_its_own():
    assert grade("2x", boxed("x+x")).correct
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if grade("3x", boxed("x+2x")).correct else 1)
    assert os.waitpid(child, 0)[1] == 0


BROKEN = {
    "nul": "\0" * 1000,
    "boxed surrogate": "\\boxed{12\ud800}",
    "backslashes": "\\" * 100_001,
    "braces": "{" * 100_000,
    "bare fraction": r"\boxed{\frac}",
    "sum": r"\boxed{" + "1+" * 499 + "}",
    "functions": r"\boxed{" + "a(" * 39 + "}",
}


@pytest.mark.parametrize("response", BROKEN.values(), ids=BROKEN.keys())
def test_broken_text_gets_a_grade(response):
    assert not grade("12", response).correct
