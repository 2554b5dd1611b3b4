"""The claims file, what a claim asks of the evidence, and the page: on records and arrays where the truth is known."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
import xarray as xr
import yaml

from lib import paths
from lib.arm.activations import MEASURES as ACTIVATION_MEASURES
from lib.claims.evidence import Evidence, Untestable
from lib.claims.judging import judge, write_claims
from lib.claims.report import write_report
from lib.claims.sentences import measured_text, page, verdict_text
from lib.claims.statements import CLAIMS, MEASURES, Claim, load_claims
from lib.claims.verdicts import Decision
from lib.errors import InputError
from lib.measurement.measured import Measured
from lib.measurement.token_classes import NAMES
from lib.profiles import load_profile

ENTRY = {"id": "a", "claim": "b", "source": "Fig. 1", "measure": "affine_fit", "range": [0, None], "unit": "R2"}
ENTRY |= {"written": "after"}
FITS = {"affine": 0.2, "line": 0.1, "softmax": 0.0}  # by how much a reading of the affine map fits worse
IDS = {
    *("dilution", "flat-filler", "first-layer-only", "random-differs", "mful-alike", "affine"),
    *("redistribution", "token-classes", "arm-like-mless"),
    *("accuracy-mless", "accuracy-mful", "length", "position", "arm-accuracy", "arm-diversity"),
    *("regularity", "variance-grows", "classes-after", "length-shape", "question-hurts", "best-of-n", "arm-peak"),
}


def record(problem, correct, condition="none", sample=0, response="a b c"):
    fixed = {"model": "m", "problem_id": problem, "sample": sample, "response": response}
    return fixed | {"condition": condition, "correct": correct}


def answers(shares, part="main", n=60):
    """Return evidence in which each condition solves the first so many of n problems."""
    records = [record(str(i), i < solved, name) for name, solved in shares.items() for i in range(n)]
    return Evidence("m", records={part: records})


def attention(n=40, **changes):
    """Return evidence with one layer-1 head pair as the paper has it, but for the arrays given as means."""
    rng = np.random.default_rng(changes.pop("seed", 0))
    means = {"lambda": 0.6, "flatness": 0.2, "dispersion": 0.1, "portion": 0.5, "unevenness": 0.8, "irregularity": 0.3}
    means |= changes
    dims, coords = ("condition", "problem", "layer", "head"), {"condition": ["mless", "random", "mful"]}
    coords |= {"layer": [1, 2, 3], "head": [1, 2], "problem": [f"test/{i}.json" for i in range(n)]}
    around = {name: mean + 0.02 * rng.standard_normal((n, 3, 2)) for name, mean in means.items()}
    first = xr.Dataset({name: (dims, np.stack([a, a + 0.5, a])) for name, a in around.items()}, coords)
    first["irregularity"] = first.irregularity + 0.2 * (first.layer > 1)
    fits = {name: (("problem", "head"), around["lambda"][:, 0] - less) for name, less in FITS.items()}
    causes = xr.Dataset(fits, {"problem": coords["problem"]})
    return Evidence("m", Measured(None, first, causes=causes))


def verdict(name, evidence):
    (row,) = judge([claim for claim in load_claims() if claim.id == name], {"m": evidence})
    return row["verdict"]


def test_the_file_has_the_claims_of_the_paper_each_once():
    ids = [claim.id for claim in load_claims()]
    assert set(ids) >= IDS and len(set(ids)) == len(ids)
    assert all(claim.measure in MEASURES for claim in load_claims())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"measure": "guess"}, "claim a: unknown measure 'guess': choose from head_lambdas"),
        ({"with": {"layer": 1}}, "measure affine_fit takes nothing in `with`"),
        ({"range": [None, None]}, "range .* claims nothing"),
        ({"range": [2, 1]}, "claims nothing"),
        ({"range": [0]}, "claim a: range"),
        ({"id": ""}, "claim : id"),
        ({"verdict": "supported"}, "verdict: unknown field"),
    ],
)
def test_a_claim_that_makes_no_sense_is_named(tmp_path, change, named):
    (tmp_path / "claims.yaml").write_text(yaml.safe_dump({"claims": [ENTRY | change]}))
    with pytest.raises(InputError, match=named):
        load_claims(tmp_path / "claims.yaml")


@pytest.mark.parametrize("text", ["", "claims: [", "- a", "other: 1"])
def test_a_file_that_is_no_list_of_claims_is_named(tmp_path, text):
    (tmp_path / "claims.yaml").write_text(text)
    with pytest.raises(InputError, match=r"claims\.yaml: (no list of claims|line 1: )"):
        load_claims(tmp_path / "claims.yaml")
    with pytest.raises(InputError, match=r"missing\.yaml cannot be read"):
        load_claims(tmp_path / "missing.yaml")


def test_a_claim_may_stand_there_once_only(tmp_path):
    (tmp_path / "claims.yaml").write_text(yaml.safe_dump({"claims": [ENTRY, ENTRY]}))
    with pytest.raises(InputError, match="claim a stands there twice"):
        load_claims(tmp_path / "claims.yaml")


@pytest.mark.parametrize(("solved", "expected"), [(45, "supported"), (30, "undecided"), (10, "contradicted")])
def test_accuracy_claims_follow_planted_answers(solved, expected):
    assert verdict("accuracy-mless", answers({"none": 30, "mless": solved})) == expected


def test_position_needs_every_part():
    places = {"mless@before": 10, "mless@end": 0, "mless@random": 12}
    assert verdict("position", answers({"none": 30, "mless": 45} | places, "fillers")) == "supported"
    assert (
        verdict("position", answers({"none": 30, "mless": 45} | places | {"mless@end": 44}, "fillers"))
        == "contradicted"
    )


def test_zero_at_the_end_is_tested_only_where_the_model_writes_its_answer_itself():
    nothing = answers({"mless@end": 0}, "fillers", 100)
    (row,) = judge([claim for claim in load_claims() if claim.id == "position-end"], {"m": nothing})
    assert "asked in chat form, or its answer is elicited" in row["reason"]
    assert verdict("position-end", replace(nothing, plain=True)) == "supported"
    assert verdict("position-end", replace(answers({"mless@end": 20}, "fillers"), plain=True)) == "contradicted"


@pytest.mark.parametrize(("changes", "expected"), [({}, "supported"), ({"lambda": 1.3}, "contradicted")])
def test_attention_claims_follow_planted_arrays(changes, expected):
    assert verdict("dilution", attention(**changes)) == expected


def test_attention_claims_of_other_kinds():
    assert verdict("flat-filler", attention()) == "supported"
    assert verdict("flat-filler", attention(portion=1.5)) == "contradicted"
    assert verdict("regularity", attention()) == "supported"
    assert verdict("first-layer-only", attention()) == "contradicted"
    assert verdict("first-layer-only", attention(**{"lambda": 1.0})) == "supported"
    assert verdict("random-differs", attention()) == "supported"
    assert verdict("mful-alike", attention()) == "supported"
    assert (
        verdict("affine", attention(**{"lambda": 0.97})) == "supported"
        and verdict("affine", attention()) == "contradicted"
    )


def activations(factor, classes=(0.3, 0.3, 0.3, 0.1), shape=0.9, n=40):
    rng = np.random.default_rng(2)
    before = np.exp(0.1 * rng.standard_normal((n, 1, len(ACTIVATION_MEASURES))))
    wobble = np.exp(0.01 * rng.standard_normal(before.shape))
    direction = np.array([-1 if name in ("near zero", "Gini") else 1 for name in ACTIVATION_MEASURES])
    shares = np.array(classes) + 0.01 * rng.standard_normal((n, 1, 4))
    coords = {"condition": ["none", "mless", "arm"], "layer": [1], "measure": list(ACTIVATION_MEASURES)}
    coords["problem"] = [f"embedded/family{i % 25}/{i}" for i in range(n)]
    after = before * float(factor) ** direction * wobble
    alike = shape + 0.05 * rng.standard_normal((n, 1))
    found = {
        "measures": (("condition", "problem", "layer", "measure"), np.stack([before, after, after])),
        "classes": (
            ("condition", "problem", "layer", "class"),
            np.stack([shares, shares / factor * wobble[..., :4], shares]),
        ),
        "shape": (("condition", "problem", "layer"), np.stack([alike] * 3)),
    }
    return Evidence("m", activations=Measured(None, xr.Dataset(found, coords | {"class": list(NAMES)})))


def test_activation_claims_follow_planted_arrays():
    assert verdict("redistribution", activations(1.2)) == "supported"
    assert verdict("redistribution", activations(1.0)) == "undecided"
    assert verdict("redistribution", activations(0.8)) == "contradicted"
    assert verdict("variance-grows", activations(1.2)) == "supported"
    assert verdict("classes-after", activations(1.2)) == "supported"
    assert verdict("classes-after", activations(0.8)) == "contradicted"
    assert verdict("token-classes", activations(1)) == "supported"
    assert verdict("token-classes", activations(1, (0.3, 0.05, 0.3, 0.1))) == "contradicted"
    assert verdict("arm-like-mless", activations(1)) == "supported"
    assert verdict("arm-like-mless", activations(1, shape=0.1)) == "contradicted"


def test_diversity_needs_samples_and_compares_texts():
    records = []
    for i in range(30):
        for sample in range(4):
            records.append(record(str(i), False, "none", sample, "the same words"))
            records.append(record(str(i), sample < 2 + i % 3, "arm", sample, f"other {i} words {sample}"))
    assert verdict("arm-diversity", Evidence("m", records={"sampling": records})) == "supported"
    few = [r for r in records if r["sample"] < 2]
    (row,) = judge(
        [c for c in load_claims() if c.id == "arm-diversity"], {"m": Evidence("m", records={"sampling": few})}
    )
    assert row["reason"] == "pass@3 needs 3 samples of each problem, and 2 were taken" and row["verdict"] == "undecided"


@pytest.mark.parametrize("claim", load_claims(), ids=lambda claim: claim.id)
def test_what_cannot_be_tested_says_why(claim):
    with pytest.raises(Untestable, match="m"):
        MEASURES[claim.measure](Evidence("m"), **claim.arguments)
    (row,) = judge([claim], {"m": Evidence("m"), "other": Evidence("other")})
    assert row["verdict"] == "undecided" and row["n"] == 0 and row["effect"] is None
    assert measured_text(row).startswith("Not tested: the profile")


def controlled(**untrained):
    """Return a trained model's evidence, λ 0.6, with three untrained networks and uniform attention."""
    controls = {f"untrained {seed}": attention(seed=seed, **untrained) for seed in (1, 2, 3)}
    return replace(attention(), controls=controls | {"uniform": attention(seed=4, **{"lambda": 0.45})})


