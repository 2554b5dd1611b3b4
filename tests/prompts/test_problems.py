"""Problem sets load whole or sampled; what is wrong with one is said in a line."""

import json
from collections import Counter
from types import SimpleNamespace

import datasets
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import paths
from lib.errors import InputError
from lib.prompts import problems
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
LEVELS = (1, 2, 3)
# The demo's samples: their sizes and levels, and how their digests begin.
DEMO = [
    (100, None, "bcc4"),
    (48, LEVELS, "5796"),
]


@pytest.fixture(autouse=True)
def nothing_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(problems, "DATA", tmp_path / "data")
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")


@pytest.fixture
def write(tmp_path):
    """Write a JSONL file of rows; a string goes in as it is."""

    def written(*rows, to="set.jsonl"):
        path = tmp_path / to
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return written


@pytest.mark.parametrize(
    "level, number",
    [("Level 3", 3), ("Level ?", 0), ("5", 5), (5.0, 5), (None, 0)],
)
def test_a_level_is_read_however_files_write_it(write, level, number):
    (problem,) = load_problems(write(BARE | {"level": level}))
    assert problem.level == number


@pytest.mark.parametrize("level", ["hard", 2.5, True, -1])
def test_a_level_that_is_no_number_is_refused(write, level):
    with pytest.raises(InputError, match=r"line 1: level: must be "):
        load_problems(write(BARE | {"level": level}))


def made(*levels):
    """Return problems of these levels."""
    numbered = []
    for number, level in enumerate(levels):
        problem = Problem(unique_id=f"p{number}", **BARE, level=level)
        numbered.append(problem)
    return numbered


def test_fields_are_read_as_they_are_written(write):
    row = GOOD | {"problem": "a\u2028b", "level": "Level 3"}
    marked = "\ufeff" + json.dumps(row, ensure_ascii=False)
    (problem,) = load_problems(write(marked))
    assert problem.id == "a"
    assert problem.problem == "a\u2028b"
    assert problem.answer == "2"
    assert problem.subject == "Algebra"
    assert problem.level == 3


def test_what_is_missing_is_not_known(write):
    without_level = BARE | {"level": None, "answer": 1, "unique_id": 5}
    path = write(GOOD, "", BARE, without_level)
    _, bare, numbered = load_problems(path)
    unknown = BARE | {"subject": "", "level": 0}
    assert bare == Problem(unique_id="line-3", **unknown)
    assert numbered == Problem(unique_id="5", **unknown)


@pytest.mark.parametrize(
    "row, complaint",
    [
        ("[1, 2]", "line 2: must be fields with values"),
        ({"answer": "1"}, "line 2: problem: missing field"),
        (BARE | {"answer": "  "}, "line 2: answer: missing field"),
        (GOOD, "line 2: unique_id 'a' was already used on line 1"),
    ],
)
def test_a_bad_line_is_named(write, row, complaint):
    with pytest.raises(InputError) as caught:
        load_problems(write(GOOD, row))
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"limit": 0}, "at least 1"),
        ({"levels": [0, 7]}, "embedded has no problem of level 0 or 7"),
    ],
)
def test_a_choice_that_leaves_no_problems_is_refused(options, complaint):
    with pytest.raises(InputError, match=complaint):
        load_problems("embedded", **options)


@pytest.mark.parametrize(
    ("levels", "limit", "shares"),
    [
        # Of shares 2.0, 1.2 and 0.8.
        ([1] * 5 + [2] * 3 + [3] * 2, 4, {1: 2, 2: 1, 3: 1}),
        # A tie goes to the lower level.
        ([2, 1], 1, {1: 1}),
        (MATH500, 40, {1: 4, 2: 7, 3: 8, 4: 10, 5: 11}),
    ],
)
def test_a_sample_has_these_levels_whatever_the_order_of_the_file(
    levels, limit, shares
):
    everything = made(*levels)
    sample = stratified_sample(everything, limit, 0)
    assert Counter(problem.level for problem in sample) == shares
    of_reversed = stratified_sample(everything[::-1], limit, 0)
    assert set(of_reversed) == set(sample)


