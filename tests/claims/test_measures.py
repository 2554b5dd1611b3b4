"""The claims file, and the numbers behind claims on answers that are worked out here;
test_gathering judges what is stored.
"""

import itertools

import numpy as np
import pytest
import yaml
from evidence import CLAIMS, answers, inside, right, scores, verdict_on
from scipy import stats

from lib import paths
from lib.claims.claim import load_claims, values_of
from lib.errors import InputError
from lib.files import read_yaml

ENTRY = read_yaml(paths.DATA / "claims.yaml")["claims"][0]


LOST_PART = {"part": "lost", "pairs": [["mless", "none"]]}
WITHOUT_ID = {name: value for name, value in ENTRY.items() if name != "id"}


@pytest.mark.parametrize(
    ("entries", "named"),
    [
        (
            [ENTRY | {"measure": "guess"}],
            "claim dilution: unknown measure 'guess': choose from accuracy_differences",
        ),
        (
            [ENTRY | {"measure": "accuracy_differences", "with": LOST_PART}],
            "claim dilution: unknown part 'lost': choose from main, fillers",
        ),
        (
            [ENTRY | {"with": {"layer": 1}}],
            "measure lambdas takes condition, layer, heads in `with`",
        ),
        ([ENTRY | {"range": [None, None]}], "range .* claims nothing"),
        ([ENTRY, ENTRY], "claim dilution is listed twice"),
        (["a"], "claim 1: must be fields with values"),
        ([WITHOUT_ID], "claim 1: id: missing field"),
        (None, "no list of claims"),
    ],
)
def test_a_claim_that_makes_no_sense_is_named(tmp_path, entries, named):
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"claims": entries}))
    with pytest.raises(InputError, match=rf"claims\.yaml: .*{named}"):
        load_claims(path)


def test_later_layers_are_averaged_where_a_problem_went_through_them():
    went_deeper = np.arange(30)[:, None] < 24
    lam = np.ones((5, 30, 6, 2))
    for layer, ratio in ((5, 1.1), (6, 1.3)):
        lam[:, :, layer - 1] = np.where(went_deeper, ratio, np.nan)
    measured = inside(30, layers=6, **{"lambda": lam})
    row = verdict_on("later-layers", {"measured": measured})
    assert (row.n, row.part) == (24, "layers 5 to 6")
    assert row.estimate.effect == pytest.approx(1.2)


def test_accuracies_are_compared_over_the_problems_that_both_answered():
    under_mless = [1] * 5 + [0] * 5 + [1] * 20
    evidence = answers(none=right(10, 40), mless=under_mless)
    row = verdict_on("accuracy-mless", evidence)
    assert row.n == 30
    assert row.estimate.effect == pytest.approx(100 * (20 - 5) / 30)


def test_a_share_has_the_exact_interval_where_the_model_writes_its_answer_itself_once():
    once = answers("fillers", mless_end=right(2))
    estimate = verdict_on("position-end", once).estimate
    exact = stats.binomtest(2, 60).proportion_ci(method="exact")
    assert estimate.effect == pytest.approx(200 / 60)
    assert estimate.low == pytest.approx(100 * exact.low)
    assert estimate.high == pytest.approx(100 * exact.high)

    once["answers"].loc[0, "plain"] = False
    row = verdict_on("position-end", once)
    assert row.n == 0
    assert "asked in chat form, or its answer is elicited" in row.reason

    four_times = answers("fillers", samples=4, mless_end=[1, 0, 0, 0] * 15)
    row = verdict_on("position-end", four_times)
    exact = stats.binomtest(15, 240).proportion_ci(method="exact")
    assert row.n == 60
    assert row.estimate.effect == pytest.approx(6.25)
    assert row.estimate.low != pytest.approx(100 * exact.low)
    assert row.estimate.low > 0


def test_samples_are_compared_by_pass_at_3_and_by_their_words():
    solved = [4, 2, 1, 0] * 6  # of four: pass@3 of 1, 1, 3/4 and 0
    sampled = answers("sampling", samples=4, none=[0] * 24, arm=solved)
    values = values_of(CLAIMS["arm-diversity"], sampled)[0]

    # Words under none are w0 w1 w2 w0 w1 four times: 3 of 16 pairs differ. Under arm
    # each sample moves on by one word.
    distinct = set()
    for sample, i in itertools.product(range(4), range(4)):
        first = f"w{sample + i % 3}"
        second = f"w{sample + (i + 1) % 3}"
        distinct.add((first, second))
    passed = 100 * 2.75 / 4
    diversity = 100 * (len(distinct) - 3) / 16
    assert values.mean("problem").values == pytest.approx([passed, diversity])


def test_pass_at_3_needs_three_samples_and_no_more():
    few, enough = (
        answers("sampling", samples=samples, none=[0] * 24, arm=[1] * 24)
        for samples in (2, 3)
    )
    uneven = {"answers": enough["answers"].drop(index=0)}
    for too_few in (few, uneven):
        row = verdict_on("arm-diversity", too_few)
        assert row.reason == "pass@3 needs 3 samples of each problem, and 2 were taken"
        assert row.n == 0
    values = values_of(CLAIMS["arm-diversity"], enough)[0]
    assert values.sel(component="pass@3").mean() == 100
    alone = {"condition": "arm", "k": 3, "distinct": False}
    row = verdict_on("best-of-n", enough, arguments=alone)
    assert row.holds == ("pass@3",)


