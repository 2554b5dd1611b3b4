"""The numbers behind verdicts, as the tables of notebook 06 show them."""

from hand_written import verdict

from reproduction.claims import numbers_table, statements

FALL = {
    "id": "redistribution",
    "claim": "Fewer are near zero, and norms grow",
    "unit": "log ratio",
    "range": (0.0, None),
    "parts": 4,
}


def test_a_row_has_the_verdict_the_range_and_the_untrained_networks():
    judged = verdict(part="lambda", specific=False, survives=False)
    (row,) = numbers_table([judged]).to_dict("records")
    assert row["verdict"] == "undecided †"
    assert row["measured"] == "0.80 [0.70, 0.90]"
    assert row["range"] == "below 1 λ"
    assert row["untrained"] == "the same"
    # A claim with one part names none.
    assert (row["part"], row["parts"]) == ("", "")


def test_a_part_that_should_fall_is_shown_with_the_sign_that_was_measured():
    """The near-zero share rose by 0.2, which the rule sees as a fall of -0.2."""
    rose = {"effect": -0.2, "low": -0.3, "high": -0.1, "verdict": "in part"}
    rose |= {"holds": ("L1 up",), "refuted": ("near zero down",)}
    (row,) = numbers_table([verdict(part="near zero down", **FALL, **rose)]).to_dict(
        "records"
    )
    assert row["part"] == "near zero"
    assert row["measured"] == "0.20 [0.10, 0.30]"
    assert row["range"] == "below 0 log ratio"
    assert row["parts"] == "1 of 4 hold, 1 refuted"


def test_a_part_that_should_rise_keeps_its_sign():
    fell = {"effect": -0.2, "low": -0.3, "high": -0.1}
    (row,) = numbers_table([verdict(part="L1 up", **FALL, **fell)]).to_dict("records")
    assert (row["part"], row["range"]) == ("L1", "above 0 log ratio")
    assert row["measured"] == "-0.20 [-0.30, -0.10]"


def test_verdicts_on_a_claim_are_together_and_have_the_same_decimals():
    fine = {"effect": 0.8123, "low": 0.8111, "high": 0.8135}
    rows = [
        verdict(model="a"),
        verdict(id="other", claim="Another claim", model="a", range=(0.9, 1.1)),
        verdict(model="b", low=0.75, high=0.85),
        verdict(model="c", n=0),
        verdict(model="d", **fine),
    ]
    table = numbers_table(rows)
    assert table.model.tolist() == ["a", "b", "d", "a"]
    assert table.range.tolist()[-1] == "0.9 to 1.1 λ"
    assert table.measured.tolist()[:3] == [
        "0.800 [0.700, 0.900]",
        "0.800 [0.750, 0.850]",
        "0.812 [0.811, 0.814]",
    ]


def test_each_claim_of_a_table_is_stated_once():
    rows = [verdict(model="a"), verdict(model="b"), verdict(**FALL)]
    lines = statements(numbers_table(rows)).splitlines()
    assert len(lines) == 2
    assert lines[1] == "- `redistribution`: Fewer are near zero, and norms grow"


def test_the_table_of_no_numbers_has_the_same_columns():
    assert list(numbers_table([])) == list(numbers_table([verdict()]))
