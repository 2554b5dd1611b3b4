"""Every stored completion gets the grade that is stored with it."""

import pytest

from lib.files.store import read
from lib.grading.authors_grader import is_correct_by_authors, is_exact_match
from lib.grading.extraction import STATUSES
from lib.grading.worker_pool import grade_many
from lib.paths import DATA
from lib.prompts.conditions import INSTRUCTION, parse_condition

FILES = sorted(DATA.glob("*/answers/*.jsonl.gz"))


@pytest.fixture(scope="module")
def stored():
    """One record of each pair of a gold answer and a response, with instruction and
    without.
    """
    records = {}
    for row in read(*FILES):
        instructed = parse_condition(row["condition"]).instructed
        records[row["answer"], row["response"], instructed] = row
    return list(records.values())


def test_every_stored_pair_is_graded_as_it_is_stored(stored):
    grades = grade_many((row["answer"], row["response"]) for row in stored)
    assert len(grades) > 2000
    for row, grade in zip(stored, grades, strict=True):
        for field in ("correct", "extracted", "run_on"):
            assert getattr(grade, field) == row[field], (row["key"], field, grade)
        # No table asks how a wrong answer is written.
        if grade.correct:
            assert grade.evaluated == row["evaluated"], row["key"]
        # Which of the rules decided may change, but not whether one did.
        if {grade.method, row["method"]} & STATUSES:
            assert grade.method == row["method"], row["key"]


def test_every_stored_pair_is_judged_by_the_authors_rule_as_it_is_stored(stored):
    for row in stored:
        answer = row["answer"]
        response = row["response"]
        instructed = parse_condition(row["condition"]).instructed
        # The rule looks for boxes, which no other part of a prompt has.
        prompt = INSTRUCTION if instructed else ""
        verdicts = {
            "correct_authors": is_correct_by_authors(answer, prompt, response),
            "correct_authors_on_completion": is_correct_by_authors(
                answer, "", response
            ),
            "correct_exact": is_exact_match(answer, row["extracted"]),
        }
        assert verdicts == {field: row[field] for field in verdicts}, row["key"]
