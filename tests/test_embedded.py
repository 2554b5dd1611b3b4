"""Sympy confirms every answer of the embedded set."""

import json
import re

import pytest
import sympy

from lib.paths import DATA

COMMITTED = (DATA / "embedded.jsonl").read_bytes()
ROWS = [json.loads(line) for line in COMMITTED.decode("utf-8").splitlines()]
FAMILIES = sorted({row["unique_id"].split("/")[1] for row in ROWS})
NUMBER = re.compile(r"\d+")


def worked_out(check):
    """Return sympy's value of a check expression; of an equation, its only root."""
    value = sympy.sympify(check, locals={"percent": percent})
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def percent(part, whole):
    return part * whole / 100


@pytest.mark.parametrize("family", FAMILIES)
def test_sympy_finds_the_same_answer_from_the_numbers_of_the_problem(family):
    for row in (row for row in ROWS if f"/{family}/" in row["unique_id"]):
        gold = re.sub(r"\\frac\{(\d+)\}\{(\d+)\}", r"\1/\2", row["answer"])
        assert worked_out(row["check"]) == sympy.Rational(gold), row
        used = set(NUMBER.findall(row["check"]))
        stated = set(NUMBER.findall(row["problem"]))
        assert used <= stated, row
        # The next term of a sequence can be computed without its middle terms.
        if family != "sequence":
            assert used == stated, row
