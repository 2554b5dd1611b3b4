"""The answer of a response: its last closed box, its number, and whether it is worked
out.
"""

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.grading.extraction import last_box, read_answer, settle
from lib.grading.latex_spelling import spelled
from lib.grading.numbers_and_units import parse_number, split_unit

balanced = st.recursive(
    st.text(alphabet="0123456789xy+- ,.", max_size=8),
    lambda inner: st.lists(inner, max_size=3).map(
        lambda parts: "".join(f"{{{part}}}" for part in parts)
    ),
    max_leaves=8,
)


@given(balanced, st.text(alphabet="ab \\{", max_size=5))
def test_the_content_of_a_box_is_returned_in_full(content, before):
    text = before.rstrip("\\") + rf" \boxed{{{content}}} and so on."
    assert last_box(text) == content


REPEATED = [
    "Problem",
    "the ",
    "# ",
    "1. ",
    " ",
    "(",
    "\\boxed ",
    "{",
    "<think>",
    "[INST",
    "第",
]


@pytest.mark.parametrize("repeated", REPEATED)
def test_a_response_that_repeats_itself_is_read_at_once(repeated):
    begun = time.process_time()
    for start in ("", "Problem", "\\boxed"):
        answer = read_answer(f"$\\boxed{{12}}$\n{start}{repeated * 20_000}x")[0]
        assert answer is not None
    assert time.process_time() - begun < 2  # with quadratic time, more than ten


# A response, and the content of its last box.
BOXES = r"""
\boxed{1} then \boxed{2} → 2
\boxed {7} → 7
\boxed{\{1, 2\}} → \{1, 2\}
\boxed{\left\{ x \right.} → \left\{ x \right.
\boxed{\boxed{5}} → 5
} \boxed{5} → 5
x = \boxed 5$ → 5
\boxed12. → 12
\boxed\frac{1}{2} → \frac{1}{2}
"""


def test_the_last_closed_box_is_the_answer():
    for row in BOXES.strip().splitlines():
        response, content = row.split(" → ")
        assert last_box(response) == content
    assert last_box(r"Put it in a \boxed one.") is None
    # A parser that starts again at every box would not end.
    assert last_box(r"\boxed{" * 100_000) is None


# Responses that answer 12, by the other text that they have. The grader does not know the
# problem: a header before the first box may belong to it, so nothing is cut there.
RESPONSES = {
    "nothing": r"""
It is \boxed{12}.<|im_end|><|endoftext|>
It is \boxed{12}.</s>
It is \boxed{12}.\nTo check the problem: it is so.
<|im_start|>assistant\nIt is \boxed{12}.
""",
    "run_on": r"""
It is \boxed{12}.\n\nProblem: What is 5+5?\n\boxed{10}
It is \boxed{12}.\n**Question 2:** find x. \boxed{10}
It is \boxed{12}.\n## Problem 2\nWhat is 5+5?\n\boxed{10}
It is \boxed{12}.\nQ: What is 5+5?\n\boxed{10}
It is \boxed{12}.\nQ: What is 5+5?\n\boxed{10}\nQ: What is 6+6?\nuser\n
It is \boxed{12}.\nProblem 2. What is 5+5? \boxed{10}
It is \boxed{12}.\nuser\nWhat is 5+5?\nassistant\n\boxed{10}
It is \boxed{12}.\n[INST] What is 5+5? [/INST] \boxed{10}
It is \boxed{12}.<end_of_turn>\n<start_of_turn>user\nWhat is 5+5?<end_of_turn>\n\boxed{10}
It is \boxed{12}.<|im_end|>\n<|im_start|>user\nWhat is 5+5? \boxed{10}
It is \boxed{12}.</s>\n<s>user\nWhat is 5+5?</s>\boxed{10}
It is \boxed{12}.<｜end▁of▁sentence｜><｜User｜>5+5?<｜Assistant｜>\boxed{10}
It is \boxed{12}.\n\n题目：5+5等于多少？\n解：\boxed{10}
It is \boxed{12}.\n### Human: What is 5+5?
It is \boxed{12}.\n\nHere is another problem: what is 5+5? \boxed{10}
It is \boxed{12}.\n\section*{Problem 2}\nWhat is 5+5? \boxed{10}
It is \boxed{12}.\n**Problem (2):** What is 5+5?\n\boxed{10}
\boxed{12}<|im_end|>\n<|im_start|>user\n5+5?<think>hm</think>\boxed{10}
""",
    "restated": r"""
**Problem:** what is 3 times 4?\n\n**Solution:** It is $\boxed{12}$.
Sure.\n\n### Question:\nWhat is 3 times 4?\n\n### Answer:\n$\boxed{12}$
Question 1: what is 3 times 2? It is 6.\nQuestion 2: and twice that?\n\n$\boxed{12}$
Put it into \boxed{}.\nProblem: what is 3 times 4?\n\boxed{12}
The slope is $\boxed{3}$.\n\nNow solve the system:\n$x+y=19$, so $\boxed{12}$.
We are not done.\n\nProblem: What is 3 times 4?\n\boxed{12}
""",
    "thought": r"""
<think>User: asks for 12.\nUser: is it \boxed{7}?</think>\n\boxed{12}
So it is \boxed{7}.\nUser: no.</think>\boxed{12}
<|begin_of_thought|>\boxed{7}\nQ: no.<|end_of_thought|><|begin_of_solution|>\boxed{12}
<|channel|>analysis<|message|>\boxed{7}<|end|><|channel|>final<|message|>\boxed{12}<|return|>
<|thought|>\nhm\n<|answer|>\n\boxed{12}
[THINK]\boxed{7}\nProblem: hm[/THINK]\boxed{12}
analysisIt is \boxed{7}.\nQ: sure?assistantfinalIt is \boxed{12}.
<|channel>thought\n\boxed{7}\nQ: sure?<channel|>\boxed{12}<turn|>
<scratchpad>\boxed{7}\nQ: sure?</scratchpad>\boxed{12}
<think>It is \boxed{12}.</think> It is twelve.
<think>It is \boxed{12}, or is
<think>hm</think>It is \boxed{12}.<think>Or \boxed{7}?</think>Yes.
It is \boxed{12}.<think>Or is it \boxed{7}
""",
}
CASES = [
    (mark, one) for mark in RESPONSES for one in RESPONSES[mark].split("\n") if one
]


