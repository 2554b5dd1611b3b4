"""A verdict as an object: how it is judged on planted numbers, its row and its file."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from evidence import CLAIMS, answers, inside, right, scores, verdict_on
from report_folder import verdict
from scipy import stats

from lib import paths
from lib.claims.judging import judge
from lib.claims.verdict_tables import (
    counts,
    read_verdicts,
    stored_verdicts,
    write_verdicts,
)
from lib.profiles import load_profile
from lib.statistics.intervals import ENOUGH, clopper_pearson, tango
from lib.statistics.power import n_deciding

NETWORKS = ("trained", "untrained 0", "untrained 1", "untrained 2", "uniform")


def lambdas(*heads):
    """Return λ of the heads of one layer under slashes.

    A list for each of NETWORKS, or of the trained one alone.
    """
    values = np.array(heads, dtype=float)
    values = values[:, None, None, None]  # (network, 1, 1, 1, head)
    noise = np.random.default_rng(0).standard_normal((len(heads), 1, 40, 1, 1))
    noise = 0.02 * stats.zscore(noise, axis=2)  # their mean is 0 exactly
    networks = NETWORKS[: len(heads)]
    sizes = {"heads": values.shape[-1], "layers": 1}
    arrays = {"lambda": values + noise}
    return {"measured": inside(**sizes, embedded=False, networks=networks, **arrays)}


def controlled(*untrained, trained=0.6):
    return lambdas([trained], *([value] for value in untrained), [0.45])


@pytest.mark.parametrize(
    ("untrained", "verdict", "training"),
    [
        # One network that is alike is enough.
        ((0.5, 0.5, 0.6), "supported", "also"),
        # It lies between them.
        ((0.5, 0.75, 0.8), "supported", "also"),
        # The trained one is nearer to the edge of the claimed range.
        ((0.5, 0.45, 0.4), "supported", "weaker"),
        ((0.8, 0.7, 0.9), "supported", "stronger"),
        ((0.5, 0.5, 1.3), "mixed", None),
        ((1.3, 1.2, 1.4), "contradicted", None),
    ],
)
def test_each_untrained_network_is_judged_by_itself(untrained, verdict, training):
    judged = verdict_on("dilution", controlled(*untrained))
    control = judged.controls["control"]
    assert (control.verdict, judged.training) == (verdict, training)

    # The middle one is shown: nothing is averaged.
    assert control.effect == pytest.approx(sorted(untrained)[1])
    assert control.low < min(untrained)
    assert control.high > max(untrained)
    nearest = min((0.6 - value for value in untrained), key=abs)
    assert judged.difference.effect == pytest.approx(nearest, abs=1e-9)

    even = judged.controls["uniform"]
    assert even.verdict == "supported"
    assert even.effect == pytest.approx(0.45)


def test_verdicts_from_opposite_sides_are_not_shared():
    judged = verdict_on("dilution", controlled(1.3, 1.3, 1.3), range=(0.9, 1.1))
    assert judged.verdict == judged.controls["control"].verdict == "contradicted"
    assert judged.training is None


def test_a_verdict_whose_p_is_small_but_not_when_corrected_is_lost():
    # McNemar's exact test of 1 and 9 changed answers: p = 0.021, thrice that is 0.064.
    solved = [0] + [1] * 19 + [1] * 9 + [0] * 31
    evidence = answers(none=right(20), mless=solved)
    claim = CLAIMS["accuracy-mless"]
    alone = verdict_on("accuracy-mless", evidence)
    three = judge([claim] * 3, {"m": evidence})
    assert alone.p == alone.p_holm < 0.05
    assert (alone.survives, alone.lost) == (True, False)
    for each in three:
        assert each.p < 0.05 < each.p_holm
        assert each.verdict == "supported"
        assert (each.survives, each.lost) == (False, True)


def test_an_accuracys_interval_is_tangos_and_its_power_that_of_the_paper():
    # 10 lost and 12 gained of 60, of a model whose nearest of the paper gained 2.3.
    solved = [0] * 10 + [1] * 10 + [1] * 12 + [0] * 28
    evidence = answers(none=right(20), mless=solved)
    judged = verdict_on("accuracy-mless", evidence, model="Qwen2.5-Math-7B")
    low, high = tango(10, 12, 60)
    assert judged.estimate.low == pytest.approx(100 * low)
    assert judged.estimate.high == pytest.approx(100 * high)

    values = 100 * np.array([-1] * 10 + [1] * 12 + [0] * 38)
    deviation = stats.tstd(values)
    assert judged.power.needed == n_deciding(2.3, deviation)
    fewest, most = clopper_pearson(22, 60)
    assert judged.power.low == n_deciding(2.3, 100 * fewest**0.5)
    assert judged.power.high == n_deciding(2.3, 100 * most**0.5)
    stranger = verdict_on("accuracy-mless", evidence, model="SmolLM2-135M-Instruct")
    assert (stranger.paper, stranger.power) == (None, None)


def test_the_effect_where_all_answers_ended_leaves_out_what_was_cut():
    evidence = answers(samples=2, none=[2] * 20 + [0] * 40, mless=[2] * 38 + [0] * 22)
    table = evidence["answers"]
    first_ten = table.problem_id.isin([f"test/{index}.json" for index in range(10)])
    cut = first_ten & (table["sample"] == 1) & (table.condition == "none")
    table["finish_reason"] = np.where(cut, "length", "stop")
    judged = verdict_on("accuracy-mless", evidence)
    finished = judged.answers.finished
    low, high = tango(0, 18, 50)
    assert (finished.n, finished.effect) == (50, pytest.approx(100 * 18 / 50))
    assert (finished.low, finished.high) == pytest.approx((100 * low, 100 * high))
    assert judged.answers.cut == 0
    assert judged.answers.cut_less == pytest.approx(100 * 10 / 120)


def test_an_undecided_interval_within_a_tenth_of_the_worked_example_is_small():
    clear = scores({"mless": 0.3, "example": 8})
    assert verdict_on("likelihood-gain", {"scores": clear}).verdict == "supported"

    noisy = scores({"mless": 0.0, "example": 8})
    noisy.loc[noisy.condition == "mless", "nats"] += np.tile([-0.5, 0.5], 15)
    judged = verdict_on("likelihood-gain", {"scores": noisy})
    assert judged.verdict == judged.mark == "small"
    assert judged.equivalence == pytest.approx(0.8, rel=0.01)
    assert judged.p < 0.001  # of lying within the margin

    # Without a gain there is no scale.
    harmful = noisy.assign(nats=noisy.nats - 20 * (noisy.condition == "example"))
    for other in (noisy[noisy.condition != "example"], harmful):
        judged = verdict_on("likelihood-gain", {"scores": other})
        assert judged.verdict == "undecided"
        assert judged.equivalence is None


def test_one_model_that_can_test_a_claim_is_enough():
    claims = [CLAIMS["dilution"]]
    (judged,) = judge(claims, {"other": {}, "m": lambdas([0.6])})
    assert judged.model == "m"
    (judged,) = judge(claims, {"other": {}, "another": {}})
    assert judged.model == "other"


@pytest.mark.parametrize(
    ("n", "stands", "decided"),
    [
        (0, "not tested", False),
        (ENOUGH - 1, "too few", False),
        (ENOUGH, "supported", True),
    ],
)
def test_a_verdict_stands_with_enough_problems(n, stands, decided):
    one = verdict(n=n)
    assert (one.stands, one.decided) == (stands, decided)


def test_literal_claims_are_counted_by_model_as_they_stand():
    verdicts = [
        verdict("a", "m"),
        verdict("b", "m", verdict="undecided"),
        verdict("c", "m", n=ENOUGH - 1),
        verdict("a", "n"),
        verdict("b", "n", n=0),
        verdict("d", "m", reading="strict"),
    ]
    table = counts(verdicts).set_index("model")
    assert list(table) == ["supported", "undecided", "too few", "not tested"]
    assert table.loc["m"].tolist() == [1, 1, 1, 0]
    assert table.loc["n"].tolist() == [1, 0, 0, 2]


@pytest.fixture
def verdicts():
    evidence = {
        "m": answers(none=right(30), mless=right(30)),
        "n": controlled(0.5, 0.5, 0.5),
    }
    return judge(list(CLAIMS.values()), evidence)


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """A profile whose results, and the repository's data, lie in the test's folder."""
    profile = load_profile("demo")
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    return profile


def test_verdicts_are_written_for_people_and_read_again(profile, verdicts):
    path = write_verdicts(profile, verdicts)
    assert "λ" in path.read_text(encoding="utf-8")
    assert read_verdicts(profile) == verdicts


def test_the_repositorys_table_is_renewed_where_it_says_something_else(
    tmp_path, profile, verdicts
):
    folder = tmp_path / "data" / "demo"
    kept, table = folder / "claims.json", folder / "verdicts.csv"
    write_verdicts(profile, verdicts)
    assert not folder.exists()  # of a profile that the repository does not keep

    folder.mkdir(parents=True)
    kept.write_text("[]")
    write_verdicts(profile, verdicts)
    assert stored_verdicts("demo") == verdicts
    assert len(pd.read_csv(table)) == len(verdicts)

    # The sixth digit is another processor's; a number that a reader sees is news.
    for factor, news in ((1 + 1e-6, False), (1.5, True)):
        moved = [
            replace(row, effect=row.effect and factor * row.effect) for row in verdicts
        ]
        before = kept.read_bytes(), table.read_bytes()
        write_verdicts(profile, moved)
        assert ((kept.read_bytes(), table.read_bytes()) != before) == news
