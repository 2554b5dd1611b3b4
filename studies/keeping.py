"""Keep the tables of the studies."""

from pathlib import Path

import pandas as pd

from benchmarks.measuring import machine

RESULTS = Path(__file__).parent / "results"


def keep(path: Path, table: pd.DataFrame) -> None:
    """Write a table as csv, with the machine that computed it, and print the table."""
    table.assign(**machine()).to_csv(path, index=False, float_format="%.4g")
    print(table.round(3).to_string(index=False))
