"""What a figure of points is drawn from: every way to find a change, and what stands
beside it.
"""

import numpy as np
import pandas as pd
import pytest
from evidence import answers, right

from lib.claims.points import points_table

QWEN = "Qwen2.5-Coder-0.5B-Instruct"
PROBLEMS = 40


def draws(spread):
    """Return four answers to each problem: those under mless alone are right, and log p
    under the two differs by so many nats from one answer to the next.
    """
    rows = [
        {
            "model": QWEN,
            "problem_id": f"p{problem}",
            "drawn_under": half,
            "sample": sample,
            "right": half == "mless",
            "none": -50.0,
            "mless": -50.0 + spread * (-1) ** (problem + sample),
        }
        for problem in range(PROBLEMS)
        for half in ("none", "mless")
        for sample in (0, 1)
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def single():
    """Single answers to sixty problems, ten more of them right with slashes."""
    rows = answers(none=right(10), mless=right(20))["answers"]
    for name in ("elicited", "run_on", "correct_authors"):
        rows[name] = False
    correct = rows.right == 1
    rows = rows.assign(correct=correct, worked_out=correct, method="equal")
    return rows.assign(model=QWEN)


def test_weights_counts_and_single_answers_stand_below_each_other(single):
    table = points_table(draws(0.5), single)
    assert list(table.way) == [
        "sampled answers, weighted",
        "sampled answers, counted",
        "single answers, counted",
    ]
    assert set(table.x) == {"mless \N{MINUS SIGN} none"}
    counted, of_single = table.effect[1:]
    assert counted == 100
    assert table.low[1] == 100
    assert table.high[1] == 100
    assert of_single == pytest.approx(100 / 6)
    assert list(table.n) == [PROBLEMS, PROBLEMS, len(right(10))]
    assert list(table.answers[:2]) == [4 * PROBLEMS] * 2
    assert 0 < table.effective[0] < table.scored[0] == 4 * PROBLEMS
    assert np.isnan(table.effective[1])


def test_the_margin_and_the_papers_number_are_those_of_the_claim(single):
    table = points_table(draws(0.5), single)
    assert set(table.band) == {2}
    assert set(table.reported) == {2.0}  # of Qwen2.5-Math-1.5B, the nearest of its kind
    unknown = points_table(None, single.assign(model="other"))
    assert unknown.reported.isna().all()


def test_where_weights_explode_nothing_is_weighted(single):
    table = points_table(draws(3), single)
    assert "sampled answers, weighted" not in set(table.way)


def test_fewer_problems_than_an_interval_needs_are_no_row(single):
    few = draws(0.5).query("problem_id in ['p1', 'p2']")
    assert list(points_table(few, single).way) == ["single answers, counted"]