@pytest.mark.parametrize("mark, response", CASES)
def test_the_answer_is_separated_from_the_text_around_it(mark, response):
    box, run_on = read_answer(response.replace(r"\n", "\n"))
    assert box == "12"
    assert run_on is (mark == "run_on")


def test_a_turn_of_the_user_ends_an_answer_without_a_box():
    run_on = "<|im_end|>\n<|im_start|>user\nWhat is 5+5?<|im_end|>\n\\boxed{10}"
    assert read_answer("I do not know." + run_on) == (None, True)


def test_backslashes_that_json_lost_or_doubled_are_restored():
    twice = r"It is \\boxed{\\frac{1}{2}}."
    assert read_answer(twice) == (r"\frac{1}{2}", False)
    assert read_answer("It is \boxed{\frac{1}{2}}.") == (r"\frac{1}{2}", False)
    assert read_answer(r"x = 3 \\ \boxed{4 \\ 5}") == (r"4 \\ 5", False)


NUMBERS = r"""
1,234.5 = 2469/2
12 345 = 12345
-.5 = -1/2
1.5e3 = 1500
\frac{3}{-4} = -3/4
-2\frac34 = -11/4
2 3/4 = 11/4
1.5 \times 10^{-2} = 3/200
0.8\overline{3} = 5/6
1.\overline{09} = 12/11
3 million = 3000000
1e-3 = 1/1000
0.17\dots = none
3/0 = none
12,34 = none
1.2.3 = none
2 3 = none
"""


def test_numbers_are_parsed_exactly():
    for row in NUMBERS.strip().splitlines():
        text, _, value = row.partition(" = ")
        number = None if value == "none" else Fraction(value)
        assert parse_number(spelled(text)) == number, text


# An answer, its value, and its units.
UNITS = r"""
15 \text{ centimeters}^2 | 15 | cm
6'' | 6 | ''
7\text{ per day} | 7 |
5 km^2 | 5 | km
40% | 40 | %
3\,\mathrm{m/s} | 3 | m second
3\text{ apples} | 3 | apple
\pi m | \pi m |
x + m | x + m |
"""


def test_units_have_one_spelling():
    for row in UNITS.strip().splitlines():
        text, value, units = row.split(" |")
        assert split_unit(spelled(text)) == (value.strip(), units.split()), text


# A gold answer, then ways to write the number, and after ≠ expressions that are still to
# be worked out.
ANSWERS = r"""
12 | 12.0 | (12) | 24/2 | \frac{24}{2} | \$12 | 12\text{ m/s} | 12\text{ cm}^2 | 12\%
12 | 8 + 4 = 12 | 12 = 8 + 4 | f(2) = 12 | 1.2 \times 10^1
12 ≠ 8 + 4 | 8 - (-4) | x = 16-4 | f(2) = 2(6) | 8 + 4 = 6 + 6 | 8 \text{ plus } 4
12 ≠ 3 \cdot 4 | 3*4 | (3)(4) | 24 \div 2 | \frac{20+4}{2} | \sqrt{144} | \gcd(12,24)
\frac{7}{3} | 2\frac{1}{3} | \frac{7}{3} \approx 2.33 | \frac{-7}{-3} | 2.\overline{3}
\frac{1}{8} ≠ 2^{-3} | \frac{1}{16}+\frac{1}{16}
60^\circ | 60^\circ
6 ≠ 3! | \binom{4}{2}
3\sqrt{2} | \sqrt{18}
(1,2) | (1,1+1)
"""


def test_a_number_counts_as_worked_out_and_an_arithmetic_expression_does_not():
    for line in ANSWERS.strip().splitlines():
        done, _, to_do = line.partition(" ≠ ")
        gold, *worked_out = done.split(" | ")
        for answer in worked_out:
            assert settle(gold, rf"\boxed{{{answer}}}").evaluated, answer
        for answer in to_do.split(" | ") if to_do else []:
            assert not settle(gold, rf"\boxed{{{answer}}}").evaluated, answer
