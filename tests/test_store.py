"""The store of rows: what survives a stop, a damaged file, a full disk and a second
writer.
"""

import errno
import functools
import gzip
import json
import os
import threading
import time
from unittest.mock import Mock

import pytest

from lib import store
from lib.errors import InputError
from lib.files import write_json
from lib.store import read

opened = functools.partial(store.opened, file="completions.jsonl")

SETTINGS = {
    "model": "tiny",
    "temperature": 0.6,
    "layers": (1, 2),
    "filler": {"length": 55},
}


def keys_of(path):
    return [json.loads(line)["key"] for line in path.read_text().splitlines()]


def fill(folder, *keys):
    """Append rows of these keys, and return the file and all rows."""
    with opened(folder, SETTINGS) as store:
        for key in keys:
            store.append({"key": key, "response": "ß"})
    return store.path, store.rows


def test_reopened_store_resumes_and_the_first_row_of_a_key_counts(tmp_path):
    with opened(tmp_path / "new" / "run", SETTINGS, {"python": "3.11"}) as store:
        for row in (
            {"key": "b", "response": "ß"},
            {"key": "a"},
            {"key": "b", "response": "another"},
        ):
            store.append(row)
    path, rows = fill(tmp_path / "new" / "run", "a")
    assert read(path) == [{"key": "b", "response": "ß"}, {"key": "a"}]
    assert list(rows.values()) == read(path)
    path.write_text(path.read_text() + '{"key": "a", "by": 3}\n')
    assert fill(path.parent)[1] == rows
    run = json.loads((path.parent / "run.json").read_text())
    assert run["environment"] == {"python": "3.11"}
    assert run["settings"]["layers"] == [1, 2]


def test_of_several_files_the_first_row_of_a_key_counts(tmp_path):
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file in files:
        file.write_text(json.dumps({"key": "k", "by": file.stem}) + "\n")
    assert read(*files) == [{"key": "k", "by": "a"}]
    assert read(*reversed(files)) == [{"key": "k", "by": "b"}]


def test_what_another_shard_has_is_not_missing(tmp_path):
    fill(tmp_path, "a")
    with opened(tmp_path, SETTINGS, shard=(2, 2)) as store:
        assert list(store.missing({"a": 1, "b": 2})) == ["b"]


# Half a line is none when it is the only one, either.
@pytest.mark.parametrize("kept", [["a", "b"], []])
@pytest.mark.parametrize("tail", [b'{"key": "c", "resp', b"\0\0", b'{"a": "\xc3', None])
def test_a_half_written_last_line_is_dropped_and_one_that_lacks_its_end_alone_is_kept(
    tmp_path, capsys, tail, kept
):
    path, _ = fill(tmp_path, *kept)
    whole = path.read_bytes()
    path.write_bytes(whole + tail if tail else whole[:-1])
    assert [row["key"] for row in read(path)] == kept
    _, rows = fill(tmp_path, "c")
    assert list(rows) == keys_of(path) == [*kept, "c"]
    assert path.read_bytes().startswith(whole)
    repaired = f"repaired: dropped a half-written last line of {path}\n"
    assert capsys.readouterr().err == (repaired if tail else "")


BROKEN = ['{"key": "b', "", "[1]", '{"key": 1, "settings": null}', '"\udcff"']


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_line_is_named_in_one_line_and_left_alone(tmp_path, text):
    path, _ = fill(tmp_path, "a")
    text = f'{{"key": "a"}}\n{text}\n{{"key": "half'
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = path.read_bytes()
    message = r"^line 2 of .*completions\.jsonl is not[^\n]*$"
    with pytest.raises(InputError, match=message):
        read(path)
    with pytest.raises(InputError, match=message):
        fill(tmp_path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", BROKEN)
def test_broken_settings_are_named_in_one_line_and_left_alone(tmp_path, text):
    fill(tmp_path, "a")
    path = tmp_path / "run.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = path.read_bytes()
    message = r"run\.json is broken: use another folder, or delete this one$"
    with pytest.raises(InputError, match=message):
        fill(tmp_path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"filler": {"length": 5}}, "filler.length = 55, not 5"),
        ({"filler": {}}, r"filler.length = 55, not \(absent\)"),
        ({"seed": None}, r"seed = \(absent\), not null"),
    ],
)
def test_other_settings_are_refused_by_name(tmp_path, changed, message):
    fill(tmp_path, "a")
    with pytest.raises(
        InputError, match=message + ": use another folder, or delete this one$"
    ):
        opened(tmp_path, SETTINGS | changed).__enter__()


def test_a_write_that_fails_loses_nothing_and_the_run_goes_on_later(
    tmp_path, monkeypatch
):
    path, _ = fill(tmp_path, "a")
    write = os.write

    def write_half(file, data):
        write(file, data[: len(data) // 2])
        raise OSError(errno.EIO, "Input/output error")

    with (
        monkeypatch.context() as patch,
        pytest.raises(InputError, match=r"^cannot write results to .*: Input/output"),
    ):
        patch.setattr(os, "write", write_half)
        fill(tmp_path, "b")
    assert [row["key"] for row in read(path)] == ["a"]
    assert list(fill(tmp_path, "b")[1]) == keys_of(path) == ["a", "b"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    write_json(path := tmp_path / "table.json", {"b": 1, "a": "\ud800"})
    monkeypatch.setattr(
        os, "fsync", Mock(side_effect=OSError(errno.EIO, "Input/output error"))
    )
    with pytest.raises(
        InputError, match=r"^cannot write .*table\.json: Input/output error$"
    ):
        write_json(path, {})
    assert path.read_text() == '{\n "b": 1,\n "a": "\\ud800"\n}\n' and list(
        tmp_path.iterdir()
    ) == [path]


def test_a_second_writer_waits_for_the_first(tmp_path, capsys):
    second = threading.Thread(target=fill, args=(tmp_path, "b"))
    with opened(tmp_path, SETTINGS) as store:
        second.start()
        while second.is_alive() and "another run writes" not in capsys.readouterr().err:
            time.sleep(0.01)
        store.append({"key": "a"})
    second.join()
    assert keys_of(store.path) == ["a", "b"]


def test_a_file_or_folder_that_is_not_there_or_broken_is_named_in_one_line(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(
        InputError, match=r"^cannot write results to [^\n]*out[^\n]*: [^\n]+$"
    ):
        fill(tmp_path / "out" / "deeper")
    with pytest.raises(
        InputError, match=r"none\.jsonl cannot be read: No such file or directory$"
    ):
        read(tmp_path / "none.jsonl")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"key": "a"}\n')[:-9])
    with pytest.raises(
        InputError, match=r"cut\.jsonl\.gz cannot be read: Compressed file ended[^\n]*$"
    ):
        read(tmp_path / "cut.jsonl.gz")


def test_what_is_there_is_not_made_again_and_what_is_made_is_kept_at_once(tmp_path):
    made = []

    def rows(keys):
        for key in keys:
            made.append((key, list(store.rows)))
            yield {"key": key}

    with opened(tmp_path, SETTINGS) as store:
        for wanted in ("ab", "abc", "a"):
            assert not store.fill(dict.fromkeys(wanted), rows, "m", "row")
    assert made == [("a", []), ("b", ["a"]), ("c", ["a", "b"])]
    assert keys_of(store.path) == ["a", "b", "c"]
