"""Evaluation that is killed, interrupted or out of disk, as a whole: nothing is lost and nothing stands there twice."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

from lib import paths
from lib.evaluation.run import evaluate
from lib.profiles import Accuracy
from lib.prompts.conditions import Filler

KILLS = 20
ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # the model is tiny: more threads would only wait for each other


def options(checkpoint):
    names = ("problems", "limit", "conditions", "format", "max_new_tokens", "elicit", "elicit_tokens")
    values = ("embedded", 24, ["none", "mless:5", "arm"], "plain", 12, True, 4)
    decoding = {"temperature": 0.9, "top_p": 0.9, "samples": 3, "batch_size": 7}
    return {"models": [str(checkpoint)], **dict(zip(names, values, strict=True)), **decoding}


def run(checkpoint, folder):
    """Evaluate from beginning to end; every process that calls it continues the same run."""
    evaluate(Accuracy(**options(checkpoint)), Filler(length=5), 0, folder)


def lines(folder):
    return sorted((folder / "completions.jsonl").read_text().splitlines())


def test_twenty_kills_end_in_the_completions_of_an_undisturbed_run(tiny_checkpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", ONE_THREAD["OMP_NUM_THREADS"])
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lib.evaluation.run"])  # a process starts in a moment, at any point of its work
    undisturbed, folder, draw = tmp_path / "undisturbed", tmp_path / "killed", random.Random(0)

    def start(where):
        process = context.Process(target=run, args=(tiny_checkpoint, where))
        process.start()
        return process

    interrupted = 0
    for _ in range(KILLS):
        process, wanted = start(folder), written(folder) + draw.randint(0, 5)
        while process.is_alive() and written(folder) < wanted:
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.2))
        interrupted += process.is_alive()
        process.kill()
        process.join()
    last, whole = start(folder), start(undisturbed)
    for process in (last, whole):
        process.join()
    assert last.exitcode == whole.exitcode == 0 and interrupted > KILLS // 2
    assert lines(folder) == lines(undisturbed)
    assert (folder / "summary.json").read_text() == (undisturbed / "summary.json").read_text()


def written(folder):
    """Return how many whole lines a run has written so far."""
    file = folder / "completions.jsonl"
    return file.read_bytes().count(b"\n") if file.is_file() else 0


def command(checkpoint, folder):
    settings = ["--limit", "40", "--format", "plain", "--max-new-tokens", "80", "--batch-size", "4"]
    start = [sys.executable, "-m", "lib", "evaluate", "--model", str(checkpoint), "--out", str(folder)]
    return [*start, "--conditions", "none,arm", *settings]


def finished(checkpoint, folder):
    """Run the command to its end and return its keys, each of which must be there once."""
    subprocess.run(
        command(checkpoint, folder), cwd=paths.ROOT, env=os.environ | ONE_THREAD, check=True, capture_output=True
    )
    keys = [json.loads(line)["key"] for line in lines(folder)]
    assert len(keys) == len(set(keys)) == 80
    return set(keys)


def heed_ctrl_c():
    """A command of a shell's background job ignores Ctrl-C, and so would all that the tests start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_twice_ends_in_one_line_and_keeps_what_is_done(tiny_checkpoint, tmp_path):
    folder = tmp_path / "out"
    process = subprocess.Popen(
        command(tiny_checkpoint, folder),
        cwd=paths.ROOT,
        env=os.environ | ONE_THREAD,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_ctrl_c,
    )
    file = folder / "completions.jsonl"
    while process.poll() is None and not (file.is_file() and file.read_text().count("\n") > 3):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the command
    time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in shown
    assert shown.splitlines()[-1] == "interrupted: what is done is kept; run the same command again to continue"
    kept = lines(folder)
    finished(tiny_checkpoint, folder)
    assert set(kept) <= set(lines(folder))


def test_a_disk_that_fills_up_ends_in_one_line_and_is_recovered_from(tiny_checkpoint, tmp_path):
    folder = tmp_path / "out"
    limited = ["bash", "-c", 'ulimit -f 8 && exec "$@"', "bash", *command(tiny_checkpoint, folder)]  # 8 KiB a file
    full = subprocess.run(
        limited, cwd=paths.ROOT, env=os.environ | ONE_THREAD, check=False, capture_output=True, text=True
    )
    assert full.returncode == 2 and "Traceback" not in full.stderr
    assert full.stderr.splitlines()[-1] == (
        f"error: disk full at {folder / 'completions.jsonl'}: nothing lost; free space and run again"
    )
    kept = lines(folder)
    assert 0 < len(kept) < 80 and all(json.loads(line)["key"] for line in kept)
    finished(tiny_checkpoint, folder)
    assert set(kept) <= set(lines(folder))
