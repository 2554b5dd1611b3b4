"""What likelihoods show, on small tables whose differences and orders are known."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from evidence import CLAIMS, scores
from scipy import optimize, stats

from lib.claims import contrasts
from lib.evaluation.rows import frame
from lib.prompts.conditions import Filler
from lib.statistics import ENOUGH, interval

N = 30  # problems of `scores`


def answers(right, model="m"):
    """Return answers under none, a list of samples or one of them per problem."""
    rows = []
    for index, samples in enumerate(right):
        for sample, solved in enumerate(np.atleast_1d(samples)):
            row = {"model": model, "condition": "none", "sample": sample}
            row |= {"problem_id": f"p{index:03d}", "correct": bool(solved)}
            rows.append(row | {"response": ""})
    return frame(rows)


def of_solutions(table):
    return contrasts.differences(table, "solution", Filler())


def test_a_pair_has_its_mean_difference_its_n_and_a_tenth_of_the_worked_example():
    shifts = {"mless": 0.5, "gap": -1, "dilution": -2, "example": 8}
    table = of_solutions(scores(shifts))
    effects = dict(zip(table.x, table.effect, strict=True))
    assert effects == pytest.approx(
        {
            "mless − none": 0.5,
            "gap − none": -1,
            "dilution − gap": -1,
            "example − none": 8,
        }
    )
    assert set(table.panel) == {"pairs"}
    assert set(table.n) == {N}
    assert list(table.band) == pytest.approx([0.8] * 4)
    assert (table.low < table.effect).all()
    assert (table.effect < table.high).all()

    shares = {claim.equivalence for claim in CLAIMS.values()} - {None}
    assert shares == {contrasts.MARGIN_SHARE}


def test_the_scale_is_what_the_example_gains_on_average():
    rows = scores({"mless": 1, "example": 2})
    of_one = (rows.condition == "example") & (rows.problem_id == "p000")
    rows.loc[of_one, "nats"] += 60
    table = of_solutions(rows)
    assert table.band.tolist() == pytest.approx([0.1 * (2 + 60 / N)] * 2)


def test_an_example_that_harms_gives_no_scale():
    rows = scores({"mless": 1, "example": -1}, target="answer")
    table = contrasts.differences(rows, "answer", Filler())
    assert list(table.x) == ["mless − none", "example − none"]
    assert table.band.isna().all()


def test_a_difference_takes_the_problems_that_both_conditions_scored_if_enough():
    few = scores({"gap": 1}, n=19)
    rows = [scores({"mless": 1}), few[few.condition == "gap"]]
    table = of_solutions(pd.concat(rows, ignore_index=True))
    assert list(table.x) == ["mless − none"]
    assert table.band.isna().all()

    rows.append(scores({"mless": 1}, "other", n=25))
    table = of_solutions(pd.concat(rows, ignore_index=True))
    assert list(zip(table.model, table.n, strict=True)) == [("m", N), ("other", 25)]


def test_problems_of_one_template_count_as_dependent():
    # Four problems of each of 25 templates, all with their template's effect.
    rows = scores({"mless": 0}, n=100)
    ids = [f"embedded/{index // 4}/{index}" for index in range(100)]
    rows["problem_id"] = ids * 2
    effects = np.linspace(-1, 2, 25)
    rows["nats"] = np.append(np.zeros(100), effects.repeat(4))
    (row,) = of_solutions(rows).to_dict("records")
    alone = interval(effects)
    assert (row["low"], row["high"]) == pytest.approx((alone.low, alone.high))


def panels(shifts, filler=None):
    table = contrasts.differences(scores(shifts), "solution", filler or Filler())
    by_panel = {}
    for row in table.to_dict("records"):
        by_panel.setdefault(row["panel"], {})[row["x"]] = round(row["effect"], 6)
    return by_panel, table


def test_lengths_places_and_depths_have_a_panel_each_where_there_are_two_points():
    slashes = {"mless:10": 1, "mless": 2, "mless:110": 3}
    slashes |= {"mless@end": 4, "mless@random": 5, "gap": 6, "mful:10": 7}
    views = {"hidden-from-layer-1": 1, "hidden-from-layers-1-to-4": 2}
    views |= {"layer-1-only": 3, "dilution": 4}
    effects, table = panels(slashes | views)
    assert effects["length"] == {10: 1, 55: 2, 110: 3}
    assert effects["place"] == {"between": 2, "end": 4, "random": 5}
    assert effects["depth"] == {1: 1, 4: 2}
    curves = set(table[table.panel == "depth"].curve)
    assert curves == {"hidden from layers 1 to k"}


OTHERS = "mless:30+arm hidden-from-layer-1:30 mful:30 mless:30@end"


@pytest.mark.parametrize("other", OTHERS.split())
def test_what_differs_in_a_second_thing_is_no_point_of_a_curve(other):
    shifts = {"mless:10": 1, "mless": 2, "mless@end": 3}
    shifts["hidden-from-layer-1"] = 4
    shifts["hidden-from-layers-1-to-2"] = 5
    alone, _ = panels(shifts)
    assert {"length", "place", "depth"} < alone.keys()
    shifts[other] = 6
    together, _ = panels(shifts)
    assert together == alone


def test_the_points_of_a_curve_have_the_same_problems():
    rows = scores({"mless": 2, "mless:10": 1, "mless:110": 3, "mless@end": 4})
    last = [f"p{i:03d}" for i in range(25, N)]
    for condition, panel in (("mless:110", "length"), ("mless@end", "place")):
        missing = (rows.condition == condition) & rows.problem_id.isin(last)
        table = of_solutions(rows[~missing])
        counts = table.groupby("panel").n.unique().map(list).to_dict()
        assert counts == {"length": [N], "pairs": [N], "place": [N]} | {panel: [25]}


def test_a_point_of_too_few_problems_takes_none_from_the_others():
    rows = scores({"mless": 2, "mless:10": 1, "mless:110": 3})
    is_late = rows.problem_id >= f"p{ENOUGH - 1:03d}"
    few = (rows.condition == "mless:110") & is_late
    table = of_solutions(rows[~few])
    points = table[table.panel == "length"]
    assert points.x.tolist() == [55, 10]
    assert set(points.n) == {N}


def test_the_problem_from_close_is_the_median_one_of_the_first_model():
    rows = scores({"mless": 0}, n=5)
    rows.loc[rows.condition == "mless", "nats"] += [9.0, -3.0, 2.0, 50.0, 1.0]
    table = contrasts.one_problem(rows)
    assert set(table.problem_id) == {"p002"}
    assert list(table.condition) == ["none", "mless"]
    assert table["to none"].tolist() == pytest.approx([0, 2])
    assert table["per token"].tolist() == pytest.approx((table.nats / 100).tolist())
    # Of an even number it is the lower of the two in the middle.
    fewer = contrasts.one_problem(rows[rows.problem_id != "p001"])
    assert set(fewer.problem_id) == {"p002"}
    alone = contrasts.one_problem(rows[rows.condition == "none"])
    assert set(alone.problem_id) == {"p000"}


def test_slashes_without_length_or_place_have_those_of_the_profile():
    shifts = {"mless": 2, "mless:10": 1, "mless@random": 5}
    effects, _ = panels(shifts, Filler(length=20, position="end"))
    assert effects["length"] == {20: 2, 10: 1}
    assert effects["place"] == {"end": 2, "random": 5}


@pytest.fixture
def likelier():
    """400 problems with texts of unequal lengths, the solved ones likelier.

    Log p per token is a whole number of 64ths, so that many tie.
    """
    rng = np.random.default_rng(0)
    per_token = (64 * rng.normal(-1, 0.3, 400)).round() / 64
    tokens = rng.integers(20, 120, 400)
    right = rng.random(400) < 1 / (1 + np.exp(-(2 + 3 * per_token)))
    return per_token, tokens, right


def fitted(x, right):
    """Return a logistic regression's coefficients by another optimiser."""

    def loss(beta):
        return np.logaddexp(0, -(2 * right - 1) * (beta[0] + beta[1] * x)).sum()

    return optimize.minimize(loss, (0, 0))


