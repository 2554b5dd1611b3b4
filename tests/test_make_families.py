"""The files that studies/make_families.py writes: complete problems in a fixed
order.
"""

from itertools import product

import pytest
from hand_written import keep, record

from lib import paths
from lib.files.text_files import read
from lib.models.sources import resolve
from reproduction.evaluation.profile_parts import Part
from reproduction.evaluation.rows import SCORE_FIELDS
from reproduction.profiles import load_profile
from studies import make_families

# A model that every part of the profile names.
MODEL = resolve(load_profile("families").accuracy.models[1]).name
MAIN = "families/answers/main.jsonl.gz"


@pytest.fixture
def script(tmp_path, monkeypatch):
    """The module make_families, which writes into a temporary folder."""
    monkeypatch.setattr(make_families, "FOLDER", tmp_path / "families")
    # Rows by hand have no keys that the profile wants.
    every = staticmethod(lambda rows: list(rows.values()))
    monkeypatch.setattr(Part, "wanted_among", every)
    return make_families


def score(condition, problem, target="solution", **others):
    """Return a row of a run that scored a solution or another target."""
    key = f"{target}-{condition}-{problem}"
    row = dict.fromkeys(SCORE_FIELDS, 1) | {"key": key, "model": MODEL}
    row |= {"condition": condition, "problem_id": problem, "target": target}
    return row | others


def scores(counts, target="solution"):
    """Return the rows of a run that scored each condition on so many problems."""
    return [
        score(name, f"p{number:02d}", target)
        for name, count in counts.items()
        for number in range(count)
    ]


def test_scores_of_complete_problems_are_stored_in_a_fixed_order(tmp_path, script):
    lines = scores({"none": 30, "mless": 25, "bare": 3, "mless:10": 21})
    lines += scores({"none": 22}, "answer")
    keep(tmp_path / "a.jsonl", lines)
    keep(tmp_path / "b.jsonl", lines[::-1])

    script.write_scores([tmp_path / "a.jsonl"])
    kept = tmp_path / "families" / "likelihood" / f"{MODEL}.jsonl.gz"
    first = kept.read_bytes()
    # Answers without reasoning and conditions outside the profile may have fewer
    # problems.
    expected = scores({"none": 25, "mless": 25, "mless:10": 21})
    expected += scores({"none": 22}, "answer")
    rows = read(kept)
    assert {row["key"] for row in rows} == {row["key"] for row in expected}
    assert set(SCORE_FIELDS) - set(rows[0]) == {"subject", "prompt_tokens", "processor"}

    script.write_scores([tmp_path / "b.jsonl", tmp_path / "a.jsonl"])
    assert kept.read_bytes() == first


def test_writing_the_answers_of_one_model_again_changes_no_byte(tmp_path, script):
    stored = read(paths.DATA / MAIN)
    problems = sorted(row["problem_id"] for row in stored)
    rows = [row for row in stored if row["problem_id"] in (problems[0], problems[-1])]
    keep(tmp_path / "completions.jsonl", rows)
    script.write_answers([tmp_path])
    before = (tmp_path / MAIN).read_bytes()
    assert read(tmp_path / MAIN) == rows

    # An unfinished run has answered a third problem under one condition only.
    of_model = [row for row in rows if row["model"] == rows[0]["model"]]
    begun = of_model[0] | {"problem_id": "begun", "key": "another"}
    keep(tmp_path / "completions.jsonl", [*of_model, begun])
    script.write_answers([tmp_path])
    assert (tmp_path / MAIN).read_bytes() == before


# A change of a folder's rows, and the error message.
REFUSED = [
    (lambda rows: rows[:-2], ": 21 problems under "),
    (lambda rows: rows[::2], ": 0 problems under mless, where 22 are stored"),
    (
        lambda rows: [row | {"model": "other"} for row in rows],
        "other is no model of families",
    ),
]


@pytest.mark.parametrize("change, message", REFUSED)
@pytest.mark.parametrize(
    "name, write", [("completions", "write_answers"), ("scores", "write_scores")]
)
def test_fewer_problems_than_stored_and_rows_of_other_models_are_refused(
    tmp_path, script, refused, name, write, change, message
):
    rows = [
        record(condition, problem, True) | score(condition, problem)
        for problem, condition in product(map(str, range(22)), ("none", "mless"))
    ]
    keep(tmp_path / f"{name}.jsonl", rows)
    getattr(script, write)([tmp_path])
    (stored,) = (tmp_path / "families").rglob("*.gz")
    before = stored.read_bytes()

    keep(tmp_path / f"{name}.jsonl", change(rows))
    assert message in refused(getattr(script, write), [tmp_path])
    assert stored.read_bytes() == before


# Of three problems only p2 has both right and wrong answers.
RIGHT, WRONG = r"\boxed{4}", r"\boxed{5}"
ANSWERED = {
    "p1": {"none": RIGHT, "mless": RIGHT},
    "p2": {"none": RIGHT, "mless": WRONG},
    "p3": {"none": WRONG, "mless": WRONG},
}
DRAWN = [
    record(half, name, said == RIGHT, key=f"{name}-{half}", response=said, answer="4")
    | {"model": MODEL}
    for name, answers in ANSWERED.items()
    for half, said in answers.items()
]
SCORED = [
    score(condition, "p2", half, answer=f"p2-{half}")
    for condition in ("gap", "none", "mless")
    for half in ("none", "mless")
]


def test_sampled_answers_are_stored_with_the_scores_of_mixed_problems(script, tmp_path):
    # Answers and scores are in two folders, as `evaluate` and `likelihood` write them.
    folders = [tmp_path / "completions", tmp_path / "scores"]
    keep(folders[0] / "completions.jsonl", DRAWN)
    keep(folders[1] / "scores.jsonl", SCORED)
    script.write_draws(folders)
    kept = read(tmp_path / "families" / "answers" / "draws.jsonl.gz")
    assert [row["problem_id"] for row in kept] == ["p1", "p1", "p2", "p2", "p3", "p3"]
    rows = read(tmp_path / "families" / "draws" / f"{MODEL}.jsonl.gz")
    assert len(rows) == len(SCORED)
    assert {row["condition"] for row in rows} == {"none", "mless", "gap"}


def test_rows_of_other_settings_are_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(make_families, "FOLDER", tmp_path / "families")
    stored = read(paths.DATA / MAIN)
    problem = stored[0]["problem_id"]
    rows = [row for row in stored if row["problem_id"] == problem]
    other = [row | {"key": "other", "response": "", "sample": 1} for row in rows[:1]]
    keep(tmp_path / "completions.jsonl", [*other, *rows])
    make_families.write_answers([tmp_path])
    kept = read(tmp_path / MAIN)
    assert {row["key"] for row in kept} == {row["key"] for row in rows}
    assert "1 rows have other settings than the profile" in capsys.readouterr().out
