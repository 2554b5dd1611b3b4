r"""Read what a response answers: its last closed `\boxed{...}`, in one spelling.

All of it is linear in the text and changes no value; `values` reads what is spelled.
"""

import re
from unicodedata import normalize

_SPECIAL = r"<\|[A-Za-z_ ]{1,40}\|>"
_ROLES = "Problem|Question|Exercise|Instruction|User|Human"
# A new problem on its own line, or a chat turn, that a model goes on to write after its
# answer.
_RUN_ON = re.compile(
    rf"\n[ \t]*[#*]*[ \t]*(?:{_ROLES})[ \t]*\d*[ \t]*[#*]*[ \t]*:|{_SPECIAL}"
)
_HEADER = re.compile(rf"(?:\s|{_SPECIAL}|assistant)*+")
_BRACE = re.compile(
    r"(?P<opens>(?P<box>\\(?:boxed|fbox)\s*)?\{)|\\.|(?P<closes>\})", re.DOTALL
)


def cut_run_on(response: str) -> tuple[str, bool]:
    """Return the response up to its run-on, and whether there is one.

    A run-on is a new problem or chat turn with what comes after it. A header at the
    very start is the response's own; end-of-text tokens alone are no run-on.
    """
    header = _HEADER.match(response)
    marker = _RUN_ON.search(response, header.end() if header else 0)
    if marker is None:
        return response, False
    rest = response[marker.start() :]
    return response[: marker.start()], bool(re.sub(_SPECIAL, "", rest).strip())


def last_box(text: str) -> str | None:
    r"""Return the content of the last closed `\boxed{...}` or `\fbox{...}`, if any.

    Of two nested boxes it is the inner one; a space may stand before the brace, and
    escaped braces do not count.
    """
    # Where the content of each open brace begins, -1 where the brace is no box's.
    opened: list[int] = []
    begin = end = -1
    for token in _BRACE.finditer(text):
        if token["opens"]:
            opened.append(token.end() if token["box"] else -1)
        elif token["closes"] and opened:
            closed = opened.pop()
            if closed > begin:
                begin = closed
                end = token.start()
    return text[begin:end] if begin >= 0 else None


_COMMANDS = (
    "× times ÷ div · cdot ⋅ cdot ∙ cdot π pi θ theta ∞ infty √ sqrt ≤ leq ≥ geq ≠ neq ∪"
    " cup ∩ cap ∈ in ± pm ∅ emptyset"
)
_CHARACTERS = {
    **{code: " " for code in (*range(0x20), *range(0x200B, 0x2010))},
    **{ord(sign): rf"\{name} " for sign, name in re.findall(r"(\S) (\w+)", _COMMANDS)},
    **dict.fromkeys(map(ord, "\u2212\u2010\u2012\u2013\u2014"), "-"),
    **dict.fromkeys(map(ord, "\u2018\u2019\u2032"), "'"),
    ord("°"): r"^\circ ",
}
_FONTS = r"displaystyle|textstyle|limits|rm|bf|it|math(?:rm|bf|it|sf|tt)|boldsymbol|bm"
_ARGUMENT = r"(\\[a-zA-Z]+(?![a-zA-Z{\[])|[^\s{}\\\[])"
_NESTED = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
# Order matters: thousands before the spaces they are written with, \text before the
# fonts it resembles.
_SPELLINGS = [
    (r"(?<=\d)(?:,\s*\\!|\{,\}|,?\\,|\\!|\\ |~)\s*(?=\d{3}(?!\d))", ""),
    (r"(?<!\\)((?:\\\\)*)(?:\\[,;:!> ]|~)", r"\1 "),
    (r"^\s*\\[(\[]|\\[)\]]\s*$|\\?[$€£]", ""),
    (r"\\(?:text(?:bf|rm|it|sf|tt|normal)?|[mh]box|emph)\s*\{", r"\\text{"),
    (r"\\mathrm\s*\{(?=\s*[A-Za-z][A-Za-z. ]+\})", r"\\text{"),
    (r"\\(?:left|right|[bB]igg?[lrm]?)(?![a-zA-Z])\s*\.?", " "),
    (rf"\\(?:{_FONTS})(?![a-zA-Z])|\\q?quad(?![a-zA-Z])", " "),
    (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
    (r"\\text\{\s*\\text\{([^{}]*)\}\s*\}", r"\\text{\1}"),
    (r"\^\s*\{?\s*\\circ\s*\}?|\\degrees?(?![a-zA-Z])", r"^\\circ "),
    (
        r"\\frac ?\{ ?\\text\{([^{}]*)\} ?\} ?\{ ?\\text\{([^{}]*)\} ?\}",
        r"\\text{\1/\2}",
    ),
    (r"^\s*\\text\{\s*([\d.,:]+)\s*([A-Za-z. ]*)\}\s*$", r"\1\\text{\2}"),
    (r"\\varnothing(?![a-zA-Z])|\\\{\s*\\\}", r"\\emptyset "),
    (r"\\([lg])e(?:q|qslant)?(?![a-zA-Z])", r"\\\1eq "),
    (r"\\lt(?![a-zA-Z])", "<"),
    (r"\\gt(?![a-zA-Z])", ">"),
    (rf"\\(frac|sqrt)(?![a-zA-Z])\s*{_ARGUMENT}", r"\\\1{\2}"),
    (rf"(\\frac\s*{_NESTED})\s*{_ARGUMENT}", r"\1{\2}"),
    (r"(?:\\\\|[\s.,;:])+$", ""),
    (r"\s+", " "),
]


def clean(answer: str) -> str:
    r"""Return an answer in one LaTeX spelling.

    It has plain characters, no fonts, fractions as `\frac{a}{b}`, and no full stop.
    """
    # Characters that stand for more than themselves, before NFKC makes digits of them.
    answer = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda match: f"^{{{_plain(match)}}}", answer)
    answer = re.sub("[₀₁₂₃₄₅₆₇₈₉]+", lambda match: f"_{{{_plain(match)}}}", answer)
    answer = re.sub("[¼½¾⅐-⅞]", _fraction, answer)
    answer = re.sub(r"√\s*(\d+|\([^()]*\))", r"\\sqrt{\1}", answer)

    answer = normalize("NFKC", answer).translate(_CHARACTERS)
    for pattern, replacement in _SPELLINGS:
        answer = re.sub(pattern, replacement, answer)
    answer = answer.strip()
    while re.fullmatch(_NESTED, answer):
        answer = answer[1:-1].strip()
    return answer


def _plain(match: re.Match[str]) -> str:
    return normalize("NFKC", match[0])


def _fraction(match: re.Match[str]) -> str:
    return re.sub("(.+)⁄(.+)", r"\\frac{\1}{\2}", _plain(match))
