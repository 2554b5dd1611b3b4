"""Notebooks are named in several ways, messages name files, and folders are whole."""

import gzip

import pytest

from lib import paths
from lib.errors import InputError


@pytest.mark.parametrize(
    "name", ["1", "01", "01_attention_maps", "01_attention_maps.ipynb"]
)
def test_a_notebook_is_named_by_its_number_its_name_or_its_file(name):
    (notebook,) = paths.notebooks([name])
    assert notebook.name == "01_attention_maps.ipynb"


def test_notebooks_come_once_and_in_their_order():
    stems = [path.stem for path in paths.notebooks(["3", "01", "03"])]
    assert stems == ["01_attention_maps", "03_math500"]


def test_without_names_all_come_but_that_of_a_prompt_of_ones_own():
    numbers = [path.stem[:2] for path in paths.notebooks()]
    assert numbers == ["01", "02", "03", "04", "05", "06", "07"]


@pytest.mark.parametrize("name", ["0", "00", "8"])
def test_an_unknown_notebook_is_refused_with_those_to_choose_from(name):
    with pytest.raises(InputError) as error:
        paths.notebooks([name])
    assert str(error.value).startswith(f"unknown notebook {name!r}")
    assert "01_attention_maps, 02" in str(error.value)


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
