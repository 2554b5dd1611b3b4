"""The store of rows keeps every row through interruptions, damaged files, a full disk
and a second writer.
"""

import errno
import fcntl
import functools
import json
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from lib.errors import InputError
from lib.files import row_store
from lib.files.atomic import write_json
from lib.files.row_store import NO_LOCKS, read_settings
from lib.files.text_files import read

opened = functools.partial(row_store.open_store, file="completions.jsonl")

SETTINGS = {
    "model": "tiny",
    "temperature": 0.6,
    "layers": (1, 2),
    "filler": {"length": 55},
}
INPUT_OUTPUT = OSError(errno.EIO, "Input/output error")


def keys_of(path):
    return [json.loads(line)["key"] for line in path.read_text().splitlines()]


def fill(folder, *keys, settings=SETTINGS):
    """Append rows with these keys, and return the path and all rows of the store."""
    with opened(folder, settings) as store:
        for key in keys:
            store.append({"key": key, "response": "ß"})
    return store.path, store.rows


def test_a_reopened_store_resumes_and_the_first_row_of_a_key_counts(tmp_path):
    folder = tmp_path / "new" / "run"
    first = {"key": "b", "response": "ß"}
    with opened(folder, SETTINGS, {"python": "3.11"}) as store:
        for row in (first, {"key": "a"}, {"key": "b", "response": "another"}):
            store.append(row)
    run = json.loads((folder / "run.json").read_text())
    path, rows = fill(folder, "a")
    assert read(path) == [first, {"key": "a"}]
    assert list(rows.values()) == read(path)
    path.write_text(path.read_text() + '{"key": "a", "by": 3}\n')
    assert fill(folder)[1] == rows
    assert run["environment"] == {"python": "3.11"}
    assert run["settings"]["layers"] == [1, 2]


def test_rows_of_another_shard_are_not_missing(tmp_path):
    fill(tmp_path, "a")
    with opened(tmp_path, SETTINGS, shard=(2, 3)) as store:
        store.append({"key": "b"})
    with opened(tmp_path, SETTINGS, shard=(3, 3)) as store:
        wanted = {"a": 1, "b": 2, "c": 3}
        assert list(store.missing(wanted)) == ["c"]


# A half-written line is also dropped if it is the only line.
@pytest.mark.parametrize("kept", [["a", "b"], []])
@pytest.mark.parametrize("tail", [b'{"key": "c", "resp', b"\0\0", b'{"a": "\xc3', None])
def test_a_half_written_last_line_is_dropped_unless_only_its_line_end_is_missing(
    tmp_path, capsys, tail, kept
):
    path, _ = fill(tmp_path, *kept)
    complete = path.read_bytes()
    path.write_bytes(complete + tail if tail else complete[:-1])
    assert [row["key"] for row in read(path)] == kept
    _, rows = fill(tmp_path, "c")
    assert list(rows) == keys_of(path) == [*kept, "c"]
    assert path.read_bytes().startswith(complete)
    repaired = f"repaired: dropped a half-written last line of {path}\n"
    assert capsys.readouterr().err == (repaired if tail else "")


def test_blank_lines_are_skipped_and_left_unchanged(tmp_path):
    path, rows = fill(tmp_path, "a", "b")
    content = path.read_text().replace("\n", "\n\n \n")
    path.write_text(content)
    assert fill(tmp_path)[1] == rows
    assert read(path) == [*rows.values()]
    assert path.read_text() == content


BROKEN = ['{"key": "b', "[1]", '{"key": 1, "settings": null}', '"\udcff"']


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_line_and_broken_settings_are_named_and_left_unchanged(
    tmp_path, text, refused
):
    def broken(path, content, function, *arguments):
        path.write_bytes(content.encode("utf-8", "surrogateescape"))
        message = refused(function, *arguments)
        assert path.read_bytes() == content.encode("utf-8", "surrogateescape")
        return message

    path, _ = fill(tmp_path, "a")
    run = tmp_path / "run.json"
    message = broken(run, text, read_settings, tmp_path)
    assert message == f"{run} is broken: delete this file"
    content = f'{{"key": "a"}}\n{text}\n{{"key": "half'
    message = broken(path, content, fill, tmp_path)
    assert re.match(r".*completions\.jsonl(, line 2: not| is not UTF-8)", message)
    assert refused(read, path) == message


