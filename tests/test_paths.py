"""Notebooks are named by number, and messages name files."""

import pytest

from lib import paths
from lib.errors import InputError

EVERY = ["01", "02", "03", "04", "05", "06", "07", "08"]


@pytest.mark.parametrize(
    "names, numbers",
    [
        ([], EVERY),
        (["3", "01", "03"], ["01", "03"]),
    ],
)
def test_notebooks_are_named_by_number_and_come_once_in_order(names, numbers):
    assert [path.stem[:2] for path in paths.notebooks(names)] == numbers


def test_a_prompt_of_ones_own_is_no_notebook_of_a_profile():
    with pytest.raises(InputError, match="unknown notebook '00'"):
        paths.notebooks(["00"])


def test_a_file_of_the_repository_is_named_without_the_folders_above_it(tmp_path):
    assert paths.relative_path(paths.DATA / "paper.yaml") == "data/paper.yaml"
    assert paths.relative_path(tmp_path) == str(tmp_path)
