"""The embedded set is what its script writes, and sympy agrees with every answer."""

import json
import re
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import sympy

DATA = Path(__file__).resolve().parents[1] / "data"
SCRIPT = DATA / "make_embedded.py"
COMMITTED = (DATA / "embedded.jsonl").read_bytes()
ROWS = [json.loads(line) for line in COMMITTED.decode("utf-8").splitlines()]
SUBJECTS = {"Prealgebra", "Algebra", "Number Theory", "Geometry", "Counting & Probability"}
FAMILIES = sorted({row["unique_id"].split("/")[1] for row in ROWS})
NUMBER = re.compile(r"\d+")


def from_latex(answer: str) -> sympy.Rational:
    """Return an integer or a LaTeX fraction as a sympy number."""
    match = re.fullmatch(r"\\frac\{(\d+)\}\{(\d+)\}", answer)
    return sympy.Rational(*map(int, match.groups())) if match else sympy.Integer(answer)


def worked_out(check: str) -> sympy.Expr:
    """Return what sympy makes of a check expression, the only root where it is an equation."""
    value = sympy.sympify(check, locals={"percent": lambda part, whole: part * whole / 100})
    if isinstance(value, list):
        (value,) = value
    return value


@pytest.mark.parametrize("family", FAMILIES)
def test_sympy_finds_the_same_answer(family):
    for row in (row for row in ROWS if f"/{family}/" in row["unique_id"]):
        assert worked_out(row["check"]) == from_latex(row["answer"]), row


def test_the_check_uses_only_numbers_of_the_problem():
    for row in ROWS:
        assert set(NUMBER.findall(row["check"])) <= set(NUMBER.findall(row["problem"])), row


def test_the_problem_has_no_number_that_the_check_leaves_out():
    for row in ROWS:
        # The middle terms of a sequence are there to be read, not needed for the next one.
        if "sequence" not in row["unique_id"]:
            assert set(NUMBER.findall(row["problem"])) == set(NUMBER.findall(row["check"])), row


def test_rows_follow_the_schema():
    for row in ROWS:
        assert list(row) == ["problem", "solution", "answer", "subject", "level", "unique_id", "check"]
        assert row["subject"] in SUBJECTS
        assert row["solution"].endswith(f"$\\boxed{{{row['answer']}}}$.")
        assert row["problem"].count("$") % 2 == row["solution"].count("$") % 2 == 0


def test_every_level_has_60_problems_and_no_text_or_id_comes_twice():
    assert Counter(row["level"] for row in ROWS) == dict.fromkeys(range(1, 6), 60)
    assert {row["subject"] for row in ROWS} == SUBJECTS
    assert len({row["problem"] for row in ROWS}) == len({row["unique_id"] for row in ROWS}) == 300


def test_the_committed_file_is_what_the_script_renders_twice():
    render = runpy.run_path(str(SCRIPT))["render"]
    assert render().encode() == render().encode() == COMMITTED


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_running_the_script_writes_the_same_bytes(tmp_path, hash_seed):
    copy = tmp_path / SCRIPT.name
    copy.write_bytes(SCRIPT.read_bytes())
    subprocess.run([sys.executable, copy], check=True, env={"PYTHONHASHSEED": hash_seed})
    assert (tmp_path / "embedded.jsonl").read_bytes() == COMMITTED
