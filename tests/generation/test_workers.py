"""Runs whose workers, nodes or driver are lost, on a Ray cluster of two nodes: each key once, texts as without workers.

`make test-ray` runs them. Each fault is drawn at SEEDS moments; the model is tiny, so most of their time Ray starts.
"""

import contextlib
import importlib.util
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
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
pytestmark = [pytest.mark.ray, pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason=MISSING)]
on_cluster = pytest.mark.usefixtures("joined")
SEEDS = range(4)
GONE = 60  # seconds after which no process may be left
STARTS = 3  # of a node or a command: Ray gives a node 30 s to start, which may be too little beside other work
LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
NAME = "~/tiny-llama"  # whose folder is another one on each node
CONDITIONS = ["none", "mless:5", "arm"]


@pytest.fixture(scope="module")
def homes(tmp_path_factory, tiny_llama):
    """The home folders of driver and nodes, each with a copy of the checkpoint."""
    folders = [tmp_path_factory.mktemp(name) for name in ("driver", "first", "second")]
    for folder in folders:
        shutil.copytree(tiny_llama, folder / "tiny-llama")
    return folders


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [made.getsockname()[1] for made in sockets]


class TwoNodes:
    """A cluster on this machine's loopback; its second node can be removed and added again."""

    def __init__(self, homes):
        workers_class()  # before Ray is imported: it sets what Ray reads then
        cluster = importlib.import_module("ray.cluster_utils").Cluster
        self.homes, self.cluster, self.second = homes, cluster(), None
        self._add(homes[1])
        self.complete()

    def complete(self):
        self.second = self.second or self._add(self.homes[2])

    def _add(self, home):
        # A node waits 15 s for a process that says its ports, which is too short on a busy machine; known ones it has.
        names = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
        for start in range(1, STARTS + 1):
            ports = dict(zip(names, free_ports(len(names)), strict=True))
            before = psutil.Process().children()
            try:
                return self.cluster.add_node(num_cpus=1, env_vars={"HOME": str(home)}, **ports)
            except Exception as error:
                for child in set(psutil.Process().children()) - set(before):
                    child.kill()
                if start == STARTS or "timed out during startup" not in str(error):
                    raise

    def remove(self):
        node, self.second = self.second, None
        self.cluster.remove_node(node, allow_graceful=False)


@pytest.fixture(scope="module")
def nodes(homes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("RAY_worker_niceness", "0")  # 15 otherwise: behind all other work of a busy machine
        found = TwoNodes(homes)
        yield found
        found.cluster.shutdown()


@pytest.fixture
def joined(nodes, homes, monkeypatch):
    """Let runs use the cluster; the checkpoint is the driver's copy."""
    nodes.complete()
    monkeypatch.setenv("HOME", str(homes[0]))
    monkeypatch.setenv("RAY_ADDRESS", nodes.cluster.address)
    return nodes


@pytest.fixture
def pids(tmp_path, monkeypatch):
    """A folder with a file for each worker that has started; all of them must be gone soon after the test."""
    folder = tmp_path / "pids"
    folder.mkdir()
    at_each_completion(monkeypatch, folder, lambda requests, n: None)
    yield folder
    assert left([int(path.name) for path in folder.iterdir()]) == []


def at_each_completion(monkeypatch, folder, fault):
    """Let workers write down who they are, and call `fault(requests, completions so far)` before each completion."""
    workers = importlib.import_module("lib.generation.workers")

    class Told(workers.Worker):
        def prepare(self, *given):
            (folder / str(os.getpid())).touch()
            return super().prepare(*given)

        def complete(self, requests):
            for n, completion in enumerate(super().complete(requests)):
                fault(requests, n)
                yield completion

    monkeypatch.setattr(workers, "Worker", Told)


def once(flag):
    """Return whether this is the first call with this file, in whatever process."""
    try:
        os.mkdir(flag)
    except FileExistsError:
        return False
    return True


def left(pids):
    """Return which processes have not ended in time; a zombie has."""
    limit = time.monotonic() + GONE
    while (alive := [pid for pid in pids if running(pid)]) and time.monotonic() < limit:
        time.sleep(0.2)
    return alive


def running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def accuracy(workers, model=NAME):
    settings = {"limit": 8, "conditions": CONDITIONS, "format": "plain", "max_new_tokens": 12, "elicit": True}
    return Accuracy(models=[str(model)], **settings, batch_size=2, workers=workers, gpus_per_worker=0)


def run(folder, workers=2, model=NAME):
    return evaluate(accuracy(workers, model), Filler(length=5), 0, folder)


def lines(folder):
    return sorted((folder / "completions.jsonl").read_text().splitlines())


def written(folder):
    file = folder / "completions.jsonl"
    return file.read_text().count("\n") if file.is_file() else 0


@pytest.fixture(scope="module")
def expected(homes, tmp_path_factory):
    """What a run without workers writes."""
    folder = tmp_path_factory.mktemp("alone")
    run(folder, workers=0, model=homes[0] / "tiny-llama")
    return lines(folder)


@contextlib.contextmanager
def meanwhile(folder, after, deed):
    """Do `deed` in a thread so many seconds after the first completion."""
    over = threading.Event()

    def wait():
        while written(folder) == 0 and not over.is_set():
            time.sleep(0.01)
        time.sleep(after)
        deed()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("loss", ["worker", "node"])
@pytest.mark.parametrize("seed", SEEDS)
def test_lost_worker_or_node_is_replaced_or_done_without(seed, loss, joined, tmp_path, pids, expected):
    draw = random.Random(seed)

    def kill():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(draw.choice(sorted(pids.iterdir())).name), signal.SIGKILL)

    with meanwhile(tmp_path / "out", draw.uniform(0, 2), kill if loss == "worker" else joined.remove):
        run(tmp_path / "out")
    assert lines(tmp_path / "out") == expected


