"""What counts as the same answer, and what a response that gives none is called."""

import json
import threading
from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.grading import STATUSES, Grade, GradingPool, grade, grade_many

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no problem texts or case tables at {DATA}")

SAME = [
    (r"\frac{1}{2}", "0.5", "decimal"),
    (r"\frac12", r"\dfrac{1}{2}", "equal"),
    (r"2\frac{1}{3}", r"\frac{7}{3}", "decimal"),
    (r"\frac{1}{3}", r"0.\overline{3}", "decimal"),
    ("0.00012", r"1.2 \times 10^{-4}", "decimal"),
    (r"12,\!345", r"12\,345", "equal"),
    ("12345", "12,345", "decimal"),
    ("3000000", r"3\text{ million}", "decimal"),
    ("7", "7.", "equal"),
    ("25", r"25\%", "decimal"),
    (r"25\%", "0.25", "decimal"),
    (r"\$7.50", "7.5", "decimal"),
    (r"60^\circ", "60°", "equal"),
    (r"8\text{ m}^2", r"8\text{ square meters}", "decimal"),
    (r"3\pi", r"3\pi \text{ cm}", "equal"),
    ("31_4", r"31_{\text{four}}", "base"),
    ("31_4", "31", "base"),
    (r"\text{(B)}", r"\textbf{(B) } 12", "choice"),
    (r"\text{odd}", "Odd", "word"),
    (r"\text{square}", r"\text{a square}", "word"),
    ("x=4", "4", "equal"),
    ("4", r"f(2) = 4", "equal"),
    ("y = x+1", "f(x) = 1+x", "math-verify"),
    (r"x \in [0,1]", r"0 \le x \le 1", "equal"),
    (r"(-\infty, 0) \cup (1, \infty)", r"x > 1 \text{ or } x < 0", "math-verify"),
    ("(1,2)", "(x,y) = (1,2)", "equal"),
    ("(1,2)", "x = 1, y = 2", "sequence"),
    ("1,2", r"\{2, 1\}", "sequence"),
    ("1,2", r"x = 2 \text{ or } x = 1", "sequence"),
    (r"1 \pm \sqrt{2}", r"1-\sqrt{2}, 1+\sqrt{2}", "sequence"),
    (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "(1, 2)", "sequence"),
    (r"\begin{pmatrix} 3 \\ 6 \end{pmatrix}", r"3\begin{bmatrix} 1 \\ 2 \end{bmatrix}", "math-verify"),
    ("(x+1)^2", "x^2+2x+1", "math-verify"),
    ("1+2i", r"\frac{5}{1-2i}", "math-verify"),
    ("x + 2y = 3", "2x + 4y - 6 = 0", "math-verify"),
    (r"\sqrt{8}", r"2\sqrt2", "math-verify"),
    ("6", "2(3)", "math-verify"),
    ("x", "2x - x", "math-verify"),
    (r"\frac{7}{3}", r"\frac{7}{3} \approx 2.33", "decimal"),
]
DIFFERENT = [
    (r"\frac{1}{3}", "0.333333", "decimal"),
    ("0.00012", "0.000119", "decimal"),
    ("12,345", "12", "decimal"),
    (r"2\frac{1}{3}", r"\frac{1}{3}", "decimal"),
    (r"2\pi", "6.283185", "math-verify"),
    ("25", "0.25", "decimal"),
    ("31_4", "31_5", "base"),
    ("31_4", "13", "base"),
    (r"5\text{ cm}", r"5\text{ km}", "unit"),
    (r"60^\circ", r"60 \text{ radians}", "unit"),
    (r"\text{6 a.m.}", r"\text{6 p.m.}", "unit"),
    (r"\text{(B)}", "C", "choice"),
    (r"\text{even}", r"\text{not even}", "word"),
    ("x=4", "y=4", "name"),
    ("(1,2)", "1,2", "sequence"),
    ("(1,2)", "(2,1)", "decimal"),
    ("(1,2)", "[1,2]", "sequence"),
    (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix} 1 & 2 \end{pmatrix}", "sequence"),
    ("1,2", "1,2,3", "sequence"),
    ("1,2", "1", "sequence"),
    ("3", r"3 \text{ or } 4", "sequence"),
    (r"x \in [0,1]", "0 < x < 1", "sequence"),
    ("x + 2y = 3", "x + 2y = 4", "math-verify"),
    ("1+2i", "2+i", "math-verify"),
    ("0", "10^{-9}", "math-verify"),
    ("5", "2(3)", "math-verify"),
    ("x", "2x", "math-verify"),
    (r"2^{10}", "2^{11}", "math-verify"),
]


