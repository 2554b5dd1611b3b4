"""The formulas in problems and answers, as MathML."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from xml.etree import ElementTree

from latex2mathml.converter import convert

# The page's code reads it, too.
FORMULA = re.compile(
    r"\$\$(.+?)\$\$|\$([^$\n]+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL
)
MOST_FORMULAS = 3000  # drawn in one page
LONGEST_FORMULA = 400  # characters


def formulas(answers: dict) -> dict[str, str]:
    """Return MathML by LaTeX of the formulas in `read_answers`: of problems, of what
    was extracted, then of texts.

    What cannot be converted is empty and stays as it was written; so does what comes
    after the first MOST_FORMULAS.
    """
    latex = dict.fromkeys(_latex(_texts(answers)))
    short = (formula for formula in latex if len(formula) <= LONGEST_FORMULA)
    return {formula: _mathml(formula) for formula in islice(short, MOST_FORMULAS)}


def _texts(answers: dict) -> list[str]:
    """Return what may hold formulas, the most seen first; an answer without dollar
    signs is one formula.
    """
    problems = []
    bare = []
    extracted = []
    for run in answers["runs"]:
        for _, _, gold, text in run["problems"]:
            bare.append(gold)
            if text:
                problems.append(text)
        for row in run["cells"]:
            extracted += [answer for cell in row for _, _, answer, *_ in cell]
    bare += extracted
    wrapped = [f"${answer}$" for answer in bare if answer and "\\" in answer]
    return [*problems, *wrapped, *answers["texts"]]


def _latex(texts: Iterable[str]) -> Iterator[str]:
    """Yield the formulas of texts without what marks them as such."""
    for text in texts:
        for match in FORMULA.finditer(text):
            yield match[match.lastindex or 0]


def _mathml(latex: str) -> str:
    """Return a formula as MathML that can be read, "" if there is none."""
    try:
        mathml = convert(latex)
        ElementTree.fromstring(mathml)  # the converter leaves a `<` in a text as it is
    except Exception:  # whatever a model wrote: its errors have no class in common
        return ""
    return mathml
