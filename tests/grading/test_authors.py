"""The authors' rule as published, with its faults."""

import pytest

from lib.grading.answer import settle
from lib.grading.authors import correct_authors, correct_exact, with_authors_box

PROMPT = r"Please put your final answer within \boxed{}. What is 7 + 5?"
RIGHT = [
    (r"\frac{1}{2}", "0.5"),
    (r"\frac{1}{2}", "1/2"),
    (r"\frac12", r"\dfrac{1}{2}"),
    (r"\sqrt3", r"\sqrt{3}"),
    ("0.25", ".25"),
    ("5", "x=5"),
]
CONTAINED = [("12", "1"), ("12", "")]
WRONG = [
    ("12", r"\frac"),
    ("12", r"\sqrt"),
    ("12", r"1\text{ a}\text{ b}"),
    ("10080", "10,080"),
    ("5", "2x+y=5"),
]


@pytest.mark.parametrize("gold, answer", RIGHT + CONTAINED + WRONG)
def test_applies_the_dataset_string_rules(gold, answer):
    response = rf"It is $\boxed{{{answer}}}$."
    assert correct_authors(gold, "", response) is ((gold, answer) not in WRONG)
    assert correct_exact(gold, answer) is ((gold, answer) in RIGHT)


def test_a_box_is_looked_for_in_the_prompt_too_and_an_unclosed_last_one_is_wrong():
    assert correct_authors("12", PROMPT, "I do not know.")
    assert not correct_authors("12", with_authors_box(PROMPT), "I do not know.")
    assert correct_authors("12", with_authors_box(PROMPT), r"\boxed{12}")
    assert not correct_authors("12", "", "I do not know.")
    assert not correct_exact("12", None)
    assert not correct_authors("12", PROMPT, r"\boxed{12} or \boxed{12")


def test_exact_match_reads_up_to_a_run_on_and_the_authors_rule_beyond_it():
    response = "It is \\boxed{12}.\n\nProblem: What is 1 + 1?\n\\boxed{2}"
    extracted = settle("12", response).extracted
    assert correct_exact("12", extracted)
    assert not correct_exact("2", extracted)
    assert correct_authors("2", "", response)
    assert not correct_authors("12", "", response.replace("{2}", "{3}"))
