"""Files of other harnesses: what is null, and what is missing."""

import json

import pytest

from lib.errors import InputError
from lib.grading import grade
from lib.grading.pairs import read_pairs


@pytest.mark.parametrize("response", [None, ""])
def test_a_model_that_wrote_nothing_is_wrong_and_not_left_out(tmp_path, response):
    file = tmp_path / "a.jsonl"
    rows = [{"answer": 5, "response": "5"}, {"answer": "6", "response": response}]
    file.write_text("\n".join(map(json.dumps, rows)))
    assert read_pairs(file, "answer", "response") == [("5", "5"), ("6", "")]


def test_numbers_are_written_in_digits_however_small_or_large_they_are(tmp_path):
    file = tmp_path / "a.jsonl"
    rows = [{"answer": n, "response": 2.5} for n in (1e-7, -3.5e-10, 1e16, 0.5, 12)]
    file.write_text("\n".join(map(json.dumps, rows)))
    golds = [gold for gold, _ in read_pairs(file, "answer", "response")]
    assert golds == ["0.0000001", "-0.00000000035", "10000000000000000", "0.5", "12"]
    assert grade(golds[0], r"\boxed{10^{-7}}").correct


def test_a_gold_that_is_blank_is_refused(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"answer": " ", "response": "5"}))
    with pytest.raises(InputError, match="line 1: field 'answer' is blank"):
        read_pairs(file, "answer", "response")


@pytest.mark.parametrize("row", [{"answer": None, "response": "5"}, {"answer": "5"}])
def test_a_gold_that_is_null_and_a_response_that_is_missing_are_refused(tmp_path, row):
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(row))
    with pytest.raises(InputError, match=r"line 1: no text in field '(answer|resp)"):
        read_pairs(file, "answer", "response")