def boxed(answer: str) -> str:
    return rf"So the answer is $\boxed{{{answer}}}$."


@pytest.mark.parametrize(("gold", "answer", "method"), SAME)
def test_accepts_the_same_answer_in_another_form(gold, answer, method):
    assert astuple(grade(gold, boxed(answer)))[:3] == (True, answer, method)


@pytest.mark.parametrize(("gold", "answer", "method"), DIFFERENT)
def test_rejects_a_near_miss(gold, answer, method):
    assert astuple(grade(gold, boxed(answer)))[:3] == (False, answer, method)


@pytest.mark.parametrize(
    ("response", "status"),
    [
        ("", "no-box"),
        ("The answer is 12.", "no-box"),
        (r"Thus \boxed{12", "no-box"),
        (r"\boxed{}", "empty-box"),
        (r"\boxed{\text{ }}", "empty-box"),
        (r"\boxed{" + "1+" * 600 + "1}", "refused"),
        (r"\boxed{" + "(" * 300 + "2" + ")" * 300 + "}", "refused"),
        ("We are not done yet.\n\nProblem: What is 3 times 4?\n" + r"\boxed{12}", "no-box"),
    ],
)
def test_a_response_without_a_readable_answer_gets_a_status(response, status):
    found = grade("12", response)
    assert (found.correct, found.method) == (False, status)
    assert status in STATUSES


@settings(max_examples=60)
@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=60))
def test_any_text_at_all_gets_a_grade(text):
    assert isinstance(grade("12", text), Grade)
    assert isinstance(grade(r"\text{even}", rf"\boxed{{{text}}}"), Grade)


@settings(max_examples=15)
@given(st.lists(st.integers(0, 9), max_size=30))
def test_grade_many_keeps_the_order_of_its_pairs(digits):
    # Odd answers need algebra, even ones do not: both ways must end up in their places.
    pairs = [(str(d), boxed(rf"\sqrt{{{d * d}}}" if d % 2 else str(d))) for d in digits]
    assert [(found.correct, found.extracted) for found in grade_many(pairs)] == [
        (True, rf"\sqrt{{{d * d}}}" if d % 2 else str(d)) for d in digits
    ]


def test_a_pool_takes_pairs_from_several_threads():
    found = {}

    def ask(n: int) -> None:
        found[n] = pool.submit(f"{n}x", boxed(f"x+{n - 1}x")).result()

    with GradingPool() as pool:
        threads = [threading.Thread(target=ask, args=(n,)) for n in range(2, 8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [found[n].correct for n in range(2, 8)] == [True] * 6


@needs_data
def test_the_case_table_is_graded_as_it_is_marked():
    cases = [json.loads(line) for line in (DATA / "grading_cases.jsonl").open()]
    grades = grade_many([(case["gold"], boxed(case["pred"])) for case in cases])
    wrong = [case for case, found in zip(cases, grades, strict=True) if found.correct != case["equal"]]
    assert sum(case["equal"] for case in wrong) <= 2
    assert sum(not case["equal"] for case in wrong) <= 1


@needs_data
def test_every_gold_and_gold_solution_is_correct_and_a_cut_solution_has_no_box():
    problems = [json.loads(line) for line in (DATA / "math500.jsonl").open()]
    golds = [problem["answer"] for problem in problems]
    solutions = [problem["solution"] for problem in problems]
    cut = [solution.partition(r"\boxed")[0].partition(r"\fbox")[0] for solution in solutions]
    assert all(found.correct for found in grade_many((gold, boxed(gold)) for gold in golds))
    assert all(found.correct for found in grade_many(zip(golds, solutions, strict=True)))
    assert {found.method for found in grade_many(zip(golds, cut, strict=True))} == {"no-box"}