@on_cluster
@pytest.mark.parametrize("seed", SEEDS)
def test_worker_whose_engine_fails_is_replaced(seed, tmp_path, pids, expected, monkeypatch):
    def fault(requests, n):
        if n == seed % 4 and once(tmp_path / "failed-once"):
            raise RuntimeError("device-side assert")

    at_each_completion(monkeypatch, pids, fault)
    run(tmp_path / "out")
    assert lines(tmp_path / "out") == expected and (tmp_path / "failed-once").is_dir()


@on_cluster
@pytest.mark.parametrize("seed", SEEDS)
def test_node_with_another_revision_is_refused(seed, homes, tmp_path, pids, expected, monkeypatch):
    file = homes[1 + seed % 2] / "tiny-llama" / "model.safetensors"
    whole = file.read_bytes()
    at_each_completion(monkeypatch, pids, lambda requests, n: time.sleep(1))  # that the other is not done before
    try:
        file.write_bytes(whole[: -1 - seed] + bytes([whole[-1 - seed] ^ 1]) + whole[len(whole) - seed :])
        with pytest.raises(InputError, match=r"the worker at 127.0.0.1 has revision \w+, this run ~/tiny-llama"):
            run(tmp_path / "out")
    finally:
        file.write_bytes(whole)
    run(tmp_path / "out", workers=0)
    assert lines(tmp_path / "out") == expected


@on_cluster
def test_prompt_that_kills_its_worker_three_times_is_named_and_the_rest_goes_on(tmp_path, pids, expected, monkeypatch):
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
    assert lines(tmp_path / "out") == [line for line in expected if json.loads(line)["key"] != bad]
    run(tmp_path / "out", workers=0)
    assert lines(tmp_path / "out") == expected and not (tmp_path / "out" / "failed.jsonl").exists()


class Command:
    """The command in a process of its own, with workers of this machine, and all processes that it has started."""

    def __init__(self, checkpoint, folder):
        given = ["--limit", "8", "--conditions", ",".join(CONDITIONS), "--format", "plain", "--max-new-tokens", "12"]
        given += ["--elicit", "--filler-length", "5", "--batch-size", "2", "--workers", "2", "--gpus-per-worker", "0"]
        start = [sys.executable, "-m", "lib", "evaluate", "--model", str(checkpoint), "--out", str(folder)]
        self.folder, self.command, self.starts = folder, [*start, *given], 0
        self._start()

    def _start(self):
        self.starts += 1
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self.process = subprocess.Popen(
            self.command,
            cwd=paths.ROOT,
            env=environment | {"OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0"},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def until(self, count):
        """Wait until so many completions are written; return the processes, and check what they listen to."""
        while written(self.folder) < count:
            if self.process.poll() is not None:
                shown = self.process.communicate()[1]
                assert self.starts < STARTS and "Ray did not start here" in shown, shown
                self._start()
            time.sleep(0.01)
        family = [self.process.pid, *(child.pid for child in psutil.Process(self.process.pid).children(recursive=True))]
        listening = [c for c in psutil.net_connections("inet") if c.status == psutil.CONN_LISTEN and c.pid in family]
        assert listening and {connection.laddr.ip for connection in listening} <= LOOPBACK
        return family


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_or_interrupted_driver_takes_its_cluster_along_and_continues(
    seed, interrupted, homes, tmp_path, expected
):
    draw, checkpoint, folder = random.Random(seed), homes[0] / "tiny-llama", tmp_path / "out"
    command = Command(checkpoint, folder)
    family = command.until(draw.randint(1, 12))
    time.sleep(draw.uniform(0, 0.5))
    if interrupted:
        os.killpg(command.process.pid, signal.SIGINT)  # as a terminal does: to every process of the command
        shown = command.process.communicate()[1]
        assert command.process.returncode == 130 and "Traceback" not in shown
        assert "interrupted: what is done is kept" in shown.splitlines()[-1]
    else:
        command.process.kill()
        command.process.communicate()
    assert left(family) == []
    again = Command(checkpoint, folder)
    family = again.until(written(folder) + 1)
    assert again.process.communicate()[1] and again.process.returncode == 0 and left(family) == []
    assert lines(folder) == expected


def test_cluster_that_is_not_there_is_one_line(homes, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(InputError, match=r"the Ray cluster at 127.0.0.1:1 cannot be joined: .*refused"):
        run(tmp_path / "out", model=homes[0] / "tiny-llama")
