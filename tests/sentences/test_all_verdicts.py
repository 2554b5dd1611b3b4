"""What all verdicts say together, of some that are written by hand."""

from dataclasses import replace

import pytest

from lib.claims.verdict import Control, Verdict
from lib.profiles import load_profile
from lib.sentences import all_verdicts, findings

SUPPORTED = Verdict(
    id="dilution",
    claim="It drops",
    reading="literal",
    source="Fig. 2",
    model="a",
    unit="λ",
    range=(None, 1),
    written="before",
    verdict="supported",
    part="mean of 2 heads",
    effect=0.8,
    low=0.7,
    high=0.9,
    n=40,
    survives=True,
)
UNDECIDED = replace(SUPPORTED, verdict="undecided", survives=False)
LOST = replace(SUPPORTED, survives=False)
FEW = replace(SUPPORTED, effect=0.8, low=0.7, high=0.9, n=19)


def test_wrong_verdicts_are_expected_of_all_that_were_tested_enough():
    verdicts = [SUPPORTED, LOST, FEW]
    verdicts += [UNDECIDED] * 78
    tested, corrected = all_verdicts.closing(verdicts)
    assert tested.startswith("80 verdicts were tested.")
    assert "at most 2.0 wrong ones" in tested
    assert corrected.startswith("1 of 2 verdicts stand")
    assert corrected.endswith("(†): dilution.")


def test_the_inside_is_told_of_claims_that_several_models_tested():
    verdicts = [replace(SUPPORTED, claim="It grows")]
    weighted = replace(SUPPORTED, id="points-slashes", claim="It helps")
    for model in ("a", "b"):
        verdicts.append(replace(SUPPORTED, model=model))
        verdicts.append(replace(weighted, model=model))
    first, some, none, *_ = all_verdicts.inside(verdicts)
    assert first == "Supported in all of 2 models: It drops."
    assert some == "Supported in some of 2 models: nothing."
    assert none == "Supported in none of 2 models: nothing."


def test_a_notebook_does_not_say_what_the_correction_for_all_rows_takes(monkeypatch):
    monkeypatch.setattr(all_verdicts, "judge", lambda *given: [LOST])
    table = all_verdicts.verdicts_on(load_profile("demo"), "02")
    assert table.verdict.tolist() == ["supported"]


def test_nothing_is_found_without_both_controls():
    even = Control(0.5, 0.4, 0.6, 40, "supported")
    controlled = replace(SUPPORTED, control=even)
    assert not findings.finding([controlled])
    controlled.uniform = even
    assert findings.finding([controlled])


@pytest.mark.parametrize("other", ["undecided", "supported"])
def test_the_negative_control_fails_where_it_is_contradicted(other):
    failed = replace(SUPPORTED, id="likelihood-instruction", verdict="contradicted")
    lines = findings.checks([failed, replace(failed, verdict=other)])
    assert lines[0].startswith("The negative control failed in 1 of 2 models")
