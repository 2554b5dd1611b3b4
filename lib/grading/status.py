"""Say what a response is worth as far as reading it tells: its box, and its status."""

import re
from dataclasses import dataclass

from lib.grading.answer import read_answer
from lib.grading.spelling import spelled
from lib.grading.values import named, parse_number, split_unit

MAX_CHARACTERS = 500  # no answer of the MATH test set has more than 100
# Methods that say why nothing was decided; an answer with one of them counts as not
# correct, and apart.
STATUSES = frozenset(
    {"unreadable-gold", "no-box", "empty-box", "refused", "timeout", "crash"}
)
UNDECIDED = "math-verify"
# A gold answer must be the LaTeX of an answer. These are none: nothing, a missing
# value, a worked solution in GSM8K's form, and a float's text, 1e - 7 in LaTeX.
_UNREADABLE = re.compile(
    r"|[Nn]a[Nn]|None|null|.*(?:####|<<.*>>).*|[+-]?\d+[eE][+-]?\d+", re.DOTALL
)
MOST_WORDS = 8  # outside of \text; more are a sentence


@dataclass(frozen=True)
class Grade:
    """Whether a response is correct, and why."""

    correct: bool
    extracted: str | None  # the content of its last box
    method: str  # what decided: a rule, math-verify, or one of STATUSES
    # False where the gold is a number and the box is not the number itself.
    evaluated: bool = True
    # Whether another problem or turn follows the answer, which is not graded.
    run_on: bool = False


def settle(gold: str, response: str) -> Grade:
    """Return the grade as far as reading tells it; its method is UNDECIDED where
    `lib.grading.equal.compare` has to.
    """
    box, run_on = read_answer(response)
    status = _status(gold, box)
    worked_out = status != UNDECIDED or _is_worked_out(gold, box or "")
    return Grade(status == "equal", box, status, worked_out, run_on)


def _status(gold: str, box: str | None) -> str:
    """Return why a pair cannot be compared, "equal" where it is as it stands, or
    UNDECIDED.
    """
    bare = re.sub(r"\\text\{[^{}]*\}", " ", gold)
    words = re.findall(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}", bare)
    if _UNREADABLE.fullmatch(gold.strip()) or len(words) > MOST_WORDS:
        return "unreadable-gold"
    if box is None:
        return "no-box"
    if not re.sub(r"\\text(?![a-z])|[\s{}~$]", "", box):
        return "empty-box"
    if box.strip() == gold.strip():
        return "equal"
    return "refused" if max(len(box), len(gold)) > MAX_CHARACTERS else UNDECIDED


def _is_worked_out(gold: str, answer: str) -> bool:
    """Return whether an answer to a number is the number itself, as 12 is and `8 + 4`
    is not; one side of an equation is enough.
    """
    if not _is_number(gold):
        return True
    return any(map(_is_number, re.split(r"=|\\approx(?![a-z])", answer)))


def _is_number(answer: str) -> bool:
    value = split_unit(named(spelled(answer))[1])[0]
    return parse_number(re.sub(r"^\(([^()]*)\)$", r"\1", value)) is not None
