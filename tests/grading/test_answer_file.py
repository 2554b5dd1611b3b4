"""Answer files of other evaluation harnesses: null, empty and missing fields."""

import pytest
from hand_written import keep

from lib.grading import grade
from lib.grading.answer_file import read_pairs


@pytest.fixture
def read(tmp_path):
    """A function that writes rows into a file and reads its pairs."""

    def pairs(*rows):
        keep(tmp_path / "a.jsonl", rows)
        return read_pairs(tmp_path / "a.jsonl", "answer", "response")

    return pairs


def test_an_empty_or_null_response_is_not_left_out(read):
    answered = {"answer": 5, "response": "5"}
    for nothing in (None, ""):
        pairs = read(answered, {"answer": "6", "response": nothing})
        assert pairs == [("5", "5"), ("6", "")]


def test_numbers_are_written_in_digits_however_small_or_large_they_are(read):
    numbers = {1e-7: "0.0000001", -3.5e-10: "-0.00000000035", 0.5: "0.5", 12: "12"}
    numbers[1e16] = "10000000000000000"
    pairs = read(*({"answer": number, "response": 2.5} for number in numbers))
    assert pairs == [(digits, "2.5") for digits in numbers.values()]
    assert grade("0.0000001", r"\boxed{10^{-7}}").correct


@pytest.mark.parametrize(
    "row, said",
    [
        ({"answer": " ", "response": "5"}, "field 'answer' is blank"),
        ({"answer": None, "response": "5"}, "no text in field 'answer'"),
        ({"answer": "5"}, "no text in field 'response'"),
    ],
)
def test_a_blank_or_null_gold_and_a_missing_response_are_refused(
    read, refused, row, said
):
    assert f"line 1: {said}" in refused(read, row)


def test_an_index_into_a_text_is_refused_because_it_would_give_one_character(
    tmp_path, refused
):
    # lm-eval has a text in a list in `filtered_resps`, and in two lists in `resps`.
    file = tmp_path / "a.jsonl"
    keep(file, [{"answer": "5", "filtered_resps": ["so 5"]}])
    assert read_pairs(file, "answer", "filtered_resps.0") == [("5", "so 5")]
    message = refused(read_pairs, file, "answer", "filtered_resps.0.0")
    assert "line 1: no text in field 'filtered_resps.0.0'" in message
