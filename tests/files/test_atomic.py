"""Folders are complete or absent."""

from pathlib import Path

import pytest

from lib.files.atomic import complete_folder


def test_a_partial_folder_is_continued_and_a_complete_one_is_unchanged(tmp_path):
    partial_folder = tmp_path / ".cached.partial"
    partial_folder.mkdir()
    (partial_folder / "first").touch()
    folder = complete_folder(
        tmp_path / "cached", lambda partial: (partial / "second").touch()
    )
    assert sorted(path.name for path in folder.iterdir()) == ["first", "second"]
    assert not partial_folder.exists()
    assert complete_folder(folder, lambda partial: 1 / 0) == folder


@pytest.mark.parametrize("taken", ["cached.lock", ".cached.partial"])
def test_a_cache_that_cannot_be_written_is_refused_unless_it_is_complete(
    taken, tmp_path, refused
):
    create = Path.mkdir if taken == "cached.lock" else Path.touch
    create(tmp_path / taken)
    folder = tmp_path / "cached"
    message = refused(complete_folder, folder, lambda partial: None)
    assert message.startswith(f"cannot write the cache folder {tmp_path}: ")
    assert message.endswith("; set XDG_CACHE_HOME to a folder that can be written")
    folder.mkdir()
    assert complete_folder(folder, lambda partial: 1 / 0) == folder
