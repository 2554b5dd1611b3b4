"""Write embedded.jsonl: the project's own 300 short problems in MATH's schema.

There are 60 for each level.
Run `python data/make_embedded.py` to write the file again: the same bytes every time.
Beside MATH's fields each line carries `check`, the problem as an expression that sympy
can work out without this script.
"""

import itertools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb, gcd
from pathlib import Path

SEED = 1032
TARGET = Path(__file__).with_name("embedded.jsonl")

NAMES = ("Anna", "Ben", "Chloe", "David", "Emma", "Felix", "Grace", "Henry")
THINGS = ("apples", "marbles", "stickers", "shells", "pencils", "cards")
ANIMALS = ("birds", "ducks", "rabbits", "cows", "goats", "frogs")


@dataclass(frozen=True)
class Family:
    """A kind of problem: templates, the cases that fill them, the rule for the answer."""

    level: int
    subject: str
    topic: str
    count: int
    problem: str
    working: str
    check: str
    answer: Callable[[dict], int | Fraction]
    cases: list[dict]


def grid(keep: Callable[[dict], bool] = lambda case: True, **axes) -> list[dict]:
    """Return every combination of the axes' values for which `keep` holds.

    The last axis runs fastest.
    """
    combinations = itertools.product(*axes.values())
    cases = [dict(zip(axes, values, strict=True)) for values in combinations]
    return [case for case in cases if keep(case)]


LEVEL_1 = (
    Family(
        1, "Prealgebra", "sum", 20,
        "What is ${a} + {b}$?",
        "Adding ${b}$ to ${a}$ gives ${answer}$.",
        "{a}+{b}",
        lambda n: n["a"] + n["b"],
        grid(a=range(1, 10), b=range(1, 10)),
    ),
    Family(
        1, "Prealgebra", "difference", 14,
        "Compute ${a} - {b}$.",
        "Taking ${b}$ away from ${a}$ leaves ${answer}$.",
        "{a}-{b}",
        lambda n: n["a"] - n["b"],
        grid(lambda n: n["b"] < n["a"], a=range(2, 10), b=range(1, 9)),
    ),
    Family(
        1, "Prealgebra", "gain", 12,
        "{name} has ${a}$ {thing} and finds ${b}$ more. How many {thing} does {name} have now?",
        "{name} now has ${a} + {b} = {answer}$ {thing}.",
        "{a}+{b}",
        lambda n: n["a"] + n["b"],
        grid(name=NAMES, thing=THINGS, a=range(2, 10), b=range(2, 6)),
    ),
    Family(
        1, "Prealgebra", "loss", 8,
        "There are ${a}$ {animal} at a pond. Then ${b}$ of them leave. How many {animal} are still there?",
        "Of the {animal}, ${a} - {b} = {answer}$ are still there.",
        "{a}-{b}",
        lambda n: n["a"] - n["b"],
        grid(lambda n: n["b"] <= n["a"] - 2, animal=ANIMALS, a=range(4, 11), b=range(2, 9)),
    ),
    Family(
        1, "Counting & Probability", "either", 6,
        "A tray holds ${a}$ plain rolls and ${b}$ sweet rolls. In how many ways can one roll be chosen?",
        "Each of the ${a} + {b} = {answer}$ rolls is one choice.",
        "{a}+{b}",
        lambda n: n["a"] + n["b"],
        grid(a=range(2, 9), b=range(2, 9)),
    ),
)  # fmt: skip

LEVEL_2 = (
    Family(
        2, "Prealgebra", "product", 20,
        "What is ${a} \\times {b}$?",
        "Adding up ${a}$ copies of ${b}$ gives ${answer}$.",
        "{a}*{b}",
        lambda n: n["a"] * n["b"],
        grid(a=range(2, 10), b=range(2, 10)),
    ),
    Family(
        2, "Prealgebra", "quotient", 12,
        "Compute ${a} \\div {b}$.",
        "Since ${b} \\times {answer} = {a}$, the quotient is ${answer}$.",
        "{a}/{b}",
        lambda n: n["a"] // n["b"],
        [{"a": b * quotient, "b": b} for b in range(2, 8) for quotient in range(2, 9)],
    ),
    Family(
        2, "Prealgebra", "boxes", 12,
        "{name} has ${a}$ boxes with ${b}$ {thing} in each box. How many {thing} is that in all?",
        "There are ${a} \\times {b} = {answer}$ {thing}.",
        "{a}*{b}",
        lambda n: n["a"] * n["b"],
        grid(name=NAMES, thing=THINGS, a=range(2, 7), b=(2, 3, 4, 5, 10)),
    ),
    Family(
        2, "Prealgebra", "share", 8,
        "${a}$ {thing} are shared equally among ${b}$ friends. How many {thing} does each friend get?",
        "Each friend gets ${a} \\div {b} = {answer}$ {thing}.",
        "{a}/{b}",
        lambda n: n["a"] // n["b"],
        grid(lambda n: n["a"] % n["b"] == 0, thing=THINGS, a=range(6, 31), b=range(2, 6)),
    ),
    Family(
        2, "Counting & Probability", "pairing", 8,
        "A cafe sells ${a}$ kinds of soup and ${b}$ kinds of bread. "
        "How many different meals of one soup and one bread are there?",
        "Each soup goes with each bread, which makes ${a} \\times {b} = {answer}$ meals.",
        "{a}*{b}",
        lambda n: n["a"] * n["b"],
        grid(a=range(2, 8), b=range(2, 7)),
    ),
)  # fmt: skip

