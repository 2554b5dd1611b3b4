"""Time and memory of the profile `laptop`, on random weights of the exact shapes.

    python benchmarks/rehearsal.py [--models Qwen2.5-Math-7B ...] [--memory 4]

A hub on this machine serves random weights (stand_in_hub.py). Each model is scored on
two embedded problems under the conditions of `laptop`: on the first one, then on both,
killed in the fourth batch and begun again. The free memory (--memory, in GB) is so
small that most weights stay on disk. Writes benchmarks/results/rehearsal.csv with the
bytes that the hub sent, the peak memory without pages of mapped files, which the kernel
can free, and processor time.
"""

import argparse
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
from measuring import keep_beside
from stand_in_hub import MODELS, StandInHub

from lib.__main__ import main as command_line
from lib.evaluation import score_run
from lib.files.text_files import json_lines
from lib.models import available_memory, loading
from lib.paths import RESULTS

GB = 1e9
FOLDER = RESULTS / "rehearsal"  # removed at the end
PEAK = "peak.txt"
PAUSE = 0.5  # seconds between two looks at the memory
KILLED_IN = 4  # of the batches of six conditions
# The conditions of `laptop`.
CONDITIONS = "none,mless,hidden-from-layer-1,dilution,gap,example"


@dataclass(frozen=True)
class Usage:
    """Exit code, memory and time of a command."""

    code: int
    peak: int  # bytes of memory, without pages of files
    reading: float  # processor seconds to read all weights that are on disk
    scoring: float  # processor seconds to score


def run(
    folder: Path,
    url: str,
    arguments: list[str],
    free: float,
    killed_in: int = -1,
) -> Usage:
    """Run a command of `python -m lib` with separate caches and `free` GB of memory."""
    folder.mkdir(parents=True, exist_ok=True)
    record, peak = folder / "times.json", folder / PEAK
    for file in (record, peak):
        file.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "HF_ENDPOINT": url,
        "HF_HOME": str(folder / "hub"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "HF_HUB_OFFLINE": "0",
    }
    watch = ["--watched", str(record), str(free), str(killed_in)]
    command = [sys.executable, __file__, *watch, *arguments]
    process = subprocess.Popen(command, env=environment)
    code = process.wait()
    times = json.loads(record.read_text()) if record.exists() else [0.0]
    return Usage(
        code,
        int(peak.read_text()),
        reading=times[0],
        scoring=sum(times[1:]),
    )


def watched(record: Path, free: float, killed_in: int, arguments: list[str]) -> int:
    """Run a command in this process, and record the processor seconds of the check of
    the loaded model, which reads all weights, and of each scored batch.

    The process is killed in batch number `killed_in`, counted from 1.
    """
    times: list[float] = []
    check, score = loading.check_attention, score_run.log_likelihoods

    def timed(function: Callable, *inputs: Any) -> Any:
        start = time.process_time()
        result = function(*inputs)
        times.append(time.process_time() - start)
        record.write_text(json.dumps(times))
        return result

    def timed_score(loaded, batch):
        if len(times) == killed_in:
            os.kill(os.getpid(), signal.SIGKILL)
        return timed(score, loaded, batch)

    threading.Thread(
        target=_record_peak, args=(record.with_name(PEAK),), daemon=True
    ).start()
    available_memory.free_memory = lambda *_: int(free * GB)
    loading.check_attention = functools.partial(timed, check)
    score_run.log_likelihoods = timed_score
    return command_line(arguments)


def _record_peak(file: Path) -> None:
    """Keep writing the peak memory of this process, without file pages, to a file."""
    peak = 0
    while True:
        used = psutil.Process().memory_info()
        if used.rss - used.shared > peak:
            peak = used.rss - used.shared
            file.write_text(str(peak))
        time.sleep(PAUSE)


def scored(hub: StandInHub, name: str, folder: Path, free: float) -> dict[str, object]:
    """Return a row with the cost of a model's likelihoods."""
    out = folder / "likelihood"
    arguments = ["likelihood", "--model", name, "--problems", "embedded"]
    arguments += ["--format", "plain", "--out", str(out)]
    arguments += ["--conditions", CONDITIONS]
    before = hub.sent_weights
    one = run(folder, hub.url, [*arguments, "--limit", "1"], free)
    assert one.code == 0
    first = _rows(out)
    fetched = hub.sent_weights - before

    both = [*arguments, "--limit", "2"]
    killed = run(folder, hub.url, both, free, KILLED_IN)
    assert killed.code == -signal.SIGKILL
    kept = _rows(out)
    assert len(kept) == len(first) + KILLED_IN - 1
    continued = run(folder, hub.url, both, free)
    assert continued.code == 0
    rows = _rows(out)
    assert rows[: len(kept)] == kept
    assert len({row["key"] for row in rows}) == len(rows) == 2 * len(first)

    return {
        "model": name,
        "gb_fetched": fetched / GB,
        "gb_fetched_again": (hub.sent_weights - before - fetched) / GB,
        "peak_gb": max(usage.peak for usage in (one, killed, continued)) / GB,
        "texts": len(rows),
        "tokens": sum(row["prompt_tokens"] + row["tokens"] for row in first),
        "reading_seconds": one.reading,
        "scoring_seconds": one.scoring,
    }


def _rows(out: Path) -> list[dict]:
    """Return the scores that a run has stored, in order."""
    return [row for _, row in json_lines(out / "scores.jsonl")]


def main() -> None:
    """Rehearse each model, and keep and print its row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--memory", type=float, default=4, help="GB that are free")
    parser.add_argument("--watched", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.watched:
        record, free, killed_in, *arguments = options.watched
        sys.exit(watched(Path(record), float(free), int(killed_in), arguments))

    # Scores and caches of an earlier rehearsal would make this one too fast.
    shutil.rmtree(FOLDER, ignore_errors=True)
    with StandInHub(FOLDER / "served", options.models) as hub:
        for name in options.models:
            row = scored(hub, name, FOLDER / name, options.memory)
            shutil.rmtree(FOLDER / name)
            table = pd.DataFrame([row])
            print(table.round(2).to_string(index=False), flush=True)
            keep_beside("rehearsal", table)
    shutil.rmtree(FOLDER)


if __name__ == "__main__":
    main()