def test_what_a_nat_is_worth_is_a_logistic_regressions_slope(likelier):
    per_token, tokens, right = likelier
    rows = scores({}, n=400).assign(nats=tokens * per_token, tokens=tokens)
    (row,) = contrasts.worth(rows, answers(right)).to_dict("records")
    model = fitted(per_token, right)
    assert row["n"] == 400
    assert row["solved"] == pytest.approx(100 * right.mean())
    assert row["slope"] == pytest.approx(model.x[1], abs=1e-3)
    error = (row["slope_high"] - row["slope_low"]) / 2 / 1.97
    assert error == pytest.approx(np.sqrt(model.hess_inv[1, 1]), rel=0.15)

    # A nat on a whole solution is the less per token, the longer the solution is.
    def accuracy(nats):
        logits = model.x[0] + model.x[1] * (per_token + nats / tokens)
        return (1 / (1 + np.exp(-logits))).mean()

    points = 100 * (accuracy(0.01) - accuracy(0)) / 0.01
    assert row["points"] == pytest.approx(points, rel=0.02)


def test_the_area_counts_pairs_in_order_and_half_of_those_that_tie(likelier):
    per_token, tokens, right = likelier
    rows = scores({}, n=400).assign(nats=tokens * per_token, tokens=tokens)
    (row,) = contrasts.worth(rows, answers(right)).to_dict("records")
    assert len(set(per_token)) < 200
    wins = stats.mannwhitneyu(per_token[right], per_token[~right]).statistic
    pairs = right.sum() * (~right).sum()
    assert row["auc"] == pytest.approx(100 * wins / pairs)
    assert row["auc_low"] < row["auc"] < row["auc_high"] <= 100