LEVEL_3 = (
    Family(
        3, "Algebra", "square", 14,
        "What is the value of ${a}^2$?",
        "The square is ${a} \\times {a} = {answer}$.",
        "{a}**2",
        lambda n: n["a"] * n["a"],
        grid(a=range(2, 16)),
    ),
    Family(
        3, "Prealgebra", "large-sum", 14,
        "Find the sum ${a} + {b}$.",
        "Adding tens and ones separately gives ${answer}$.",
        "{a}+{b}",
        lambda n: n["a"] + n["b"],
        grid(a=range(11, 70), b=range(11, 30)),
    ),
    Family(
        3, "Prealgebra", "fraction-sum", 6,
        "Compute $\\frac{{{a}}}{{{c}}} + \\frac{{{b}}}{{{c}}}$. Write the answer in lowest terms.",
        "The denominators agree, so the numerators add up to ${a} + {b}$ over ${c}$.",
        "Rational({a},{c})+Rational({b},{c})",
        lambda n: Fraction(n["a"] + n["b"], n["c"]),
        grid(
            lambda n: n["a"] + n["b"] < n["c"] and gcd(n["a"] + n["b"], n["c"]) == 1,
            a=range(1, 6), b=range(1, 6), c=range(3, 12),
        ),
    ),
    Family(
        3, "Counting & Probability", "draw", 6,
        "A bag holds ${a}$ red balls and ${b}$ blue balls, and one ball is drawn at random. "
        "What is the probability that it is red? Express your answer as a common fraction.",
        "Of ${a} + {b}$ balls that are equally likely, ${a}$ are red.",
        "Rational({a},{a}+{b})",
        lambda n: Fraction(n["a"], n["a"] + n["b"]),
        grid(a=range(2, 6), b=range(2, 8)),
    ),
    Family(
        3, "Geometry", "rectangle", 20,
        "A rectangle is ${a}$ units long and ${b}$ units wide. What is its area in square units?",
        "The area is ${a} \\times {b} = {answer}$ square units.",
        "{a}*{b}",
        lambda n: n["a"] * n["b"],
        grid(lambda n: n["b"] < n["a"], a=range(4, 13), b=range(2, 9)),
    ),
)  # fmt: skip

LEVEL_4 = (
    Family(
        4, "Algebra", "shift", 14,
        "If $x + {a} = {b}$, what is the value of $x$?",
        "Subtracting ${a}$ from both sides gives $x = {b} - {a} = {answer}$.",
        "solve(Eq(x+{a},{b}),x)",
        lambda n: n["b"] - n["a"],
        grid(lambda n: n["b"] > n["a"], a=range(2, 12), b=range(5, 20)),
    ),
    Family(
        4, "Algebra", "scale", 8,
        "Solve for $x$: ${a}x = {b}$.",
        "Dividing both sides by ${a}$ gives $x = {answer}$.",
        "solve(Eq({a}*x,{b}),x)",
        lambda n: n["b"] // n["a"],
        [{"a": a, "b": a * x} for a in range(2, 8) for x in range(2, 10)],
    ),
    Family(
        4, "Algebra", "value", 8,
        "If $x = {a}$, what is the value of $x + {b}$?",
        "Putting ${a}$ in the place of $x$ gives ${a} + {b} = {answer}$.",
        "(x+{b}).subs(x,{a})",
        lambda n: n["a"] + n["b"],
        grid(a=range(2, 10), b=range(2, 10)),
    ),
    Family(
        4, "Prealgebra", "percentage", 16,
        "What is ${a}\\%$ of ${b}$?",
        "It is $\\frac{{{a}}}{{100}} \\times {b} = {answer}$.",
        "percent({a},{b})",
        lambda n: n["a"] * n["b"] // 100,
        grid(lambda n: n["a"] * n["b"] % 100 == 0, a=(10, 20, 25, 50), b=range(10, 210, 10)),
    ),
    Family(
        4, "Algebra", "sequence", 8,
        "What is the next term of the arithmetic sequence ${a}, {b}, {c}, {d}, \\dots$?",
        "Each term exceeds the one before by ${d} - {c}$, so the next term is ${answer}$.",
        "{d}+({b}-{a})",
        lambda n: n["d"] + n["d"] - n["c"],
        [
            {"a": start, "b": start + step, "c": start + 2 * step, "d": start + 3 * step}
            for start in range(1, 8)
            for step in range(2, 8)
        ],
    ),
    Family(
        4, "Number Theory", "remainder", 6,
        "What is the remainder when ${a}$ is divided by ${b}$?",
        "The largest multiple of ${b}$ that fits leaves ${answer}$ over.",
        "Mod({a},{b})",
        lambda n: n["a"] % n["b"],
        grid(lambda n: n["a"] % n["b"] != 0, a=range(7, 40), b=range(2, 8)),
    ),
)  # fmt: skip

