"""Keep the tables of the studies."""

from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).parent / "results"


def keep(path: Path, table: pd.DataFrame) -> None:
    """Write a table as csv, and print it."""
    table.to_csv(path, index=False, float_format="%.5g")
    print(table.round(3).to_string(index=False))
