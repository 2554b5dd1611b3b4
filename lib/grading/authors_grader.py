r"""Grade answers by the rule of the paper's authors, to measure its effect on results.

Their rule takes the last `\boxed{...}` of prompt plus answer, applies the string rules
of the MATH dataset (arXiv 2103.03874), and accepts an answer that is *contained in* the
gold answer: 1 for 12, and an empty box for anything. If an answer has no box, the box
in the prompt is graded. With `\boxed{}` in the prompt every such answer is right; with
the `\boxed{{}}` of the authors' prompts none is. This project's grader is
`lib.grading.grade`.
"""

import re


def is_correct_by_authors(gold: str, prompt: str, response: str) -> bool:
    """Return whether the authors' rule accepts a response.

    prompt: the rule also searches it for a box; "" for only the response. Input on
    which their code crashes is not accepted.
    """
    text = prompt + response
    boxes = list(re.finditer(r"\\boxed ?\{", text))
    boxes = boxes or list(re.finditer(r"\\fbox\{", text))
    if not boxes:
        return False

    # Their code also counts escaped braces, and ignores a box that is never closed.
    begin = boxes[-1].end()
    depth = 1
    for brace in re.finditer("[{}]", text[begin:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            content = text[begin : begin + brace.start()]
            return _match(content, gold, accept_substring=True)
    return False


def is_exact_match(gold: str, extracted: str | None) -> bool:
    """Return whether the extracted answer equals the gold answer after the MATH string
    rules.

    extracted: the content of the last box; None: there is no box.
    """
    if extracted is None:
        return False
    return _match(extracted, gold, accept_substring=False)


def _match(answer: str, gold: str, accept_substring: bool) -> bool:
    """Return whether an answer equals the gold answer after the MATH string rules, or
    with `accept_substring` whether it is a part of it.
    """
    try:
        answer = _normalise(answer)
        gold = _normalise(gold)
    except ValueError:
        return False
    return answer in gold if accept_substring else answer == gold


def _normalise(answer: str) -> str:
    """Apply the MATH string rules, in their order.

    Raises ValueError for input on which the original crashes.
    """
    answer = answer.replace("\n", "").replace(r"\!", "").replace(r"\\", "\\")
    answer = answer.replace("tfrac", "frac").replace("dfrac", "frac")
    answer = re.sub(r"\\left|\\right|\^\{\\circ\}|\^\\circ|\\\$", "", answer)
    answer, *units = answer.split(r"\text{ ")
    if len(units) > 1:
        raise ValueError("two units crash the original")
    answer = answer.replace(r"\%", "").replace(" .", " 0.").replace("{.", "{0.")
    if not answer:
        return ""
    if answer[0] == ".":
        answer = "0" + answer
    sides = answer.split("=")
    if len(sides) == 2 and len(sides[0]) <= 2:
        answer = sides[1]

    answer = _with_braced_roots(answer).replace(" ", "")
    answer = _with_braced_fractions(answer)
    if answer == "0.5":
        return r"\frac{1}{2}"
    return re.sub(r"\A(-?\d+)/(-?\d+)\Z", r"\\frac{\1}{\2}", answer)


def _with_braced_roots(answer: str) -> str:
    """Put braces round an argument of one character."""
    if re.search(r"\\sqrt(?:\\sqrt|$)", answer):
        raise ValueError("a root of nothing crashes the original")
    return re.sub(r"\\sqrt([^{])", r"\\sqrt{\1}", answer)


def _with_braced_fractions(answer: str) -> str:
    """Put braces round the arguments of a fraction whose first argument has none."""
    short = re.search(r"\\frac([^{]?)(?:\\frac|$)", answer)
    if short and not short[1]:
        raise ValueError("a fraction of nothing crashes the original")
    if short:
        return answer  # if an argument is missing, the original changes no fraction
    answer = re.sub(r"\\frac([^{])([^{])", r"\\frac{\1}{\2}", answer)
    return re.sub(r"\\frac([^{])\{", r"\\frac{\1}{", answer)
