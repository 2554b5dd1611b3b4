"""Completions as a frame, and what is refused."""

import pytest

from lib.errors import InputError
from lib.evaluation.records import FIELDS, frame


def test_a_frame_has_every_field_and_what_counts_as_solved():
    row = {
        "model": "m",
        "condition": "none",
        "problem_id": "embedded/sum/1",
        "sample": 0,
        "response": "",
        "correct": True,
        "evaluated": False,
    }
    rows = [
        row,
        row | {"evaluated": True},
        row | {"problem_id": "own/1"},
        row | {"correct": False, "evaluated": True},
    ]
    table = frame(rows, "fillers")
    assert table.correct.tolist() == [True, True, True, False]
    assert table.worked_out.tolist() == [False, True, False, False]
    # Outside the embedded set an answer need not be worked out.
    assert table.right.tolist() == [False, True, True, False]
    assert list(table)[: len(FIELDS)] == FIELDS
    assert set(table.part) == {"fillers"}
    assert frame([]).empty


def test_a_row_without_what_tables_need_is_named():
    with pytest.raises(InputError, match=r"completions.jsonl: model: missing field"):
        frame([{"key": "a"}])