def test_what_a_nat_is_worth_is_known_as_well_as_there_are_templates(likelier):
    # Four problems of each template, which say the same four times.
    whole = [values[:100] for values in likelier]
    per_token, tokens, right = (values.repeat(4) for values in whole)
    ids = [f"embedded/{index // 4}/{index}" for index in range(400)]
    rows = scores({}, n=400).assign(nats=tokens * per_token, tokens=tokens)
    repeated = answers(right).assign(problem_id=ids)
    (row,) = contrasts.worth(rows.assign(problem_id=ids), repeated).to_dict("records")

    per_token, tokens, right = whole
    rows = scores({}, n=100).assign(nats=tokens * per_token, tokens=tokens)
    (alone,) = contrasts.worth(rows, answers(right)).to_dict("records")
    assert (row.pop("n"), alone.pop("n")) == (400, 100)
    assert row == pytest.approx(alone)


def test_a_problem_is_solved_where_more_than_half_of_its_answers_are_right():
    samples = [[1, 1]] * 10 + [[1, 0]] * 10 + [[0, 0]] * 10
    rows = scores({}).assign(nats=np.arange(N), tokens=1)
    (row,) = contrasts.worth(rows, answers(samples)).to_dict("records")
    assert row["solved"] == pytest.approx(100 / 3)
    assert row["auc"] == 0  # the solved ones are the ten least likely


@pytest.mark.parametrize("right", [[True] * N, [False] * N, [True, False] * 5])
def test_without_both_kinds_of_answers_or_with_few_a_nat_has_no_worth(right):
    assert contrasts.worth(scores({}), answers(right)).empty


def test_what_the_profile_asks_for_and_nobody_scored_is_said():
    wanted = SimpleNamespace(
        models=["demo", "gemma-3-270m"], conditions=["none", "gap"], at_once=["none"]
    )
    run = SimpleNamespace(likelihood=wanted)
    rows = scores({"gap": 1}, "SmolLM2-135M-Instruct")
    rows = rows[(rows.condition == "none") | (rows.problem_id < "p010")]
    assert contrasts.unscored(run, rows) == [
        "Not scored with SmolLM2-135M-Instruct: solutions under gap; answers under"
        " none.",
        "Not scored: gemma-3-270m.",
    ]


def test_what_is_scored_on_just_enough_problems_is_not_said_to_lack():
    wanted = SimpleNamespace(models=["demo"], conditions=["none", "gap"], at_once=[])
    run = SimpleNamespace(likelihood=wanted)
    enough = scores({"gap": 1}, "SmolLM2-135M-Instruct", n=ENOUGH)
    few = enough[enough.problem_id != "p000"]
    assert contrasts.unscored(run, enough) == []
    sentence = "Not scored with SmolLM2-135M-Instruct: solutions under none, gap."
    assert contrasts.unscored(run, few) == [sentence]
