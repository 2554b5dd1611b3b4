"""From a response to a grade, as far as that goes without algebra."""

import itertools
import re
from dataclasses import dataclass

from lib.grading.extract import cut_run_on, last_box
from lib.grading.normalise import clean
from lib.grading.operations import evaluated
from lib.grading.rules import decide

# No answer of the MATH test set has more than 100 characters or six levels of brackets.
MAX_CHARACTERS = 1000
MAX_DEPTH = 40

# Methods that say why nothing was decided; an answer with one of them counts as not correct, and apart.
STATUSES = frozenset({"no-box", "empty-box", "refused", "timeout", "crash"})


@dataclass(frozen=True)
class Grade:
    """Whether a response is correct, the content of its last box, and the rule, "math-verify" or status that decided.

    evaluated: False when the gold answer is a number and the box still holds an operation to carry out.
    """

    correct: bool
    extracted: str | None
    method: str
    evaluated: bool = True


def settle(gold: str, response: str) -> Grade | str:
    """Return the grade if strings and typed rules settle it, else the extracted answer."""
    extracted = last_box(cut_run_on(response)[0])
    if extracted is None:
        return Grade(False, None, "no-box")
    if extracted.strip() == gold.strip() and extracted.strip():
        return Grade(True, extracted, "equal")
    if too_large(extracted) or too_large(gold):
        return Grade(False, extracted, "refused")
    if not re.sub(r"\\text|[\s{}~$]", "", clean(extracted)):
        return Grade(False, extracted, "empty-box")
    verdict = decide(gold, extracted)
    return Grade(verdict[0], extracted, verdict[1], evaluated(gold, extracted)) if verdict else extracted


def too_large(answer: str) -> bool:
    """Tell whether an answer is longer, or its brackets deeper, than is worth reading."""
    steps = (1 if bracket in "([{" else -1 for bracket in re.findall(r"[()\[\]{}]", answer))
    return len(answer) > MAX_CHARACTERS or max(itertools.accumulate(steps), default=0) > MAX_DEPTH
