"""Bounds that only another process can keep: time, memory, and a worker that dies."""

import os
import signal
import time

import pytest

from lib.grading import STATUSES, Grade, GradingPool, grade, pool
from lib.grading.pool import Worker

HOSTILE = {
    "a tower of powers": "9^{9^{9^9}}",
    "a huge factorial": "2^{63}!",
}


def test_hostile_answers_end_with_a_status_within_11_seconds():
    begin = time.monotonic()
    with GradingPool() as workers:
        found = workers.map([("12", rf"\boxed{{{answer}}}") for answer in HOSTILE.values()])
    assert time.monotonic() - begin < 11
    assert [(one.correct, one.method in STATUSES) for one in found] == [(False, True)] * len(HOSTILE)


BROKEN = {
    "nul": "\0" * 1000,
    "surrogate": "\ud800",
    "boxed surrogate": "\\boxed{12\ud800}",
    "unclosed boxes": r"\boxed{" * 100_000,
    "backslashes": "\\" * 100_001,
    "braces": "{" * 100_000,
    "bare fraction": r"\boxed{\frac}",
}


@pytest.mark.parametrize("response", BROKEN.values(), ids=BROKEN.keys())
def test_broken_text_gets_a_grade(response):
    begin = time.monotonic()
    found = grade("12", response)
    assert time.monotonic() - begin < 11
    assert isinstance(found, Grade)
    assert not found.correct


def test_a_killed_worker_is_replaced():
    worker = Worker()
    try:
        assert worker.compare("2x", "x+x") == (True, "math-verify")
        os.kill(worker._process.pid, signal.SIGKILL)
        worker._process.wait()
        assert worker.compare("3x", "x+2x") == (True, "math-verify")
    finally:
        worker.close()


def test_a_worker_that_dies_over_an_answer_reports_a_crash_and_recovers(monkeypatch):
    worker = Worker()
    try:
        assert worker.compare("2x", "x+x") == (True, "math-verify")
        monkeypatch.setattr(worker, "_read_line", lambda seconds: (_ for _ in ()).throw(ConnectionError))
        assert worker.compare("2x", "x+x") == (False, "crash")
        monkeypatch.undo()
        assert worker.compare("2x", "x+x") == (True, "math-verify")
    finally:
        worker.close()


@pytest.mark.parametrize("program", ["/bin/false", "/no/such/program"])
def test_a_worker_that_never_starts_ends_in_a_status(monkeypatch, program):
    monkeypatch.setattr(pool.sys, "executable", program)
    with GradingPool() as workers, pytest.warns(UserWarning, match="no grading worker starts"):
        found = workers.map([("2x", r"\boxed{x+x}")] * 5)
    assert [(one.correct, one.method) for one in found] == [(False, "crash")] * 5
