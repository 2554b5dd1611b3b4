"""Problem sets load whole or sampled, and whatever is wrong with one is said in a line."""

import hashlib
import json
from collections import Counter
from pathlib import Path

import datasets
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import InputError
from lib.prompts import problems
from lib.prompts.problems import Problem, describe, digest, load_problems, stratified_sample

GOOD = {"problem": "What is $1+1$?", "answer": "2", "subject": "Algebra", "level": 1, "unique_id": "a"}


@pytest.fixture(autouse=True)
def nothing_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(problems, "DATA", tmp_path / "data")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    problems._from_hub.cache_clear()
    yield
    problems._from_hub.cache_clear()


def write(folder: Path, *rows: dict | str) -> Path:
    """Write a JSONL file of the rows; a string goes in as it is."""
    path = folder / "set.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def without(field: str) -> dict:
    return {key: value for key, value in GOOD.items() if key != field}


def made(*levels: int) -> list[Problem]:
    return [
        Problem(unique_id=f"p{number}", problem="?", answer="1", level=level) for number, level in enumerate(levels)
    ]


def test_embedded_set_has_60_problems_a_level():
    assert Counter(item.level for item in load_problems("embedded")) == dict.fromkeys(range(1, 6), 60)


def test_fields_are_read(tmp_path):
    assert load_problems(write(tmp_path, GOOD)) == [Problem(**GOOD)]


def test_subject_level_and_id_may_be_missing_and_blank_lines_count(tmp_path):
    bare = {"problem": "p", "answer": "1"}
    assert load_problems(write(tmp_path, "", bare, bare | {"level": None})) == [
        Problem(unique_id="line-2", problem="p", answer="1", subject="", level=0),
        Problem(unique_id="line-3", problem="p", answer="1", subject="", level=0),
    ]


@pytest.mark.parametrize("level, expected", [(0, 0), (5, 5), ("Level 3", 3)])
def test_level_is_a_number_or_a_text(tmp_path, level, expected):
    assert load_problems(write(tmp_path, GOOD | {"level": level}))[0].level == expected


def test_a_line_separator_inside_a_text_and_a_byte_order_mark_do_no_harm(tmp_path):
    path = write(tmp_path, "\ufeff" + json.dumps(GOOD | {"problem": "a\u2028b"}, ensure_ascii=False))
    assert load_problems(path)[0].problem == "a\u2028b"


@pytest.mark.parametrize(
    "row, complaint",
    [
        ('{"problem": ', "line 2: not valid JSON"),
        ("[1, 2]", "line 2: must be fields with values"),
        (without("problem"), "line 2: problem: missing field"),
        (without("answer"), "line 2: answer: missing field"),
        (GOOD | {"answer": None}, "line 2: answer: missing field"),
        (GOOD | {"answer": "  "}, "line 2: answer: missing field"),
        (GOOD | {"answer": [2]}, "line 2: answer: must be a text, not [2]"),
        (GOOD | {"problem": ["p"]}, "line 2: problem: must be a text, not ['p']"),
        (GOOD | {"unique_id": {}}, "line 2: unique_id: must be a text, not {}"),
        (GOOD | {"level": "hard"}, "line 2: level: must be a whole number, not 'hard'"),
        (GOOD | {"level": True}, "line 2: level: must be a whole number, not True"),
        (GOOD | {"level": -1}, "line 2: level: must be greater than or equal to 0, not -1"),
        (GOOD, "line 2: unique_id 'a' was already used on line 1"),
    ],
)
def test_a_bad_line_is_named(tmp_path, row, complaint):
    with pytest.raises(InputError) as caught:
        load_problems(write(tmp_path, GOOD, row))
    assert complaint in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content, complaint",
    [(b"", "holds no problems"), (b" \n\n", "holds no problems"), (b"\xff\xfe{}", "not UTF-8")],
)
def test_a_file_without_problems_or_text_is_refused(tmp_path, content, complaint):
    (tmp_path / "set.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=complaint):
        load_problems(tmp_path / "set.jsonl")


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="give embedded, math500 or the path"):
        load_problems("math50")
    with pytest.raises(InputError, match="cannot be read"):
        load_problems(tmp_path)


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_is_refused(limit):
    with pytest.raises(InputError, match="at least 1"):
        load_problems("embedded", limit=limit)


def test_a_limit_takes_the_same_share_of_every_level():
    sample = load_problems("embedded", limit=50)
    assert Counter(item.level for item in sample) == dict.fromkeys(range(1, 6), 10)
    assert load_problems("embedded", limit=50, seed=1) != sample
    assert load_problems("embedded", limit=999) == load_problems("embedded")


def test_shares_are_rounded_and_a_tie_goes_to_the_lower_level():
    # Shares of 4 out of 10: 2.0, 1.2 and 0.8 problems; then a tie of 0.5 each.
    sample = stratified_sample(made(*[1] * 5, *[2] * 3, *[3] * 2), 4, seed=0)
    assert Counter(item.level for item in sample) == {1: 2, 2: 1, 3: 1}
    assert [item.level for item in stratified_sample(made(2, 1), 1, seed=0)] == [1]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(1, 50), st.integers(0, 9))
def test_a_sample_has_its_size_repeats_and_keeps_the_order(levels, limit, seed):
    everything = made(*levels)
    sample = stratified_sample(everything, limit, seed)
    assert len(sample) == min(limit, len(everything))
    assert sample == stratified_sample(everything, limit, seed)
    assert sample == [item for item in everything if item in sample]
    sizes, drawn = Counter(levels), Counter(item.level for item in sample)
    if limit < len(everything):
        assert all(abs(drawn[level] - limit * sizes[level] / len(levels)) < 2 for level in sizes)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=40), st.data())
