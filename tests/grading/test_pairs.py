"""Files of other harnesses: what is null, and what is missing."""

import json

import pytest

from lib.errors import InputError
from lib.grading.pairs import read_pairs


@pytest.mark.parametrize("response", [None, ""])
def test_a_model_that_wrote_nothing_is_wrong_and_not_left_out(tmp_path, response):
    file = tmp_path / "a.jsonl"
    rows = [{"answer": 5, "response": "5"}, {"answer": "6", "response": response}]
    file.write_text("\n".join(map(json.dumps, rows)))
    assert read_pairs(file, "answer", "response") == [("5", "5"), ("6", "")]


@pytest.mark.parametrize("row", [{"answer": None, "response": "5"}, {"answer": "5"}])
def test_a_gold_that_is_null_and_a_response_that_is_missing_are_refused(tmp_path, row):
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(row))
    with pytest.raises(InputError, match=r"line 1: no text in field '(answer|resp)"):
        read_pairs(file, "answer", "response")
