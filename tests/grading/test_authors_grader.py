"""The authors' grading rule as published, including its faults."""

import pytest

from lib.grading.authors_grader import (
    is_correct_by_authors,
    is_exact_match,
)

PROMPT = r"Please put your final answer within \boxed{}. What is 7 + 5?"
# Gold answers and other answers that both rules accept, only the authors', or neither.
RULED = {
    "both": r"""
\frac{1}{2} | 0.5
\frac{1}{2} | 1/2
\frac12 | \dfrac{1}{2}
\sqrt3 | \sqrt{3}
0.25 | .25
5 | x=5
""",
    "authors": """
12 | 1
12 |
""",
    "neither": r"""
12 | \frac
12 | \sqrt
12 | 1\text{ a}\text{ b}
10080 | 10,080
5 | 2x+y=5
""",
}


@pytest.mark.parametrize("accepted", RULED)
def test_the_authors_rule_and_exact_match_accept_the_answers_of_their_tables(accepted):
    for row in RULED[accepted].strip().splitlines():
        gold, _, answer = row.partition(" |")
        answer = answer.strip()
        response = rf"It is $\boxed{{{answer}}}$."
        assert is_correct_by_authors(gold, "", response) is (accepted != "neither"), row
        assert is_exact_match(gold, answer) is (accepted == "both"), row


def test_the_authors_rule_also_searches_the_prompt_and_rejects_an_unclosed_last_box():
    assert is_correct_by_authors("12", PROMPT, "I do not know.")
    doubled = PROMPT.replace("{}", "{{}}")
    assert not is_correct_by_authors("12", doubled, "I do not know.")
    assert is_correct_by_authors("12", doubled, r"\boxed{12}")
    assert not is_correct_by_authors("12", "", "I do not know.")
    assert not is_exact_match("12", None)
    assert not is_correct_by_authors("12", PROMPT, r"\boxed{12} or \boxed{12")
