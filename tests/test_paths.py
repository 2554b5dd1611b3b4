"""Notebooks are named by number, messages name files, and folders are whole."""

import gzip

import pytest

from lib import paths
from lib.errors import InputError

EVERY = ["01", "02", "03", "04", "05", "06", "07"]


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


def test_a_packed_file_is_read_as_the_one_that_it_holds(tmp_path):
    file = tmp_path / "rows.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"a": 1}\n\n{"a": 2}'))
    assert list(paths.json_lines(file)) == [(1, {"a": 1}), (3, {"a": 2})]


def test_a_folder_that_was_begun_is_gone_on_with_and_a_whole_one_stays(tmp_path):
    begun = tmp_path / ".cached.partial"
    begun.mkdir()
    (begun / "first").touch()
    folder = paths.whole_folder(
        tmp_path / "cached", lambda partial: (partial / "second").touch()
    )
    assert sorted(path.name for path in folder.iterdir()) == ["first", "second"]
    assert not begun.exists()
    assert paths.whole_folder(folder, lambda partial: 1 / 0) == folder
