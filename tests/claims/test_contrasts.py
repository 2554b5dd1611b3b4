"""What likelihoods show, on small tables whose differences, slopes and orders are
known.
"""

import numpy as np
import pandas as pd
import pytest
from evidence import CLAIMS, scores
from scipy import optimize, stats

from lib.claims import contrasts
from lib.evaluation.store import frame
from lib.prompts.conditions import Filler

N = 30  # problems of `scores`


def answers(right, model="m"):
    fixed = {"model": model, "condition": "none", "sample": 0, "response": ""}
    return frame(
        [
            fixed | {"problem_id": f"p{i:03d}", "correct": bool(solved)}
            for i, solved in enumerate(right)
        ]
    )


def test_a_pair_has_its_mean_difference_its_n_and_a_tenth_of_the_worked_example():
    rows = scores({"mless": 0.5, "gap": -1, "dilution": -2, "example": 8})
    table = contrasts.differences(rows, "solution", Filler())
    assert list(table.panel.unique()) == ["pairs"]
    assert list(table.x) == [
        "mless − none",
        "gap − none",
        "dilution − gap",
        "example − none",
    ]
    assert list(table.effect) == pytest.approx([0.5, -1, -1, 8])
    assert list(table.band) == pytest.approx([0.8] * 4) and set(table.n) == {N}
    assert all(table.low < table.effect) and all(table.effect < table.high)
    assert {claim.equivalence for claim in CLAIMS.values() if claim.equivalence} == {
        contrasts.MARGIN_SHARE
    }
    harmed = contrasts.differences(
        scores({"mless": 1, "example": -1}, target="answer"), "answer", Filler()
    )
    assert (
        list(harmed.x) == ["mless − none", "example − none"]
        and harmed.band.isna().all()
    )


def test_a_difference_takes_the_problems_that_both_conditions_scored_if_enough():
    rows = pd.concat(
        [scores({"mless": 1}), scores({"gap": 1}, n=19).query("condition == 'gap'")],
        ignore_index=True,
    )
    table = contrasts.differences(rows, "solution", Filler())
    assert list(table.x) == ["mless − none"] and table.band.isna().all()
    more = contrasts.differences(
        pd.concat([rows, scores({"mless": 1}, "other", n=25)]), "solution", Filler()
    )
    assert list(zip(more.model, more.n, strict=True)) == [("m", N), ("other", 25)]


def test_lengths_places_and_depths_have_a_panel_each_where_there_are_two_points():
    shifts = {
        "mless:10": 1,
        "mless": 2,
        "mless:110": 3,
        "mless@end": 4,
        "mless@random": 5,
        "gap": 6,
        "mful:10": 7,
    }
    shifts |= {
        "hidden-from-layer-1": 1,
        "hidden-from-layers-1-to-4": 2,
        "layer-1-only": 3,
        "dilution": 4,
    }
    table = contrasts.differences(scores(shifts), "solution", Filler()).set_index(
        "panel"
    )
    effects = {
        panel: dict(zip(part.x, part.effect.round(6), strict=True))
        for panel, part in table.groupby("panel")
    }
    assert effects["length"] == {10: 1, 55: 2, 110: 3}
    assert effects["place"] == {"between": 2, "end": 4, "random": 5}
    assert effects["depth"] == {1: 1, 4: 2} and set(table.loc["depth"].curve) == {
        "hidden from layers 1 to k"
    }


def test_what_a_nat_is_worth_is_a_logistic_regressions_slope_and_a_rank_statistic():
    rng = np.random.default_rng(0)
    likely = rng.normal(-1, 0.3, 400)
    right = rng.random(400) < 1 / (1 + np.exp(-(2 + 3 * likely)))
    rows = scores({}, n=400).assign(nats=50 * likely, tokens=50)
    (row,) = contrasts.worth(rows, answers(right)).to_dict("records")
    against = optimize.minimize(
        lambda b: np.logaddexp(0, -(2 * right - 1) * (b[0] + b[1] * likely)).sum(),
        (0, 0),
    )
    assert row["slope"] == pytest.approx(against.x[1], abs=1e-3)
    error = (row["slope_high"] - row["slope_low"]) / 2 / 1.97
    assert error == pytest.approx(np.sqrt(against.hess_inv[1, 1]), rel=0.15)
    wins = stats.mannwhitneyu(likely[right], likely[~right]).statistic
    assert row["auc"] == pytest.approx(100 * wins / right.sum() / (~right).sum())
    assert row["auc_low"] < row["auc"] < row["auc_high"] <= 100 and row["n"] == 400

    # A nat on all solutions is a 50th of one per token: what the fitted curve then
    # gives more.
    def share(more):
        return (
            1 / (1 + np.exp(-(against.x[0] + against.x[1] * (likely + more / 50))))
        ).mean()

    assert row["points"] == pytest.approx(
        100 * (share(0.01) - share(0)) / 0.01, rel=0.02
    )


@pytest.mark.parametrize("right", [[True] * N, [True] * 10])
def test_without_both_kinds_of_answers_or_with_few_a_nat_has_no_worth(right):
    assert contrasts.worth(scores({}), answers(right)).empty
