"""The tables of a second run, on answers and scores that can be checked by eye."""

import pytest
from artists import table

from studies import again

FIRST_RUN = """key,condition,response,right,nats
a,none,1,True,-1
b,none,2,False,-2
c,arm,3,True,-3
d,arm,4,True,-4
e,arm,5,True,-5
"""
SECOND_RUN = """key,condition,response,right,nats
d,arm,44,False,-4
b,none,22,True,-2.25
a,none,11,True,-0.5
c,arm,33,False,-3
"""


@pytest.fixture
def runs():
    """The answers and scores of one processor, and those of another one."""
    first, second = (
        table(csv).assign(part="main", model="tiny", dtype="float32", processor=name)
        for csv, name in ((FIRST_RUN, "GPU"), (SECOND_RUN, "CPU"))
    )
    return first, second


def test_answers_generated_again_are_compared_by_key_and_processors(runs):
    (row,) = again.compared(*runs).reset_index().itertuples()
    assert (row.processor, row.processor_again) == ("GPU", "CPU")
    assert (row.n, row.other_text, row.lost, row.gained) == (4, 4, 2, 1)


def test_scores_computed_again_are_compared_by_condition(runs):
    none, arm = again.scores_compared(*runs).reset_index().itertuples()
    assert (none.condition, none.n, none.largest) == ("none", 2, 0.5)
    assert (arm.condition, arm.n, arm.largest) == ("arm", 2, 0)
    assert (arm.processor, arm.processor_again) == ("GPU", "CPU")
    # Scores that the same processor computed twice are not compared.
    first, _ = runs
    assert again.scores_compared(first, first).empty
