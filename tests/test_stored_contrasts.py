"""Comparisons that no verdict makes, on small examples; tests/test_stored_tables.py
computes the stored tables again.
"""

import numpy as np
import pandas as pd
import pytest
from hand_written import verdict

from studies import stored_answers, stored_contrasts


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


def scored(model="m", n=40, tokens=100, **changes):
    """Return log-likelihoods of n solutions; under each condition they differ from -50
    by about so many nats.
    """
    rows = [
        {"condition": name, "problem_id": f"p{i}", "nats": -50 + change + noise}
        for name, change in changes.items()
        for i, noise in enumerate(0.01 * np.random.default_rng(0).normal(size=n))
    ]
    jitter = np.random.default_rng(1).normal(size=len(rows))
    table = pd.DataFrame(rows).assign(model=model, tokens=tokens)
    return table.assign(nats=table.nats + 0.1 * jitter)


def test_contrasts_are_corrected_within_their_question(monkeypatch):
    few = [verdict(p=0.01), verdict(p=0.04)]
    monkeypatch.setattr(stored_contrasts, "verdicts", lambda: few)
    shown = {"none": 0, "mless": 0.5, "hidden-from-layer-1": 0.5}
    later = scored(**shown, random=0, mful=0, letters=0, **{"mless:10": 1.0})
    planned = scored(n=15, **shown, gap=-1)
    table = stored_contrasts.contrasts(planned, later)
    assert (table.p_holm >= table.p_value).all()
    assert (table.p_verdicts >= table.p_value).all()

    ten = table[table.treatment == "mless:10"].iloc[0]
    assert ten.change == pytest.approx(1, abs=0.1)
    layer_1 = table[table.reference == "hidden-from-layer-1"].set_index("problems")
    assert layer_1.n.to_dict() == {"planned": 15, "short": 40, "short, not planned": 25}
    # All solutions are short, so that none is longer.
    assert "longer" not in set(table.problems)


def test_verdicts_are_counted_by_reading_and_rules_once(monkeypatch):
    given = [
        verdict("a", "m"),
        verdict("a", "n", survives=False),
        verdict("b", "m", verdict="contradicted"),
        verdict("c", "m", reading="translated"),
    ]
    monkeypatch.setattr(stored_contrasts, "verdicts", lambda: given)
    literal, translated = stored_contrasts.verdict_counts().itertuples()
    assert (literal.rules, literal.verdicts) == (2, 3)
    counts = literal.supported, literal.undecided, literal.contradicted
    assert counts == (1, 1, 1)
    assert (translated.rules, translated.supported) == (1, 1)
