"""Tables written down as CSV, and the texts of a figure's labels."""

import io

import pandas as pd


def table(csv: str) -> pd.DataFrame:
    """Return the table of a CSV text."""
    return pd.read_csv(io.StringIO(csv))


def texts(labels) -> list[str]:
    return [label.get_text() for label in labels]
