"""Problem sets load completely or sampled; errors in their files take one line."""

import json
from collections import Counter
from types import SimpleNamespace

import datasets
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import paths
from lib.prompts import problems as module
from lib.prompts.conditions import parse_condition
from lib.prompts.problems import (
    Problem,
    describe,
    digest,
    load_problems,
    posed,
    stratified_sample,
)

GOOD = {
    "problem": "What is $1+1$?",
    "answer": "2",
    "subject": "Algebra",
    "level": 1,
    "unique_id": "a",
}
BARE = {"problem": "p", "answer": "1"}
ROWS = [GOOD | {"unique_id": f"test/{i}.json", "answer": str(i)} for i in range(7)]
KNOWN = [Problem(**row) for row in ROWS]
MATH500 = [1] * 43 + [2] * 90 + [3] * 105 + [4] * 128 + [5] * 134


@pytest.fixture(autouse=True)
def nothing_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "DATA", tmp_path / "data")
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")


@pytest.fixture
def write(tmp_path):
    """A function that writes a JSONL file; a row that is a string is written as it
    is.
    """

    def written(*rows, to="set.jsonl"):
        path = tmp_path / to
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return written


def made(*levels):
    """Return problems of these levels."""
    return [
        Problem(unique_id=f"p{number}", **BARE, level=level)
        for number, level in enumerate(levels)
    ]


def test_a_level_is_read_however_files_write_it(write):
    levels = {"Level 3": 3, "Level ?": 0, "5": 5, 4.0: 4, None: 0}
    path = write(*(BARE | {"level": level} for level in levels))
    assert [problem.level for problem in load_problems(path)] == [*levels.values()]


def test_fields_are_read_as_written_and_missing_ones_are_unknown(write):
    row = GOOD | {"problem": "a\u2028b"}
    marked = "\ufeff" + json.dumps(row, ensure_ascii=False)
    missing = dict.fromkeys(("unique_id", "subject", "solution", "level"), float("nan"))
    numbered = BARE | {"answer": 1, "unique_id": 5}
    unknown = BARE | {"subject": "", "solution": "", "level": 0}
    assert load_problems(write(marked, "", BARE, numbered, BARE | missing)) == [
        Problem(**row),
        Problem(unique_id="line-3", **unknown),
        Problem(unique_id="5", **unknown),
        Problem(unique_id="line-5", **unknown),
    ]


def test_a_numeric_gold_answer_is_read_in_digits(write):
    numbers = {1e-7: "0.0000001", 1e22: "1" + 22 * "0", 2.50: "2.5"}
    numbers[10**400] = "1" + 400 * "0"
    for number, digits in numbers.items():
        (problem,) = load_problems(write(BARE | {"answer": number}))
        assert problem.answer == digits


LEVEL = "level: must be "


@pytest.mark.parametrize(
    "row, complaint",
    [
        ("[1, 2]", "must be a valid dictionary"),
        ({"answer": "1"}, "problem: missing field"),
        (BARE | {"answer": "  "}, 'answer: must not be empty, not "  "'),
        (BARE | {"answer": float("nan")}, "answer: must not be empty, not NaN"),
        (BARE | {"answer": True}, "answer: must be text or a number, not true"),
        (
            BARE | {"answer": float("inf")},
            "answer: must be text or a number, not Infinity",
        ),
        (BARE | {"problem": None}, "problem: must not be empty, not null"),
        (GOOD, "unique_id 'a' was already used on line 1"),
        (
            BARE | {"unique_id": "embedded/a"},
            "unique_id 'embedded/a' begins as those of",
        ),
        (BARE | {"level": "hard"}, LEVEL),
        (BARE | {"level": 2.5}, LEVEL),
        (BARE | {"level": True}, LEVEL),
        (BARE | {"level": -1}, LEVEL),
    ],
)
def test_an_invalid_line_of_a_problem_file_is_named(write, refused, row, complaint):
    assert f"line 2: {complaint}" in refused(load_problems, write(GOOD, row))


def test_a_selection_without_problems_is_refused(refused):
    assert "at least 1" in refused(load_problems, "embedded", limit=0)
    message = refused(load_problems, "embedded", levels=[0, 7])
    assert message == "embedded has no problem of level 0 or 7"


