"""What bfloat16 costs in accuracy and gains in time, on the demo profile's problems.

    python benchmarks/dtype.py [--limit 96]

Nothing is inserted. Greedy, each dtype with an engine of its own; loading is timed too.
Writes benchmarks/results/dtype.csv and prints it. The difference is bfloat16 less
float32 in points, with its 95 % interval over the same problems.
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
    full, full_rate = answered(profile, "float32", limit)
    half, half_rate = answered(profile, "bfloat16", limit)
    full_points = POINTS * full["right"].to_numpy()
    half_points = POINTS * half["right"].to_numpy()
    change = interval(half_points - full_points, full["problem_id"], "difference")
    return {
        "model": full["model"][0],
        "n": change.n,
        "float32": full_points.mean(),
        "bfloat16": half_points.mean(),
        "difference": change.estimate,
        "low": change.low,
        "high": change.high,
        "same_response": int((full["response"] == half["response"]).sum()),
        "times_as_fast": half_rate / full_rate,
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
