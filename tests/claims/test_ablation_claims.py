"""Claims on ablations and on several sampled answers: their numbers, and the reasons if
they cannot be tested.
"""

import numpy as np
import pandas as pd
import pytest
from evidence import verdict_on

from lib.evaluation.row_fields import WINDOWS
from lib.statistics.intervals import interval

PROBLEMS = 30


def ablations(entropy=(0, 0, 0, 0), **shifts):
    """Return evidence in which each condition shifts the log-likelihood of every
    problem by about so many nats, and the entropy of each window by about `entropy`.
    """
    rows = []
    for name, shift in {"none": 0.0, **shifts}.items():
        for i, factor in enumerate(np.linspace(0.9, 1.1, PROBLEMS)):
            changes = [0.0 if name == "none" else change for change in entropy]
            row = {"condition": name, "problem_id": f"p{i}"}
            row["nats"] = i - 200 + shift * factor
            row["entropy"] = [1 + i / 10 + change * factor for change in changes]
            rows.append(row)
    return {"ablations": pd.DataFrame(rows).assign(model="m")}


EARLY = "layers-1-to-8-only"


def test_a_contrast_is_judged_by_its_change_in_nats():
    verdict = verdict_on("ablation-early-layers", ablations(gap=0.0, **{EARLY: 2.0}))
    assert verdict.verdict == "supported"
    assert verdict.effect == pytest.approx(2)
    assert verdict.n == PROBLEMS
    against = ablations(gap=0.0, **{EARLY: -2.0})
    verdict = verdict_on("ablation-early-layers", against)
    assert verdict.verdict == "contradicted"
    # Nats have no range to which the interval is clipped.
    ends = interval(-2 * np.linspace(0.9, 1.1, PROBLEMS))
    assert (verdict.low, verdict.high) == pytest.approx((ends.low, ends.high))


def test_a_contrast_whose_conditions_were_not_scored_is_not_tested():
    verdict = verdict_on("ablation-early-layers", ablations(gap=1.0))
    reason = f"the profile scores nothing under {EARLY}"
    assert (verdict.n, verdict.reason) == (0, reason)


def test_a_claim_on_entropy_uses_the_token_window_that_it_names():
    raised_first = ablations(entropy=(0.5, 0, 0, 0.1), mless=0.0)
    verdict = verdict_on("branching-first-token", raised_first)
    assert verdict.verdict == "supported"
    assert verdict.effect == pytest.approx(0.5)
    verdict = verdict_on("branching-fades", raised_first)
    assert verdict.effect == pytest.approx(0.4)


def test_solutions_that_end_before_a_window_are_left_out_of_it():
    evidence = ablations(entropy=(0.5, 0, 0, 0.1), mless=0.0)
    last = len(WINDOWS) - 1
    for row in evidence["ablations"].itertuples():
        if row.problem_id in ("p0", "p1"):
            row.entropy[last] = None
    assert verdict_on("branching-fades", evidence).n == PROBLEMS - 2
    assert verdict_on("branching-first-token", evidence).n == PROBLEMS


def drawn(right_under_mless):
    """Return two samples of each problem under each prompt; under none the first one is
    right.
    """
    rows = []
    for i in range(PROBLEMS):
        for condition in ("none", "mless"):
            for sample in range(2):
                right = sample == 0
                if condition == "mless":
                    right = bool(right_under_mless[sample])
                row = {"problem_id": f"p{i}", "drawn_under": condition}
                rows.append(row | {"sample": sample, "right": right})
    return {"draws": pd.DataFrame(rows).assign(model="m")}


@pytest.mark.parametrize(
    "right, points", [((True, True), 0), ((False, True), 0), ((False, False), -100)]
)
def test_pass_at_2_requires_one_right_answer_of_two(right, points):
    verdict = verdict_on("branching-pass-2", drawn(right))
    assert verdict.effect == points


def test_pass_at_2_needs_two_answers():
    evidence = drawn((True, True))
    evidence["draws"] = evidence["draws"].query("sample == 0")
    verdict = verdict_on("branching-pass-2", evidence)
    assert verdict.reason == "pass@2 needs 2 answers of each problem under mless"
