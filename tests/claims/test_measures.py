"""The claims file, and the number behind each claim on arrays and answers whose numbers
are worked out here.
"""

import itertools
from inspect import signature

import numpy as np
import pandas as pd
import pytest
import yaml
from evidence import CLAIMS, answers, inside, right, scores, verdict_on
from scipy import stats

from lib import paths
from lib.arm.activations import ACTIVATION_MEASURES as ACTIVATIONS
from lib.claims import answer_measures
from lib.claims.claim import MEASURES, load_claims, values_of
from lib.errors import InputError
from lib.measurement.activations import TOKEN_CLASSES

N = 50
HEADS = [1, 2]
ENTRY = paths.read_yaml(paths.DATA / "claims.yaml")["claims"][0]


def is_about_the_inside(claim):
    return "measured" in signature(MEASURES[claim.measure]).parameters


INSIDE = [name for name, claim in CLAIMS.items() if is_about_the_inside(claim)]
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


def test_a_public_function_that_returns_no_array_is_no_measure():
    assert "solved_likelier" in MEASURES
    assert hasattr(answer_measures, "likely_and_right")
    assert "likely_and_right" not in MEASURES


@pytest.fixture(scope="module")
def arrays():
    """Random numbers around 1 by name, (condition, problem, ...) as `inside` takes
    them, fits without condition.
    """
    rng = np.random.default_rng(0)
    by_head = (
        "lambda",
        "irregularity",
        "unevenness",
        "flatness",
        "dispersion",
        "portion",
        "mass",
    )
    numbers = {}
    for name in by_head:
        numbers[name] = rng.uniform(0.5, 1.5, (5, N, 3, 2))
    for name, scale in (("affine", 0.5), ("line", 0.8), ("softmax", 0.6)):
        numbers[name] = rng.uniform(0, scale, (N, 2))
    numbers["softmax"][0] = 0.99  # the best of one problem, not on average
    numbers["lambda_by_span"] = rng.uniform(0.5, 1.5, (5, N, 3, 2, 3, 2))
    numbers["lambda_over_heads"] = rng.uniform(0.5, 1.5, (5, N, 3, 3, 2))
    numbers["measures"] = rng.uniform(0.5, 1.5, (5, N, 3, len(ACTIVATIONS)))
    numbers["classes"] = rng.uniform(0, 1, (5, N, 3, len(TOKEN_CLASSES)))
    numbers["shape"] = rng.uniform(-1, 1, (5, N, 3))
    return numbers


# The means over problems of each claim's parts, by the part's name. The first axis of
# the arrays is the condition: none, mless, mful, random, arm.


def expected_of_lambda(arrays):
    slashes = arrays["lambda"][1]  # (problem, layer, head)
    first = slashes[:, 0]
    alike = (arrays["lambda"][2] / slashes)[:, 0]
    to_problem = arrays["lambda_over_heads"][1, :, 0, 1, 0]
    return {
        "dilution": {"mean of 2 heads": first.mean()},
        "dilution-problem": {"mean of 2 heads": to_problem.mean()},
        "dilution-every-head": each_head(first),
        "layer-1-most": against_layer_1(slashes),
        "later-layers": {"layers 2 to 3": slashes[:, 1:].mean()},
        "mful-alike": {"mean of 2 heads": alike.mean()},
        "mful-alike-every-head": each_head(alike),
    }


def each_head(values):
    """The means of values (problem, head)."""
    means = values.mean(0)
    return {f"head {head}": means[head - 1] for head in HEADS}


def against_layer_1(values):
    """How far values (problem, layer, head) of later layers lie above those of the
    first.
    """
    means = values.mean((0, 2))
    return {f"layer {layer}": means[layer - 1] - means[0] for layer in (2, 3)}


def expected_of_the_inserted(arrays):
    flatness = arrays["flatness"][:, :, 0].mean(2)
    dispersion = arrays["dispersion"][:, :, 0].mean(2)
    unevenness = arrays["unevenness"][1, :, 0].mean(1)
    level = arrays["portion"][1, :, 0].mean()
    evenness = (flatness[1] / unevenness).mean()
    random_differs = {
        "attention": (flatness[3] - flatness[1]).mean(),
        "values": (dispersion[3] - dispersion[1]).mean(),
    }
    return {
        "layer-1-mass": against_layer_1(arrays["mass"][1]),
        "flat-filler": {"level": level, "evenness": evenness},
        "regularity": against_layer_1(arrays["irregularity"][1]),
        "random-differs": random_differs,
        "affine": {"one λ, one σ": arrays["affine"].mean()},
        "affine-any-form": {"a coefficient of σ per token": arrays["line"].mean()},
    }


