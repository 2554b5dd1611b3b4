"""Runs whose workers, nodes or driver are lost, on a Ray cluster of two nodes.

Each key is there once, and texts are as without workers. `make test-ray` runs these
tests. Each fault is drawn at SEEDS moments; the model is tiny, so most of their time
Ray starts.
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
from lib.generation.engines import workers_class
from lib.profiles import Accuracy
from lib.prompts.conditions import Filler

NOT_INSTALLED = "ray is not installed (make test-ray installs it)"
pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason=NOT_INSTALLED),
]
SEEDS = range(4)
# Seconds after which no process may be left: for 60 Ray's agents look for a cluster
# that was killed.
SECONDS_TO_END = 120
# Tries to start a node or a command: Ray gives a node 30 s, which may be too little
# beside other work.
MOST_STARTS = 3
LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
MODEL = "~/tiny-llama"  # whose folder is another one on each node
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
        # 15 otherwise: behind all other work of a busy machine.
        patch.setenv("RAY_worker_niceness", "0")
        workers_class()  # before Ray is imported: it sets what Ray reads then
        cluster = importlib.import_module("ray.cluster_utils").Cluster()
        yield cluster
        cluster.shutdown()


def add_node(cluster, home):
    """Let a node start, which it may fail to do in time on a busy machine."""
    for start in range(1, MOST_STARTS + 1):
        before = set(psutil.Process().children())
        try:
            cluster.add_node(num_cpus=1, env_vars={"HOME": str(home)})
            return
        except Exception as error:
            for child in set(psutil.Process().children()) - before:
                child.kill()
            if start == MOST_STARTS or "timed out during startup" not in str(error):
                raise


@pytest.fixture
def joined(cluster, homes, monkeypatch):
    """Let runs use the cluster, of two nodes on this machine's loopback.

    The checkpoint is the driver's copy.
    """
    nodes = (cluster.head_node is not None) + len(cluster.worker_nodes)
    for home in homes[1 + nodes :]:
        add_node(cluster, home)
    monkeypatch.setenv("HOME", str(homes[0]))
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    return cluster


@pytest.fixture
def pids(tmp_path, monkeypatch):
    """A folder with a file for each worker that has started.

    All of them must be gone soon after the test.
    """
    folder = tmp_path / "pids"
    folder.mkdir()
    before_each_completion(monkeypatch, folder, lambda requests, n: None)
    yield folder
    assert left([int(path.name) for path in folder.iterdir()]) == set()


def before_each_completion(monkeypatch, folder, fault):
    """Let workers call `fault(requests, completions so far)` before each completion.

    Each writes down who it is in the folder.
    """
    workers = importlib.import_module("lib.generation.workers")

    class Faulty(workers.Worker):
        def prepare(self, *args):
            (folder / str(os.getpid())).touch()
            yield from super().prepare(*args)

        def complete(self, requests):
            for n, completion in enumerate(super().complete(requests)):
                fault(requests, n)
                yield completion

    monkeypatch.setattr(workers, "Worker", Faulty)


def left(pids):
    """Return which processes have not ended in time; a zombie has."""
    limit = time.monotonic() + SECONDS_TO_END
    while True:
        running = {
            process.pid
            for process in psutil.process_iter(["status"])
            if process.info["status"] != psutil.STATUS_ZOMBIE
        }
        if not running & {*pids} or time.monotonic() > limit:
            return running & {*pids}
        time.sleep(0.2)


def run(folder, workers=2, model=MODEL):
    """Answer problems under the conditions into a folder."""
    accuracy = Accuracy(
        models=[str(model)],
        limit=PROBLEMS,
        conditions=CONDITIONS,
        format="plain",
        max_new_tokens=12,
        elicit=True,
        batch_size=2,
        workers=workers,
        gpus_per_worker=0,
    )
    return evaluate(accuracy, Filler(length=5), 0, folder).answers


def lines(folder):
    """Return the lines that a run has written so far, sorted."""
    file = folder / "completions.jsonl"
    return sorted(file.read_text().splitlines()) if file.is_file() else []


@pytest.fixture(scope="module")
def expected(homes, tmp_path_factory):
    """What a run without workers writes."""
    folder = tmp_path_factory.mktemp("alone")
    run(folder, workers=0, model=homes[0] / "tiny-llama")
    return lines(folder)


def kill_a_worker(draw, pids):
    pid = int(draw.choice(sorted(pids.iterdir())).name)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("loss", ["worker", "node", "engine"])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_lost_is_replaced_or_done_without(
    seed, loss, joined, tmp_path, pids, expected, monkeypatch
):
    draw = random.Random(seed)
    moment = draw.randrange(2 * PROBLEMS)
    workers = workers_class()
    complete = workers.complete

    def losing(self, *args):
        for n, completion in enumerate(complete(self, *args)):
            if n == moment and loss == "worker":
                kill_a_worker(draw, pids)
            elif n == moment and loss == "node":
                node = min(joined.worker_nodes, key=id)
                joined.remove_node(node, allow_graceful=False)
            yield completion

    def fault(requests, n):
        if n == seed % 4 and loss == "engine":
            with contextlib.suppress(FileExistsError):  # once, in whatever process
                (tmp_path / "failed").mkdir()
                raise RuntimeError("device-side assert")

    before_each_completion(monkeypatch, pids, fault)
    monkeypatch.setattr(workers, "complete", losing)
    run(tmp_path / "out")
    assert lines(tmp_path / "out") == expected
    assert (tmp_path / "failed").is_dir() == (loss == "engine")


@pytest.mark.parametrize("seed", SEEDS)
def test_node_with_another_revision_is_refused(
    seed, joined, homes, tmp_path, pids, expected, monkeypatch
):
    file = homes[1 + seed % 2] / "tiny-llama" / "model.safetensors"
    whole = file.read_bytes()
    changed = bytearray(whole)
    changed[-1 - seed] ^= 1
    # That the other node is not done before.
    before_each_completion(monkeypatch, pids, lambda requests, n: time.sleep(1))
    message = r"the worker at 127.0.0.1 has revision \w+, this run ~/tiny-llama"
    try:
        file.write_bytes(changed)
        with pytest.raises(InputError, match=message):
            run(tmp_path / "out")
    finally:
        file.write_bytes(whole)
    run(tmp_path / "out", workers=0)
    assert lines(tmp_path / "out") == expected


def test_prompt_that_kills_its_worker_three_times_is_named_alone(
    joined, tmp_path, pids, expected, monkeypatch
):
    out = tmp_path / "out"
    bad = json.loads(expected[5])["key"]

    def fault(requests, n):
        if any(request.key == bad for request in requests):
            (tmp_path / f"killed-{os.getpid()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    before_each_completion(monkeypatch, pids, fault)
    with pytest.raises(PartlyDone, match=r"1 prompts failed, see .*failed.jsonl"):
        run(out)
    assert json.loads((out / "failed.jsonl").read_text())["key"] == bad
    assert len(list(tmp_path.glob("killed-*"))) == 3
    assert lines(out) == [line for line in expected if json.loads(line)["key"] != bad]
    # Without what kills its workers it is done.
    run(out, workers=0)
    assert lines(out) == expected
    assert not (out / "failed.jsonl").exists()


def command(checkpoint, folder):
    """Return the command of a run with two workers of this machine."""
    options = {
        "model": checkpoint,
        "out": folder,
        "limit": PROBLEMS,
        "format": "plain",
        "conditions": ",".join(CONDITIONS),
        "max-new-tokens": 12,
        "filler-length": 5,
        "batch-size": 2,
        "workers": 2,
        "gpus-per-worker": 0,
    }
    arguments = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-m", "lib", "evaluate", "--elicit", *arguments]


def let_interrupts_through():
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(checkpoint, folder, count):
    """Run the command in a process of its own until so many completions are written.

    Return it and all processes that it has started, which listen to this machine alone.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("RAY_")
    }
    environment |= {"OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0"}
    for tries in range(1, MOST_STARTS + 1):
        process = subprocess.Popen(
            command(checkpoint, folder),
            cwd=paths.ROOT,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=let_interrupts_through,
        )
        while len(lines(folder)) < count and process.poll() is None:
            time.sleep(0.01)
        if process.poll() is None:
            break
        errors = process.communicate()[1]
        assert tries < MOST_STARTS, errors
        assert "Ray did not start here" in errors, errors
    children = psutil.Process(process.pid).children(recursive=True)
    family = [process.pid, *(child.pid for child in children)]
    addresses = {
        connection.laddr.ip
        for connection in psutil.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN and connection.pid in family
    }
    assert addresses
    assert addresses <= LOOPBACK
    return process, family


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_stopped_driver_takes_its_cluster_along_and_continues(
    seed, interrupted, homes, tmp_path, expected
):
    draw = random.Random(seed)
    checkpoint = homes[0] / "tiny-llama"
    folder = tmp_path / "out"
    process, family = start(checkpoint, folder, draw.randint(1, 12))
    time.sleep(draw.uniform(0, 0.5))
    if interrupted:
        # As a terminal does: to every process of the command.
        os.killpg(process.pid, signal.SIGINT)
        errors = process.communicate()[1]
        assert process.returncode == 130
        assert "Traceback" not in errors
        assert "interrupted: what is done is kept" in errors.splitlines()[-1]
    else:
        process.kill()
        process.communicate()
    assert left(family) == set()

    process, family = start(checkpoint, folder, len(lines(folder)) + 1)
    assert process.communicate()[1]
    assert process.returncode == 0
    assert left(family) == set()
    assert lines(folder) == expected


def test_cluster_that_is_not_there_is_one_line(homes, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    message = r"the Ray cluster at 127.0.0.1:1 cannot be joined: .*refused"
    with pytest.raises(InputError, match=message):
        run(tmp_path / "out", model=homes[0] / "tiny-llama")
