"""The rule on known truth, and rows of the verdicts: planted numbers, parts, power,
controls, a file read again.
"""

import numpy as np
import pytest
from evidence import CLAIMS, answers, inside, right, row_of, scores
from scipy import stats

from lib import paths
from lib.claims.verdict import (
    COLUMNS,
    decide,
    judge,
    p_value,
    read_verdicts,
    write_verdicts,
)
from lib.claims.words import rows_of
from lib.profiles import load_profile
from lib.statistics import ENOUGH, interval

NETWORKS = ("trained", "untrained 0", "untrained 1", "untrained 2", "uniform")
FOR, OPEN, AGAINST = (
    np.linspace(4, 6, 24),
    np.linspace(-1, 1.2, 24),
    np.linspace(-1.5, -0.5, 24),
)


def parts(*values):
    return {str(index): (some,) for index, some in enumerate(values)}


@pytest.mark.parametrize(
    ("some", "expected", "part", "holds", "refuted"),
    [
        ([FOR, FOR - 3.5], "supported", "1", ["0", "1"], []),
        ([FOR, OPEN], "undecided", "1", ["0"], []),
        ([FOR, AGAINST, OPEN], "in part", "1", ["0"], ["1"]),
        ([OPEN, AGAINST], "contradicted", "1", [], ["1"]),
        ([AGAINST, 3 * AGAINST], "contradicted", "0", [], ["0", "1"]),
        # What never varies decides without an interval, if there is enough of it.
        ([np.full(ENOUGH, -1.0)], "contradicted", "0", [], ["0"]),
        ([np.full(30, 8 / 9) + 1e-16 * np.arange(30)], "supported", "0", ["0"], []),
        ([np.zeros(30)], "undecided", "0", [], []),
        ([np.linspace(5, 6, ENOUGH - 1), np.ones(100)], "undecided", "0", [], []),
        # Of parts that are equal but for rounding, or infinitely far inside, the first
        # decides.
        ([(1 + 1e-5) * FOR, FOR], "supported", "0", ["0", "1"], []),
        ([np.ones(20)] * 2, "supported", "0", ["0", "1"], []),
    ],
)
def test_a_verdict_names_the_part_that_decides_and_those_that_hold_or_are_refuted(
    some, expected, part, holds, refuted
):
    found = decide(parts(*some), low=0)
    assert (found.verdict, found.part, found.holds, found.refuted) == (
        expected,
        part,
        holds,
        refuted,
    )


@pytest.mark.parametrize(("low", "high"), [(0, np.inf), (-np.inf, 0), (-0.2, 0.2)])
def test_the_interval_that_is_shown_lies_as_the_verdict_says(low, high):
    rng, seen = np.random.default_rng(4), set()
    for _ in range(200):
        values = rng.normal(rng.uniform(-1, 1), 0.15, size=(3, 30))
        verdict, part, shown, *_ = decide(parts(*values), low, high)
        seen.add(verdict)
        assert (
            verdict not in ("contradicted", "in part")
            or shown.high < low
            or shown.low > high
        )
        assert verdict != "supported" or low < shown.low < shown.high < high
        alone = interval(values[int(part)])
        assert (shown.low, shown.high) == pytest.approx(
            (alone.low, alone.high)
        )  # of 95 %, however many parts
    assert seen >= {"supported", "contradicted", "undecided"}


def test_a_verdict_against_one_of_several_parts_is_corrected_for_their_number():
    values = 0.25 + np.linspace(-1, 1, 30)
    one, four = parts(values), parts(*[values] * 4)
    assert (decide(one, high=0).verdict, decide(four, high=0).verdict) == (
        "contradicted",
        "undecided",
    )
    p = p_value(one, high=0)
    assert p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=0.02)
    assert p_value(four, high=0) == pytest.approx(4 * p)
    assert p_value(four, low=0) == p  # in favour all must be shown, none is chosen


def test_the_row_of_a_claim_in_part_names_what_holds_and_what_is_refuted():
    solved = {
        "none": 30,
        "mless": 45,
        "mless_before": 10,
        "mless_end": 44,
        "mless_random": 12,
    }
    row = row_of(
        "position",
        answers("fillers", **{name: right(count) for name, count in solved.items()}),
    )
    assert (row["verdict"], row["part"], row["held"], row["parts"]) == (
        "in part",
        "none - mless@end",
        3,
        4,
    )
    assert row["refuted"] == "none - mless@end" and row["holds"].count(",") == 2


def lambdas(*heads):
    """Return λ of the heads of one layer under slashes: a list for each of NETWORKS, or
    of the trained one alone.
    """
    values = np.array(heads, dtype=float)[
        :, None, None, None
    ]  # (network, 1, 1, 1, head)
    noise = np.random.default_rng(0).standard_normal((len(heads), 1, 40, 1, 1))
    noise = 0.02 * stats.zscore(noise, axis=2)  # their mean is 0 exactly
    about = {
        "heads": values.shape[-1],
        "layers": 1,
        "embedded": False,
        "networks": NETWORKS[: len(heads)],
    }
    return {"measured": inside(**about, **{"lambda": values + noise})}


