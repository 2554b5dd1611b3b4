"""Notebooks are selected by number, and messages name files by short paths."""

import pytest

from lib.errors import InputError
from reproduction import paths

EVERY = ["01", "02", "03", "04", "05", "06", "07", "08"]


@pytest.mark.parametrize(
    "names, numbers",
    [
        ([], EVERY),
        (["3", "01", "03"], ["01", "03"]),
    ],
)
def test_notebooks_are_selected_by_number_once_and_in_order(names, numbers):
    assert [path.stem[:2] for path in paths.notebooks(names)] == numbers


def test_notebook_00_does_not_belong_to_a_profile():
    with pytest.raises(InputError, match="unknown notebook '00'"):
        paths.notebooks(["00"])


def test_a_file_of_the_repository_is_named_without_the_folders_above_it(tmp_path):
    assert paths.relative_path(paths.DATA / "paper.yaml") == "data/paper.yaml"
    assert paths.relative_path(tmp_path) == str(tmp_path)