def dilution(evidence):
    (row,) = judge([claim for claim in load_claims() if claim.id == "dilution"], {"m": evidence})
    return row


def test_an_untrained_network_that_shares_an_effect_is_named():
    row = dilution(controlled())
    assert row["control"]["verdict"] == "supported" and row["specific"] is False
    assert verdict_text(row) == "supported, also without training"
    assert row["uniform"]["effect"] == pytest.approx(0.45, abs=0.02)


@pytest.mark.parametrize(("untrained", "verdict", "above"), [(0.5, "supported", True), (1.3, "contradicted", False)])
def test_a_trained_network_that_differs_from_every_untrained_one_is_specific(untrained, verdict, above):
    row = dilution(controlled(**{"lambda": untrained}))
    assert row["control"]["verdict"] == verdict and row["specific"] is True
    assert (row["control"]["difference"] > 0) == above and row["control"]["networks"] == 3


def test_one_untrained_network_that_is_alike_is_enough_to_be_unspecific():
    evidence = controlled(**{"lambda": 0.5})
    assert (
        dilution(replace(evidence, controls=evidence.controls | {"untrained 3": attention(seed=7)}))["specific"]
        is False
    )


def test_what_has_no_control_says_so():
    row = dilution(attention())
    assert row["control"] is None and row["uniform"] is None and row["specific"] is None


