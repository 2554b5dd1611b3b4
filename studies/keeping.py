"""Functions that all studies share: reading the rows of runs, and keeping tables."""

import argparse
from pathlib import Path

import pandas as pd

from benchmarks.measuring import machine
from lib.files.text_files import read

RESULTS = Path(__file__).parent / "results"


def rows_of_runs(about: str, files: str) -> list[dict]:
    """Return the rows of these files in the folders that the command line names."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    found = []
    for folder in parser.parse_args().folders:
        found += sorted(folder.glob(files))
    if not found:
        parser.error(f"none of these folders has {files}")
    return read(*found)


def keep(path: Path, table: pd.DataFrame) -> None:
    """Write a table as csv, with the machine that computed it, and print the table."""
    table.assign(**machine()).to_csv(path, index=False, float_format="%.4g")
    print(table.round(3).to_string(index=False))
