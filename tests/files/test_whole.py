"""Packed files are read, and folders are whole."""

import gzip

from lib.files.whole import json_lines, whole_folder


def test_a_packed_file_is_read_as_the_one_that_it_holds(tmp_path):
    file = tmp_path / "rows.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"a": 1}\n\n{"a": 2}'))
    assert list(json_lines(file)) == [(1, {"a": 1}), (3, {"a": 2})]


def test_a_folder_that_was_begun_is_gone_on_with_and_a_whole_one_stays(tmp_path):
    begun = tmp_path / ".cached.partial"
    begun.mkdir()
    (begun / "first").touch()
    folder = whole_folder(
        tmp_path / "cached", lambda partial: (partial / "second").touch()
    )
    assert sorted(path.name for path in folder.iterdir()) == ["first", "second"]
    assert not begun.exists()
    assert whole_folder(folder, lambda partial: 1 / 0) == folder
