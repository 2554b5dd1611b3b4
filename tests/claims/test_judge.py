"""Rows of the verdicts: planted numbers give their verdicts, controls are what they are, a file is read again."""

import json

import numpy as np
import pytest
from evidence import answers, inside, right, scores, wobbling

from lib import paths
from lib.claims.asked import Evidence, load_claims
from lib.claims.verdict import COLUMNS, judge, read_verdicts, write_verdicts
from lib.claims.words import rows_of
from lib.errors import InputError
from lib.profiles import load_profile

CLAIMS = {claim.id: claim for claim in load_claims()}


def row_of(name, evidence):
    (row,) = rows_of(judge([CLAIMS[name]], {"m": evidence}))
    return row


@pytest.mark.parametrize(("solved", "expected"), [(45, "supported"), (30, "undecided"), (10, "contradicted")])
def test_accuracy_claims_follow_planted_answers(solved, expected):
    assert row_of("accuracy-mless", answers(none=right(30), mless=right(solved)))["verdict"] == expected


def test_position_needs_every_part():
    places = {"mless_before": right(10), "mless_end": right(0), "mless_random": right(12)}
    shares = {"none": right(30), "mless": right(45)} | places
    assert row_of("position", answers("fillers", **shares))["verdict"] == "supported"
    row = row_of("position", answers("fillers", **shares | {"mless_end": right(44)}))
    assert (row["verdict"], row["component"]) == ("contradicted", "none - mless@end")


def lambdas(*heads, seed=0, networks=("trained",)):
    """Return λ of the heads of one layer under slashes, of one network or, as a list each, of several."""
    values = np.array(heads if len(networks) > 1 else [heads], dtype=float)[
        :, None, None, None
    ]  # (network, 1, 1, 1, head)
    noise = np.concatenate([wobbling(np.random.default_rng(seed + i), 0)[None, None] for i in range(len(values))])
    return Evidence(
        inside(heads=values.shape[-1], layers=1, embedded=False, networks=networks, **{"lambda": values + noise})
    )


NETWORKS = ("trained", "untrained 0", "untrained 1", "untrained 2", "uniform")


def controlled(*untrained):
    return lambdas([0.6], *([value] for value in untrained), [0.45], networks=NETWORKS)


@pytest.mark.parametrize(("value", "expected"), [(0.6, "supported"), (1.3, "contradicted"), (1.0, "undecided")])
def test_attention_claims_follow_planted_arrays(value, expected):
    row = row_of("dilution", lambdas(value))
    assert row["verdict"] == expected and row["control_verdict"] is row["uniform_verdict"] is row["specific"] is None


def test_an_untrained_network_that_shares_an_effect_is_named():
    row = row_of("dilution", controlled(0.6, 0.6, 0.6))
    assert row["control_verdict"] == "supported" and row["specific"] is False
    assert row["uniform_effect"] == pytest.approx(0.45) and row["uniform_verdict"] == "supported"


@pytest.mark.parametrize(("untrained", "verdict", "apart"), [(0.5, "supported", 0.1), (1.3, "contradicted", -0.7)])
def test_a_trained_network_that_differs_from_every_untrained_one_is_specific(untrained, verdict, apart):
    row = row_of("dilution", controlled(untrained, untrained, untrained))
    assert row["control_verdict"] == verdict and row["specific"] is True
    assert row["difference"] == pytest.approx(apart) and row["difference_low"] < apart < row["difference_high"]


def test_one_untrained_network_that_is_alike_is_enough_to_be_unspecific():
    assert row_of("dilution", controlled(0.5, 0.5, 0.6))["specific"] is False


def test_a_verdict_stands_only_where_it_survives_all_rows():
    some = answers(none=right(20), mless=[0] * 8 + [1] * 34 + [0] * 18, mful=right(38))
    small, large = sorted(
        rows_of(judge([CLAIMS["accuracy-mless"], CLAIMS["accuracy-mful"]], {"m": some})), key=lambda r: r["p"]
    )
    assert 0 < small["p"] < large["p"] < 0.5
    assert small["p_holm"] == pytest.approx(2 * small["p"])
    assert large["p_holm"] == pytest.approx(max(large["p"], 2 * small["p"]))
    assert small["survives"] is True


def test_an_interval_within_a_tenth_of_the_worked_example_is_no_effect_of_that_size():
    assert row_of("likelihood-gain", Evidence(scores=scores({"mless": 0.3, "example": 8})))["verdict"] == "supported"
    noisy = scores({"mless": 0.0, "example": 8})
    noisy.loc[noisy.condition == "mless", "nats"] += np.tile([-0.5, 0.5], 15)
    assert row_of("likelihood-gain", Evidence(scores=noisy))["verdict"] == "no effect of that size"
    assert row_of("likelihood-gain", Evidence(scores=noisy[noisy.condition != "example"]))["verdict"] == "undecided"


def test_few_problems_decide_nothing_whatever_they_hold():
    assert row_of("accuracy-mless", answers(none=right(0, 19), mless=right(19, 19)))["verdict"] == "undecided"


def test_one_model_that_can_test_a_claim_is_enough():
    rows = judge([CLAIMS["dilution"]], {"other": Evidence(), "m": lambdas(0.6)})
    assert list(rows.model) == ["m"] and list(rows) == COLUMNS


def test_verdicts_are_written_for_people_and_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    profile = load_profile("demo")
    with pytest.raises(InputError, match="no claims of profile demo yet"):
        read_verdicts(profile)
    verdicts = judge(load_claims(), {"m": answers(none=right(30), mless=right(30)), "n": controlled(0.5, 0.5, 0.5)})
    path = write_verdicts(profile, verdicts)
    assert {"id", "model", "verdict", "effect", "low", "high", "n", "specific"} <= json.loads(path.read_text())[
        0
    ].keys()
    assert "λ" in path.read_text(encoding="utf-8")
    for old, new in zip(rows_of(verdicts), rows_of(read_verdicts(profile)), strict=True):
        assert new == {name: pytest.approx(v, abs=1e-9) if isinstance(v, float) else v for name, v in old.items()}
