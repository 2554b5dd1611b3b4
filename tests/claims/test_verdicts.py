"""A verdict as an object: its judgement on planted numbers, its row and its file."""

from dataclasses import replace

import numpy as np
import pytest
from evidence import CLAIMS, answers, lambdas, right, scores, verdict_on
from hand_written import verdict
from scipy import stats

from lib.statistics.intervals import ENOUGH
from reproduction import paths
from reproduction.claims.claim import Otherwise
from reproduction.claims.decision_rule import verdict_of
from reproduction.claims.judging import judge
from reproduction.claims.verdicts import (
    read_verdicts,
    totals,
    verdict_table,
    write_verdicts,
)
from reproduction.profiles import load_profile

NETWORKS = ("trained", "untrained 0", "untrained 1", "untrained 2", "uniform")


def planted(*values):
    """Return evidence in which λ has these means in the first networks of NETWORKS."""
    noise = np.random.default_rng(0).standard_normal((len(values), 1, 40, 1, 1))
    noise = 0.02 * stats.zscore(noise, axis=2)  # with a mean of exactly 0
    by_network = np.reshape(values, (-1, 1, 1, 1, 1))
    return lambdas(by_network + noise, networks=NETWORKS[: len(values)])


@pytest.mark.parametrize(
    ("untrained", "verdict", "specific"),
    [
        ((0.5, 0.75, 0.8), "supported", False),
        ((0.5, 0.5, 1.3), "mixed", True),
        ((1.3, 1.2, 1.4), "contradicted", True),
    ],
)
def test_each_untrained_network_is_judged_by_itself(untrained, verdict, specific):
    judged = verdict_on("dilution", planted(0.6, *untrained, 0.45))
    control = judged.control
    assert (control.verdict, judged.specific) == (verdict, specific)

    # The effect is that of the middle network, not the mean of the three.
    assert control.effect == pytest.approx(sorted(untrained)[1])
    assert control.low < min(untrained)
    assert control.high > max(untrained)
    assert judged.uniform.verdict == "supported"
    assert judged.uniform.effect == pytest.approx(0.45)


def test_a_table_of_no_verdicts_has_their_columns():
    columns = {"id", "model", "unit", "effect", "n", "holds", "word", "lost"}
    assert columns <= set(verdict_table([]))


def test_specificity_is_unknown_without_a_control_or_a_claim_that_holds():
    alone = verdict_on("dilution", planted(0.6))
    assert (alone.control, alone.specific) == (None, None)
    undecided = verdict_on("dilution", planted(1, 0.5, 0.5, 0.5, 0.45))
    assert undecided.control.verdict == "supported"
    assert undecided.specific is None
    contradicted = verdict_on("dilution", planted(1.2, 1.3, 1.3, 1.3, 0.45))
    assert contradicted.verdict == contradicted.control.verdict == "contradicted"
    assert contradicted.specific is None


@pytest.mark.parametrize(
    ("otherwise", "verdict"),
    [
        ({"range": (None, 0.5)}, "contradicted"),
        ({"with": {"average": "median"}}, "supported"),
        ({"parts": 1}, "supported"),
    ],
)
def test_a_claim_may_have_another_way_to_be_decided(otherwise, verdict):
    other = Otherwise(says="otherwise", **otherwise)
    judged = verdict_on("dilution", planted(0.6), otherwise=other)
    assert (judged.verdict, judged.otherwise) == ("supported", verdict)
    assert verdict_on("dilution", planted(0.6)).otherwise is None


@pytest.mark.parametrize(
    ("holds", "refuted", "verdict"),
    [("abc", "d", "supported"), ("ab", "c", "undecided"), ("ab", "cd", "contradicted")],
)
def test_some_of_the_parts_may_suffice(holds, refuted, verdict):
    assert verdict_of(holds, refuted, "abcd", enough=3) == verdict


def test_a_verdict_that_is_significant_only_before_correction_is_marked():
    # McNemar's exact test of 1 and 9 changed answers gives p = 0.021; three times that,
    # for three claims, is 0.064.
    solved = right(0, 1) + right(28, 28) + right(0, 31)
    evidence = answers(none=right(20), mless=solved)
    alone = verdict_on("accuracy-mless", evidence)
    assert alone.p == alone.p_holm < 0.05
    assert (alone.survives, alone.lost) == (True, False)
    for each in judge([CLAIMS["accuracy-mless"]] * 3, {"m": evidence}):
        assert each.p < 0.05 < each.p_holm
        assert (each.verdict, each.word) == ("supported", "undecided")
        assert (each.survives, each.lost) == (False, True)


