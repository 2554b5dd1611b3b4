"""Where the studies of the findings keep their tables."""

from pathlib import Path

import pandas as pd

from benchmarks.measuring import machine

RESULTS = Path(__file__).parent / "results"


def keep(path: Path, table: pd.DataFrame) -> None:
    """Write a csv with the machine that its numbers belong to."""
    path.parent.mkdir(exist_ok=True)
    table.assign(**machine()).to_csv(path, index=False, float_format="%.4g")
