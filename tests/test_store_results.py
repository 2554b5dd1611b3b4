"""Results of runs are added to data/PROFILE: what the profile wants and lacks, and
nothing else.
"""

import pytest
from hand_written import keep

from lib import paths
from lib.files.text_files import read
from reproduction.measurement.dataset import read_measured
from reproduction.profiles import load_profile
from studies import store_results

PROFILE = load_profile("authors")
MODEL = "Qwen2.5-Coder-1.5B-Instruct"
# By part: the file with its rows in data/authors, and the name of a run's file.
FILES = {
    "main": ("answers/main.jsonl.gz", "completions.jsonl"),
    "likelihood": (f"likelihood/{MODEL}.jsonl.gz", "scores.jsonl"),
}


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The folder that takes the place of data/authors."""
    monkeypatch.setattr(store_results, "DATA", tmp_path)
    return tmp_path / "authors"


@pytest.mark.parametrize("part", FILES)
def test_new_rows_follow_the_stored_ones_and_others_are_left_out(
    tmp_path, data, capsys, part
):
    kept, written = FILES[part]
    rows = read(paths.DATA / "authors" / kept)[:6]
    other = rows[0] | {"key": "of other settings"}
    first, second = tmp_path / "first", tmp_path / "second" / written
    keep(first / written, rows[:2])
    keep(second, [other, *rows])

    store_results.store_rows(PROFILE, part, [first])
    assert read(data / kept) == rows[:2]
    # Stored rows keep their place and their values.
    changed = [rows[1] | {"level": 0}, rows[0]]
    keep(data / kept, changed)
    store_results.store_rows(PROFILE, part, [second])
    stored = read(data / kept)
    assert stored[:2] == changed
    assert {row["key"] for row in stored[2:]} == {row["key"] for row in rows[2:]}
    printed = capsys.readouterr().out
    assert "1 rows have other settings than the profile" in printed
    assert "4 rows beside the stored 2" in printed

    before = (data / kept).read_bytes()
    store_results.store_rows(PROFILE, part, [first, second])
    assert (data / kept).read_bytes() == before


def test_answers_are_graded_again(tmp_path, data, capsys):
    kept, written = FILES["main"]
    row = read(paths.DATA / "authors" / kept)[0]
    graded_otherwise = row | {"correct": not row["correct"], "method": "older"}
    keep(tmp_path / written, [graded_otherwise])
    store_results.store_rows(PROFILE, "main", [tmp_path])
    assert read(data / kept) == [row]
    changed = f"{row['problem_id']}, {row['condition']}: method, correct changed"
    assert changed in capsys.readouterr().out


def test_stored_measurements_have_twelve_bits(data, monkeypatch):
    measured = store_results.measure(PROFILE)
    name, dataset = next(iter(measured.items()))
    finer = dataset.assign({"lambda": dataset["lambda"] * (1 + 1e-5)})
    monkeypatch.setattr(store_results, "measure", lambda *_, **__: {name: finer})
    store_results.store_measurements(PROFILE)
    stored = read_measured(data / f"{name}.nc")
    assert stored["lambda"].equals(dataset["lambda"])
    assert stored["counts"].equals(dataset["counts"])
