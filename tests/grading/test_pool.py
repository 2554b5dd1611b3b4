"""Bounds that only another process can keep: time, memory, a worker's own life."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psutil
import pytest

from lib.errors import InputError
from lib.grading import STATUSES, Grade, grade_many, pool
from lib.paths import ROOT

ENDLESS = "9^{9^{9^9}}"


def compared(gold, answer):
    """Let the worker of this thread compare two answers."""
    return pool._finished(Grade(False, answer, "math-verify"), (gold, answer))


def test_a_worker_is_bounded_and_what_ends_it_costs_one_answer(monkeypatch):
    assert compared("2x", "x+x").correct
    pid = pool._local.worker.pid
    limits = resource.prlimit(pid, resource.RLIMIT_AS)
    assert limits == (pool.MEMORY, pool.MEMORY)
    # An interrupt of the notebook does not reach it.
    assert os.getpgid(pid) == pid

    monkeypatch.setattr(pool, "SECONDS", 1)
    late = compared("12", ENDLESS)
    assert not late.correct
    assert late.method in STATUSES
    monkeypatch.undo()
    assert compared("3x", "x+2x") == Grade(True, "x+2x", "math-verify")

    # A worker is killed between two answers, and over one.
    pool._local.worker.kill()
    pool._local.worker.wait()
    assert compared("2x", "x+x").correct
    threading.Timer(0.5, pool._local.worker.kill).start()
    assert compared("12", ENDLESS).method == "crash"

    monkeypatch.setattr(pool.sys, "executable", "/bin/false")
    with pytest.raises(InputError, match="no grading worker starts"):
        compared("2x", "x+x")


# No guard of __main__, as in a notebook: a worker never imports what started it.
SCRIPT = r"""
from lib.grading import pool
assert pool.grade("2x", r"\boxed{x+x}").correct
pool.SECONDS = 2
hanging = [pool.submit("12", r"\boxed{9^{9^{9^9}}}") for _ in range(8)]
print("busy", flush=True)
hanging[-1].result()
"""


@pytest.mark.parametrize("answer, gold", [("5", "5"), ("x+2x", "3x"), ("", "5")])
def test_a_grade_says_whether_another_problem_follows_the_answer(answer, gold):
    response = rf"It is \boxed{{{answer}}}."
    assert not pool.grade(gold, response).run_on
    followed = pool.grade(gold, response + "\n\nProblem: What is 2 + 4?")
    assert followed.run_on
    assert replace(followed, run_on=False) == pool.grade(gold, response)


def test_workers_do_not_outlive_a_parent_that_is_killed():
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert parent.stdout.readline() == b"busy\n"
    time.sleep(1)
    workers = psutil.Process(parent.pid).children()
    parent.kill()
    parent.communicate()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert workers
    assert {process.status() for process in alive} <= {psutil.STATUS_ZOMBIE}


def test_grades_keep_their_order_in_threads_and_in_a_forked_child():
    # Every second one needs algebra.
    answers = [rf"\sqrt{{{n * n}}}" if n % 2 else str(n) for n in range(2, 10)]
    pairs = [(str(n), rf"\boxed{{{answer}}}") for n, answer in enumerate(answers, 2)]

    def in_order():
        grades = grade_many(pairs)
        same = [verdict.extracted for verdict in grades] == answers
        return same and all(verdict.correct for verdict in grades)

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(lambda _: in_order(), range(3)))
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if in_order() else 1)
    assert os.waitpid(child, 0)[1] == 0