def controlled(*untrained, trained=0.6):
    return lambdas([trained], *([value] for value in untrained), [0.45])


@pytest.mark.parametrize(
    ("untrained", "verdict", "training"),
    [
        ((0.5, 0.5, 0.6), "supported", "also"),  # one that is alike is enough
        (
            (0.5, 0.45, 0.4),
            "supported",
            "weaker",
        ),  # nearer to the edge of the claimed range
        ((0.8, 0.7, 0.9), "supported", "stronger"),
        ((0.5, 0.5, 1.3), "mixed", None),
        ((1.3, 1.2, 1.4), "contradicted", None),
    ],
)
def test_each_untrained_network_is_judged_by_itself(untrained, verdict, training):
    row = row_of("dilution", controlled(*untrained))
    assert (row["control_verdict"], row["training"]) == (verdict, training)
    assert row["control_effect"] == pytest.approx(
        sorted(untrained)[1]
    )  # the middle one: nothing is averaged
    assert row["control_low"] < min(untrained) and max(untrained) < row["control_high"]
    nearest = min((0.6 - value for value in untrained), key=abs)
    assert row["difference"] == pytest.approx(nearest, abs=1e-9)
    assert (
        row["uniform_effect"] == pytest.approx(0.45)
        and row["uniform_verdict"] == "supported"
    )


def test_verdicts_from_opposite_sides_are_not_shared():
    row = row_of("dilution", controlled(1.3, 1.3, 1.3), range=(0.9, 1.1))
    assert (
        row["verdict"] == row["control_verdict"] == "contradicted"
        and row["training"] is None
    )


def test_a_control_is_shown_in_the_part_that_decides():
    row = row_of(
        "dilution-every-head",
        lambdas([0.5, 0.9], [0.8, 0.3], [0.8, 0.4], [0.8, 0.5], [0.4, 0.4]),
    )
    assert (row["part"], row["control_verdict"], row["training"]) == (
        "head 2",
        "supported",
        "weaker",
    )
    assert row["control_effect"] == pytest.approx(0.4) and row[
        "difference"
    ] == pytest.approx(0.4)


def test_a_verdict_stands_only_where_it_survives_all_rows():
    some = answers(none=right(20), mless=[0] * 8 + [1] * 34 + [0] * 18, mful=right(38))
    rows = rows_of(
        judge([CLAIMS["accuracy-mless"], CLAIMS["accuracy-mful"]], {"m": some})
    )
    small, large = sorted(rows, key=lambda row: row["p"])
    assert 0 < small["p"] < large["p"] < 0.5 and small["survives"] is True
    assert small["p_holm"] == pytest.approx(2 * small["p"])
    assert large["p_holm"] == pytest.approx(max(large["p"], 2 * small["p"]))


def test_an_interval_within_a_tenth_of_the_worked_example_is_no_effect_of_that_size():
    assert (
        row_of("likelihood-gain", {"scores": scores({"mless": 0.3, "example": 8})})[
            "verdict"
        ]
        == "supported"
    )
    noisy = scores({"mless": 0.0, "example": 8})
    noisy.loc[noisy.condition == "mless", "nats"] += np.tile([-0.5, 0.5], 15)
    row = row_of("likelihood-gain", {"scores": noisy})
    assert row["verdict"] == "no effect of that size" and row[
        "equivalence"
    ] == pytest.approx(0.8, rel=0.01)
    assert row["p"] < 0.001  # of lying within the margin
    harmful = noisy.assign(nats=noisy.nats - 20 * (noisy.condition == "example"))
    for other in (
        noisy[noisy.condition != "example"],
        harmful,
    ):  # without a gain there is no scale
        assert row_of("likelihood-gain", {"scores": other})["verdict"] == "undecided"


def test_one_model_that_can_test_a_claim_is_enough():
    rows = judge([CLAIMS["dilution"]], {"other": {}, "m": lambdas([0.6])})
    assert list(rows.model) == ["m"] and list(rows) == COLUMNS
    assert list(judge([CLAIMS["dilution"]], {"other": {}, "another": {}}).model) == [
        "other"
    ]


def test_verdicts_are_written_for_people_and_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    given = {
        "m": answers(none=right(30), mless=right(30)),
        "n": controlled(0.5, 0.5, 0.5),
    }
    profile, verdicts = load_profile("demo"), judge(list(CLAIMS.values()), given)
    assert "λ" in write_verdicts(profile, verdicts).read_text(encoding="utf-8")
    for old, new in zip(
        rows_of(verdicts), rows_of(read_verdicts(profile)), strict=True
    ):
        assert new == {
            name: pytest.approx(v, abs=1e-9) if isinstance(v, float) else v
            for name, v in old.items()
        }