LEVEL_5 = (
    Family(
        5, "Algebra", "linear", 12,
        "Find $x$ if ${a}x + {b} = {c}$.",
        "Subtracting ${b}$ and then dividing by ${a}$ gives $x = {answer}$.",
        "solve(Eq({a}*x+{b},{c}),x)",
        lambda n: (n["c"] - n["b"]) // n["a"],
        [{"a": a, "b": b, "c": a * x + b} for a in range(2, 6) for b in range(1, 10) for x in range(1, 8)],
    ),
    Family(
        5, "Number Theory", "divisor", 8,
        "What is the greatest common divisor of ${a}$ and ${b}$?",
        "The largest number that divides both is ${answer}$.",
        "gcd({a},{b})",
        lambda n: gcd(n["a"], n["b"]),
        grid(lambda n: n["a"] < n["b"] and gcd(n["a"], n["b"]) > 1, a=range(4, 31, 2), b=range(6, 41)),
    ),
    Family(
        5, "Geometry", "perimeter", 8,
        "The sides of a rectangle measure ${a}$ cm and ${b}$ cm. What is its perimeter in centimeters?",
        "Going around passes each side twice: ${a} + {b} + {a} + {b} = {answer}$.",
        "{a}+{b}+{a}+{b}",
        lambda n: 2 * (n["a"] + n["b"]),
        grid(lambda n: n["b"] < n["a"], a=range(3, 15), b=range(2, 12)),
    ),
    Family(
        5, "Geometry", "parallelogram", 10,
        "What is the area of a parallelogram with base ${a}$ and height ${b}$?",
        "The area is base times height, ${a} \\times {b} = {answer}$.",
        "{a}*{b}",
        lambda n: n["a"] * n["b"],
        grid(a=range(4, 13), b=range(2, 9)),
    ),
    Family(
        5, "Geometry", "volume", 10,
        "What is the volume of a box that is ${a}$ units long, ${b}$ units wide and ${c}$ units high?",
        "The volume is ${a} \\times {b} \\times {c} = {answer}$ cubic units.",
        "{a}*{b}*{c}",
        lambda n: n["a"] * n["b"] * n["c"],
        grid(a=range(2, 6), b=range(2, 6), c=range(2, 6)),
    ),
    Family(
        5, "Prealgebra", "change", 8,
        "{name} buys ${a}$ {thing} for ${b}$ dollars each and pays with ${c}$ dollars. "
        "How many dollars does {name} get back?",
        "The price is ${a} \\times {b}$ dollars, and ${c} - {a} \\times {b} = {answer}$.",
        "{c}-{a}*{b}",
        lambda n: n["c"] - n["a"] * n["b"],
        grid(
            lambda n: n["a"] * n["b"] < n["c"],
            name=NAMES, thing=THINGS, a=range(2, 6), b=range(2, 6), c=(10, 20),
        ),
    ),
    Family(
        5, "Counting & Probability", "choice", 4,
        "In how many ways can a team of $2$ players be chosen from ${a}$ players?",
        "There are $\\binom{{{a}}}{{2}} = {answer}$ such teams.",
        "binomial({a},2)",
        lambda n: comb(n["a"], 2),
        grid(a=range(3, 13)),
    ),
)  # fmt: skip

FAMILIES = LEVEL_1 + LEVEL_2 + LEVEL_3 + LEVEL_4 + LEVEL_5


def latex(value: int | Fraction) -> str:
    """Return the value as MATH writes answers: an integer, or a reduced fraction."""
    value = Fraction(value)
    if value.denominator == 1:
        return str(value.numerator)
    return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"


def row(family: Family, case: dict, number: int) -> dict:
    """Return one problem in MATH's schema, `number` being its place in the file."""
    answer = latex(family.answer(case))
    working = family.working.format(**case, answer=answer)
    return {
        "problem": family.problem.format(**case),
        "solution": f"{working} The final answer is $\\boxed{{{answer}}}$.",
        "answer": answer,
        "subject": family.subject,
        "level": family.level,
        "unique_id": f"embedded/{family.topic}/{number:03d}",
        "check": family.check.format(**case),
    }


def render() -> str:
    """Return the whole file as text: of each family in turn a seeded draw of cases."""
    # Only random() promises the same stream in every Python version; sample() and
    # shuffle() do not.
    stream = random.Random(SEED)
    drawn = []
    for family in FAMILIES:
        order = sorted(family.cases, key=lambda case: stream.random())
        drawn += [(family, case) for case in order[: family.count]]

    lines = []
    for number, (family, case) in enumerate(drawn, 1):
        lines.append(json.dumps(row(family, case, number)) + "\n")
    return "".join(lines)


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8", newline="\n")
