"""What `laptop` takes, tried on checkpoints of the paper's models' exact shapes.

    python benchmarks/rehearsal.py [--models Qwen2.5-Math-7B ...] [--end-to-end]
        [--limit 2] [--memory 4] [--narrow]

A hub on this machine serves random weights (stand_in_hub.py). Each model is scored on
two embedded problems under the conditions of `laptop`: on the first one, then on both,
killed in the fourth batch and begun again. So few GB of memory are free (--memory) that
most weights stay on disk. Bytes that the hub sent, the greatest memory beside pages of
mapped files, which the kernel drops when it needs room, and processor time go into
benchmarks/results/rehearsal.csv. With --end-to-end all of `laptop` is fetched, then
runs without network on two embedded problems, or --limit, answers cut at 64 tokens:
rehearsal_end_to_end.csv. With --narrow models have the same layers, heads and words,
but few numbers in each: a rehearsal of minutes, which is printed and not kept.
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
from lib.evaluation import scoring
from lib.models import loading, memory
from lib.paths import PROFILES, RESULTS, json_lines

GB = 1e9
PEAK = "peak.txt"
PAUSE = 0.5  # seconds between two looks at the memory
KILLED_IN = 4  # of the batches of six conditions
# Of `laptop`.
CONDITIONS = "none,mless,hidden-from-layer-1,dilution,gap,example"
# What the profile becomes: problems that are here and short, and short answers, since
# random weights never end one.
SHORTER = {
    "name: laptop": "name: rehearsal",
    "problems: math500": "problems: embedded",
    "  example: test/algebra/2584.json": "  # no example:",
    "max_new_tokens: 1024": "max_new_tokens: 64",
}


@dataclass(frozen=True)
class Usage:
    """What a command took."""

    code: int
    peak: int  # bytes of memory, beside pages of files
    seconds: float  # of the processor
    reading: float  # seconds of the processor to read all weights that are on disk
    scoring: float  # and those to score


def run(
    folder: Path,
    url: str,
    arguments: list[str],
    free: float,
    killed_in: int = -1,
    offline: bool = False,
) -> Usage:
    """Run a command of `python -m lib` with caches of its own and so many GB of free
    memory; offline: it may use no network.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record, peak = folder / "times.json", folder / PEAK
    for file in (record, peak):
        file.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "HF_ENDPOINT": url,
        "HF_HOME": str(folder / "hub"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "HF_HUB_OFFLINE": str(int(offline)),
    }
    watch = ["--watched", str(record), str(free), str(killed_in)]
    command = [sys.executable, __file__, *watch, *arguments]
    process = subprocess.Popen(command, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    times = json.loads(record.read_text()) if record.exists() else [0.0]
    return Usage(
        os.waitstatus_to_exitcode(status),
        int(peak.read_text()),
        used.ru_utime + used.ru_stime,
        reading=times[0],
        scoring=sum(times[1:]),
    )


def watched(record: Path, free: float, killed_in: int, arguments: list[str]) -> int:
    """Run a command in this process, and record the processor's seconds of the check at
    load, which reads all weights for ten tokens, and of each batch that is scored.

    It is killed in the batch of number `killed_in`, counted from 1.
    """
    times: list[float] = []
    check, score = loading.check_attention, scoring.log_likelihoods

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
    memory.free_memory = lambda: int(free * GB)
    loading.check_attention = functools.partial(timed, check)
    scoring.log_likelihoods = timed_score
    return command_line(arguments)


def _record_peak(file: Path) -> None:
    """Keep writing the greatest memory of this process so far, beside file pages."""
    peak = 0
    while True:
        used = psutil.Process().memory_info()
        if used.rss - used.shared > peak:
            peak = used.rss - used.shared
            file.write_text(str(peak))
        time.sleep(PAUSE)


def scored(hub: StandInHub, name: str, folder: Path, free: float) -> dict[str, object]:
    """Return a row of what a model's likelihoods take."""
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
    """Return the scores that a run has kept, in their order."""
    return [row for _, row in json_lines(out / "scores.jsonl")]


def end_to_end(
    hub: StandInHub, folder: Path, limit: int, free: float
) -> dict[str, object]:
    """Return what all of `laptop` takes on so many problems: fetching it, then running
    it without network.
    """
    text = (PROFILES / "laptop.yaml").read_text()
    for old, new in SHORTER.items():
        assert old in text, f"{old!r} is no longer in the profile"
        text = text.replace(old, new)
    profile = folder / "rehearsal.yaml"
    profile.write_text(text)
    name = "rehearsal-end-to-end"
    shutil.rmtree(RESULTS / name, ignore_errors=True)
    before = hub.sent_weights
    options = ["--profile", str(profile), "--limit", str(limit), "--name", name]
    fetching = run(folder, hub.url, ["fetch", *options], free)
    assert fetching.code == 0
    fetched = hub.sent_weights - before
    used = run(folder, hub.url, ["reproduce", *options], free, offline=True)
    assert used.code == 0
    assert hub.sent_weights == before + fetched
    return {
        "profile": "laptop",
        "problems": limit,
        "gb_fetched": fetched / GB,
        "peak_gb": max(fetching.peak, used.peak) / GB,
        "fetching_minutes": fetching.seconds / 60,
        "processor_minutes": used.seconds / 60,
    }


def main() -> None:
    """Rehearse, write the tables and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--end-to-end", action="store_true")
    parser.add_argument("--limit", type=int, default=2, help="of --end-to-end")
    parser.add_argument("--memory", type=float, default=4, help="GB that are free")
    parser.add_argument("--narrow", action="store_true")
    parser.add_argument("--folder", type=Path, default=RESULTS / "rehearsal")
    parser.add_argument("--watched", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.watched:
        record, free, killed_in, *arguments = options.watched
        sys.exit(watched(Path(record), float(free), int(killed_in), arguments))

    # Scores and caches of an earlier rehearsal would spare this one's work.
    shutil.rmtree(options.folder, ignore_errors=True)
    served = MODELS if options.end_to_end else options.models
    with StandInHub(options.folder / "served", served, options.narrow) as hub:
        rows = []
        for name in options.models:
            rows.append(scored(hub, name, options.folder / name, options.memory))
            shutil.rmtree(options.folder / name)
            show("rehearsal", rows, "model", options.narrow)
        if options.end_to_end:
            row = end_to_end(hub, options.folder, options.limit, options.memory)
            show("rehearsal_end_to_end", [row], "profile", options.narrow)
    shutil.rmtree(options.folder)


def show(name: str, rows: list[dict[str, object]], by: str, narrow: bool) -> None:
    """Print a table, and keep it where models have the paper's shapes: rows with other
    values in the column `by` stay.
    """
    table = pd.DataFrame(rows)
    print(table.round(2).to_string(index=False), flush=True)
    if not narrow:
        keep_beside(name, table, by)


if __name__ == "__main__":
    main()