LEVEL_LISTS = st.lists(st.integers(0, 5), min_size=2, max_size=40)


@given(LEVEL_LISTS, st.data(), st.integers(0, 9))
def test_a_sample_has_its_size_keeps_the_order_and_holds_the_smaller_one(
    levels, data, seed
):
    sizes = st.lists(st.integers(1, len(levels)), min_size=2, max_size=2)
    small, large = sorted(data.draw(sizes))
    everything = made(*levels)
    sample = stratified_sample(everything, large, seed)
    assert len(sample) == large
    assert sample == [problem for problem in everything if problem in sample]
    smaller = stratified_sample(everything, small, seed)
    assert set(smaller) <= set(sample)


@pytest.mark.parametrize("limit, levels, begin", DEMO)
def test_the_demos_samples_are_those_of_what_is_stored_and_another_seed_draws_others(
    limit, levels, begin
):
    sample = load_problems("embedded", limit, levels=levels)
    assert digest(sample)[:4] == begin
    assert digest(sample[::-1])[:4] != begin
    others = load_problems("embedded", limit, seed=1, levels=levels)
    assert digest(others)[:4] != begin


@pytest.fixture
def hub(monkeypatch):
    """A hub that answers with `rows`, ours being taken for MATH-500, and remembers what
    `datasets` asked for.
    """
    hub = SimpleNamespace(rows=ROWS, asked=[])
    monkeypatch.setattr(problems, "MATH500_SHA256", digest(KNOWN))

    def dataset_info(self, name, revision, timeout):
        return None

    def load_dataset(name, split, revision):
        hub.asked.append((name, split, revision))
        return datasets.Dataset.from_list(hub.rows)

    monkeypatch.setattr(problems.HfApi, "dataset_info", dataset_info)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return hub


def test_a_source_has_a_name_and_math500_given_as_a_file_is_recognised(hub, write):
    assert describe("embedded") == "embedded set"
    assert describe("math500") == "MATH-500"
    assert describe(write(*ROWS)) == "MATH-500 (given as set.jsonl)"
    assert describe(write(*ROWS[:6])) == "set.jsonl"


@pytest.mark.parametrize("folder", ["data", "cache"])
@pytest.mark.parametrize("rows, times", [(ROWS, 0), (ROWS[:3], 1), ([], 1)])
def test_math500_is_the_copy_that_is_known_else_it_comes_once_from_the_hub_as_pinned(
    hub, folder, rows, times, write
):
    if rows:
        write(*rows, to=f"{folder}/math500.jsonl")
    assert load_problems("math500") == KNOWN
    assert len(load_problems("math500", limit=5)) == 5
    pinned = ("HuggingFaceH4/MATH-500", "test", problems.MATH500_REVISION)
    assert hub.asked == [pinned] * times


def test_a_hub_with_an_altered_math500_or_none_is_refused(hub, monkeypatch):
    hub.rows = [*ROWS[:6], ROWS[6] | {"answer": "6 "}]
    with pytest.raises(InputError, match="is not the known MATH-500"):
        load_problems("math500")
    monkeypatch.setattr(problems.HfApi, "dataset_info", lambda *_, **__: 1 / 0)
    with pytest.raises(InputError, match="give the path to a JSONL file"):
        load_problems("math500")
    assert len(hub.asked) == 1  # one that does not answer is not asked in vain


SOLVED = Problem(
    **BARE, unique_id="a", solution="It is $1.5$ in all. So twice is $\\boxed{3}$."
)


@pytest.mark.parametrize(
    "condition, text",
    [
        ("mless", "p"),
        ("repeat", "p\n\np"),
        ("hint", "p\n\nIt is $1.5$ in all."),
    ],
)
def test_a_problem_is_put_as_a_condition_says(condition, text):
    assert posed(SOLVED, parse_condition(condition)) == text


def test_a_hint_needs_a_worked_solution():
    with pytest.raises(InputError, match=r"^problem a has no solution, of which hint"):
        posed(Problem(**BARE, unique_id="a"), parse_condition("hint"))
