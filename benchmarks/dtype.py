"""What bfloat16 costs in accuracy and gains in time: the demo profile's problems
without insertion, in both dtypes.

    python benchmarks/dtype.py [--limit 96]

Greedy, each dtype with an engine of its own; loading is timed too. Writes
benchmarks/results/dtype.csv and prints it. The difference is bfloat16 less float32 in
points, with its 95 % interval over the same problems.
"""

import argparse
import tempfile
import time
from pathlib import Path

import pandas as pd
from measuring import keep

from lib.evaluation.run import evaluate
from lib.profiles import Profile, load_profile
from lib.statistics import POINTS, interval

DTYPES = ("float32", "bfloat16")


def answered(profile: Profile, dtype: str, limit: int) -> tuple[pd.DataFrame, float]:
    """Return the answers of one dtype and how many completions a second made them."""
    changes = {"conditions": ["none"], "limit": limit, "dtype": dtype}
    accuracy = profile.accuracy.model_copy(update=changes)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        answers = evaluate(accuracy, profile.filler, profile.seed, Path(folder)).answers
        return answers, len(answers) / (time.perf_counter() - start)


def compared(profile: Profile, limit: int) -> dict:
    """Return accuracy and speed in both dtypes, and how much accuracy moves."""
    (full, fast), (half, half_fast) = (
        answered(profile, dtype, limit) for dtype in DTYPES
    )
    before, after = (POINTS * some["right"].to_numpy() for some in (full, half))
    found = interval(after - before, full["problem_id"], "difference")
    return {
        "model": full["model"][0],
        "n": found.n,
        "float32": before.mean(),
        "bfloat16": after.mean(),
        "difference": found.estimate,
        "low": found.low,
        "high": found.high,
        "same_response": int((full["response"] == half["response"]).sum()),
        "times_as_fast": half_fast / fast,
    }


def main() -> None:
    """Answer in both dtypes and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=96)
    options = parser.parse_args()
    profile = load_profile("demo")
    table = pd.DataFrame([compared(profile, options.limit)])
    keep("dtype", table)
    print(table.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
