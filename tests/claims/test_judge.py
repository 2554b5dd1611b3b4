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
    assert (row["verdict"], row["part"], row["held"], row["parts"]) == ("in part", "none - mless@end", 3, 4)
    assert row["refuted"] == "none - mless@end" and row["holds"].count(",") == 2


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


def controlled(*untrained, trained=0.6):
    return lambdas([trained], *([value] for value in untrained), [0.45], networks=NETWORKS)


@pytest.mark.parametrize(("value", "expected"), [(0.6, "supported"), (1.3, "contradicted"), (1.0, "undecided")])
def test_attention_claims_follow_planted_arrays(value, expected):
    row = row_of("dilution", lambdas(value))
    assert row["verdict"] == expected and row["control_verdict"] is row["uniform_verdict"] is row["training"] is None


@pytest.mark.parametrize(
    ("untrained", "verdict", "training"),
    [
        ((0.6, 0.6, 0.6), "supported", "also"),
        ((0.5, 0.5, 0.6), "supported", "also"),  # one that is alike is enough
        ((0.5, 0.45, 0.4), "supported", "weaker"),  # nearer to the edge of the claimed range
        ((0.8, 0.7, 0.9), "supported", "stronger"),
        ((0.5, 0.5, 1.3), "mixed", None),
        ((1.3, 1.2, 1.4), "contradicted", None),
    ],
)
def test_each_untrained_network_is_judged_by_itself(untrained, verdict, training):
    row = row_of("dilution", controlled(*untrained))
    assert (row["control_verdict"], row["training"]) == (verdict, training)
    assert row["control_effect"] == pytest.approx(sorted(untrained)[1])  # the middle one: nothing is averaged
    assert row["control_low"] < min(untrained) and max(untrained) < row["control_high"]
    nearest = min((0.6 - value for value in untrained), key=abs)
    assert row["difference"] == pytest.approx(nearest, abs=1e-9)
    assert row["uniform_effect"] == pytest.approx(0.45) and row["uniform_verdict"] == "supported"


def test_verdicts_from_opposite_sides_are_not_shared():
    claim = CLAIMS["dilution"].model_copy(update={"range": (0.9, 1.1)})
    (row,) = rows_of(judge([claim], {"m": controlled(1.3, 1.3, 1.3)}))
    assert row["verdict"] == row["control_verdict"] == "contradicted" and row["training"] is None


def test_a_control_is_shown_in_the_part_that_decides():
    heads = ([0.5, 0.9], [0.8, 0.3], [0.8, 0.4], [0.8, 0.5], [0.4, 0.4])
    row = row_of("dilution-every-head", lambdas(*heads, networks=NETWORKS))
    assert (row["part"], row["control_verdict"], row["training"]) == ("head 2", "supported", "weaker")
    assert row["control_effect"] == pytest.approx(0.4) and row["difference"] == pytest.approx(0.4)


def test_the_n_for_the_papers_effect_has_the_range_that_few_changed_answers_leave():
    evidence = answers(none=right(30, 80), mless=[1] * 29 + [0] + [1] * 2 + [0] * 48)
    (row,) = rows_of(judge([CLAIMS["accuracy-mless"]], {"Qwen2.5-Coder-1.5B-Instruct": evidence}))
    assert (row["needed"], row["needed_low"], row["needed_high"]) == (744, 155, 2077)
    (row,) = rows_of(judge([CLAIMS["accuracy-mless"]], {"SmolLM2-135M-Instruct": evidence}))
    assert row["needed"] is row["needed_low"] is row["paper"] is None


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
    harmful = noisy.assign(nats=noisy.nats - 20 * (noisy.condition == "example"))
    for other in (noisy[noisy.condition != "example"], harmful):  # without a gain there is no scale
        assert row_of("likelihood-gain", Evidence(scores=other))["verdict"] == "undecided"


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
    contract = {"id", "model", "verdict", "effect", "low", "high", "n", "training"}
    assert contract <= json.loads(path.read_text())[0].keys()
    assert "λ" in path.read_text(encoding="utf-8")
    with pytest.raises(InputError, match="effect is missing or wrong"):
        path.write_text(path.read_text().replace('"effect"', '"effects"'))
        read_verdicts(profile)
    write_verdicts(profile, verdicts)
    for old, new in zip(rows_of(verdicts), rows_of(read_verdicts(profile)), strict=True):
        assert new == {name: pytest.approx(v, abs=1e-9) if isinstance(v, float) else v for name, v in old.items()}
