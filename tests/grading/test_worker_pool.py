"""Limits that only another process can enforce: time, memory, and a worker's crash."""

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import psutil
import pytest

from lib.grading import Grade, grade, grade_many, worker_pool
from lib.paths import ROOT


def workers(parent=None):
    children = psutil.Process(parent).children(recursive=True)
    return [child for child in children if "spawn_main" in command_of(child)]


def command_of(process):
    """Return the command line of a process; empty if it has ended meanwhile."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def test_a_pair_over_the_time_limit_costs_only_its_grade(monkeypatch):
    monkeypatch.setattr(worker_pool, "SECONDS", 0.5)
    assert grade("12", r"\boxed{9^{9^{9^9}}}").method == "timeout"
    monkeypatch.undo()
    assert grade("3x", r"\boxed{x+2x}") == Grade(True, "x+2x", "math-verify")


def test_a_killed_worker_costs_at_most_one_grade():
    assert grade("2x", r"\boxed{x+x}").correct
    limits = {resource.prlimit(one.pid, resource.RLIMIT_AS) for one in workers()}
    # Other workers may still be starting, without their limits.
    assert (worker_pool.MEMORY, worker_pool.MEMORY) in limits
    limits = {resource.prlimit(one.pid, resource.RLIMIT_CORE) for one in workers()}
    assert (0, 0) in limits
    for worker in workers():
        worker.kill()
    pairs = [("2x", r"\boxed{x+x}")] * 20
    methods = [graded.method for graded in grade_many(pairs)]
    assert methods.count("math-verify") >= 20 - (os.cpu_count() or 1)
    assert set(methods) <= {"math-verify", "crash"}


@pytest.mark.parametrize("refusal", [OSError("Invalid"), ValueError("exceeds")])
def test_a_worker_starts_even_if_the_system_refuses_its_limits(monkeypatch, refusal):
    def refuse(kind, limits):
        raise refusal

    monkeypatch.setattr(resource, "setrlimit", refuse)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(os, "environ", {})
    worker_pool._limit()
    assert os.environ["SYMPY_GROUND_TYPES"] == "python"


ENDLESS = r"""
from lib.grading import worker_pool
worker_pool.SECONDS = 2
print("busy", flush=True)
worker_pool.grade_many([("12", r"\boxed{9^{9^{9^9}}}")] * 8)
"""


def test_workers_do_not_outlive_a_parent_that_is_killed():
    command = [sys.executable, "-c", ENDLESS]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as parent:
        parent.stdout.readline()
        time.sleep(3)
        started = workers(parent.pid)
        parent.kill()
    _, alive = psutil.wait_procs(started, timeout=60)
    assert started
    assert {process.status() for process in alive} <= {psutil.STATUS_ZOMBIE}


def test_a_script_without_a_main_guard_runs_once(tmp_path):
    script = tmp_path / "script.py"
    lines = (
        "from lib.grading import grade",
        r"print(grade('2x', r'\boxed{x+x}').correct)",
    )
    script.write_text("\n".join(lines))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "True\n")


def test_a_process_of_multiprocessing_ends_after_it_has_graded():
    process = multiprocessing.get_context("spawn").Process(
        target=grade, args=("2x", r"\boxed{x+x}")
    )
    process.start()
    process.join(60)
    assert process.exitcode == 0


def test_one_line_says_that_no_grading_worker_starts(monkeypatch, refused):
    no_pool = Mock(side_effect=RuntimeError("no room"))
    monkeypatch.setattr(worker_pool, "_pool", no_pool)
    assert refused(grade, "2x", r"\boxed{x+x}") == "no grading worker starts: no room"


def test_grades_keep_their_order_in_threads_and_in_a_forked_child():
    # Every second answer needs algebra.
    answers = [rf"\sqrt{{{n * n}}}" if n % 2 else str(n) for n in range(2, 10)]
    pairs = [(str(n), rf"\boxed{{{answer}}}") for n, answer in enumerate(answers, 2)]

    def in_order():
        grades = grade_many(pairs)
        same = [graded.extracted for graded in grades] == answers
        return same and all(graded.correct for graded in grades)

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(lambda _: in_order(), range(3)))
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if in_order() else 1)
    assert os.waitpid(child, 0)[1] == 0