def test_a_change_in_log_likelihood_is_a_share_of_the_worked_examples_gain():
    rows = scores(mless=2, example=8)
    rows.loc[rows.condition == "mless", "nats"] += np.tile([-1.0, 1.0], 15)
    judged = verdict_on("likelihood-gain", {"scores": rows})
    share = judged.of_example
    assert share.effect == pytest.approx(25, rel=0.01)
    assert 0 < share.low < 24 < 26 < share.high
    assert share.n == judged.n
    assert verdict_on("likelihood-example", {"scores": rows}).of_example is None

    # Only problems that have both conditions count, whatever the others changed by.
    is_seen = rows.problem_id.isin(rows.problem_id.unique()[:24])
    fewer = rows[is_seen | (rows.condition != "example")].copy()
    fewer.loc[~is_seen & (rows.condition == "mless"), "nats"] += 100
    fewer = fewer.drop(fewer.index[fewer.condition == "mless"][:2])
    share = verdict_on("likelihood-gain", {"scores": fewer}).of_example
    assert (share.n, share.effect) == (22, pytest.approx(25, rel=0.01))

    # The share is undefined if the worked example gains nothing, or was scored on other
    # problems.
    harmful = rows.assign(nats=rows.nats - 20 * (rows.condition == "example"))
    moved = rows.problem_id.where(rows.condition != "example", "of " + rows.problem_id)
    elsewhere = rows.assign(problem_id=moved)
    for other in (rows[rows.condition != "example"], harmful, elsewhere):
        assert verdict_on("likelihood-gain", {"scores": other}).of_example is None


@pytest.mark.parametrize(
    ("evidence", "model"),
    [
        ({"other": {}, "m": planted(0.6)}, "m"),
        # If no model can test the claim, the verdict is that of the first model with
        # some evidence for it, or else of the first model.
        ({"other": {}, "m": planted(np.nan)}, "m"),
        ({"other": {}, "another": {}}, "other"),
    ],
)
def test_a_claim_is_reported_for_models_that_can_test_it_or_else_for_one(
    evidence, model
):
    (judged,) = judge([CLAIMS["dilution"]], evidence)
    assert judged.model == model
    assert bool(judged.n) == (judged.reason is None) == (judged.effect is not None)


@pytest.mark.parametrize(
    ("n", "word", "decided"),
    [
        (0, "not tested", False),
        (ENOUGH - 1, "too few", False),
        (ENOUGH, "undecided", True),  # not significant after Holm's correction
    ],
)
def test_a_verdict_is_decided_only_with_enough_problems(n, word, decided):
    one = verdict(n=n, survives=False)
    assert (one.word, one.decided) == (word, decided)
    assert one.lost == decided


def test_totals_count_literal_claims_by_status():
    verdicts = [
        verdict("a", "m"),
        verdict("a", "n", survives=False),
        verdict("b", "m", n=ENOUGH - 1),
        verdict("c", "m", n=0, reason="nothing"),
        verdict("d", "m", reading="strict"),
    ]
    expected = "1 supported, 1 undecided, 1 too few, 1 not tested"
    assert totals(verdicts) == expected


@pytest.fixture
def verdicts():
    evidence = {
        "m": answers(none=right(30), mless=right(30)),
        "n": planted(0.6, 0.5, 0.5, 0.5, 0.45),
    }
    return judge(list(CLAIMS.values()), evidence)


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """A profile whose results are in the test's folder, as is the repository's data."""
    profile = load_profile("demo")
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    return profile


def test_a_claim_counts_as_written_after_the_numbers_of_models_that_it_lists():
    claim = CLAIMS["accuracy-mless"]
    (seen,) = claim.seen
    assert claim.written_for(seen) == "after"
    assert claim.written_for("another") == "before"


def test_verdicts_are_written_as_readable_text_and_read_back(profile, verdicts):
    path = write_verdicts(profile, verdicts)
    assert "λ" in path.read_text(encoding="utf-8")
    assert read_verdicts(profile.results) == verdicts


@pytest.mark.parametrize("content", [None, "[]\n{", '[{"id": 1}]'])
def test_missing_or_damaged_verdicts_name_their_file(tmp_path, refused, content):
    file = tmp_path / "claims.json"
    if content:
        file.write_text(content)
    assert refused(read_verdicts, tmp_path).startswith(str(file))


def test_the_repositorys_verdicts_are_rewritten_only_if_a_reader_would_see_a_change(
    tmp_path, profile, verdicts
):
    folder = tmp_path / "data" / "demo"
    write_verdicts(profile, verdicts)
    assert not folder.exists()  # the repository has no data of this profile

    folder.mkdir(parents=True)
    kept = folder / "claims.json"
    kept.write_text("[]")
    write_verdicts(profile, verdicts)
    assert read_verdicts(folder) == verdicts

    # A change in the sixth digit, as between processors, leaves the file as it is; a
    # change that a reader sees writes it again.
    for factor, is_rewritten in ((1 + 1e-6, False), (1.5, True)):
        moved = [
            replace(row, effect=row.effect and factor * row.effect) for row in verdicts
        ]
        before = kept.read_bytes()
        write_verdicts(profile, moved)
        assert (kept.read_bytes() != before) == is_rewritten
