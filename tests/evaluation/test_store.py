"""The store of rows: what survives a stop, a damaged file, a full disk and a second writer."""

import errno
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.errors import InputError
from lib.evaluation.store import FIELDS, frame, opened, read
from lib.paths import ROOT, settings_key, write_json

SETTINGS = {"model": "tiny", "temperature": 0.6, "layers": (1, 2), "filler": {"length": 55}}
# Large enough rows that a kill can fall into a write.
WRITER = """
import sys
from lib.evaluation.store import opened
with opened(sys.argv[1], {}) as store:
    print("open", flush=True)
    for number in range(int(sys.argv[2])):
        store.append({"key": str(number), "response": str(number) * 1000})
"""


def start_writer(folder, count):
    command = [sys.executable, "-c", WRITER, str(folder), str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def raw_keys(folder):
    return [json.loads(line)["key"] for line in (folder / "completions.jsonl").read_text().splitlines()]


def fill(folder, *keys):
    """Append rows of these keys, and return the file and all rows."""
    with opened(folder, SETTINGS) as store:
        for key in keys:
            store.append({"key": key, "response": "ß"})
    return store.path, store.rows


def test_reopened_store_resumes_and_the_first_row_of_a_key_counts(tmp_path):
    with opened(tmp_path / "new" / "run", SETTINGS, {"python": "3.11"}) as store:
        for row in ({"key": "b", "response": "ß"}, {"key": "a"}, {"key": "b", "response": "another"}):
            store.append(row)
    path, rows = fill(tmp_path / "new" / "run", "a")
    assert list(rows.values()) == read(path) == [{"key": "b", "response": "ß"}, {"key": "a"}]
    path.write_text(path.read_text() + '{"key": "a", "by": 3}\n')
    assert fill(path.parent)[1] == rows
    run = json.loads((path.parent / "run.json").read_text())
    assert run["environment"] == {"python": "3.11"} and run["settings"]["layers"] == [1, 2]


@pytest.mark.parametrize("tail", [b'{"key": "c", "resp', b"\0\0", b'{"a": "\xc3'])
def test_half_written_last_line_is_dropped_and_reported(tmp_path, capsys, tail):
    path, _ = fill(tmp_path, "a", "b")
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    assert [row["key"] for row in read(path)] == list(fill(tmp_path)[1]) == ["a", "b"]
    assert capsys.readouterr().err == f"repaired: dropped a half-written last line of {path}\n"
    assert path.read_bytes() == whole
    path.write_bytes(tail)  # nor is it a line when it is the only one
    assert list(fill(tmp_path, "a")[1]) == raw_keys(tmp_path) == ["a"]


def test_whole_last_line_without_newline_gets_it(tmp_path, capsys):
    path, _ = fill(tmp_path, "a", "b")
    path.write_bytes(path.read_bytes()[:-1])
    assert [row["key"] for row in read(path)] == ["a", "b"]
    fill(tmp_path, "c")
    assert raw_keys(tmp_path) == ["a", "b", "c"] and capsys.readouterr().err == ""


@pytest.mark.parametrize("line", ['{"key": "b', "", "[1]", '{"key": 1}'])
def test_broken_middle_line_is_named_by_its_number_and_the_file_left_alone(tmp_path, line):
    path, _ = fill(tmp_path, "a")
    path.write_text(path.read_text() + line + '\n{"key": "c"}\n{"key": "half')
    before = path.read_bytes()
    for reader in (lambda: fill(tmp_path), lambda: read(path)):
        with pytest.raises(InputError, match=r"^line 2 of .*completions\.jsonl is not[^\n]*$"):
            reader()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"temperature": 0.7}, "temperature = 0.6, not 0.7"),
        ({"layers": [1]}, r"layers = \[1, 2\], not \[1\]"),
        ({"filler": {"length": 5}}, "filler.length = 55, not 5"),
        ({"seed": None}, r"seed = \(absent\), not null"),
    ],
)
def test_other_settings_are_refused_by_name(tmp_path, changed, message):
    fill(tmp_path, "a")
    with pytest.raises(InputError, match=message + ": use another folder, or delete this one$"):
        opened(tmp_path, SETTINGS | changed).__enter__()


