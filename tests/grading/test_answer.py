"""What a response answers: its last closed box, as a number, worked out or not."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from lib.grading.answer import clean, cut_run_on, last_box
from lib.grading.values import evaluated, parse_number, split_unit

balanced = st.recursive(
    st.text(alphabet="0123456789xy+- ,.", max_size=8),
    lambda inner: st.lists(inner, max_size=3).map(
        lambda parts: "".join(f"{{{part}}}" for part in parts)
    ),
    max_leaves=8,
)


@given(balanced, st.text(alphabet="ab \\{", max_size=5))
def test_the_content_of_a_box_comes_back_whole(content, before):
    text = before.rstrip("\\") + rf" \boxed{{{content}}} and so on."
    assert last_box(text) == content


BOXES = {
    r"\boxed{1} then \boxed{2}": "2",
    r"\boxed {7}": "7",
    r"\boxed{\{1, 2\}}": r"\{1, 2\}",
    r"\boxed{\left\{ x \right.}": r"\left\{ x \right.",
    r"\boxed{\boxed{5}}": "5",
    r"} \boxed{5}": "5",
}


def test_takes_the_last_closed_box():
    assert {text: last_box(text) for text in BOXES} == BOXES
    assert last_box(r"\boxed 5") is None
    # Read again for every box this would not end.
    assert last_box(r"\boxed{" * 100_000) is None


def test_cuts_what_follows_the_answer_and_says_so():
    for rest in ("\n**Question 2:** find x.", "<|im_end|>\n<|im_start|>user\nfind x"):
        assert cut_run_on("It is 5." + rest) == ("It is 5.", True)
    assert cut_run_on("It is 5.<|im_end|><|endoftext|>") == ("It is 5.", False)
    headers = "\nProblem: find x.\nIt", "<|im_start|>assistant\nIt", "The problem: it"
    for start in headers:
        assert cut_run_on(f"{start} is 5.") == (f"{start} is 5.", False)


NUMBERS = {
    "1,234.5": Fraction(2469, 2),
    "12 345": 12345,
    "-.5": Fraction(-1, 2),
    "1.5e3": 1500,
    r"\frac{3}{-4}": Fraction(-3, 4),
    r"-2\frac34": Fraction(-11, 4),
    "2 3/4": Fraction(11, 4),
    r"1.5 \times 10^{-2}": Fraction(3, 200),
    r"0.8\overline{3}": Fraction(5, 6),
    r"1.\overline{09}": Fraction(12, 11),
    "3/0": None,
    "12,34": None,
    "1.2.3": None,
}


def test_numbers_are_exact():
    assert {text: parse_number(clean(text)) for text in NUMBERS} == NUMBERS


UNITS = {
    r"15 \text{ centimeters}^2": ("15", ("cm",)),
    "5 km^2": ("5", ("km",)),
    "40%": ("40", ("%",)),
    "3 million dollars": (r"3 \times 10^{6}", ("dollar",)),
    r"\pi m": (r"\pi m", ()),
    "x + m": ("x + m", ()),
}


def test_units_have_one_spelling():
    assert {text: split_unit(clean(text)) for text in UNITS} == UNITS


# A gold answer, then ways to write it, and after ≠ what is still to be worked out.
ANSWERS = r"""
12 | 12.0 | - 12 | (12) | 24/2 | \frac{24}{2} | \$12 | 12\text{ m/s} | 12\text{ cm}^2
12 | 12\% | x | \text{twelve}
12 | 8 + 4 = 12 | 12 = 8 + 4 | f(2) = 12 | 1.2 \times 10^1
12 ≠ 8 + 4 | 8 - (-4) | x = 16-4 | f(2) = 2(6)
12 ≠ 8 + 4 = 6 + 6 | 8\text{ apples} + 4\text{ apples} | 8 \text{ plus } 4
12 ≠ 3 \cdot 4 | 3*4 | (3)(4) | 24 \div 2 | 1\% \cdot 1200 | \frac{20+4}{2}
12 ≠ \sqrt{100+44} | \sqrt{12^2}
12 ≠ \left|-12\right| | \lfloor 12.5 \rfloor | \gcd(12,24) | gcd(12, 24)
12 ≠ \operatorname{lcm}(3,4) | \log_2 4096
\frac{7}{3} | 2\frac{1}{3} | \frac{7}{3} \approx 2.33 | \frac{-7}{-3} | 2.\overline{3}
\frac{1}{8} ≠ 2^{-3} | \frac{1}{16}+\frac{1}{16}
3\sqrt{2} | 3 \cdot \sqrt{2} | \sqrt{18} | \frac{3}{1}\sqrt{2}
3\pi | 3\times\pi ≠ 2\pi+\pi
2i | 2i
-1 ≠ i^2
60^\circ | 60^\circ
0.5 ≠ \sin 30^\circ
6 ≠ 3! | \binom{4}{2}
2+3i | 3i+2
x+1 | 1+x
(1,2) | (1,1+1)
"""


def test_a_way_to_write_a_number_is_worked_out_and_an_operation_on_numbers_is_not():
    for line in ANSWERS.strip().splitlines():
        done, _, to_do = line.partition(" ≠ ")
        gold, *worked_out = done.split(" | ")
        for answer in worked_out:
            assert evaluated(clean(gold), clean(answer)), answer
        for answer in to_do.split(" | ") if to_do else []:
            assert not evaluated(clean(gold), clean(answer)), answer
