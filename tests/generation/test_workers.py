"""Runs that lose workers, on a Ray cluster on this machine.

Each key is stored once, with the same text as without workers. `make test-ray` runs
these tests, which spend most of their time on starting Ray.
"""

import contextlib
import importlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

from lib import paths
from reproduction.__main__ import main

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="ray is not installed (make test-ray installs it)",
    ),
]
SECONDS_TO_END = 120  # after this time no process of a run may be left
LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
# So many problems that a run is still going when it is interrupted.
OPTIONS = (
    "--limit 64 --conditions none,mless:5,arm --format plain --max-new-tokens 12"
    " --elicit --batch-size 2 --gpus-per-worker 0"
)


def typed(model, folder, workers):
    """Return the arguments of a command that answers problems into a folder."""
    command = f"evaluate --model {model} --out {folder} --workers {workers}"
    return f"{command} {OPTIONS}".split()


def run(model, folder, workers=2):
    """Run that command and return its exit code."""
    return main(typed(model, folder, workers))


def lines(folder):
    """Return the lines that a run has written so far, sorted."""
    file = folder / "completions.jsonl"
    return sorted(file.read_text().splitlines()) if file.is_file() else []


@pytest.fixture(scope="module")
def expected(tiny_llama, tmp_path_factory):
    """The lines that a run without workers writes."""
    folder = tmp_path_factory.mktemp("alone")
    run(tiny_llama, folder, workers=0)
    return lines(folder)


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Give each worker one thread and the priority of all other processes."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # 15 otherwise


@pytest.fixture
def before_each_chunk(monkeypatch):
    """A function that makes workers call another one with the requests of each chunk
    before they begin it.
    """
    workers = importlib.import_module("lib.generation.workers")

    def install(happen):
        class Watched(workers.Worker):
            def complete(self, requests, sampling):
                happen(requests)
                return super().complete(requests, sampling)

        monkeypatch.setattr(workers, "Worker", Watched)

    return install


def die_once(folder):
    """Return a function that kills the first worker that begins a second chunk."""
    chunks = []

    def happen(requests):
        chunks.append(requests)
        if len(chunks) == 2 and not list(folder.iterdir()):
            (folder / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)

    return happen


def test_answers_equal_those_of_one_process_if_one_of_two_workers_is_killed(
    tiny_llama, tmp_path, expected, before_each_chunk, capfd
):
    killed = tmp_path / "killed"
    killed.mkdir()
    before_each_chunk(die_once(killed))
    assert run(tiny_llama, tmp_path / "out") == 0
    assert len(list(killed.iterdir())) == 1
    assert lines(tmp_path / "out") == expected
    assert "Traceback" not in capfd.readouterr().err


def test_a_chunk_that_kills_every_worker_is_skipped_and_retried_by_the_next_run(
    tiny_llama, tmp_path, expected, before_each_chunk, capsys
):
    bad = next(line for line in expected if '"condition": "mless:5"' in line)

    def happen(requests):
        if any(request.key in bad for request in requests):
            os.kill(os.getpid(), signal.SIGKILL)

    before_each_chunk(happen)
    out = tmp_path / "out"
    assert run(tiny_llama, out) == 1
    assert "error: 8 prompts failed;" in capsys.readouterr().err
    assert len(lines(out)) == len(expected) - 8
    assert bad not in lines(out)
    # Without the function that kills its workers the run completes.
    run(tiny_llama, out, workers=0)
    assert lines(out) == expected


def test_a_worker_with_other_weights_refuses(
    tiny_checkpoint, tmp_path, before_each_chunk, capsys
):
    file = tiny_checkpoint / "model.safetensors"
    changed = bytearray(file.read_bytes())
    changed[-1] ^= 1

    def happen(requests):
        # Both workers run this while the other may be reading the file.
        copy = tmp_path / str(os.getpid())
        copy.write_bytes(changed)
        copy.replace(file)

    before_each_chunk(happen)
    assert run(tiny_checkpoint, tmp_path / "out") == 2
    message = r"a worker refuses: the worker at [\d.]+ has revision \w+, this run"
    assert re.search(message, capsys.readouterr().err)


def listening_addresses(processes):
    """Return the addresses on which processes listen, ignoring those that have
    ended.
    """
    addresses = set()
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            for connection in process.net_connections("inet"):
                if connection.status == psutil.CONN_LISTEN:
                    addresses.add(connection.laddr.ip)
    return addresses


def test_an_interrupted_run_ends_its_cluster_and_can_be_continued(
    tiny_llama, tmp_path, expected
):
    folder = tmp_path / "out"
    others = {name: os.environ[name] for name in os.environ if name[:4] != "RAY_"}
    process = subprocess.Popen(
        [sys.executable, "-m", "reproduction", *typed(tiny_llama, folder, 2)],
        cwd=paths.ROOT,
        env=others | {"RAY_worker_niceness": "0"},
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    family, listening = [], set()
    while not lines(folder) and process.poll() is None:
        # Look at the processes before the first answer: the rest follows quickly.
        family = psutil.Process(process.pid).children(recursive=True)
        listening |= listening_addresses(family)
        time.sleep(0.05)
    # Like a terminal, send the signal to every process of the command.
    os.killpg(process.pid, signal.SIGINT)
    errors = process.communicate()[1]
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert listening
    assert listening <= LOOPBACK
    _, alive = psutil.wait_procs(family, SECONDS_TO_END)
    assert [one for one in alive if one.status() != psutil.STATUS_ZOMBIE] == []
    assert 0 < len(lines(folder)) < len(expected)
    run(tiny_llama, folder, workers=0)
    assert lines(folder) == expected


def test_an_unreachable_cluster_is_named_in_one_line(
    tiny_llama, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert run(tiny_llama, tmp_path / "out") == 2
    message = "error: the Ray cluster at 127.0.0.1:1 cannot be joined: .*refused"
    assert re.search(message, capsys.readouterr().err)
