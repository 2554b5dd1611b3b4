"""The claims file, and the number behind each claim on arrays and answers whose numbers
are worked out here.
"""

from inspect import signature

import numpy as np
import pytest
import yaml
from evidence import CLAIMS, answers, inside, right, scores, verdict_on
from scipy import stats

from lib import paths
from lib.arm.activations import ACTIVATION_MEASURES as ACTIVATIONS
from lib.claims.claim import MEASURES, load_claims, values_of
from lib.errors import InputError
from lib.measurement.activations import TOKEN_CLASSES

N, HEADS = 50, [1, 2]
ENTRY = paths.read_yaml(paths.DATA / "claims.yaml")["claims"][0]
INSIDE = [
    name
    for name, one in CLAIMS.items()
    if "measured" in signature(MEASURES[one.measure]).parameters
]


@pytest.mark.parametrize(
    ("entries", "named"),
    [
        (
            [ENTRY | {"measure": "guess"}],
            "claim dilution: unknown measure 'guess': choose from accuracy_differences",
        ),
        (
            [ENTRY | {"with": {"layer": 1}}],
            "measure lambdas takes condition, layer, heads in `with`",
        ),
        ([ENTRY | {"range": [None, None]}], "range .* claims nothing"),
        ([ENTRY, ENTRY], "claim dilution stands there twice"),
        (["a"], "claim 1: must be fields with values"),
        (
            [{name: value for name, value in ENTRY.items() if name != "id"}],
            "claim 1: id: missing field",
        ),
        (None, "no list of claims"),
    ],
)
def test_a_claim_that_makes_no_sense_is_named(tmp_path, entries, named):
    (tmp_path / "claims.yaml").write_text(yaml.safe_dump({"claims": entries}))
    with pytest.raises(InputError, match=rf"claims\.yaml: .*{named}"):
        load_claims(tmp_path / "claims.yaml")


@pytest.fixture(scope="module")
def arrays():
    """Random numbers around 1 by name, (condition, problem, ...) as `inside` takes
    them, fits without condition.
    """
    rng = np.random.default_rng(0)
    names = (
        "lambda",
        "irregularity",
        "unevenness",
        "flatness",
        "dispersion",
        "portion",
        "mass",
    )
    found = {name: rng.uniform(0.5, 1.5, (5, N, 3, 2)) for name in names}
    found |= {
        name: rng.uniform(0, scale, (N, 2))
        for name, scale in (("affine", 0.5), ("line", 0.8), ("softmax", 0.6))
    }
    found["lambda_by_span"] = rng.uniform(0.5, 1.5, (5, N, 3, 2, 3, 2))
    found["measures"] = rng.uniform(0.5, 1.5, (5, N, 3, len(ACTIVATIONS)))
    return found | {
        "classes": rng.uniform(0, 1, (5, N, 3, len(TOKEN_CLASSES))),
        "shape": rng.uniform(-1, 1, (5, N, 3)),
    }


