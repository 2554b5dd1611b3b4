"""The evidence that a profile has on each model, and the verdicts on stored
evidence.
"""

import pandas as pd
import pytest
from evidence import answers, right

from reproduction import paths
from reproduction.claims import gather, judge, load_claims, verdict_table
from reproduction.claims.judging import evidence_by_model
from reproduction.claims.verdicts import read_verdicts
from reproduction.figures.notebook_tables import looks_same
from reproduction.profiles import load_profile


def test_verdicts_on_the_families_are_the_stored_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    verdicts = judge(load_claims(), gather(load_profile("families")))
    stored = read_verdicts(paths.DATA / "families")
    assert looks_same(verdict_table(stored), verdict_table(verdicts))


@pytest.mark.parametrize(
    ("changes", "unaided"),
    [
        ({"format": "plain", "elicit": False}, True),
        ({"format": "plain", "elicit": True}, False),
        ({"format": "chat", "elicit": False}, False),
    ],
)
def test_answers_are_unaided_only_in_plain_format_without_elicitation(changes, unaided):
    profile = load_profile("demo")
    accuracy = profile.accuracy.model_copy(update=changes)
    profile = profile.model_copy(update={"accuracy": accuracy})
    table = answers(none=right(2))["answers"]
    evidence = evidence_by_model(profile, {}, [table.drop(columns="plain")])
    assert evidence["m"]["answers"].plain.all() == unaided


def test_evidence_is_grouped_by_model():
    table = answers(none=right(2))["answers"]
    scores = pd.DataFrame({"model": ["m", "b"], "nats": [-1.0, -2.0]})
    measured = {"a": "arrays", "m": "others"}
    evidence = evidence_by_model(
        load_profile("demo"), measured, [table], {"scores": scores}
    )
    assert list(evidence) == ["a", "m", "b"]  # measured models come first
    assert set(evidence["m"]) == {"measured", "answers", "scores"}
    assert set(evidence["a"]) == {"measured"}
    assert evidence["b"]["scores"].nats.tolist() == [-2.0]
