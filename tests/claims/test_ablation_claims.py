"""Claims on ablations: their numbers, and the reasons if they cannot be tested."""

import numpy as np
import pandas as pd
import pytest
from evidence import verdict_on

from lib.statistics.intervals import interval

PROBLEMS = 30


def ablations(**shifts):
    """Return evidence in which each condition shifts the log-likelihood of every
    problem by about so many nats.
    """
    rows = []
    for name, shift in {"none": 0.0, **shifts}.items():
        for i, factor in enumerate(np.linspace(0.9, 1.1, PROBLEMS)):
            row = {"condition": name, "problem_id": f"p{i}", "target": "solution"}
            row["nats"] = i - 200 + shift * factor
            rows.append(row)
    return {"ablations": pd.DataFrame(rows).assign(model="m")}


EARLY = "layers-1-to-8-only"


def test_a_contrast_is_judged_by_its_change_in_nats():
    verdict = verdict_on("ablation-early-layers", ablations(gap=0.0, **{EARLY: 2.0}))
    assert verdict.verdict == "supported"
    assert verdict.effect == pytest.approx(2)
    assert verdict.n == PROBLEMS
    # Gold answers, which a section may score as well, do not count.
    both = ablations(gap=0.0, **{EARLY: 2.0})
    answers = both["ablations"].assign(target="answer", nats=0.0)
    both["ablations"] = pd.concat([both["ablations"], answers])
    assert verdict_on("ablation-early-layers", both) == verdict
    against = ablations(gap=0.0, **{EARLY: -2.0})
    verdict = verdict_on("ablation-early-layers", against)
    assert verdict.verdict == "contradicted"
    # Nats have no range to which the interval is clipped.
    ends = interval(-2 * np.linspace(0.9, 1.1, PROBLEMS))
    assert (verdict.low, verdict.high) == pytest.approx((ends.low, ends.high))


def test_a_contrast_whose_conditions_were_not_scored_is_not_tested():
    verdict = verdict_on("ablation-early-layers", ablations(gap=1.0))
    reason = f"the profile has nothing under {EARLY}"
    assert (verdict.n, verdict.reason) == (0, reason)
