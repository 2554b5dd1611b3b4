"""Every stored completion gets the grade that is stored with it."""

import pytest

from lib.evaluation.store import read_records
from lib.grading.authors import correct_authors, correct_exact
from lib.grading.extract import cut_run_on
from lib.grading.pool import grade_many
from lib.paths import DATA
from lib.prompts.conditions import INSTRUCTION

FILES = sorted([*DATA.glob("demo_*.jsonl"), *(DATA / "families").glob("*.jsonl.gz")])


@pytest.fixture(scope="module")
def stored():
    """One record of each pair of a gold answer and a response."""
    return list({(one["answer"], one["response"]): one for path in FILES for one in read_records(path)}.values())


def test_every_stored_pair_is_graded_as_it_is_stored(stored):
    grades = grade_many((one["answer"], one["response"]) for one in stored)
    fields = ("correct", "extracted", "method", "evaluated")
    found = [tuple(getattr(grade, field) for field in fields) for grade in grades]
    assert len(found) > 2000 and found == [tuple(one[field] for field in fields) for one in stored]


def test_every_stored_pair_is_judged_by_the_authors_rule_as_it_is_stored(stored):
    fields = ("correct_authors", "correct_authors_on_completion", "correct_exact", "run_on")
    for one in stored:
        answer, response = one["answer"], one["response"]
        # Of the prompt, which is not stored, this rule reads the instruction's empty box alone.
        found = correct_authors(answer, INSTRUCTION, response), correct_authors(answer, "", response)
        found += correct_exact(answer, response), cut_run_on(response)[1]
        assert found == tuple(one[field] for field in fields), one["key"]
