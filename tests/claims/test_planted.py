"""The number behind each claim, on arrays and answers whose numbers are worked out here, one by one."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from lib.arm.activations import MEASURES as ACTIVATIONS
from lib.claims.evidence import Evidence
from lib.claims.judging import judge
from lib.claims.statements import MEASURES, load_claims
from lib.measurement.run import Measured
from lib.measurement.token_classes import NAMES

N, TEMPLATES = 50, 25
PROBLEMS = [f"embedded/template{i % TEMPLATES}/{i}" for i in range(N)]
CONDITIONS, LAYERS, HEADS = ["mless", "mful", "random"], [1, 2, 3], [1, 2]
INSIDE = ["dilution", "flat-filler", "regularity", "first-layer-only", "random-differs", "mful-alike", "affine"]
INSIDE += ["variance-grows", "redistribution", "token-classes", "classes-after", "arm-like-mless"]
CLAIMS = {claim.id: claim for claim in load_claims()}


@pytest.fixture(scope="module")
def arrays():
    """Random numbers around 1 by name: attention (condition, problem, layer, head), fits, and activations."""
    rng = np.random.default_rng(0)
    shape = len(CONDITIONS), N, len(LAYERS), len(HEADS)
    names = ("lambda", "irregularity", "unevenness", "flatness", "dispersion", "portion")
    found = {name: rng.uniform(0.5, 1.5, shape) for name in names}
    found |= {name: rng.uniform(0, scale, (N, 2)) for name, scale in (("affine", 0.5), ("line", 0.8), ("softmax", 0.6))}
    found["measures"] = rng.uniform(0.5, 1.5, (3, N, 2, len(ACTIVATIONS)))  # none, mless, arm; two layers
    found["classes"], found["shape"] = rng.uniform(0, 1, (3, N, 2, len(NAMES))), rng.uniform(-1, 1, (3, N, 2))
    return found


@pytest.fixture(scope="module")
def evidence(arrays):
    dims, fits = ("condition", "problem", "layer", "head"), ("affine", "line", "softmax")
    attention = {name: (dims, values) for name, values in arrays.items() if values.shape[-1] == 2 and values.ndim == 4}
    labels = {"condition": CONDITIONS, "problem": PROBLEMS, "layer": LAYERS, "head": HEADS}
    causes = xr.Dataset({name: (("problem", "head"), arrays[name]) for name in fits}, {"problem": PROBLEMS})
    over = ("condition", "problem", "layer")
    activations = {"measures": ((*over, "measure"), arrays["measures"]), "shape": (over, arrays["shape"])}
    activations["classes"] = (*over, "class"), arrays["classes"]
    coords = {"condition": ["none", "mless", "arm"], "problem": PROBLEMS, "layer": [1, 2]}
    coords |= {"measure": list(ACTIVATIONS), "class": list(NAMES)}
    first = Measured(None, xr.Dataset(attention, labels), causes=causes)
    return Evidence("m", first, Measured(None, xr.Dataset(activations, coords)))


def expected(a):
    """The means over problems of each claim's parts, by the part's name; the last axes are layers and heads."""
    lam, irregular = a["lambda"], a["irregularity"].mean(3)
    even = a["flatness"][0, :, 0].mean(1) / a["unevenness"][0, :, 0].mean(1)
    logs = np.log(a["measures"][1, :, 0] / a["measures"][0, :, 0]).mean(0)
    up = {f"{name} up": logs[i] for i, name in enumerate(ACTIVATIONS)}
    down = {f"{name} down": -logs[i] for i, name in enumerate(ACTIVATIONS)}
    plain, after = 100 * a["classes"][:2, :, 0].mean(1)
    return {
        "dilution": {f"head {head}": lam[0, :, 0, head - 1].mean() for head in HEADS},
        "flat-filler": {"level": a["portion"][0, :, 0].mean(), "evenness": even.mean()},
        "regularity": {f"layer {k}": (irregular[0, :, k - 1] - irregular[0, :, 0]).mean() for k in (2, 3)},
        "first-layer-only": {f"layer {k}": (lam[0, :, k - 1] < 1).mean() for k in (2, 3)},
        "random-differs": {
            "attention": (a["flatness"][2, :, 0] - a["flatness"][0, :, 0]).mean(),
            "values": (a["dispersion"][2, :, 0] - a["dispersion"][0, :, 0]).mean(),
        },
        "mful-alike": {f"head {head}": (lam[1] / lam[0])[:, 0, head - 1].mean() for head in HEADS},
        "affine": {"a coefficient per token": a["line"].mean()},
        "variance-grows": {name: up[name] for name in ["gate variance up"]},
        "redistribution": {name: up[name] for name in ("L1 up", "L2 up", "variance up")}
        | {name: down[name] for name in ("near zero down", "Gini down")},
        "token-classes": {name: plain[i] - plain[3] for i, name in enumerate(NAMES[:3])},
        "classes-after": {name: plain[i] - after[i] for i, name in enumerate(NAMES[:3])},
        "arm-like-mless": {"histogram": a["shape"][2, :, 0].mean()},
    }


@pytest.mark.parametrize("name", INSIDE)
def test_the_parts_of_a_claim_about_the_inside_are_these_numbers(name, arrays, evidence):
    claim, parts = CLAIMS[name], expected(arrays)[name]
    found = MEASURES[claim.measure](evidence, **claim.arguments)
    assert {part.label: float(np.mean(part.values)) for part in found} == pytest.approx(parts)
    (row,) = judge([claim], {"m": evidence})
    assert row["effect"] == pytest.approx(parts[row["component"]]) and row["components"] == len(parts)
    assert (row["n"], row["clusters"]) == (N, TEMPLATES)


def answers(part="main", samples=1, embedded=False, **solved):
    """Return evidence of so many problems per condition, whose samples are right where `solved` says so."""
    records = []
    for condition, right in solved.items():
        condition = condition.replace("_", "@")
        for problem, count in enumerate(right):
            name = PROBLEMS[problem] if embedded else f"test/{problem}.json"
            for sample in range(samples):
                words = " ".join(f"w{sample * (condition != 'none') + i % 3}" for i in range(5))
                record = {"model": "m", "condition": condition, "problem_id": name, "sample": sample, "response": words}
                records.append(record | {"correct": sample < count})
    return Evidence("m", records={part: records}, plain=True)


def judged(name, evidence):
    (row,) = judge([CLAIMS[name]], {"m": evidence})
    return row


def test_accuracies_are_compared_over_the_problems_that_both_answered():
    row = judged("accuracy-mless", answers(none=[1] * 10 + [0] * 30, mless=[1] * 5 + [0] * 5 + [1] * 20))
    assert row["n"] == 30 and row["effect"] == pytest.approx(100 * (20 - 5) / 30)


def test_a_difference_of_few_answers_reaches_zero_where_mcnemar_does_not_reject():
    row = judged("accuracy-mless", answers(none=[0] * 96, mless=[1] * 4 + [0] * 92))
    assert row["low"] == 0 and row["verdict"] == "undecided" and row["high"] < 12


@pytest.mark.parametrize("embedded", [False, True])
def test_templates_are_counted_where_the_ids_have_them(embedded):
    row = judged("accuracy-mless", answers(embedded=embedded, none=[0] * 50, mless=[1] * 20 + [0] * 30))
    assert (row["n"], row["clusters"]) == (50, 25 if embedded else 50)
    row = judged("position-end", answers("fillers", embedded=embedded, mless_end=[1] * 2 + [0] * 48))
    assert (row["n"], row["clusters"]) == (50, 25 if embedded else 50)


def test_a_share_has_the_exact_interval():
    row = judged("position-end", answers("fillers", mless_end=[1] * 2 + [0] * 58))
    exact = stats.binomtest(2, 60).proportion_ci(method="exact")
    assert [row["effect"], row["low"], row["high"]] == pytest.approx([200 / 60, 100 * exact.low, 100 * exact.high])


def test_several_samples_of_a_problem_are_no_single_answers():
    row = judged("position-end", answers("fillers", samples=4, mless_end=[1, 0, 0, 0] * 15))
    exact = stats.binomtest(15, 240).proportion_ci(method="exact")
    assert row["n"] == 60 and row["effect"] == pytest.approx(6.25)
    assert row["low"] != pytest.approx(100 * exact.low) and row["low"] > 0


def test_samples_are_compared_by_pass_at_3_and_by_their_words():
    right = [4, 2, 1, 0] * 6  # of four: pass@3 of 1, 1, 3/4 and 0
    evidence = answers("sampling", samples=4, none=[0] * 24, arm=right)
    claim = CLAIMS["arm-diversity"]
    found = {part.label: np.mean(part.values) for part in MEASURES[claim.measure](evidence, **claim.arguments)}
    # Words under none are w0 w1 w2 w0 w1 four times: 3 of 16 pairs differ. Under arm each sample moves on by one word.
    distinct = {(f"w{s + i % 3}", f"w{s + (i + 1) % 3}") for s in range(4) for i in range(4)}
    assert found == pytest.approx({"pass@3": 100 * 2.75 / 4, "distinct 2-grams": 100 * (len(distinct) - 3) / 16})


def test_the_best_of_many_settings_has_the_effect_of_the_best():
    settings = {"none": [1] * 10 + [0] * 30, "a": [1] * 15 + [0] * 25, "b": [1] * 30 + [0] * 10, "c": [0] * 40}
    claim = CLAIMS["arm-peak"]
    (found,) = MEASURES[claim.measure](answers("arm_map", **settings), **claim.arguments)
    assert np.mean(found.values, 0).tolist() == pytest.approx([12.5, 50, -25])
    assert judged("arm-peak", answers("arm_map", **settings))["effect"] == pytest.approx(50)


def test_p_values_are_corrected_for_all_rows():
    evidence = answers(none=[1] * 20 + [0] * 40, mless=[0] * 8 + [1] * 34 + [0] * 18, mful=[1] * 38 + [0] * 22)
    rows = judge([CLAIMS["accuracy-mless"], CLAIMS["accuracy-mful"]], {"m": evidence})
    smaller, larger = sorted(rows, key=lambda row: row["p"])
    assert 0 < smaller["p"] < larger["p"] < 0.5
    assert smaller["p_holm"] == pytest.approx(2 * smaller["p"])
    assert larger["p_holm"] == pytest.approx(max(larger["p"], 2 * smaller["p"]))


def lambdas(*heads, seed=0):
    """Return evidence with these λ of the heads of layer 1 under slashes."""
    wobble = 0.01 * np.random.default_rng(seed).standard_normal((1, 40, 1, len(heads)))
    coords = {"condition": ["mless"], "problem": [f"test/{i}" for i in range(40)], "layer": [1]}
    values = ("condition", "problem", "layer", "head"), np.array(heads) + wobble - wobble.mean(1)
    return Evidence("m", Measured(None, xr.Dataset({"lambda": values}, coords | {"head": range(1, len(heads) + 1)})))


def test_a_control_is_compared_in_the_head_that_decides():
    controls = {f"seed {seed}": lambdas(0.3, 0.7 + 0.1 * seed**2, 0.2, seed=seed) for seed in (0, 1, 2)}
    row = judged("dilution", replace(lambdas(0.5, 0.9, 0.6, seed=9), controls=controls))
    assert (row["component"], row["control"]["component"]) == ("head 2", "head 2")
    assert row["control"]["effect"] == pytest.approx(2.6 / 3)
    assert row["control"]["difference"] == pytest.approx(0.9 - 2.6 / 3)
    assert 0 < row["control"]["difference_low"] < 0.9 - 2.6 / 3 < row["control"]["difference_high"]
    assert row["specific"] is False  # two of the three have a smaller λ there, the third a larger one