def test_rows_of_other_settings_stay_and_the_latest_settings_are_recorded(tmp_path):
    fill(tmp_path, "a")
    _, rows = fill(tmp_path, "b", settings={"seed": None})
    assert list(rows) == ["a", "b"]
    assert read_settings(tmp_path) == {"seed": None}


def test_a_failed_write_loses_no_row_and_the_run_continues_later(
    tmp_path, monkeypatch, refused
):
    path, _ = fill(tmp_path, "a")
    write = os.write

    def write_half(file, data):
        write(file, data[: len(data) // 2])
        raise INPUT_OUTPUT

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write_half)
        message = refused(fill, tmp_path, "b")
    assert message == f"cannot write results to {tmp_path}: Input/output error"
    assert [row["key"] for row in read(path)] == ["a"]
    assert list(fill(tmp_path, "b")[1]) == keys_of(path) == ["a", "b"]


def test_a_file_is_replaced_completely_or_not_at_all(tmp_path, monkeypatch, refused):
    path = tmp_path / "table.json"
    write_json(path, {"b": 1, "a": "\ud800"})
    monkeypatch.setattr(os, "fsync", Mock(side_effect=INPUT_OUTPUT))
    message = refused(write_json, path, {})
    assert message == f"cannot write {path}: Input/output error"
    assert path.read_text() == '{\n "b": 1,\n "a": "\\ud800"\n}\n'
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", row_store.LOCK_ERRORS)
def test_the_error_for_a_file_system_without_locks_names_a_remedy(
    tmp_path, monkeypatch, number, refused
):
    failing = Mock(side_effect=OSError(number, "Function not implemented"))
    monkeypatch.setattr(fcntl, "flock", failing)
    assert refused(fill, tmp_path) == f"cannot write results to {tmp_path}: {NO_LOCKS}"


def test_a_second_writer_waits_for_the_first(tmp_path, capsys):
    second = threading.Thread(target=fill, args=(tmp_path, "b"))
    with opened(tmp_path, SETTINGS) as store:
        second.start()
        while second.is_alive() and "another run writes" not in capsys.readouterr().err:
            time.sleep(0.01)
        store.append({"key": "a"})
    second.join()
    assert keys_of(store.path) == ["a", "b"]


def test_a_folder_that_cannot_be_made_and_a_file_that_cannot_be_read_are_named(
    tmp_path, refused
):
    (tmp_path / "out").touch()
    deeper = tmp_path / "out" / "deeper"
    for folder in (deeper, deeper.parent):
        message = refused(fill, folder)
        assert message == f"cannot write results to {folder}: Not a directory"
        message = refused(write_json, folder / "run.json", {})
        assert message == f"cannot write {folder}/run.json: Not a directory"
    message = refused(read, tmp_path / "none.jsonl")
    assert message.endswith("none.jsonl cannot be read: No such file or directory")


def test_nothing_is_written_after_a_line_that_a_full_disk_cut_off(
    tmp_path, monkeypatch
):
    write = os.write
    monkeypatch.setattr(row_store.os, "write", lambda file, line: write(file, line[:5]))
    with opened(tmp_path, SETTINGS) as rows:
        with pytest.raises(InputError, match="disk full"):
            rows.append({"key": "a"})
        rows.append({"key": "b"})
        assert rows.path.stat().st_size == 5


def test_rows_that_finish_at_the_same_time_are_written_one_by_one(
    tmp_path, monkeypatch
):
    write = os.write

    def write_slowly(file, line):
        time.sleep(0.01)
        return write(file, line)

    monkeypatch.setattr(row_store.os, "write", write_slowly)
    wanted = [{"key": key} for key in "abcdefgh"]
    with opened(tmp_path, SETTINGS) as rows, ThreadPoolExecutor(4) as threads:
        list(threads.map(rows.append, wanted))
    assert sorted(keys_of(rows.path)) == list("abcdefgh")
