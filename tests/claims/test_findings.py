"""Rows and sentences of notebook 06, on a hand-written table."""

import pandas as pd
import pytest

from lib.claims.findings import claims_rows, claims_sentences, claims_table, counted, labels

NONE = {"paper": None, "control": None, "effect": None}
ROWS = [
    NONE | {"id": "a", "model": "A", "verdict": "supported", "n": 96, "range": [None, 1], "effect": 1},
    NONE | {"id": "b", "model": "A", "verdict": "undecided", "n": 48, "range": [0, None], "effect": 2},
    NONE | {"id": "c", "model": "A", "verdict": "undecided", "n": 0, "range": [0.2, 1]},
]
ROWS[1]["paper"] = {"of": "B"}


def test_the_table_behind_the_figure_has_numbers_and_texts_only():
    table = claims_table(ROWS)
    assert "paper" not in table and "range" not in table and table["paper.of"].tolist()[1] == "B"
    assert table.to_csv(index=False, columns=["id", "effect", "low_end", "high_end"]) == (
        "id,effect,low_end,high_end\na,1.0,,1.0\nb,2.0,0.0,\nc,,0.2,1.0\n"
    )


@pytest.mark.parametrize("other, label", [("A", "a (n = 96)"), ("B", "a, A (n = 96)")])
def test_a_claim_is_labelled_with_its_model_when_there_are_several(other, label):
    assert labels(claims_table([*ROWS, ROWS[0] | {"model": other}]))[0] == label


def test_verdicts_are_counted_per_model():
    (row,) = claims_rows(claims_table(ROWS))
    assert row["found"] == "1 supported, 0 contradicted, 1 undecided, 1 not tested" and row["n"] == 96
    few = ROWS[0] | {"verdict": "undecided", "n": 5}
    assert counted(claims_table([*ROWS[:2], few])) == "1 supported, 0 contradicted, 1 undecided, 1 too few"
    assert len(claims_rows(pd.concat([claims_table(ROWS), claims_table([ROWS[0] | {"model": "B"}])]))) == 2


def test_the_claims_of_each_verdict_are_named():
    shared = ROWS[0] | {"id": "d", "control": {"verdict": "supported"}}
    other = ROWS[0] | {"id": "e", "model": "B", "verdict": "contradicted", "control": {"verdict": "supported"}}
    assert claims_sentences([*ROWS, other, shared]) == [
        "A, supported: a.",
        "A, supported, also without training: d.",
        "A, undecided: b.",
        "A, not tested: c.",
        "B, contradicted: e.",
    ]
