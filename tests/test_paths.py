"""Notebooks are selected by number, and messages name files by short paths."""

import pytest

from reproduction import paths

EVERY = ["01", "02", "03", "04", "05", "06", "07", "08", "09"]


@pytest.mark.parametrize(
    "names, numbers",
    [
        ([], EVERY),
        (["3", "01", "03"], ["01", "03"]),
    ],
)
def test_notebooks_are_selected_by_number_once_and_in_order(names, numbers):
    assert [path.stem[:2] for path in paths.notebooks(names)] == numbers
