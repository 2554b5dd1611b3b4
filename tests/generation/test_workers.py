"""Runs whose workers, nodes or driver are lost, on a Ray cluster of two nodes: each key
once, texts as without workers.

`make test-ray` runs them. Each fault is drawn at SEEDS moments; the model is tiny, so
most of their time Ray starts.
"""

import contextlib
import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest

from lib import paths
from lib.errors import InputError, PartlyDone
from lib.evaluation.run import evaluate
from lib.generation import workers_class
from lib.profiles import Accuracy
from lib.prompts.conditions import Filler

MISSING = "ray is not installed (make test-ray installs it)"
pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason=MISSING),
]
SEEDS = range(4)
# seconds after which no process may be left: for 60 Ray's agents look for a cluster
# that was killed
GONE = 120
# of a node or a command: Ray gives a node 30 s to start, which may be too little beside
# other work
STARTS = 3
LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
NAME = "~/tiny-llama"  # whose folder is another one on each node
CONDITIONS = ["none", "mless:5", "arm"]
PROBLEMS = 24  # enough that no run is over before what is to happen to it has


@pytest.fixture(scope="module")
def homes(tmp_path_factory, tiny_llama):
    """The home folders of driver and nodes, each with a copy of the checkpoint."""
    folders = [tmp_path_factory.mktemp(name) for name in ("driver", "first", "second")]
    for folder in folders:
        shutil.copytree(tiny_llama, folder / "tiny-llama")
    return folders


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv(
            "RAY_worker_niceness", "0"
        )  # 15 otherwise: behind all other work of a busy machine
        workers_class()  # before Ray is imported: it sets what Ray reads then
        made = importlib.import_module("ray.cluster_utils").Cluster()
        yield made
        made.shutdown()


@pytest.fixture
def joined(cluster, homes, monkeypatch):
    """Let runs use the cluster, of two nodes on this machine's loopback; the checkpoint
    is the driver's copy.
    """
    for home in homes[
        1 + (cluster.head_node is not None) + len(cluster.worker_nodes) :
    ]:
        for start in range(1, STARTS + 1):
            before = psutil.Process().children()
            try:
                cluster.add_node(num_cpus=1, env_vars={"HOME": str(home)})
                break
            except Exception as error:
                for child in set(psutil.Process().children()) - set(before):
                    child.kill()
                if start == STARTS or "timed out during startup" not in str(error):
                    raise
    monkeypatch.setenv("HOME", str(homes[0]))
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    return cluster


@pytest.fixture
def pids(tmp_path, monkeypatch):
    """A folder with a file for each worker that has started; all of them must be gone
    soon after the test.
    """
    folder = tmp_path / "pids"
    folder.mkdir()
    at_each_completion(monkeypatch, folder, lambda requests, n: None)
    yield folder
    assert left([int(path.name) for path in folder.iterdir()]) == set()


def at_each_completion(monkeypatch, folder, fault):
    """Let workers write down who they are, and call `fault(requests, completions so
    far)` before each completion.
    """
    workers = importlib.import_module("lib.generation.workers")

    class Told(workers.Worker):
        def prepare(self, *given):
            (folder / str(os.getpid())).touch()
            yield from super().prepare(*given)

        def complete(self, requests):
            for n, completion in enumerate(super().complete(requests)):
                fault(requests, n)
                yield completion

    monkeypatch.setattr(workers, "Worker", Told)


def left(pids):
    """Return which processes have not ended in time; a zombie has."""
    limit = time.monotonic() + GONE
    while True:
        running = {
            one.pid
            for one in psutil.process_iter(["status"])
            if one.info["status"] != psutil.STATUS_ZOMBIE
        }
        if not running & {*pids} or time.monotonic() > limit:
            return running & {*pids}
        time.sleep(0.2)


def run(folder, workers=2, model=NAME):
    settings = {
        "limit": PROBLEMS,
        "conditions": CONDITIONS,
        "format": "plain",
        "max_new_tokens": 12,
        "elicit": True,
    }
    asked = Accuracy(
        models=[str(model)],
        **settings,
        batch_size=2,
        workers=workers,
        gpus_per_worker=0,
    )
    return evaluate(asked, Filler(length=5), 0, folder)


def lines(folder):
    file = folder / "completions.jsonl"
    return sorted(file.read_text().splitlines()) if file.is_file() else []


@pytest.fixture(scope="module")
def expected(homes, tmp_path_factory):
    """What a run without workers writes."""
    folder = tmp_path_factory.mktemp("alone")
    run(folder, workers=0, model=homes[0] / "tiny-llama")
    return lines(folder)


