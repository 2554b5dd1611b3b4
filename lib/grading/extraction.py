r"""Extract the answer of a response, the last closed `\boxed{...}`, and grade it if no
comparison is needed.

The grader does not know the problem. A header such as "Problem:" before any box may
restate the problem, so the text after it is read. After a box, it begins another
problem, and the rest is ignored. The special tokens of a user's turn always end the
answer.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lib.grading.latex_spelling import spelled
from lib.grading.numbers_and_units import named, parse_number, split_unit
from lib.grading.words_and_lists import in_digits

_BRACE = re.compile(
    r"(?P<opens>(?P<box>\\(?:boxed|fbox)\s*)?\{)"
    # \boxed 5: a number, a letter, a fraction or a sign without braces.
    r"|\\(?:boxed|fbox)\s*(?P<bare>-?\d+(?:[.,]\d+)*|(?<=\s)[a-zA-Z](?=\s*(?:[$.,)\\]|$))"
    r"|-?\\[dt]?frac\s*(?:\{[^{}]*\}|\d)\s*(?:\{[^{}]*\}|\d)|-?\\(?:pi|infty)(?![a-z]))"
    r"|\\.|(?P<closes>\})",
    re.DOTALL,
)
# Control characters that JSON reads for \b, \f and others with a single backslash.
_CONTROLS = {
    "\a": r"\a",
    "\b": r"\b",
    "\t": r"\t",
    "\v": r"\v",
    "\f": r"\f",
    "\r": r"\r",
}
_CONTROL = re.compile(f"[{''.join(_CONTROLS)}](?=[a-z])")
_ESCAPED_TWICE = re.compile(r"(?<!\\)\\\\boxed\s*\{")
# Special tokens between turns, as text: <|im_end|>, <｜User｜>, [INST], </s>.
_TOKEN = re.compile(
    r"(?:<[|｜][A-Za-z_▁ ]{2,40}[|｜]?>|<[A-Za-z]{2,40}\|>|</?s>|<[be]os>"
    r"|<(?:start|end)_of_turn>|\[/?INST\])"
)
_USER_TURN = re.compile(
    rf"{_TOKEN.pattern}\s*(?:user|human)\b|<[|｜](?:User|user)[|｜]>|\[INST\]"
)
_ROLES = (
    "Problem|Question|Exercise|Example|Task|Instruction|Input|User|Human|Q"
    "|题目|问题|例题|例|练习|用户|问|第.{1,3}题|下一题"
)
_BEFORE_ROLE = (
    r"^[ \t>#*_(\[【-]*(?:\\[a-z]+\*?\{)?(?:\d+[.)] )?"
    r"(?:(?:the|an?|here|is|now|solve|new|next|another|this|following|similar) )*"
)
# A header, as a line or at its start: "### Problem 2", "**Question:**", "Q: find".
_HEADER = re.compile(
    rf"{_BEFORE_ROLE}(?:{_ROLES})[ \t]*+(?:[#(]?\d+[ \t)]*(?:[.)]|-[ \t])"
    r"|(?:[#(]?\d+|one|two|three)?[ \t*_#)\]】}]*(?:[:：]|$))",
    re.MULTILINE | re.IGNORECASE,
)
_BARE_ROLE = re.compile(r"^[ \t]*(?:assistant|model|system)[ \t]*:?$", re.MULTILINE)
_TURN_START = re.compile(rf"(?:\s|{_TOKEN.pattern}|assistant|model)*+")

_THOUGHTS = "think|thinking|thought|reasoning|reflection|scratchpad|seed:think"
_THOUGHT_BEGINS = re.compile(
    rf"<\|?(?:(?:start|begin)[_▁](?:of[_▁])?)?(?:{_THOUGHTS})\|?>|◁think▷|\[THINK\]"
    r"|<\|channel\|>analysis|<\|channel>thought|\Aanalysis(?=[A-Z])|<unused94>"
    r"|<\|im_start\|>think",
    re.IGNORECASE,
)
_THOUGHT_ENDS = re.compile(
    rf"<\|?(?:/|end[_▁](?:of[_▁])?)(?:{_THOUGHTS})\|?>|◁/think▷|\[/THINK\]|<\|answer\|>"
    r"|<\|channel\|>final *<\|message\|>|<channel\|>|assistantfinal|<unused95>"
    r"|<\|im_start\|>answer",
    re.IGNORECASE,
)


def read_answer(response: str) -> tuple[str | None, bool]:
    """Return the content of the last closed box of the answer (None: no box), and
    whether another problem or turn follows, which is ignored.

    The time is linear in the length of the response.
    """
    text = _without_thoughts(_unescaped(response))
    end = _end_of_answer(text)
    rest = _TOKEN.sub("", text[end:])
    return last_box(text[:end]), bool(rest.strip())


def _unescaped(response: str) -> str:
    """Restore backslashes that were lost or doubled when the response was stored as
    JSON.
    """
    if "\boxed" in response:
        response = _CONTROL.sub(lambda sign: _CONTROLS[sign[0]], response)
    if r"\\boxed" in response and _ESCAPED_TWICE.search(response):
        response = response.replace("\\\\", "\\")
    return response


def _without_thoughts(response: str) -> str:
    """Return a response without the thoughts of a reasoning model, or unchanged if the
    rest has no box, for example because a thought never ends.
    """
    marks = [*_THOUGHT_BEGINS.finditer(response), *_THOUGHT_ENDS.finditer(response)]
    if not marks:
        return response
    marks.sort(key=lambda mark: mark.start())
    parts = []
    at = 0  # start of the text outside of thoughts; -1: inside a thought
    if marks[0].re is _THOUGHT_ENDS:
        at = -1
    for mark in marks:
        if mark.re is _THOUGHT_ENDS:
            at = mark.end() if at < 0 else at
        elif at >= 0:
            parts.append(response[at : mark.start()])
            at = -1
    if at >= 0:
        parts.append(response[at:])
    answer = "".join(parts)
    return response if last_box(answer) is None else answer


def _end_of_answer(text: str) -> int:
    """Return the index of the character at which another problem or turn begins, or the
    length of the text.

    The special tokens with which a response begins, and empty boxes, end nothing.
    """
    start = _TURN_START.match(text)
    ends = [_USER_TURN.search(text, start.end() if start else 0)]
    filled = [end for begin, end in _boxes(text) if text[begin:end].strip()]
    if filled:
        after = min(filled)
        ends += [mark.search(text, after) for mark in (_HEADER, _BARE_ROLE, _TOKEN)]
    return min((match.start() for match in ends if match), default=len(text))


def last_box(text: str) -> str | None:
    r"""Return the content of the last closed `\boxed{...}` or `\fbox{...}`; None if
    there is none.

    Of two nested boxes it is that of the inner one. A space may precede the brace,
    escaped braces are ignored, and the braces around a number or a letter may be
    missing.
    """
    begin, end = max(_boxes(text), default=(-1, -1))
    return text[begin:end] if begin >= 0 else None


def _boxes(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the content of each closed box, in order of closing."""
    # The start of the content of each open brace, -1 for a brace without a box.
    opened: list[int] = []
    for token in _BRACE.finditer(text):
        if token["bare"]:
            yield token.span("bare")
        elif token["opens"]:
            opened.append(token.end() if token["box"] else -1)
        elif token["closes"] and opened:
            begin = opened.pop()
            if begin >= 0:
                yield begin, token.start()


