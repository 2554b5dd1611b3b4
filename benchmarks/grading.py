"""Grades per second, of the stored answers of the families.

    python benchmarks/grading.py

Writes benchmarks/results/grading.csv and prints it.
"""

import time

import pandas as pd
from measuring import keep

from lib.files.text_files import read
from lib.grading.worker_pool import grade_many
from lib.paths import DATA


def main() -> None:
    """Grade the answers after one that starts the workers, and write the rate."""
    rows = read(DATA / "families" / "answers" / "main.jsonl.gz")
    pairs = [(row["answer"], row["response"]) for row in rows]
    grade_many([("2x", r"\boxed{x+x}")])
    start = time.perf_counter()
    grade_many(pairs)
    per_second = len(pairs) / (time.perf_counter() - start)
    row = {"answers": len(pairs), "per_second": per_second}
    keep("grading", pd.DataFrame([row]))


if __name__ == "__main__":
    main()