def test_a_larger_sample_holds_the_smaller_one(levels, data):
    small, large = sorted(data.draw(st.lists(st.integers(1, len(levels)), min_size=2, max_size=2)))
    everything, seed = made(*levels), data.draw(st.integers(0, 9))
    assert set(stratified_sample(everything, small, seed)) <= set(stratified_sample(everything, large, seed))


LEVELS = (1, 2, 3)
SAMPLES = [(100, None, "bcc4"), (24, None, "dddc"), (96, LEVELS, "ad6e"), (48, LEVELS, "5796"), (32, LEVELS, "3c88")]


@pytest.mark.parametrize("limit, levels, begin", SAMPLES)
def test_the_demos_samples_are_those_of_what_is_stored(limit, levels, begin):
    assert digest(load_problems("embedded", limit, levels=levels))[:4] == begin


def test_only_problems_of_the_levels_asked_for_are_drawn():
    assert {item.level for item in load_problems("embedded", 30, levels=[2, 4])} == {2, 4}


def test_levels_that_no_problem_has_are_refused():
    with pytest.raises(InputError, match="embedded has no problem of level 0 or 7"):
        load_problems("embedded", levels=[0, 7])


def test_the_sample_does_not_depend_on_the_order_of_the_file():
    everything = made(1, 1, 1, 2, 2, 2)
    assert set(stratified_sample(everything[::-1], 3, 0)) == set(stratified_sample(everything, 3, 0))


def test_the_digest_covers_id_text_answer_and_order():
    one, two = made(1, 2)
    known = hashlib.sha256(b'[["p0","?","1"],["p1","?","1"]]').hexdigest()
    assert digest([one, two]) == known
    assert digest([one, two]) != digest([two, one])
    changed = one.model_copy(update={"answer": "2"})
    assert digest([changed, two]) != known


def test_describe_names_the_source(tmp_path):
    assert describe("embedded") == "embedded set"
    assert describe("math500") == "MATH-500"
    assert describe(write(tmp_path, GOOD)) == "set.jsonl"


SIZES = {1: 43, 2: 90, 3: 105, 4: 128, 5: 134}  # of MATH-500


@pytest.mark.parametrize(
    ("limit", "shares"),
    [(5, (1, 1, 1, 1, 1)), (17, (1, 3, 4, 4, 5)), (53, (5, 10, 11, 13, 14)), (100, (9, 18, 21, 25, 27))],
)
def test_a_sample_of_math500_has_these_levels(limit, shares):
    everything = made(*(level for level, size in SIZES.items() for _ in range(size)))
    assert Counter(item.level for item in stratified_sample(everything, limit, 0)) == dict(
        zip(SIZES, shares, strict=True)
    )


ROWS = [GOOD | {"unique_id": f"test/{i}.json", "answer": str(i)} for i in range(7)]


@pytest.fixture
def known(monkeypatch):
    """Seven rows of our own, taken for MATH-500."""
    monkeypatch.setattr(problems, "MATH500_SHA256", digest([Problem(**row) for row in ROWS]))
    return [Problem(**row) for row in ROWS]


def test_math500_given_as_a_file_is_recognised(known, tmp_path):
    assert describe(write(tmp_path, *ROWS)) == "MATH-500 (given as set.jsonl)"
    assert describe(write(tmp_path, *ROWS[:6])) == "set.jsonl"


def stand_in_for_the_hub(monkeypatch, rows: list[dict]) -> list[tuple]:
    """Make the hub answer with the rows; return the list of what `datasets` is asked for."""
    asked = []

    def load_dataset(name, split, revision):
        asked.append((name, split, revision))
        return datasets.Dataset.from_list(rows)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(problems.HfApi, "dataset_info", lambda self, name, revision, timeout: None)
    return asked


def test_math500_comes_from_the_hub_at_the_pinned_revision(known, monkeypatch):
    calls = stand_in_for_the_hub(monkeypatch, ROWS)
    assert load_problems("math500") == known
    assert len(load_problems("math500", limit=5)) == 5
    assert calls == [("HuggingFaceH4/MATH-500", "test", problems.MATH500_REVISION)]  # then there is a copy in the cache


@pytest.mark.parametrize("folder", ["data", "cache/meaningless-tokens"])
def test_a_copy_of_math500_spares_the_hub(known, folder, tmp_path, monkeypatch):
    calls = stand_in_for_the_hub(monkeypatch, [])
    (tmp_path / folder).mkdir(parents=True)
    write(tmp_path / folder, *ROWS).rename(tmp_path / folder / "math500.jsonl")
    assert load_problems("math500") == known and not calls


def test_a_copy_that_is_not_the_known_math500_is_passed_over(known, tmp_path, monkeypatch):
    calls = stand_in_for_the_hub(monkeypatch, ROWS)
    (tmp_path / "data").mkdir()
    write(tmp_path / "data", *ROWS[:3]).rename(tmp_path / "data" / "math500.jsonl")
    assert load_problems("math500") == known and len(calls) == 1


def test_an_altered_math500_is_refused(known, monkeypatch):
    stand_in_for_the_hub(monkeypatch, [*ROWS[:6], ROWS[6] | {"answer": "6 "}])
    with pytest.raises(InputError, match="is not the known MATH-500"):
        load_problems("math500")


def test_without_network_the_error_says_what_to_give_instead_and_datasets_does_not_try(monkeypatch):
    def unreachable(self, *_, **__):
        raise ConnectionError("Couldn't reach\nthe Hub")

    monkeypatch.setattr(problems.HfApi, "dataset_info", unreachable)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: pytest.fail("asked in vain"))
    with pytest.raises(InputError, match="give the path to a JSONL file") as caught:
        load_problems("math500")
    assert "\n" not in str(caught.value)