def expected(a):
    """The means over problems of each claim's parts, by the part's name; conditions:
    none, mless, mful, random, arm.
    """
    lam, irregular = a["lambda"], a["irregularity"].mean(3)
    even = a["flatness"][1, :, 0].mean(1) / a["unevenness"][1, :, 0].mean(1)
    logs = np.log(a["measures"][1, :, 0] / a["measures"][0, :, 0]).mean(0)
    up = {f"{name} up": logs[i] for i, name in enumerate(ACTIVATIONS)}
    down = {f"{name} down": -logs[i] for i, name in enumerate(ACTIVATIONS)}
    rises = {name: up[name] for name in ("L1 up", "L2 up", "variance up")}
    plain, after = 100 * a["classes"][:2, :, 0].mean(1)
    return {
        "dilution": {"mean of 2 heads": lam[1, :, 0].mean()},
        "dilution-problem": {
            "mean of 2 heads": a["lambda_by_span"][1, :, 0, :, 1, 0].mean()
        },
        "dilution-every-head": {
            f"head {head}": lam[1, :, 0, head - 1].mean() for head in HEADS
        },
        "layer-1-most": {
            f"layer {k}": (lam[1, :, k - 1] - lam[1, :, 0]).mean() for k in (2, 3)
        },
        "layer-1-mass": {
            f"layer {k}": (a["mass"][1, :, k - 1] - a["mass"][1, :, 0]).mean()
            for k in (2, 3)
        },
        "later-layers": {"layers 2 to 3": lam[1, :, 1:].mean()},
        "flat-filler": {"level": a["portion"][1, :, 0].mean(), "evenness": even.mean()},
        "regularity": {
            f"layer {k}": (irregular[1, :, k - 1] - irregular[1, :, 0]).mean()
            for k in (2, 3)
        },
        "random-differs": {
            "attention": (a["flatness"][3, :, 0] - a["flatness"][1, :, 0]).mean(),
            "values": (a["dispersion"][3, :, 0] - a["dispersion"][1, :, 0]).mean(),
        },
        "mful-alike": {"mean of 2 heads": (lam[2] / lam[1])[:, 0].mean()},
        "mful-alike-every-head": {
            f"head {head}": (lam[2] / lam[1])[:, 0, head - 1].mean() for head in HEADS
        },
        "affine": {"one λ, one σ": a["affine"].mean()},
        "affine-any-form": {"a coefficient of σ per token": a["line"].mean()},
        "variance-grows": {name: up[name] for name in ["gate variance up"]},
        "redistribution": rises | {"near zero down": down["near zero down"]},
        "redistribution-Gini": (
            rises | {name: down[name] for name in ("near zero down", "Gini down")}
        ),
        "token-classes": {
            name: plain[i] - plain[3] for i, name in enumerate(TOKEN_CLASSES[:3])
        },
        "classes-after": {
            name: plain[i] - after[i] for i, name in enumerate(TOKEN_CLASSES[:3])
        },
        "arm-like-mless": {"histogram": a["shape"][4, :, 0].mean()},
    }


@pytest.mark.parametrize("name", INSIDE)
def test_the_parts_of_a_claim_about_the_inside_are_these_numbers(name, arrays):
    parts, given = expected(arrays)[name], {"measured": inside(N, **arrays)}
    changes = (
        {"arguments": {"condition": "mless", "layer": 2}}
        if name == "later-layers"
        else {}
    )  # there are three
    found = values_of(CLAIMS[name].model_copy(update=changes), given).sel(
        network="trained"
    )
    assert dict(
        zip(found.component.values, found.mean("problem").values, strict=True)
    ) == pytest.approx(parts)
    row = verdict_on(name, given, **changes)
    assert row.estimate.effect == pytest.approx(parts[row.part]) and row.parts == len(
        parts
    )
    assert (row.n, row.clusters) == (N, 25)


def test_deeper_layers_count_where_some_problems_went_through_them():
    lam = np.ones((5, 30, 6, 2))
    lam[:, :, 4:] = np.where(np.arange(30)[:, None, None] < 24, 1.2, np.nan)
    row = verdict_on(
        "later-layers", {"measured": inside(30, layers=6, **{"lambda": lam})}
    )
    assert (row.n, row.part, row.estimate.effect) == (
        24,
        "layers 5 to 6",
        pytest.approx(1.2),
    )


def test_a_mean_over_heads_tells_in_how_many_of_them_it_is_as_claimed():
    lam = (
        np.broadcast_to([0.5, 0.9, 1.1], (5, 30, 3, 3))
        + 0.01 * np.sin(np.arange(30))[:, None, None]
    )
    row = verdict_on("dilution", {"measured": inside(30, heads=3, **{"lambda": lam})})
    assert (row.verdict, row.heads_held, row.heads) == ("supported", 2, 3)


def test_accuracies_are_compared_over_the_problems_that_both_answered():
    row = verdict_on(
        "accuracy-mless",
        answers(none=right(10, 40), mless=[1] * 5 + [0] * 5 + [1] * 20),
    )
    assert row.n == 30 and row.estimate.effect == pytest.approx(100 * (20 - 5) / 30)


@pytest.mark.parametrize("embedded", [False, True])
def test_templates_are_counted_where_the_ids_have_them(embedded):
    row = verdict_on(
        "accuracy-mless",
        answers(embedded=embedded, none=right(0, 50), mless=right(20, 50)),
    )
    assert (row.n, row.clusters) == (50, 25 if embedded else 50)


