"""The store of completions: what survives a stop, a damaged file, a full disk and a second writer."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.errors import InputError
from lib.evaluation.store import Store, read_records
from lib.paths import ROOT, settings_key, write_json

SETTINGS = {"model": "tiny", "temperature": 0.6, "layers": (1, 2)}
# Large enough records that a kill can fall into a write.
WRITER = """
import sys
from lib.evaluation.store import Store
store = Store(sys.argv[1], {})
print("open", flush=True)
for number in range(int(sys.argv[2])):
    store.append({"key": str(number), "response": str(number) * 2000})
"""


def start_writer(folder, count):
    command = [sys.executable, "-c", WRITER, str(folder), str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def raw_keys(folder):
    return [json.loads(line)["key"] for line in (folder / "completions.jsonl").read_text().splitlines()]


def fill(folder, *keys):
    store = Store(folder, SETTINGS)
    for key in keys:
        store.append({"key": key, "response": "x"})
    return folder / "completions.jsonl"


def test_reopened_store_resumes(tmp_path):
    store = Store(tmp_path / "new" / "run", SETTINGS, {"python": "3.11"})
    assert store.append({"key": "b", "response": "ß"}) and store.append({"key": "a"})
    assert not store.append({"key": "b", "response": "another"})
    again = Store(tmp_path / "new" / "run", SETTINGS)
    assert again.records == store.records == [{"key": "b", "response": "ß"}, {"key": "a"}]
    assert again.done == {"a", "b"} and not again.append({"key": "a"})
    run = json.loads((tmp_path / "new" / "run" / "run.json").read_text())
    assert run["environment"] == {"python": "3.11"} and run["settings"]["layers"] == [1, 2]


@pytest.mark.parametrize("tail", [b'{"key": "c", "resp', b"\0\0", b'{"a": "\xc3'])
def test_half_written_last_line_is_dropped_and_reported(tmp_path, capsys, tail):
    path = fill(tmp_path, "a", "b")
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    assert Store(tmp_path, SETTINGS).done == {"a", "b"}
    assert capsys.readouterr().err == f"repaired: dropped a half-written last line of {path}\n"
    assert path.read_bytes() == whole
    Store(tmp_path, SETTINGS)
    assert capsys.readouterr().err == ""


def test_only_line_half_written_leaves_an_empty_store(tmp_path):
    fill(tmp_path).write_bytes(b'{"key')
    store = Store(tmp_path, SETTINGS)
    assert store.append({"key": "a"}) and raw_keys(tmp_path) == ["a"]


def test_whole_last_line_without_newline_gets_it(tmp_path, capsys):
    path = fill(tmp_path, "a", "b")
    path.write_bytes(path.read_bytes()[:-1])
    store = Store(tmp_path, SETTINGS)
    assert store.append({"key": "c"}) and raw_keys(tmp_path) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""


def test_half_line_of_a_killed_second_writer_is_dropped_before_the_next_append(tmp_path):
    path = fill(tmp_path, "a")
    store = Store(tmp_path, SETTINGS)
    path.write_bytes(path.read_bytes() + b'{"key": "b"}\n{"key": "c')
    assert store.append({"key": "c"}) and raw_keys(tmp_path) == ["a", "b", "c"]


@pytest.mark.parametrize("line", ['{"key": "b', "", "[1]", '{"key": 1}'])
def test_broken_middle_line_is_named_and_the_file_left_alone(tmp_path, line):
    path = fill(tmp_path, "a")
    path.write_text(path.read_text() + line + '\n{"key": "c"}\n{"key": "half')
    before = path.read_bytes()
    for read in (lambda: Store(tmp_path, SETTINGS), lambda: read_records(path)):
        with pytest.raises(InputError, match=r"^line 2 of .*completions\.jsonl is not[^\n]*$"):
            read()
    assert path.read_bytes() == before


def test_line_number_counts_from_the_start_of_the_file_after_a_resume(tmp_path):
    path = fill(tmp_path, "a", "b")
    store = Store(tmp_path, SETTINGS)
    path.write_text(path.read_text() + 'oops\n{"key": "c"}\n')
    with pytest.raises(InputError, match=r"^line 3 of "):
        store.append({"key": "d"})


def test_whole_last_line_of_something_else_is_not_cut_off(tmp_path):
    path = fill(tmp_path)
    path.write_text('{"loss": 1}\n')
    with pytest.raises(InputError, match="line 1 of"):
        Store(tmp_path, SETTINGS)
    assert path.read_text() == '{"loss": 1}\n'


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"temperature": 0.7}, "temperature = 0.6, not 0.7"),
        ({"layers": [1]}, r"layers = \[1, 2\], not \[1\]"),
        ({"model": None}, 'model = "tiny", not null'),
        ({"seed": None}, r"seed = \(absent\), not null"),
    ],
)
def test_other_settings_are_refused_by_name(tmp_path, changed, message):
    fill(tmp_path, "a")
    with pytest.raises(InputError, match=message + ": use another folder, or delete this one$"):
        Store(tmp_path, SETTINGS | changed)


@pytest.mark.parametrize("text", ["", "[]", '{"settings": null}', "\udcff"])
def test_broken_run_file_is_refused_in_one_line(tmp_path, text):
    (tmp_path / "run.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"run\.json is broken: use another folder[^\n]*$"):
        Store(tmp_path, SETTINGS)


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_folder_that_is_a_file_is_refused_in_one_line(tmp_path, inside):
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match=r"^cannot write results to [^\n]*out[^\n]*: [^\n]+$"):
        Store(tmp_path / "out" / inside, SETTINGS)


@pytest.mark.parametrize("raises", [True, False])
def test_full_disk_loses_nothing_and_the_run_goes_on_later(tmp_path, monkeypatch, raises):
    path = fill(tmp_path, "a")
    before, store, write = path.read_bytes(), Store(tmp_path, SETTINGS), os.write

    def write_half(file, data):
        written = write(file, data[: len(data) // 2])
        if raises:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write_half)
        with pytest.raises(InputError, match=r"^disk full .*: nothing lost; free space and run again$"):
            store.append({"key": "b"})
    assert path.read_bytes() == before and store.done == {"a"}
    assert store.append({"key": "b"}) and raw_keys(tmp_path) == ["a", "b"]


def test_other_write_errors_are_told_in_one_line(tmp_path, monkeypatch):
    store = Store(tmp_path, SETTINGS)

    def fail(file, data):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        with pytest.raises(InputError, match=r"^cannot write results to .*: Input/output error$"):
            store.append({"key": "a"})
    assert store.append({"key": "a"})


def test_two_stores_share_a_folder(tmp_path):
    first, second = Store(tmp_path, SETTINGS), Store(tmp_path, SETTINGS)
    assert first.append({"key": "a", "by": 1})
    assert not second.append({"key": "a", "by": 2})
    assert second.append({"key": "b", "by": 2}) and not first.append({"key": "b", "by": 1})
    assert first.records == second.records == [{"key": "a", "by": 1}, {"key": "b", "by": 2}]
    path = fill(tmp_path)
    path.write_text(path.read_text() + '{"key": "a", "by": 3}\n')  # the first of a key counts
    assert Store(tmp_path, SETTINGS).records == read_records(path) == first.records


def test_file_that_shrinks_during_a_run_is_refused(tmp_path):
    path = fill(tmp_path, "a")
    store = Store(tmp_path, SETTINGS)
    path.write_bytes(b"")
    with pytest.raises(InputError, match="shortened"):
        store.append({"key": "b"})


@pytest.mark.parametrize("record", [{}, {"key": 1}, {"key": None}])
def test_record_without_a_key_is_not_written(tmp_path, record):
    store = Store(tmp_path, SETTINGS)
    with pytest.raises(InputError, match="key"):
        store.append(record)
    assert store.path.read_bytes() == b""


def test_processes_at_once_write_every_key_once(tmp_path):
    writers = [start_writer(tmp_path, 300) for _ in range(4)]
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * 4
    assert sorted(map(int, raw_keys(tmp_path))) == list(range(300))


def test_killed_writers_leave_a_store_that_resumes(tmp_path):
    count, delay = 3000, random.Random(0)
    for _ in range(5):
        with start_writer(tmp_path, count) as writer:
            assert writer.stdout.readline() == "open\n"
            time.sleep(delay.uniform(0, 0.02))
            writer.kill()
        assert writer.returncode == -signal.SIGKILL
    assert len(Store(tmp_path, {}).done) < count
    with start_writer(tmp_path, count) as writer:
        writer.communicate()
    assert writer.returncode == 0 and raw_keys(tmp_path) == [str(number) for number in range(count)]


def utf16(text):
    # JSON cannot tell a character from its two surrogates side by side; everything else comes back as it was.
    return text.encode("utf-16-le", "surrogatepass")


@settings(max_examples=40)
@given(st.text(st.characters(exclude_categories=())))
def test_any_response_survives_a_round_trip(response):
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder, {"prefix": response})
        store.append({"key": settings_key(response=response), "response": response})
        again = Store(folder, {"prefix": response})
        assert again.records == store.records == read_records(store.path)
        assert utf16(again.records[0]["response"]) == utf16(response)


def test_key_is_16_hex_digits_that_depend_on_every_part_but_not_on_order():
    key = settings_key(problem="1", sample=0)
    assert key == settings_key(sample=0, problem="1") and len(key) == 16 and int(key, 16) >= 0
    assert key not in {settings_key(problem="1", sample=1), settings_key(problem=1, sample=0)}


def test_missing_file_of_records_is_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match=r"^cannot read .*none\.jsonl: No such file or directory$"):
        read_records(tmp_path / "none.jsonl")


def test_failed_json_write_keeps_the_old_file_and_no_temporary_one(tmp_path, monkeypatch):
    path = tmp_path / "table.json"
    write_json(path, {"b": 1, "a": "\ud800"})
    assert path.read_text() == '{\n "b": 1,\n "a": "\\ud800"\n}\n'

    def fail(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match=r"^cannot write .*table\.json: No space left on device$"):
        write_json(path, {})
    assert json.loads(path.read_text())["b"] == 1 and os.listdir(tmp_path) == ["table.json"]


def test_shards_have_files_of_their_own_and_are_merged_by_reading(tmp_path):
    stores = [Store(tmp_path, SETTINGS, shard=(i, 3)) for i in (1, 2, 3)]
    for number in range(9):
        stores[number % 3].append({"key": str(number)})
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == [f"completions-{i}-of-3.jsonl" for i in (1, 2, 3)]
    whole = Store(tmp_path, SETTINGS)
    assert not whole.records and sorted(r["key"] for r in whole.everything()) == [str(n) for n in range(9)]


def test_a_line_that_another_shard_is_writing_is_left_alone(tmp_path):
    Store(tmp_path, SETTINGS, shard=(2, 2)).append({"key": "a"})
    other = tmp_path / "completions-2-of-2.jsonl"
    other.write_bytes(other.read_bytes() + b'{"key": "b", "resp')
    before = other.read_bytes()
    assert [r["key"] for r in Store(tmp_path, SETTINGS, shard=(1, 2)).everything()] == ["a"]
    assert other.read_bytes() == before
