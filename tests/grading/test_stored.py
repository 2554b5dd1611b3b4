"""Every stored completion gets the grade that is stored with it."""

import pytest

from lib.evaluation.store import read
from lib.grading.authors import correct_authors, correct_exact
from lib.grading.equal import STATUSES
from lib.grading.pool import grade_many
from lib.paths import DATA
from lib.prompts.conditions import INSTRUCTION

FILES = sorted(DATA.glob("*/answers/*.jsonl.gz"))
# What the authors' rule, which looks for boxes, reads of the prompt where that is not
# the instruction with its empty box. The worked example is not stored.
READ_OF_PROMPT = {"bare": "", "example": None}


@pytest.fixture(scope="module")
def stored():
    """One record of each pair of a gold answer and a response, and of what is read of
    the prompt.
    """
    records = {}
    for row in read(*FILES):
        prompt = READ_OF_PROMPT.get(row["condition"], INSTRUCTION)
        records[row["answer"], row["response"], prompt] = row
    return list(records.values())


def test_every_stored_pair_is_graded_as_it_is_stored(stored):
    grades = grade_many((row["answer"], row["response"]) for row in stored)
    assert len(grades) > 2000
    for row, grade in zip(stored, grades, strict=True):
        for field in ("correct", "extracted", "evaluated", "run_on"):
            assert getattr(grade, field) == row[field], (row["key"], field, grade)
        # Which of the rules decided may change, but not whether one did.
        if {grade.method, row["method"]} & STATUSES:
            assert grade.method == row["method"], row["key"]


def test_every_stored_pair_is_judged_by_the_authors_rule_as_it_is_stored(stored):
    for row in stored:
        answer = row["answer"]
        response = row["response"]
        verdicts = {
            "correct_authors_on_completion": correct_authors(answer, "", response),
            "correct_exact": correct_exact(answer, row["extracted"]),
        }
        prompt = READ_OF_PROMPT.get(row["condition"], INSTRUCTION)
        if prompt is not None:
            by_rule = correct_authors(answer, prompt, response)
            verdicts["correct_authors"] = by_rule
        assert verdicts == {field: row[field] for field in verdicts}, row["key"]
