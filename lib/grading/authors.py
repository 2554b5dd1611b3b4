r"""The authors' own scoring, to measure what it does to a result.

The authors take the last `\boxed{...}` of prompt plus answer, apply the string rules of
the MATH dataset (arXiv 2103.03874), and accept what is *contained in* the gold: 1 for
12, and an empty box for everything. Where an answer has no box, the prompt's decides:
with `\boxed{}` every such answer is right, with the authors' own `\boxed{{}}` none is.
To grade, see `lib.grading.grade`.
"""

import re


def with_authors_box(prompt: str) -> str:
    """Return a prompt whose empty box is written as in the authors' prompts: their
    source doubles the braces outside an f-string.
    """
    return prompt.replace(r"\boxed{}", r"\boxed{{}}")


def correct_authors(gold: str, prompt: str, response: str) -> bool:
    """Return the verdict of the authors' rule, which reads prompt and response ("" for
    no prompt).

    It is False for input on which their code crashes.
    """
    text = prompt + response
    boxes = list(re.finditer(r"\\boxed ?\{", text))
    boxes = boxes or list(re.finditer(r"\\fbox\{", text))
    if not boxes:
        return False

    # Every brace counts, also an escaped one, and a box that is never closed is none.
    begin = boxes[-1].end()
    depth = 1
    for brace in re.finditer("[{}]", text[begin:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return _match(text[begin : begin + brace.start()], gold, contained=True)
    return False


def correct_exact(gold: str, extracted: str | None) -> bool:
    """Return whether the extracted answer (the content of the last box) equals the gold
    answer after only the MATH string rules.
    """
    return extracted is not None and _match(extracted, gold, contained=False)


def _match(answer: str, gold: str, contained: bool) -> bool:
    try:
        answer = _normalise(answer)
        gold = _normalise(gold)
    except ValueError:
        return False
    return answer in gold if contained else answer == gold


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
    """Put braces round the arguments of a fraction where the first has none."""
    short = re.search(r"\\frac([^{]?)(?:\\frac|$)", answer)
    if short and not short[1]:
        raise ValueError("a fraction of nothing crashes the original")
    if short:
        return answer  # a lone argument ends the original's rule, for all fractions
    answer = re.sub(r"\\frac([^{])([^{])", r"\\frac{\1}{\2}", answer)
    return re.sub(r"\\frac([^{])\{", r"\\frac{\1}{", answer)
