"""Which answers are worked out, and which leave the reader to compute."""

import json
import time
from pathlib import Path

import pytest

from lib.grading import grade
from lib.grading.operations import evaluated

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no problem texts or case tables at {DATA}")

WORKED_OUT = [
    ("12", "12"),
    ("12", "12.0"),
    ("12", "- 12"),
    ("12", "(12)"),
    ("12", "24/2"),
    ("12", r"\frac{24}{2}"),
    ("12", r"\$12"),
    ("12", r"12\text{ m/s}"),
    ("12", r"12\text{ cm}^2"),
    ("12", r"12\%"),
    ("60", r"60^\circ"),
    ("1200", "1,200"),
    ("1200", r"1.2 \times 10^3"),
    (r"\frac{7}{3}", r"2\frac{1}{3}"),
    (r"\frac{7}{3}", r"\frac{7}{3} \approx 2.33"),
    (r"\frac{1}{3}", r"0.\overline{3}"),
    (r"-\frac{1}{2}", r"\frac{1}{-2}"),
    ("4", r"\sqrt[3]{64}"),
    (r"3\sqrt{2}", r"3 \cdot \sqrt{2}"),
    (r"\frac{\sqrt{3}}{2}", r"\frac{1}{2}\sqrt{3}"),
    (r"3\pi", r"3\times\pi"),
    ("2i", "2i"),
    ("12", "8 + 4 = 12"),
    ("12", "12 = 8 + 4"),
    ("12", "f(2) = 12"),
    ("12", "x"),
    ("12", r"\text{twelve}"),
    # A gold answer with an operation in it is no plain number: nothing is asked of its forms.
    ("2+3i", "3i+2"),
    (r"2^{10}", r"2^{10}"),
    ("x+1", "1+x"),
    ("(1,2)", "(1,1+1)"),
]
LEFT_TO_DO = [
    ("12", "8 + 4"),
    ("12", "8 - (-4)"),
    ("12", "x = 16-4"),
    ("12", "f(2) = 2(6)"),
    ("12", "8 + 4 = 6 + 6"),
    ("12", r"8\text{ apples} + 4\text{ apples}"),
    ("12", r"8 \text{ plus } 4"),
    ("12", r"3 \cdot 4"),
    ("12", "3*4"),
    ("12", "(3)(4)"),
    ("12", r"24 \div 2"),
    ("12", r"1\% \cdot 1200"),
    ("12", r"\frac{20+4}{2}"),
    ("12", r"\sqrt{100+44}"),
    ("12", r"\sqrt{12^2}"),
    ("12", r"\left|-12\right|"),
    ("12", r"\lfloor 12.5 \rfloor"),
    ("225", "15^2"),
    (r"\frac{1}{8}", "2^{-3}"),
    (r"\frac{7}{3}", r"2+\frac{1}{3}"),
    (r"3\pi", r"2\pi+\pi"),
    ("-1", "i^2"),
    ("6", "3!"),
    ("10", r"\binom{5}{2}"),
    ("4", r"\gcd(8,12)"),
    ("4", "gcd(8, 12)"),
    ("24", r"\operatorname{lcm}(8,12)"),
    ("3", r"\log_2 8"),
    ("0.5", r"\sin 30^\circ"),
]


@pytest.mark.parametrize(("gold", "answer"), WORKED_OUT)
def test_a_way_to_write_a_number_is_worked_out(gold, answer):
    assert evaluated(gold, answer)


@pytest.mark.parametrize(("gold", "answer"), LEFT_TO_DO)
def test_an_operation_on_numbers_is_left_to_do(gold, answer):
    assert not evaluated(gold, answer)


def test_a_restated_question_is_correct_and_not_evaluated():
    settled, by_algebra = grade("12", r"\boxed{12}"), grade("12", r"\boxed{8 + 4}")
    assert (settled.correct, settled.evaluated) == (True, True)
    assert (by_algebra.correct, by_algebra.evaluated) == (True, False)
    assert grade("12", "no box").evaluated


@pytest.mark.parametrize("answer", ["{" * 900, " " * 900 + "x", "1 " * 450 + "(", "1+" * 500, "a(" * 400])
def test_hostile_text_takes_no_time(answer):
    begin = time.monotonic()
    evaluated("12", answer)
    assert time.monotonic() - begin < 2


@needs_data
def test_every_gold_answer_and_gold_solution_is_worked_out():
    problems = [json.loads(line) for line in (DATA / "math500.jsonl").open()]
    assert all(evaluated(problem["answer"], problem["answer"]) for problem in problems)
    assert all(grade(problem["answer"], problem["solution"]).evaluated for problem in problems[:100])