@pytest.mark.parametrize("text", ["", "[]", '{"settings": null}', "\udcff"])
def test_broken_run_file_is_refused_in_one_line(tmp_path, text):
    (tmp_path / "run.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"run\.json is broken: use another folder[^\n]*$"):
        fill(tmp_path)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (0, r"^disk full .*: nothing lost; free space and run again$"),  # none, but half is written
        (errno.ENOSPC, r"^disk full .*: nothing lost; free space and run again$"),
        (errno.EIO, r"^cannot write results to .*: Input/output error$"),
    ],
)
def test_a_write_that_fails_loses_nothing_and_the_run_goes_on_later(tmp_path, monkeypatch, code, said):
    path, _ = fill(tmp_path, "a")
    before, write = path.read_bytes(), os.write

    def write_half(file, data):
        written = write(file, data[: len(data) // 2])
        if code:
            raise OSError(code, os.strerror(code))
        return written

    with monkeypatch.context() as patch, pytest.raises(InputError, match=said):
        patch.setattr(os, "write", write_half)
        fill(tmp_path, "b")
    assert path.read_bytes() == before
    assert list(fill(tmp_path, "b")[1]) == raw_keys(tmp_path) == ["a", "b"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "table.json"
    write_json(path, {"b": 1, "a": "\ud800"})
    assert path.read_text() == '{\n "b": 1,\n "a": "\\ud800"\n}\n'

    def fail(*given):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match=r"^cannot write .*table\.json: Input/output error$"):
        write_json(path, {})
    assert json.loads(path.read_text())["b"] == 1 and not list(tmp_path.glob(".*"))  # no temporary file


def test_writers_at_once_wait_for_each_other_and_killed_ones_leave_every_key_once(tmp_path):
    count, writer = 200, start_writer(tmp_path, 200)
    for seconds in (0.01, 0.02):
        waiting = start_writer(tmp_path, count)
        assert writer.stdout.readline() == "open\n"
        time.sleep(seconds)
        writer.kill()
        writer.communicate()
        writer = waiting
    writer.communicate()
    assert writer.returncode == 0 and raw_keys(tmp_path) == [str(number) for number in range(count)]


def utf16(text):
    # JSON cannot tell a character from its two surrogates side by side; everything else comes back as it was.
    return text.encode("utf-16-le", "surrogatepass")


@settings(max_examples=40)
@given(st.text(st.characters(exclude_categories=())))
def test_any_response_survives_a_round_trip(response):
    with tempfile.TemporaryDirectory() as folder:
        with opened(folder, {"prefix": response}) as store:
            store.append({"key": settings_key(response=response), "response": response})
        with opened(folder, {"prefix": response}) as again:
            assert again.rows == store.rows and list(store.rows.values()) == read(store.path)
        assert utf16(next(iter(again.rows.values()))["response"]) == utf16(response)


def test_a_file_or_folder_that_is_not_there_or_broken_is_named_in_one_line(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match=r"^cannot write results to [^\n]*out[^\n]*: [^\n]+$"):
        fill(tmp_path / "out" / "deeper")
    with pytest.raises(InputError, match=r"^cannot read .*none\.jsonl: No such file or directory$"):
        read(tmp_path / "none.jsonl")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"key": "a"}\n')[:-9])
    with pytest.raises(InputError, match=r"^cannot read .*cut\.jsonl\.gz: Compressed file ended[^\n]*$"):
        read(tmp_path / "cut.jsonl.gz")


def test_shards_have_files_of_their_own_and_are_merged_by_reading(tmp_path):
    for i in (1, 2, 3):
        with opened(tmp_path, SETTINGS, shard=(i, 3)) as store:
            for number in range(i - 1, 9, 3):
                store.append({"key": str(number)})
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == [f"completions-{i}-of-3.jsonl" for i in (1, 2, 3)]
    other = tmp_path / "completions-2-of-3.jsonl"
    other.write_bytes(other.read_bytes() + b'{"key": "9", "resp')  # which its shard is writing
    before = other.read_bytes()
    with opened(tmp_path, SETTINGS) as whole:
        assert not whole.rows and sorted(whole.everything()) == [str(n) for n in range(9)]
    assert other.read_bytes() == before


def test_what_is_there_is_not_made_again_and_what_is_made_is_kept_at_once(tmp_path):
    asked = []

    def make(missing, bar):
        for key in missing:
            asked.append((key, list(store.rows)))
            yield {"key": key}

    with opened(tmp_path, SETTINGS) as store:
        store.fill("m", "row", {"a": 1, "b": 2}, make)
        store.fill("m", "row", {"a": 1, "b": 2, "c": 3}, make)
        store.fill("m", "row", {"a": 1}, lambda missing, bar: pytest.fail("nothing is missing"))
    assert asked == [("a", []), ("b", ["a"]), ("c", ["a", "b"])] and raw_keys(tmp_path) == ["a", "b", "c"]


def test_a_frame_has_every_field_and_what_counts_as_solved():
    row = {"model": "m", "condition": "none", "problem_id": "embedded/sum/1", "sample": 0, "response": ""}
    row |= {"correct": True, "evaluated": False}
    rows = [row, row | {"evaluated": True}, row | {"problem_id": "own/1"}, row | {"correct": False, "evaluated": True}]
    table = frame(rows, "fillers")
    assert table.right.tolist() == [False, True, True, False] and table.correct.tolist() == [True, True, True, False]
    assert table.worked_out.tolist() == [False, True, False, False]
    assert list(table)[: len(FIELDS)] == FIELDS and set(table.part) == {"fillers"} and frame([]).empty
    with pytest.raises(InputError, match=r"completions.jsonl: model: missing field"):
        frame([row, {"key": "a"}])
