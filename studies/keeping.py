"""Where the studies of the findings keep their tables."""

from pathlib import Path

import pandas as pd

from benchmarks.measuring import machine

RESULTS = Path(__file__).parent / "results"


def keep(name: str, table: pd.DataFrame) -> None:
    """Write results/<name>.csv with the machine that its numbers belong to."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.csv"
    table.assign(**machine()).to_csv(path, index=False, float_format="%.4g")
