"""Comparisons that no verdict makes, on small examples; tests/test_stored_tables.py
computes the stored tables again.
"""

import pandas as pd
import pytest

from studies import stored_answers


def draw(problem, drawn_under, right, **nats):
    row = {"model": "m", "problem_id": problem, "drawn_under": drawn_under}
    return row | {"right": right, "none": -5.0, "mless": -5.0} | nats


def test_right_answers_are_compared_with_wrong_ones_to_the_same_problem():
    rows = []
    for number in range(30):
        of_problem = {"problem": f"p{number}", "gap": -6.0}
        for under in ("none", "mless"):
            rows.append(draw(drawn_under=under, right=True, mless=-4.0, **of_problem))
            rows.append(draw(drawn_under=under, right=False, mless=-4.5, **of_problem))
    rows += [draw("solved", under, True, mless=9.0) for under in ("none", "mless") * 2]
    drawn = pd.DataFrame(rows).assign(**{"hidden-from-layer-1": -5.0})
    table = stored_answers.right_minus_wrong(drawn).set_index("change")
    assert table.nats.to_dict() == {
        "a gap": 0,
        "slashes in the gap": 0.5,
        "layer 1 in addition to later layers": 0.5,
        "slashes": 0.5,
    }
    assert set(table.n) == {30}


def test_slashes_rescue_if_they_are_right_where_both_answers_without_them_fail():
    # Right answers of two without slashes and of two with them, by problem.
    counts = [(0, 1)] * 6 + [(0, 0)] * 4 + [(1, 0)] * 5 + [(2, 2)] * 5
    rows = []
    for number, right in enumerate(counts):
        for under, count in zip(("none", "mless"), right, strict=True):
            rows += [draw(f"p{number}", under, one < count) for one in range(2)]
    another, of_two = stored_answers.rescue(pd.DataFrame(rows)).itertuples()
    # Twenty wrong answers to ten problems, and one to each of five.
    assert another.n == 25
    assert another.none == pytest.approx(100 * 5 / 25)
    assert another.slashes == pytest.approx(100 * 6 / 25)
    assert of_two.n == 10
    assert (of_two.slashes, of_two.none) == pytest.approx((60, 100 * 5 / 9))
    assert another.low < another.change < another.high