def test_a_gain_at_the_best_of_many_settings_is_held_against_chance():
    settings = {f"arm:c={i}": 20 for i in range(8)}
    assert verdict("arm-peak", answers({"none": 20} | settings, "arm_map")) == "undecided"
    assert verdict("arm-peak", answers({"none": 20} | settings | {"arm:c=9": 40}, "arm_map")) == "supported"


def test_the_papers_number_is_the_models_own():
    (claim,) = [claim for claim in load_claims() if claim.id == "accuracy-mless"]
    assert claim.reported("Llama-3.1-8B-Instruct") == {"value": 0.3, "of": "Llama-3.1-8B-Instruct"}
    assert claim.reported("m") == {"value": 2.3, "of": "Qwen2.5-Math-7B"}


def test_few_problems_decide_nothing_whatever_they_hold():
    row = dilution(attention(n=19))
    assert row["verdict"] == "undecided" and verdict_text(row) == "too few"


def test_a_verdict_stands_only_where_it_survives_all_rows():
    rows = judge(load_claims(), {"m": answers({"none": 30, "mless": 36, "mful": 60})})
    found = {row["id"]: row["survives"] for row in rows if row["n"]}
    assert found == {"accuracy-mless": True, "accuracy-mful": True}
    assert all(row["p_holm"] >= row["p"] for row in rows if row["n"])


