"""Tables to draw, and what a figure's artists say."""

import io

import pandas as pd


def table(csv: str) -> pd.DataFrame:
    """Return a table that a test writes down."""
    return pd.read_csv(io.StringIO(csv))


def texts(labels) -> list[str]:
    return [label.get_text() for label in labels]