@pytest.mark.parametrize("loss", ["worker", "node", "engine"])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_lost_is_replaced_or_done_without(
    seed, loss, joined, tmp_path, pids, expected, monkeypatch
):
    draw, workers = random.Random(seed), workers_class()
    complete, moment = workers.complete, draw.randrange(2 * PROBLEMS)

    def losing(self, *given):
        for n, completion in enumerate(complete(self, *given)):
            if n == moment and loss == "worker":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(
                        int(draw.choice(sorted(pids.iterdir())).name), signal.SIGKILL
                    )
            elif n == moment and loss == "node":
                joined.remove_node(
                    min(joined.worker_nodes, key=id), allow_graceful=False
                )
            yield completion

    def fault(requests, n):
        if n == seed % 4 and loss == "engine":
            with contextlib.suppress(FileExistsError):  # once, in whatever process
                (tmp_path / "failed").mkdir()
                raise RuntimeError("device-side assert")

    at_each_completion(monkeypatch, pids, fault)
    monkeypatch.setattr(workers, "complete", losing)
    run(tmp_path / "out")
    assert lines(tmp_path / "out") == expected and (tmp_path / "failed").is_dir() == (
        loss == "engine"
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_node_with_another_revision_is_refused(
    seed, joined, homes, tmp_path, pids, expected, monkeypatch
):
    file = homes[1 + seed % 2] / "tiny-llama" / "model.safetensors"
    whole = file.read_bytes()
    at_each_completion(
        monkeypatch, pids, lambda requests, n: time.sleep(1)
    )  # that the other is not done before
    try:
        file.write_bytes(
            whole[: -1 - seed]
            + bytes([whole[-1 - seed] ^ 1])
            + whole[len(whole) - seed :]
        )
        with pytest.raises(
            InputError,
            match=r"the worker at 127.0.0.1 has revision \w+, this run ~/tiny-llama",
        ):
            run(tmp_path / "out")
    finally:
        file.write_bytes(whole)
    run(tmp_path / "out", workers=0)
    assert lines(tmp_path / "out") == expected


def test_prompt_that_kills_its_worker_three_times_is_named_alone(
    joined, tmp_path, pids, expected, monkeypatch
):
    bad = json.loads(expected[5])["key"]

    def fault(requests, n):
        if any(request.key == bad for request in requests):
            (tmp_path / f"killed-{os.getpid()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    at_each_completion(monkeypatch, pids, fault)
    with pytest.raises(PartlyDone, match=r"1 prompts failed, see .*failed.jsonl"):
        run(tmp_path / "out")
    failed = json.loads((tmp_path / "out" / "failed.jsonl").read_text())
    assert failed["key"] == bad and len(list(tmp_path.glob("killed-*"))) == 3
    assert lines(tmp_path / "out") == [
        line for line in expected if json.loads(line)["key"] != bad
    ]
    run(tmp_path / "out", workers=0)
    assert (
        lines(tmp_path / "out") == expected
        and not (tmp_path / "out" / "failed.jsonl").exists()
    )


def start(checkpoint, folder, count):
    """Run the command in a process of its own, with workers of this machine; return it
    and all that it has started.

    They listen to this machine alone, and so many completions are written.
    """
    command = (
        f"{sys.executable} -m lib evaluate --model {checkpoint} --out {folder} --limit"
        f" {PROBLEMS} --format plain"
    )
    command += (
        f" --conditions {','.join(CONDITIONS)} --max-new-tokens 12 --elicit"
        " --filler-length 5 --batch-size 2"
    )
    command += " --workers 2 --gpus-per-worker 0"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("RAY_")
    }
    environment |= {"OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0"}
    told = {
        "cwd": paths.ROOT,
        "env": environment,
        "stderr": subprocess.PIPE,
        "text": True,
        "start_new_session": True,
    }
    for tries in range(1, STARTS + 1):
        process = subprocess.Popen(
            command.split(),
            **told,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        while len(lines(folder)) < count and process.poll() is None:
            time.sleep(0.01)
        if process.poll() is None:
            break
        shown = process.communicate()[1]
        assert tries < STARTS and "Ray did not start here" in shown, shown
    family = [
        process.pid,
        *(child.pid for child in psutil.Process(process.pid).children(recursive=True)),
    ]
    listening = [
        c
        for c in psutil.net_connections("inet")
        if c.status == psutil.CONN_LISTEN and c.pid in family
    ]
    assert listening and {connection.laddr.ip for connection in listening} <= LOOPBACK
    return process, family


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_stopped_driver_takes_its_cluster_along_and_continues(
    seed, interrupted, homes, tmp_path, expected
):
    draw, checkpoint, folder = (
        random.Random(seed),
        homes[0] / "tiny-llama",
        tmp_path / "out",
    )
    process, family = start(checkpoint, folder, draw.randint(1, 12))
    time.sleep(draw.uniform(0, 0.5))
    if interrupted:
        os.killpg(
            process.pid, signal.SIGINT
        )  # as a terminal does: to every process of the command
        shown = process.communicate()[1]
        assert process.returncode == 130 and "Traceback" not in shown
        assert "interrupted: what is done is kept" in shown.splitlines()[-1]
    else:
        process.kill()
        process.communicate()
    assert left(family) == set()
    process, family = start(checkpoint, folder, len(lines(folder)) + 1)
    assert (
        process.communicate()[1] and process.returncode == 0 and left(family) == set()
    )
    assert lines(folder) == expected


def test_cluster_that_is_not_there_is_one_line(homes, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(
        InputError, match=r"the Ray cluster at 127.0.0.1:1 cannot be joined: .*refused"
    ):
        run(tmp_path / "out", model=homes[0] / "tiny-llama")
