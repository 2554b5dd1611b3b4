"""Results of runs are added to data/PROFILE: what the profile wants and lacks, and
nothing else.
"""

from itertools import product

import pytest
from hand_written import keep

from lib import paths
from lib.files.text_files import read
from lib.prompts.problems import listed_problems, sampling_order
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


ORDER = [one.id for one in sampling_order(listed_problems("math500"), 0)]


@pytest.fixture(params=FILES)
def run(request, tmp_path):
    """A part, its file, the file of a run, and rows of two problems, each under none
    and mless.
    """
    kept, written = FILES[request.param]
    stored = read(paths.DATA / "authors" / kept)
    by_group = {(row["problem_id"], row["condition"]): row for row in stored}
    first, second, *_ = [name for name in ORDER if (name, "none") in by_group]
    wanted = product((first, second), ("none", "mless"))
    rows = [by_group[group] for group in wanted]
    return request.param, kept, tmp_path / written, rows


def test_new_rows_follow_the_stored_ones_and_others_are_left_out(data, capsys, run):
    part, kept, written, rows = run
    keep(written, rows[:2])
    store_results.store_rows(PROFILE, part, [written])
    assert read(data / kept) == rows[:2]
    # Stored rows keep their place and their values.
    changed = [rows[1] | {"level": 0}, rows[0]]
    keep(data / kept, changed)
    keep(written, [rows[0] | {"key": "of other settings"}, *rows])
    store_results.store_rows(PROFILE, part, [written.parent])
    stored = read(data / kept)
    assert stored[:2] == changed
    assert {row["key"] for row in stored[2:]} == {row["key"] for row in rows[2:]}
    printed = capsys.readouterr().out
    assert "1 rows have other settings than the profile" in printed
    assert "2 rows beside the stored 2" in printed


def test_a_run_that_has_not_finished_is_refused(data, refused, run):
    part, _, written, rows = run
    keep(written, rows[1:])
    message = refused(store_results.store_rows, PROFILE, part, [written])
    assert "let the run finish" in message
    assert not data.exists()


def test_answers_are_graded_again(tmp_path, data, capsys):
    kept, written = FILES["main"]
    stored = read(paths.DATA / "authors" / kept)
    row = next(row for row in stored if row["problem_id"] == ORDER[0])
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
