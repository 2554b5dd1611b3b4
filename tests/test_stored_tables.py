"""Tables of the stored answers: each follows from the data, and its statistics are
those of small examples.
"""

import numpy as np
import pandas as pd
import pytest
import scipy
from hand_written import record, run

from reproduction.evaluation.rows import frame
from studies import stored_answers
from studies.keeping import RESULTS


@pytest.mark.parametrize("name", stored_answers.TABLES)
def test_a_stored_table_follows_from_the_stored_answers(name):
    table = stored_answers.TABLES[name]().reset_index(drop=True)
    kept = pd.read_csv(RESULTS / f"{name}.csv")[list(table)]
    pd.testing.assert_frame_equal(kept, table, check_dtype=False, rtol=1e-3)


def test_by_the_authors_rule_the_prompt_decides_if_an_answer_has_no_box():
    answers = [r"\boxed{12}", r"\boxed{2}", "I do not know.", r"\boxed{}"]
    rows = [record("none", said, False, response=said, answer="12") for said in answers]
    judged = stored_answers.judged(frame(rows))[stored_answers.RULES[1:]]
    assert judged["rule_our_prompt"].tolist() == [True, True, True, True]
    assert judged["rule_authors_prompt"].tolist() == [True, True, False, True]


def test_the_z_of_a_cut_equals_that_of_welchs_test():
    points = np.random.default_rng(1).normal(size=60)
    points[:25] += 1
    by_cut = stored_answers.z_of_cuts(points, np.array([20, 25]))
    for cut, z in zip((20, 25), by_cut, strict=True):
        welch = scipy.stats.ttest_ind(points[:cut], points[cut:], equal_var=False)
        assert z == pytest.approx(welch.statistic)


def test_models_are_pooled_by_problem():
    rows = []
    for model in ("a", "b"):
        rows += run("none", right=4, n=40, model=model)
        rows += run("repeat", right=12, n=40, model=model)
        rows += run("mless", right=4, n=40, model=model)
    repeat, slashes = stored_answers.pooled(frame(rows)).itertuples()
    assert (repeat.condition, repeat.models, repeat.n) == ("repeat", 2, 40)
    assert (repeat.effect, repeat.gained, repeat.lost) == (20, 16, 0)
    # Two models that gain on the same problems are no more evidence than one.
    alone = stored_answers.pooled(frame(rows[:120]))
    assert repeat.low == pytest.approx(alone.low[0])
    assert (slashes.effect, slashes.p_holm) == (0, 1)
    assert repeat.p_holm == pytest.approx(2 * repeat.p_value)