def test_a_layer_that_was_not_measured_is_named():
    claim = Claim(**(ENTRY | {"measure": "head_lambdas", "arguments": {"condition": "mless", "layer": 7}}))
    (row,) = judge([claim], {"m": attention()})
    assert row["reason"] == "layer 7 was not measured, only 1, 2, 3"


def test_one_model_that_can_test_a_claim_is_enough():
    rows = judge(load_claims()[:1], {"other": Evidence("other"), "m": attention()})
    assert [row["model"] for row in rows] == ["m"]


def test_the_page_prints_numbers_from_which_the_verdict_follows():
    rows = judge(load_claims(), {"m": answers({"none": 30, "mless": 45, "mful": 31})})
    text = page(rows)
    assert "SUPPORTED: accuracy-mless (Fig. 10 left, Tables 1, 5), m" in text and "claimed > 0, n = 60" in text
    assert "UNDECIDED: accuracy-mful" in text and "an effect of the paper's size needs n =" in " ".join(text.split())
    assert len(text.splitlines()) == 4 * len(rows) + 2 + ("\nNot: " in text)  # nothing is folded by its length


def test_claims_are_written_with_the_contracts_fields_and_reported(tmp_path, monkeypatch):
    profile = load_profile("demo")
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    with pytest.raises(InputError, match="no claims of profile demo yet"):
        write_report(profile)
    rows = judge(load_claims(), {"m": answers({"none": 30, "mless": 30})})
    written = json.loads(write_claims(profile, rows).read_text())
    contract = {"id", "verdict", "effect", "low", "high", "n", "model", "control", "specific"}
    assert all(contract | {field.name for field in fields(Decision)} <= row.keys() for row in written)
    html = write_report(profile).read_text()
    assert html.count("<img") == len(list((paths.FIGURES / "demo").glob("*.png")))
    assert "55 slashes raise accuracy" in html and 'src="http' not in html
    assert CLAIMS.is_file()
