"""Write embedded.jsonl: the 300 short problems of this project in MATH's schema.

Run `python -m studies.make_embedded` to write data/embedded.jsonl again: the same bytes
every time. The kinds of problem are in data/embedded.yaml. In addition to MATH's fields
each line has `check`, the problem as an expression that sympy can evaluate without this
script.
"""

import itertools
import json
import random
from collections.abc import Iterator
from fractions import Fraction
from math import comb, gcd
from pathlib import Path
from typing import Any

import yaml

SEED = 1032
DATA = Path(__file__).resolve().parent.parent / "data"
SOURCE = DATA / "embedded.yaml"
TARGET = DATA / "embedded.jsonl"
# Functions that the expressions of data/embedded.yaml may call.
FUNCTIONS = {"range": range, "gcd": gcd, "comb": comb, "Fraction": Fraction}


def main() -> None:
    """Write a random sample of the cases of each kind, drawn with SEED."""
    kinds = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))["kinds"]
    # Only random() promises the same stream in every Python version; sample() and
    # shuffle() do not.
    stream = random.Random(SEED)
    drawn = []
    for kind in kinds:
        order = sorted(cases(kind), key=lambda case: stream.random())
        drawn += [(kind, case) for case in order[: kind["count"]]]

    lines = []
    for number, (kind, case) in enumerate(drawn, 1):
        lines.append(json.dumps(row(kind, case, number)) + "\n")
    TARGET.write_text("".join(lines), encoding="utf-8", newline="\n")


def cases(kind: dict) -> Iterator[dict]:
    """Yield each set of values, by name, for the texts of a kind."""
    named = kind["values"]
    choices = [_worked_out(values) for values in named.values()]
    for combination in itertools.product(*choices):
        case = dict(zip(named, combination, strict=True))
        for name, expression in kind.get("derived", {}).items():
            case[name] = _worked_out(expression, case)
        if _worked_out(kind.get("where", "True"), case):
            yield case


def row(kind: dict, case: dict, number: int) -> dict:
    """Return one problem in MATH's schema; `number` counts the lines of the file."""
    answer = latex(_worked_out(kind["answer"], case))
    working = kind["working"].format(**case, answer=answer)
    return {
        "problem": kind["problem"].format(**case),
        "solution": f"{working} The final answer is $\\boxed{{{answer}}}$.",
        "answer": answer,
        "subject": kind["subject"],
        "level": kind["level"],
        "unique_id": f"embedded/{kind['topic']}/{number:03d}",
        "check": kind["check"].format(**case),
    }


def latex(value: int | Fraction) -> str:
    """Return the value as MATH writes answers: an integer, or a reduced fraction."""
    value = Fraction(value)
    if value.denominator == 1:
        return str(value.numerator)
    return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"


def _worked_out(expression: str | list, case: dict | None = None) -> Any:
    """Return the value of an expression for a case; a list is returned as it is."""
    if isinstance(expression, list):
        return expression
    return eval(expression, FUNCTIONS | (case or {}))


if __name__ == "__main__":
    main()
