"""Completions as a frame."""

from reproduction.evaluation.rows import FIELDS, frame


def test_a_frame_has_every_field_and_whether_an_answer_is_right():
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
    # Only in the embedded set a right answer has to be worked out.
    assert table.right.tolist() == [False, True, True, False]
    assert list(table)[: len(FIELDS)] == FIELDS
    assert set(table.part) == {"fillers"}
    assert frame([]).empty
