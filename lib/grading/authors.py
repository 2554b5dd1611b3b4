r"""The authors' own scoring, to measure what it does to a result; grade with `lib.grading.grade`.

They take the last `\boxed{...}` of prompt plus answer, apply the string rules of the MATH dataset (arXiv 2103.03874),
and accept what is *contained in* the gold: 1 for 12, and an empty box, such as the prompt's, for everything.
"""

import re

from lib.grading.answer import cut_run_on, last_box


def correct_authors(gold: str, prompt: str, response: str) -> bool:
    r"""Return the verdict of the authors' rule, which reads prompt and response; False where their code crashes."""
    try:
        answer = _last_box(prompt + response)
        return answer is not None and normalise(answer) in normalise(gold)
    except (IndexError, ValueError):
        return False


def correct_exact(gold: str, response: str) -> bool:
    """Return whether the completion's last box equals the gold after the MATH string rules, nothing more."""
    answer = last_box(cut_run_on(response)[0])
    try:
        return answer is not None and normalise(answer) == normalise(gold)
    except (IndexError, ValueError):
        return False


def _last_box(text: str) -> str | None:
    """Return the last box by counting every brace; None if it is never closed, whatever stands before it."""
    boxed = max(text.rfind(r"\boxed{"), text.rfind(r"\boxed {"))
    start = boxed if boxed >= 0 else text.rfind(r"\fbox{")
    if start < 0:
        return None
    depth, inside = 0, text.index("{", start) + 1
    for brace in re.finditer("[{}]", text[inside - 1 :]):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return text[inside : inside - 1 + brace.start()]
    return None


def normalise(answer: str) -> str:
    """Apply the MATH string rules, in their order; raises IndexError or ValueError where they crash."""
    for old, new in (("\n", ""), (r"\!", ""), ("\\\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac")):
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
    head, *tails = answer.split(r"\sqrt")
    braced = (tail if tail[0] == "{" else f"{{{tail[0]}}}{tail[1:]}" for tail in tails)
    answer = _braced_fractions(r"\sqrt".join([head, *braced]).replace(" ", ""))
    answer = r"\frac{1}{2}" if answer == "0.5" else answer
    return re.sub(r"\A(-?\d+)/(-?\d+)\Z", r"\\frac{\1}{\2}", answer)


def _braced_fractions(answer: str) -> str:
    """Give each fraction two braced arguments; one with a single character after it stops the rule."""
    head, *tails = answer.split(r"\frac")
    fixed = head
    for tail in tails:
        if tail[0] == "{":
            fixed += r"\frac" + tail
        elif len(tail) < 2:
            return answer
        elif tail[1] == "{":
            fixed += rf"\frac{{{tail[0]}}}{tail[1:]}"
        else:
            fixed += rf"\frac{{{tail[0]}}}{{{tail[1]}}}{tail[2:]}"
    return fixed