def expected_of_activations(arrays):
    none, slashes = arrays["measures"][:2, :, 0]
    logs = np.log(slashes / none).mean(0)
    change = dict(zip(ACTIVATIONS, logs, strict=True))
    rises = {f"{name} up": change[name] for name in ("L1", "L2", "variance")}
    sparser = {"near zero down": -change["near zero"]}
    more_equal = {"Gini down": -change["Gini"]}
    return {
        "variance-grows": {"gate variance up": change["gate variance"]},
        "redistribution": rises | sparser,
        "redistribution-Gini": rises | sparser | more_equal,
        "arm-like-mless": {"histogram": arrays["shape"][4, :, 0].mean()},
    }


def expected_of_token_classes(arrays):
    before, after = 100 * arrays["classes"][:2, :, 0].mean(1)
    others = before[3]
    against_others = {}
    against_after = {}
    for i, name in enumerate(TOKEN_CLASSES[:3]):
        against_others[name] = before[i] - others
        against_after[name] = before[i] - after[i]
    return {"token-classes": against_others, "classes-after": against_after}


@pytest.fixture(scope="module")
def expected(arrays):
    parts = expected_of_lambda(arrays)
    parts |= expected_of_the_inserted(arrays)
    parts |= expected_of_activations(arrays)
    parts |= expected_of_token_classes(arrays)
    return parts


@pytest.mark.parametrize("name", INSIDE)
def test_the_parts_of_a_claim_about_the_inside_are_these_numbers(
    name, arrays, expected
):
    parts = expected[name]
    evidence = {"measured": inside(N, **arrays)}
    changes = {}
    if name == "later-layers":  # there are three
        changes["arguments"] = {"condition": "mless", "layer": 2}

    claim = CLAIMS[name].model_copy(update=changes)
    values = values_of(claim, evidence).sel(network="trained")
    means = values.mean("problem").values
    by_part = dict(zip(values.component.values, means, strict=True))
    assert by_part == pytest.approx(parts)

    row = verdict_on(name, evidence, **changes)
    assert row.estimate.effect == pytest.approx(parts[row.part])
    assert row.parts == len(parts)
    assert (row.n, row.clusters) == (N, 25)


def test_deeper_layers_count_where_some_problems_went_through_them():
    went_deeper = np.arange(30)[:, None, None] < 24
    lam = np.ones((5, 30, 6, 2))
    lam[:, :, 4:] = np.where(went_deeper, 1.2, np.nan)
    measured = inside(30, layers=6, **{"lambda": lam})
    row = verdict_on("later-layers", {"measured": measured})
    assert row.n == 24
    assert row.part == "layers 5 to 6"
    assert row.estimate.effect == pytest.approx(1.2)


def test_a_mean_over_heads_tells_in_how_many_of_them_it_is_as_claimed():
    heads = np.broadcast_to([0.5, 0.9, 1.1], (5, 30, 3, 3))
    lam = heads + 0.01 * np.sin(np.arange(30))[:, None, None]
    lam[:, 0] += 0.2  # one problem is unlike the others
    measured = inside(30, heads=3, **{"lambda": lam})
    row = verdict_on("dilution", {"measured": measured})
    assert (row.verdict, row.heads_held, row.heads) == ("supported", 2, 3)


def test_accuracies_are_compared_over_the_problems_that_both_answered():
    under_mless = [1] * 5 + [0] * 5 + [1] * 20
    evidence = answers(none=right(10, 40), mless=under_mless)
    row = verdict_on("accuracy-mless", evidence)
    assert row.n == 30
    assert row.estimate.effect == pytest.approx(100 * (20 - 5) / 30)


@pytest.mark.parametrize("embedded", [False, True])
def test_templates_are_counted_where_the_ids_have_them(embedded):
    evidence = answers(embedded=embedded, none=right(0, 50), mless=right(20, 50))
    row = verdict_on("accuracy-mless", evidence)
    clusters = 25 if embedded else 50
    assert (row.n, row.clusters) == (50, clusters)


def test_a_share_has_the_exact_interval_where_the_model_writes_its_answer_itself_once():
    once = answers("fillers", mless_end=right(2))
    estimate = verdict_on("position-end", once).estimate
    exact = stats.binomtest(2, 60).proportion_ci(method="exact")
    assert estimate.effect == pytest.approx(200 / 60)
    assert estimate.low == pytest.approx(100 * exact.low)
    assert estimate.high == pytest.approx(100 * exact.high)

    in_chat = answers("fillers", plain=False, mless_end=right(2))
    row = verdict_on("position-end", in_chat)
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


