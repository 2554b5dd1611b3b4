"""Formulas are found in problems, gold answers, extracts and texts, in that order."""

import pytest

from lib.report import formulas as converted
from lib.report.formulas import LONGEST_FORMULA, formulas


def answers(texts=(), gold="4", problem=None, extracted="4"):
    sample = [True, True, extracted, 0, "stop", 9]
    run = {"problems": [["sum/1", 1, gold, problem]], "cells": [[[sample], []]]}
    return {"texts": list(texts), "runs": [run]}


FORMS = [
    "$$x^2$$",
    "$$x^2\n$$",
    "$x^2$",
    r"\(x^2\)",
    r"\[x^2\]",
    "so $x^2$, or",
    "\\[x^2\n\\]",
]


@pytest.mark.parametrize("text", FORMS)
def test_a_formula_is_known_by_what_stands_around_it(text):
    (latex,) = formulas(answers([text]))
    assert latex.strip() == "x^2"


def test_an_answer_that_is_no_formula_stays_a_text():
    assert formulas(answers(gold="4", extracted="7 apples")) == {}
    made = formulas(answers(gold=r"\frac{1}{2}", extracted=r"\sqrt{2}"))
    assert list(made) == [r"\frac{1}{2}", r"\sqrt{2}"]


def test_what_is_seen_most_is_drawn_where_there_is_not_room_for_all(monkeypatch):
    given = answers(["$t$"], r"\gamma", "Let $p$ be so.", r"\epsilon")
    assert list(formulas(given)) == ["p", r"\gamma", r"\epsilon", "t"]
    monkeypatch.setattr(converted, "MOST_FORMULAS", 2)
    assert list(formulas(given)) == ["p", r"\gamma"]


def test_a_formula_that_is_too_long_or_broken_stays_as_it_was_written():
    most = "x" * LONGEST_FORMULA
    assert list(formulas(answers([f"${most}$", f"${most}y$"]))) == [most]
    assert formulas(answers([r"$\text{a<b}$", r"$\frac{$"])) == {
        r"\text{a<b}": "",
        r"\frac{": "",
    }
