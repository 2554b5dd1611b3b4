r"""The authors' own scoring, to measure what it does to a result; grade with
`lib.grading.grade`.

They take the last `\boxed{...}` of prompt plus answer, apply the string rules of the
MATH dataset (arXiv 2103.03874), and accept what is *contained in* the gold: 1 for 12,
and an empty box, such as the prompt's, for everything.
"""

import re

from lib.grading.answer import cut_run_on, last_box


def correct_authors(gold: str, prompt: str, response: str) -> bool:
    r"""Return the verdict of the authors' rule, which reads prompt and response; False
    where their code crashes.
    """
    text = prompt + response
    boxes = list(re.finditer(r"\\boxed ?\{", text)) or list(
        re.finditer(r"\\fbox\{", text)
    )
    depth, begin = 1, boxes[-1].end() if boxes else len(text)
    for brace in re.finditer(
        "[{}]", text[begin:]
    ):  # every one counts, and a box that is never closed is none
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return _match(text[begin : begin + brace.start()], gold, contained=True)
    return False


def correct_exact(gold: str, response: str) -> bool:
    """Return whether the completion's last box equals the gold after the MATH string
    rules, nothing more.
    """
    answer = last_box(cut_run_on(response)[0])
    return answer is not None and _match(answer, gold, contained=False)


def _match(answer: str, gold: str, contained: bool) -> bool:
    try:
        answer, gold = _normalise(answer), _normalise(gold)
    except (IndexError, ValueError):
        return False
    return answer in gold if contained else answer == gold


def _normalise(answer: str) -> str:
    """Apply the MATH string rules, in their order; raises IndexError or ValueError
    where they crash.
    """
    for old, new in (
        ("\n", ""),
        (r"\!", ""),
        ("\\\\", "\\"),
        ("tfrac", "frac"),
        ("dfrac", "frac"),
    ):
        answer = answer.replace(old, new)
    answer = re.sub(r"\\left|\\right|\^\{\\circ\}|\^\\circ|\\\$", "", answer)
    answer, *units = answer.split(r"\text{ ")
    if len(units) > 1:
        raise ValueError("two units crash the original")
    answer = answer.replace(r"\%", "").replace(" .", " 0.").replace("{.", "{0.")
    if not answer:
        return ""
    answer = "0" + answer if answer[0] == "." else answer
    sides = answer.split("=")
    if len(sides) == 2 and len(sides[0]) <= 2:
        answer = sides[1]
    head, *roots = answer.split(r"\sqrt")
    braced = (root if root[0] == "{" else f"{{{root[0]}}}{root[1:]}" for root in roots)
    answer = r"\sqrt".join([head, *braced]).replace(" ", "")
    head, *fractions = answer.split(r"\frac")
    if not any(
        one[0] != "{" and len(one) == 1 for one in fractions
    ):  # such a one ends the rule
        answer = r"\frac".join([head, *map(_braced, fractions)])
    answer = r"\frac{1}{2}" if answer == "0.5" else answer
    return re.sub(r"\A(-?\d+)/(-?\d+)\Z", r"\\frac{\1}{\2}", answer)


def _braced(arguments: str) -> str:
    """Put braces round both one-character arguments of a fraction, or round the first."""
    if arguments[0] == "{":
        return arguments
    rest = (
        arguments[1:] if arguments[1] == "{" else f"{{{arguments[1]}}}{arguments[2:]}"
    )
    return f"{{{arguments[0]}}}{rest}"
