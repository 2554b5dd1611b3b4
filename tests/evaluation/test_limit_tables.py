"""Answers as a lower token limit would have made them."""

import pytest

from lib.evaluation.limit_tables import by_limit
from lib.evaluation.rows import frame


def test_an_answer_that_is_longer_than_a_limit_is_wrong_and_cut_there():
    lengths = {"none": [100, 300, 500], "mless": [110, 250, 600]}
    rows = []
    for condition, tokens in lengths.items():
        for number, length in enumerate(tokens):
            row = {"model": "tiny", "condition": condition, "sample": 0}
            row |= {"problem_id": f"p{number}", "completion_tokens": length}
            row |= {"answer": "1", "response": "1"}
            rows.append(row | {"correct": True, "finish_reason": "stop"})
    short, whole = by_limit(frame(rows), (280, 600)).to_dict("records")
    assert (short["none"], short["mless"]) == pytest.approx((100 / 3, 200 / 3))
    assert (short["cut_none"], short["cut_mless"]) == pytest.approx((200 / 3, 100 / 3))
    assert (short["only_none"], short["only_this"]) == (0, 1)
    assert (short["ended"], short["tokens"]) == (1, 10)
    assert (whole["none"], whole["mless"], whole["cut_none"]) == (100, 100, 0)
    assert (whole["ended"], whole["tokens"]) == (3, 20)