def test_a_share_has_the_exact_interval_where_the_model_writes_its_answer_itself_once():
    row = verdict_on("position-end", answers("fillers", mless_end=right(2)))
    exact = stats.binomtest(2, 60).proportion_ci(method="exact")
    assert [row.estimate.effect, row.estimate.low, row.estimate.high] == pytest.approx(
        [200 / 60, 100 * exact.low, 100 * exact.high]
    )
    row = verdict_on(
        "position-end", answers("fillers", plain=False, mless_end=right(2))
    )
    assert row.n == 0 and "asked in chat form, or its answer is elicited" in row.reason
    row = verdict_on(
        "position-end", answers("fillers", samples=4, mless_end=[1, 0, 0, 0] * 15)
    )
    exact = stats.binomtest(15, 240).proportion_ci(method="exact")
    assert row.n == 60 and row.estimate.effect == pytest.approx(6.25)
    assert row.estimate.low != pytest.approx(100 * exact.low) and row.estimate.low > 0


def test_samples_are_compared_by_pass_at_3_and_by_their_words():
    solved = [4, 2, 1, 0] * 6  # of four: pass@3 of 1, 1, 3/4 and 0
    found = values_of(
        CLAIMS["arm-diversity"],
        answers("sampling", samples=4, none=[0] * 24, arm=solved),
    )[0]
    # Words under none are w0 w1 w2 w0 w1 four times: 3 of 16 pairs differ. Under arm
    # each sample moves on by one word.
    distinct = {
        (f"w{s + i % 3}", f"w{s + (i + 1) % 3}") for s in range(4) for i in range(4)
    }
    assert found.mean("problem").values == pytest.approx(
        [100 * 2.75 / 4, 100 * (len(distinct) - 3) / 16]
    )
    row = verdict_on(
        "arm-diversity", answers("sampling", samples=2, none=[0] * 24, arm=[0] * 24)
    )
    assert (
        row.reason == "pass@3 needs 3 samples of each problem, and 2 were taken"
        and row.n == 0
    )


def test_the_best_of_many_settings_is_held_against_what_choosing_gives():
    given = answers(
        "arm_map", none=right(10, 40), a=right(15, 40), b=right(30, 40), c=right(0, 40)
    )
    found = values_of(CLAIMS["arm-peak"], given)[0]
    assert (
        found.mean("problem").values == pytest.approx([12.5, 50, -25])
        and found.attrs["kind"] == "largest"
    )
    row = verdict_on("arm-peak", given)
    assert (row.estimate.effect, row.part, row.verdict) == (
        50,
        "best of 3",
        "supported",
    )
    same = dict.fromkeys("abcdefgh", right(20))
    assert (
        verdict_on("arm-peak", answers("arm_map", none=right(20), **same)).verdict
        == "undecided"
    )


def test_likelihoods_are_compared_over_the_problems_that_both_scored():
    some = scores({"mless": 1.0, "example": 8}).drop([31, 32])  # of mless
    row = verdict_on("likelihood-gain", {"scores": some})
    assert (
        row.n == 28
        and row.estimate.effect == pytest.approx(1, abs=0.01)
        and row.verdict == "supported"
    )


def test_the_mean_of_two_differences_is_taken_problem_by_problem():
    shifts = {"gap": -1, "layer-1-only": -0.5, "hidden-from-layer-1": 1, "mless": 3}
    judged = verdict_on("likelihood-layer-1-mean", {"scores": scores(shifts)})
    assert judged.estimate.effect == pytest.approx((0.5 + 2) / 2, abs=0.02)
    assert (judged.n, judged.part) == (30, "mean of 2 differences")


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
    known = {
        "Llama-3.1-8B-Instruct": (0.3, "Llama-3.1-8B-Instruct"),
        "Qwen2.5-14B": (2.3, "Qwen2.5-Math-7B"),
    }
    known["SmolLM2-135M-Instruct"] = None, None
    assert {model: CLAIMS["accuracy-mless"].reported(model) for model in known} == known


def test_a_layer_that_was_not_measured_and_too_few_problems_are_named():
    given, asked = (
        {"measured": inside(**{"lambda": 1.0})},
        {"condition": "mless", "layer": 7, "heads": "each"},
    )
    assert (
        verdict_on("dilution", given, arguments=asked).reason
        == "layer 7 was not measured, only 1, 2, 3"
    )
    lam = np.where(
        np.arange(40)[:, None, None] % 25 == 3, 0.5, np.nan
    )  # 3 and 28, of one template
    few = verdict_on("dilution", {"measured": inside(**{"lambda": lam})})
    assert few.reason == "mean of 2 heads: 2 problems of 1 templates are too few"