@pytest.mark.parametrize(
    ("levels", "limit", "shares"),
    [
        # The proportional shares are 2.0, 1.2 and 0.8.
        ([1] * 5 + [2] * 3 + [3] * 2, 4, {1: 2, 2: 1, 3: 1}),
        # A tie goes to the lower level.
        ([2, 1], 1, {1: 1}),
        (MATH500, 40, {1: 4, 2: 7, 3: 8, 4: 10, 5: 11}),
        (MATH500, 50, {1: 4, 2: 9, 3: 11, 4: 13, 5: 13}),
    ],
)
def test_a_sample_is_stratified_by_level_whatever_the_order_of_the_file(
    levels, limit, shares
):
    everything = made(*levels)
    sample = stratified_sample(everything, limit, 0)
    assert Counter(problem.level for problem in sample) == shares
    of_reversed = stratified_sample(everything[::-1], limit, 0)
    assert set(of_reversed) == set(sample)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=40), st.integers(0, 9))
def test_a_sample_has_its_size_keeps_the_order_and_contains_smaller_samples(
    levels, seed
):
    everything = made(*levels)
    smaller = []
    for size in range(1, len(levels) + 1):
        sample = stratified_sample(everything, size, seed)
        assert len(sample) == size
        assert sample == [problem for problem in everything if problem in sample]
        assert set(smaller) <= set(sample)
        smaller = sample


@pytest.mark.parametrize(
    "limit, levels, begin", [(100, None, "bcc4"), (48, (1, 2, 3), "5796")]
)
def test_the_demos_samples_are_those_of_the_stored_answers_and_depend_on_the_seed(
    limit, levels, begin
):
    sample = load_problems("embedded", limit, levels=levels)
    assert digest(sample)[:4] == begin
    assert digest(sample[::-1])[:4] != begin
    others = load_problems("embedded", limit, seed=1, levels=levels)
    assert digest(others)[:4] != begin


@pytest.fixture
def hub(monkeypatch):
    """A hub that answers with `rows`, where ROWS count as MATH-500, and records the
    `requests` of the library datasets.
    """
    hub = SimpleNamespace(rows=ROWS, requests=[])
    monkeypatch.setattr(module, "MATH500_SHA256", digest(KNOWN))

    def dataset_info(self, name, revision, timeout):
        return None

    def load_dataset(name, split, revision):
        hub.requests.append((name, split, revision))
        return datasets.Dataset.from_list(hub.rows)

    monkeypatch.setattr(module.HfApi, "dataset_info", dataset_info)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return hub


def test_a_source_has_a_name(write):
    assert describe("embedded") == "embedded set"
    assert describe("math500") == "MATH-500"
    assert describe(write(*ROWS)) == "set.jsonl"


@pytest.mark.parametrize(
    "folder, rows, times",
    [("data", ROWS, 0), ("cache", ROWS, 0), ("cache", ROWS[:3], 1), ("data", [], 1)],
)
def test_math500_is_the_local_copy_or_is_fetched_once_at_its_pinned_revision(
    hub, folder, rows, times, write
):
    if rows:
        write(*rows, to=f"{folder}/math500.jsonl")
    assert load_problems("math500") == KNOWN
    assert len(load_problems("math500", limit=5)) == 5
    pinned = ("HuggingFaceH4/MATH-500", "test", module.MATH500_REVISION)
    assert hub.requests == [pinned] * times


def test_a_hub_with_an_altered_math500_or_none_is_refused(hub, refused, monkeypatch):
    hub.rows = [*ROWS[:6], ROWS[6] | {"answer": "6 "}]
    assert "is not the known MATH-500" in refused(load_problems, "math500")
    monkeypatch.setattr(module.HfApi, "dataset_info", lambda *_, **__: 1 / 0)
    assert "give the path to a JSONL file" in refused(load_problems, "math500")
    assert len(hub.requests) == 1  # a hub that does not answer gets no request for rows


def test_another_file_in_the_place_of_math500_is_refused(hub, write, refused):
    write(*ROWS[:3], to="data/math500.jsonl")
    message = refused(load_problems, "math500")
    assert "data/math500.jsonl is not the known MATH-500" in message
    assert not hub.requests


def test_a_cache_that_cannot_be_written_is_reported_in_one_line(hub, refused, tmp_path):
    (tmp_path / "cache").touch()
    message = refused(load_problems, "math500")
    assert message.startswith(f"cannot write {tmp_path}/cache/math500.jsonl: ")


def test_a_problem_is_posed_as_its_condition_says(refused):
    solution = "It is $1.5$ in all. So twice is $\\boxed{3}$."
    solved = Problem(**BARE, unique_id="a", solution=solution)
    put = {"mless": "p", "repeat": "p\n\np", "hint": "p\n\nIt is $1.5$ in all."}
    for condition, text in put.items():
        assert posed(solved, parse_condition(condition)) == text
    message = refused(posed, *made(1), parse_condition("hint"))
    assert message.startswith("problem p0 has no solution, of which hint")