MAX_CHARACTERS = 500  # no answer of the MATH test set has more than 100
# Methods that say why an answer could not be graded; such an answer counts as wrong,
# and its status is reported.
STATUSES = frozenset(
    {
        "unreadable-gold",
        "unreadable-answer",
        "no-box",
        "empty-box",
        "refused",
        "timeout",
        "crash",
    }
)
# The method of a grade before two answers are compared.
UNDECIDED = "math-verify"
# Texts that cannot be a gold answer: no text, a missing value, a note to the reader, a
# complete solution, and a float such as 1e-7, which is 1e - 7 in LaTeX.
_UNREADABLE = re.compile(
    r"|[Nn]a[NnTt]|N/?A|n/a|None|null|[Tt]rue|[Ff]alse|TODO|TBD|[-?.]+|[+-]?(?:Infinity|inf)"
    r"|[+-]?\d+[eE][+-]?\d+|[Ss]ee .*|.*(?:####|<<.*>>).*|.*[A-Za-z]{2} .*\\boxed.*",
    re.DOTALL,
)
MOST_WORDS = 8  # words outside of \text in a gold answer; more are a sentence


@dataclass(frozen=True)
class Grade:
    """Whether a response is correct, and why."""

    correct: bool
    extracted: str | None  # the content of its last box; None: it has no box
    method: str  # the rule that decided, "math-verify", or one of STATUSES
    # False if the gold answer is a number and the box has an expression, such as 8 + 4.
    evaluated: bool = True
    # Whether another problem or turn follows the answer; it is not graded.
    run_on: bool = False


def settle(gold: str, response: str) -> Grade:
    """Return the grade of a response, if it needs no comparison.

    Otherwise the method is UNDECIDED, and `lib.grading.equality.compare` has to decide.
    """
    box, run_on = read_answer(response)
    status = _status(gold, box)
    worked_out = status != UNDECIDED or _is_worked_out(gold, box or "")
    return Grade(status == "equal", box, status, worked_out, run_on)


def _status(gold: str, box: str | None) -> str:
    """Return the method of a pair's grade: one of STATUSES if it cannot be compared,
    "equal" for identical texts, or UNDECIDED.
    """
    bare = re.sub(r"\\text\{[^{}]*\}", " ", gold)
    words = re.findall(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}", bare)
    if _UNREADABLE.fullmatch(gold.strip(" .\n")) or len(words) > MOST_WORDS:
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
    value = split_unit(named(in_digits(spelled(answer)))[1])[0]
    return parse_number(re.sub(r"^\(([^()]*)\)$", r"\1", value)) is not None
