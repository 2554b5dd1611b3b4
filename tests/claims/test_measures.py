"""The claims file, and the numbers of claims on evidence made by hand; test_gathering
judges the stored evidence.
"""

import numpy as np
import pandas as pd
import pytest
from evidence import CLAIMS, answers, lambdas, right, scores, verdict_on

from lib.statistics.proportions import clopper_pearson
from reproduction.claims.claim import load_claims, values_of

IN_LAYER_2 = {"of": ["irregularity"], "less": {"layer": 1}, "each": "layer"}
IN_LAYER_2 |= {"at": {"condition": "mless", "layer": [2]}}


def test_claims_have_different_names_and_a_range():
    claims = load_claims()
    assert len({claim.id for claim in claims}) == len(claims)
    assert all(low < high for low, high in (claim.bounds for claim in claims))
    assert all(claim.range != (None, None) for claim in claims)


def test_an_invalid_claim_is_refused_by_name(tmp_path, refused):
    path = tmp_path / "claims.yaml"
    path.write_text("claims: [{id: mine, measure: compared, otherwise: {a: 1}}]")
    message = refused(load_claims, path)
    assert "claims.yaml: claim mine: claim: missing field" in message
    assert "otherwise.a: unknown field" in message


def test_later_layers_are_averaged_over_the_problems_that_reached_them():
    went_deeper = np.arange(30)[:, None] < 24
    lam = np.ones((30, 6, 2))
    for layer, ratio in ((5, 1.1), (6, 1.3)):
        lam[:, layer - 1] = np.where(went_deeper, ratio, np.nan)
    row = verdict_on("later-layers", lambdas(lam, 30, layers=6))
    assert (row.n, row.part) == (24, "lambda_over_heads")
    assert row.estimate.effect == pytest.approx(1.2)


def test_later_layers_are_compared_with_layer_1_by_their_differences():
    lam = np.ones((30, 3, 2)) * [[0.5], [0.8], [0.9]]
    values = values_of(CLAIMS["layer-1-most"], lambdas(lam, 30, layers=3))[0]
    differences = values.mean("problem").values
    assert differences == pytest.approx([0.3, 0.4])


def test_accuracies_are_compared_on_problems_of_a_part_answered_under_both_conditions():
    under_mless = right(5, 10) + right(20, 20)
    evidence = answers(none=right(10, 40), mless=under_mless)
    of_another_part = answers("fillers", none=right(40, 40), mless=right(0, 40))
    both = [of_another_part["answers"], evidence["answers"]]
    row = verdict_on("accuracy-mless", {"answers": pd.concat(both)})
    assert row.n == 30
    assert row.estimate.effect == pytest.approx(100 * (20 - 5) / 30)


def test_a_share_of_single_unaided_answers_has_the_exact_interval():
    once = answers("fillers", mless_end=right(2))
    estimate = verdict_on("position-end", once).estimate
    shown = estimate.effect, estimate.low, estimate.high
    exact = [2 / 60, *clopper_pearson(2, 60)]
    assert shown == pytest.approx([100 * number for number in exact])

    once["answers"].loc[0, "plain"] = False
    row = verdict_on("position-end", once)
    assert row.n == 0
    assert "the prompt is a chat, or the answer is elicited" in row.reason

    four_times = answers("fillers", mless_end=["1000", "0000", "0000", "0000"] * 15)
    row = verdict_on("position-end", four_times)
    low, _ = clopper_pearson(15, 240)
    assert row.n == 60
    assert row.estimate.effect == pytest.approx(6.25)
    assert 0 < row.estimate.low != pytest.approx(100 * low)


def test_samples_are_compared_by_pass_at_3():
    # With four samples each, pass@3 of these problems is 1, 1, 3/4 and 0.
    solved = ["1111", "1100", "1000", "0000"] * 6
    sampled = answers("sampling", none=["0000"] * 24, arm=solved)
    values = values_of(CLAIMS["arm-pass-at-3"], sampled)[0]
    assert values.mean("problem").values == pytest.approx([100 * 2.75 / 4])


def test_pass_at_3_needs_three_samples_and_no_more():
    few = answers("sampling", none=["00"] * 24, arm=["10"] * 24)
    uneven = answers("sampling", none=["00_", *["000"] * 23], arm=["100"] * 24)
    for too_few in (few, uneven):
        row = verdict_on("arm-pass-at-3", too_few)
        assert row.reason == "pass@3 needs 3 samples of each problem, and 2 were taken"
        assert row.n == 0
    enough = answers("sampling", none=["000"] * 24, arm=["100"] * 24)
    row = verdict_on("arm-pass-at-3", enough)
    assert row.holds == ("pass@3",)
    assert row.estimate.effect == 100


def test_the_best_of_many_settings_is_compared_with_the_best_by_chance():
    # The best setting is chosen on the problems that have answers under all settings.
    settings = {"a": right(15, 40), "b": right(30, 30), "c": right(0, 40)}
    evidence = answers("arm_map", none=right(10, 40), **settings)
    row = verdict_on("arm-peak", evidence)
    assert row.estimate.effect == pytest.approx(100 * (30 - 10) / 30)
    assert (row.part, row.n, row.verdict) == ("best of 3", 30, "supported")

    same = dict.fromkeys("abcdefgh", right(20))
    unchanged = answers("arm_map", none=right(20), **same)
    assert verdict_on("arm-peak", unchanged).verdict == "undecided"
    alone = answers("arm_map", none=right(20), a=right(40))
    reason = verdict_on("arm-peak", alone).reason
    assert reason.startswith("the profile compares fewer than two conditions")


