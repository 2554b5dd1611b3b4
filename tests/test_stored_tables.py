"""Tables of the stored answers: each follows from the data, which notices any other
number; the statistics that others define are compared with theirs.
"""

import numpy as np
import pandas as pd
import pytest
import scipy
from hand_written import record

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
    judged = stored_answers.judged(frame(rows))
    assert judged["rule_our_prompt"].tolist() == [True, True, True, True]
    assert judged["rule_authors_prompt"].tolist() == [True, True, False, True]


def test_the_z_of_a_cut_equals_that_of_welchs_test():
    points = np.random.default_rng(1).normal(size=60)
    points[:25] += 1
    by_cut = stored_answers.z_of_cuts(points, np.array([20, 25]))
    for cut, z in zip((20, 25), by_cut, strict=True):
        welch = scipy.stats.ttest_ind(points[:cut], points[cut:], equal_var=False)
        assert z == pytest.approx(welch.statistic)
