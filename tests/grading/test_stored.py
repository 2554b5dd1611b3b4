"""Every stored completion gets its stored grade."""

import pytest

from lib.files.text_files import read
from lib.grading.authors_grader import is_correct_by_authors, is_exact_match
from lib.grading.extraction import STATUSES
from lib.grading.worker_pool import grade_many
from lib.paths import DATA
from lib.prompts.conditions import (
    AUTHORS_FORMATS,
    AUTHORS_INSTRUCTION,
    INSTRUCTION,
    parse_condition,
)

FILES = sorted(DATA.glob("*/answers/*.jsonl.gz"))


@pytest.fixture(scope="module")
def stored():
    """One row for each distinct gold answer, response, and presence of the
    instruction.
    """
    records = {}
    for row in read(*FILES):
        instructed = parse_condition(row["condition"]).instructed
        records[row["answer"], row["response"], instructed] = row
    return list(records.values())


def test_every_stored_answer_gets_its_stored_grade(stored):
    grades = grade_many((row["answer"], row["response"]) for row in stored)
    assert len(grades) > 2000
    for row, grade in zip(stored, grades, strict=True):
        for field in ("correct", "extracted", "run_on"):
            assert getattr(grade, field) == row[field], (row["key"], field, grade)
        # No table uses this field of wrong answers.
        if grade.correct:
            assert grade.evaluated == row["evaluated"], row["key"]
        # Another rule may decide, but a pair must not start or stop to be comparable.
        if {grade.method, row["method"]} & STATUSES:
            assert grade.method == row["method"], row["key"]


def test_every_stored_answer_gets_its_stored_grade_by_the_authors_rule(stored):
    for row in stored:
        answer = row["answer"]
        response = row["response"]
        instructed = parse_condition(row["condition"]).instructed
        # The rule looks for boxes, and only the instruction has one.
        is_glued = row["format"] in AUTHORS_FORMATS
        instruction = AUTHORS_INSTRUCTION if is_glued else INSTRUCTION
        prompt = instruction if instructed else ""
        grades = {
            "correct_authors": is_correct_by_authors(answer, prompt, response),
            "correct_authors_on_completion": is_correct_by_authors(
                answer, "", response
            ),
            "correct_exact": is_exact_match(answer, row["extracted"]),
        }
        assert grades == {field: row[field] for field in grades}, row["key"]