def test_the_gain_between_spaces_is_subtracted_from_that_of_slashes():
    rows = scores(mless=5, space=1, **{"mless-spaced": 2})
    assert verdict_on("separator-glue", {"scores": rows}).verdict == "supported"


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_without_evidence_is_not_tested_and_says_why(name):
    row = verdict_on(name, {})
    assert (row.verdict, row.n, row.word) == ("undecided", 0, "not tested")
    assert row.reason.startswith("the profile")


# Only problems 3 and 28 of the forty have a number; they share a template.
OF_ONE_TEMPLATE = np.where(np.arange(40) % 25 == 3, 0.5, np.nan)[:, None, None]


@pytest.mark.parametrize(
    ("lam", "layer", "reason"),
    [
        (1.0, 7, "layer 7 was not measured, only 1, 2, 3"),
        (np.nan, 1, "the profile measures no lambda here"),
        (
            OF_ONE_TEMPLATE,
            1,
            "lambda: 2 problems of 1 templates are too few",
        ),
    ],
)
def test_a_layer_that_was_not_measured_and_too_few_problems_are_named(
    lam, layer, reason
):
    arguments = {"of": ["lambda"], "at": {"condition": "mless", "layer": layer}}
    row = verdict_on("dilution", lambdas(lam), arguments=arguments)
    assert row.reason == reason


@pytest.mark.parametrize(
    ("lacking", "heads"),
    [(0, ""), (1, " (1 to 2 of 2 heads)"), (40, " (1 of 2 heads)")],
)
def test_layers_are_compared_over_the_heads_measured_in_both(lacking, heads):
    numbers = np.ones((1, 3, 40, 3, 2))
    numbers[..., 1, 0] = 1.5  # the first head in layer 2
    numbers[..., 1, 1] = 4.0
    numbers[..., :lacking, 0, 1] = np.nan  # the second one in layer 1
    evidence = lambdas(1)
    measured = evidence["measured"]
    measured["irregularity"] = (measured["lambda"].dims, numbers)
    row = verdict_on("regularity", evidence, arguments=IN_LAYER_2)
    assert row.part == f"layer 2{heads}"
    assert row.effect == pytest.approx((lacking * 0.5 + (40 - lacking) * 1.75) / 40)


@pytest.mark.parametrize(
    ("average", "effect"), [("mean", 10.5 - 1), ("median", 3 - 1), ("geometric", 4 - 1)]
)
def test_heads_and_layers_are_averaged_before_they_are_compared(average, effect):
    by_condition = np.ones((1, 3, 40, 3, 2))
    by_condition[:, 1] = [[1, 2], [2, 4], [8, 32]]
    by_condition[:, 1, :, 2, 1] = 46 if average == "mean" else 32
    at = {"condition": "mless", "layer": [1, 2, 3]}
    arguments = {"of": ["lambda"], "at": at, "less": {"condition": "mful"}}
    arguments |= {"average": average}
    row = verdict_on("dilution", lambdas(by_condition), arguments=arguments)
    assert row.effect == pytest.approx(effect)


def test_a_ratio_is_one_of_means_over_heads():
    by_condition = np.ones((1, 3, 40, 3, 2))
    by_condition[:, 1] = 1, 3  # mless
    by_condition[:, 2] = 2, 2  # mful
    at = {"condition": "mful", "layer": 1}
    arguments = {"of": ["lambda"], "at": at, "over": {"condition": "mless"}}
    row = verdict_on("mful-alike", lambdas(by_condition), arguments=arguments)
    assert row.effect == 1


def test_layers_without_a_common_head_are_not_tested():
    numbers = np.ones((1, 3, 40, 3, 2))
    numbers[..., 0, 0] = numbers[..., 1, 1] = np.nan
    evidence = lambdas(1)
    measured = evidence["measured"]
    measured["irregularity"] = (measured["lambda"].dims, numbers)
    row = verdict_on("regularity", evidence, arguments=IN_LAYER_2)
    assert row.reason == "layer 2: 0 problems of 0 templates are too few"


def test_settings_without_a_common_problem_are_not_tested():
    evidence = answers("arm_map", none=right(10, 40), a=right(9, 40), b=right(8, 40))
    rows = evidence["answers"]
    halves = {"a": rows.problem_id < "p2", "b": rows.problem_id >= "p2"}
    of_half = [(rows.condition == name) & half for name, half in halves.items()]
    kept = rows[(rows.condition == "none") | of_half[0] | of_half[1]]
    row = verdict_on("arm-peak", {"answers": kept})
    assert row.reason == "best of 2: 0 problems of 0 templates are too few"


def test_evenness_is_a_ratio_over_the_heads_that_have_both():
    evidence = lambdas(1)
    measured = evidence["measured"]
    values = {"portion": [0.5, 0.5], "flatness": [0.2, np.nan], "unevenness": [0.5, 9]}
    for name, by_head in values.items():
        numbers = np.broadcast_to(by_head, (1, 3, 40, 3, 2))
        measured[name] = (measured["lambda"].dims, numbers)
    row = verdict_on("flat-filler", evidence)
    assert set(row.holds) == {"level", "evenness (1 of 2 heads)"}
    values = values_of(CLAIMS["flat-filler"], evidence)
    assert values.sel(component="evenness (1 of 2 heads)").values == pytest.approx(0.4)
