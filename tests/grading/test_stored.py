"""Every stored completion gets the grade that is stored with it."""

import pytest

from lib.evaluation.store import read
from lib.grading.answer import cut_run_on
from lib.grading.authors import correct_authors, correct_exact
from lib.grading.equal import STATUSES
from lib.grading.pool import grade_many
from lib.paths import DATA
from lib.prompts.conditions import INSTRUCTION

FILES = sorted(DATA.glob("*/answers/*.jsonl.gz"))


@pytest.fixture(scope="module")
def stored():
    """One record of each pair of a gold answer and a response."""
    return list(
        {(one["answer"], one["response"]): one for one in read(*FILES)}.values()
    )


def test_every_stored_pair_is_graded_as_it_is_stored(stored):
    grades = grade_many((one["answer"], one["response"]) for one in stored)
    wrong = [
        (one["answer"], grade)
        for one, grade in zip(stored, grades, strict=True)
        if (grade.correct, grade.extracted, grade.evaluated)
        != (one["correct"], one["extracted"], one["evaluated"])
        or (grade.method != one["method"] and {grade.method, one["method"]} & STATUSES)
    ]
    assert len(grades) > 2000 and not wrong


def test_every_stored_pair_is_judged_by_the_authors_rule_as_it_is_stored(stored):
    fields = (
        "correct_authors",
        "correct_authors_on_completion",
        "correct_exact",
        "run_on",
    )
    for one in stored:
        answer, response = one["answer"], one["response"]
        # Of the prompt, which is not stored, this rule reads the instruction's empty
        # box alone.
        found = (
            correct_authors(answer, INSTRUCTION, response),
            correct_authors(answer, "", response),
        )
        found += correct_exact(answer, response), cut_run_on(response)[1]
        assert found == tuple(one[field] for field in fields), one["key"]