def test_pass_at_3_needs_three_samples():
    sampled = answers("sampling", samples=2, none=[0] * 24, arm=[0] * 24)
    row = verdict_on("arm-diversity", sampled)
    assert row.reason == "pass@3 needs 3 samples of each problem, and 2 were taken"
    assert row.n == 0


def test_just_as_many_samples_as_pass_at_k_needs_are_enough():
    sampled = answers("sampling", samples=3, none=[0] * 24, arm=[1] * 24)
    values = values_of(CLAIMS["arm-diversity"], sampled)[0]
    assert values.sel(component="pass@3").mean() == 100


def test_answers_some_of_which_are_helped_are_not_unaided():
    mixed = answers("fillers", mless_end=right(2))
    mixed["answers"].loc[0, "plain"] = False
    assert verdict_on("position-end", mixed).n == 0


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


def test_likelihoods_are_compared_over_the_problems_that_both_scored():
    both = scores({"mless": 1.0, "example": 8})
    without_two = both.drop([31, 32])  # of mless
    row = verdict_on("likelihood-gain", {"scores": without_two})
    assert row.n == 28
    assert row.estimate.effect == pytest.approx(1, abs=0.01)
    assert row.verdict == "supported"


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


def test_answers_without_reasoning_do_not_say_which_problems_are_solved():
    known = scores({})
    table = answers(none=[0] * 15 + [1] * 15)["answers"]
    table["problem_id"] = sorted(known.problem_id)
    at_once = table.assign(part="direct", right=0)
    both = pd.concat([at_once, table], ignore_index=True)
    judged = verdict_on("likelihood-right", {"scores": known, "answers": both})
    assert (judged.estimate.effect, judged.verdict) == (100, "supported")


def test_answers_without_reasoning_are_compared_apart_from_the_others():
    at_once = answers(none=[0] * 30, repeat=[1] * 15 + [0] * 15)["answers"]
    others = answers(none=[0] * 30, repeat=[0] * 30)["answers"]
    both = pd.concat([others, at_once.assign(part="direct")], ignore_index=True)
    judged = verdict_on("direct-repeat", {"answers": both})
    assert (judged.estimate.effect, judged.verdict) == (50, "supported")
    assert judged.answers is None  # no limit cuts any


def test_solutions_are_compared_by_token_and_halves_of_answers_are_not_solved():
    known = scores({}, n=20)
    table = answers(samples=2, none=[2] * 10 + [1] * 10)["answers"]
    table["problem_id"] = sorted([*known.problem_id] * 2)
    evidence = {"scores": known, "answers": table}
    known["nats"] = [-50.0, -100.0] * 10
    known["tokens"] = [50, 100] * 10
    assert verdict_on("likelihood-right", evidence).estimate.effect == 50
    known["nats"] = [-50.0] * 10 + [-100.0] * 10
    known["tokens"] = 100
    assert verdict_on("likelihood-right", evidence).estimate.effect == 100


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


def test_the_papers_number_is_that_of_the_nearest_model_of_the_family():
    reported = CLAIMS["accuracy-mless"].reported
    llama = "Llama-3.1-8B-Instruct"
    assert reported(llama) == (0.3, llama)
    assert reported("Qwen2.5-14B") == (2.3, "Qwen2.5-Math-7B")
    assert reported("SmolLM2-135M-Instruct") == (None, None)

    # Nearest in how many times as large it is: 2B is twice 1B, and a fifth of 10B.
    numbers = {"qwen-1B": 1.0, "qwen-10B": 2.0, "qwen-500M": 3.0}
    claim = CLAIMS["accuracy-mless"].model_copy(update={"paper": numbers})
    assert claim.reported("Qwen-2B") == (1, "qwen-1B")
    assert claim.reported("Qwen-4B") == (2, "qwen-10B")
    assert claim.reported("Qwen-600M") == (3, "qwen-500M")


def test_a_layer_that_was_not_measured_and_too_few_problems_are_named():
    evidence = {"measured": inside(**{"lambda": 1.0})}
    seventh = {"condition": "mless", "layer": 7, "heads": "each"}
    row = verdict_on("dilution", evidence, arguments=seventh)
    assert row.reason == "layer 7 was not measured, only 1, 2, 3"

    numbers = np.arange(40)[:, None, None]
    lam = np.where(numbers % 25 == 3, 0.5, np.nan)  # 3 and 28, of one template
    few = verdict_on("dilution", {"measured": inside(**{"lambda": lam})})
    assert few.reason == "mean of 2 heads: 2 problems of 1 templates are too few"