def test_the_best_setting_is_sought_among_problems_that_all_settings_answered():
    evidence = answers("arm_map", none=right(10, 40), a=right(15, 40), b=right(30, 30))
    gains = values_of(CLAIMS["arm-peak"], evidence)[0]
    means = gains.mean("problem").values
    assert means == pytest.approx([500 / 30, 2000 / 30])


def test_the_best_of_many_settings_is_held_against_what_choosing_gives():
    settings = {"a": right(15, 40), "b": right(30, 40), "c": right(0, 40)}
    evidence = answers("arm_map", none=right(10, 40), **settings)
    values = values_of(CLAIMS["arm-peak"], evidence)[0]
    assert values.mean("problem").values == pytest.approx([12.5, 50, -25])
    assert values.attrs["kind"] == "largest"

    row = verdict_on("arm-peak", evidence)
    assert row.estimate.effect == 50
    assert row.part == "best of 3"
    assert row.verdict == "supported"

    same = dict.fromkeys("abcdefgh", right(20))
    unchanged = answers("arm_map", none=right(20), **same)
    assert verdict_on("arm-peak", unchanged).verdict == "undecided"


@pytest.mark.parametrize(
    ("solved", "area", "verdict"),
    [
        ([0] * 15 + [1] * 15, 100, "supported"),
        ([1] * 15 + [0] * 15, 0, "contradicted"),
        ([0, 1, 1, 0] * 7 + [0, 1], None, "undecided"),
    ],
)
def test_the_control_of_right_answers_is_the_area_under_the_curve(
    solved, area, verdict
):
    # The likelihood of the problems' solutions rises with their number.
    known = scores({})
    table = answers(none=solved)["answers"]
    table["problem_id"] = sorted(known.problem_id)
    judged = verdict_on("likelihood-right", {"scores": known, "answers": table})
    likely = np.arange(30)
    right = np.array(solved, dtype=bool)
    wins = stats.mannwhitneyu(likely[right], likely[~right]).statistic
    by_hand = 100 * wins / (right.sum() * (~right).sum())
    assert area in (None, by_hand)
    assert judged.estimate.effect == pytest.approx(by_hand)
    assert (judged.verdict, judged.n) == (verdict, 30)


def test_solutions_are_compared_by_token_and_halves_of_answers_are_not_solved():
    known = scores({}, n=20)
    table = answers(samples=2, none=[2] * 10 + [1] * 10)["answers"]
    table["problem_id"] = sorted([*known.problem_id] * 2)
    evidence = {"scores": known, "answers": table}
    for tokens, area in (([50] * 10 + [100] * 10, 50), (100, 100)):
        known["nats"] = [-50.0] * 10 + [-100.0] * 10
        known["tokens"] = tokens
        assert verdict_on("likelihood-right", evidence).estimate.effect == area


def test_an_area_needs_solved_problems_and_others():
    known = scores({})
    table = answers(none=[1] * 30)["answers"]
    table["problem_id"] = sorted(known.problem_id)
    judged = verdict_on("likelihood-right", {"scores": known, "answers": table})
    assert judged.reason == "all of the problems are solved, or none is"


@pytest.mark.parametrize("name", CLAIMS)
def test_what_cannot_be_tested_says_why(name):
    row = verdict_on(name, {})
    assert (row.verdict, row.n, row.stands) == ("undecided", 0, "not tested")
    assert row.reason.startswith("the profile")


def test_the_papers_number_is_that_of_the_model_or_of_the_first_of_its_family():
    numbers = {"llama-8B": 1.0, "Qwen-1B": 2.0, "Qwen-10B": 3.0}
    claim = CLAIMS["accuracy-mless"].model_copy(update={"paper": numbers})
    assert claim.reported("Qwen-10B") == (3, "Qwen-10B")
    assert claim.reported("qwen2-4B") == (2, "Qwen-1B")
    assert claim.reported("gemma-1B") == (None, None)


def test_a_layer_that_was_not_measured_and_too_few_problems_are_named():
    evidence = {"measured": inside(**{"lambda": 1.0})}
    seventh = {"condition": "mless", "layer": 7, "heads": "each"}
    row = verdict_on("dilution", evidence, arguments=seventh)
    assert row.reason == "layer 7 was not measured, only 1, 2, 3"

    nothing = {"measured": inside(**{"lambda": np.nan})}
    row = verdict_on("dilution", nothing)
    assert row.reason == "the profile measures no lambda here"

    numbers = np.arange(40)[:, None, None]
    lam = np.where(numbers % 25 == 3, 0.5, np.nan)  # 3 and 28, of one template
    few = verdict_on("dilution", {"measured": inside(**{"lambda": lam})})
    assert few.reason == "mean of 2 heads: 2 problems of 1 templates are too few"
