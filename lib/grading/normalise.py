r"""One spelling for an answer: what LaTeX prints alike, or nearly alike, becomes the same string.

`clean` keeps a string that a parser can read; `key` goes further and is only good for comparing two strings.
Nothing here changes a value. Inputs are short: `lib.grading.stages` refuses long ones first.
"""

import itertools
import re

_COMMANDS = "× times ÷ div π pi θ theta ∞ infty √ sqrt ≤ leq ≥ geq ≠ neq ∪ cup ∩ cap ∈ in ± pm ∓ mp ∅ emptyset"
_CHARACTERS = {
    **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **{chr(code): " " for code in (*range(0x00, 0x20), 0x7F, 0xA0, *range(0x2000, 0x2010), 0x202F, 0x3000)},
    **dict.fromkeys("\u2212\u2012\u2013\u2014", "-"),
    **dict.fromkeys("\u00b7\u22c5\u2219", r"\cdot "),
    **dict.fromkeys("\u2018\u2019\u2032", "'"),
    **{sign: rf"\{name} " for sign, name in re.findall(r"(\S) (\w+)", _COMMANDS)},
    **{sign: rf"\frac{{{above}}}{{{below}}}" for sign, above, below in ("½12", "¼14", "¾34", "⅓13", "⅔23")},
    "°": r"^\circ ",
}
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_TRANSLATION = str.maketrans(_CHARACTERS)
_NESTED = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_TOKEN = r"(\\[a-zA-Z]+(?![a-zA-Z{\[])|[^\s{}\\\[])"

# Order matters: thousands before the spaces they are written with, wrappers before the braces they leave.
_REWRITES = [
    (re.compile(r"(?<=\d)(?:,\s*\\!|\{,\}|,?\\,|\\!|\\ |~)\s*(?=\d{3}(?!\d))"), ""),
    (re.compile(r"(?<!\\)((?:\\\\)*)(?:\\[,;:!> ]|~)"), r"\1 "),
    (re.compile(r"\\q?quad(?![a-zA-Z])"), " "),
    (re.compile(r"^\s*\\[(\[]|\\[)\]]\s*$"), ""),
    (re.compile(r"\\?\$|€|£"), ""),
    (re.compile(r"\\(?:left|right)(?![a-zA-Z])\s*\.?"), ""),
    (re.compile(r"\\[bB]igg?[lrm]?(?![a-zA-Z])"), ""),
    (re.compile(r"\\(?:displaystyle|textstyle|limits|rm|bf|it)(?![a-zA-Z])"), ""),
    (re.compile(r"\\[dtc]frac(?![a-zA-Z])"), r"\\frac"),
    (re.compile(r"\\(?:text(?:bf|rm|it|sf|tt|normal)?|[mh]box|emph)\s*\{"), r"\\text{"),
    (re.compile(r"\\mathrm\s*\{(?=\s*[A-Za-z][A-Za-z. ]+\})"), r"\\text{"),
    (re.compile(r"\\(?:math(?:rm|bf|it|sf|tt)|boldsymbol|bm)(?![a-zA-Z])\s*"), ""),
    (re.compile(r"\\text\{\s*\\text\{([^{}]*)\}\s*\}"), r"\\text{\1}"),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degrees?(?![a-zA-Z])"), r"^\\circ "),
    (re.compile(r"\\frac ?\{ ?\\text\{([^{}]*)\} ?\} ?\{ ?\\text\{([^{}]*)\} ?\}"), r"\\text{\1/\2}"),
    (re.compile(r"^\s*\\text\{\s*([\d.,:]+)\s*([A-Za-z. ]*)\}\s*$"), r"\1\\text{\2}"),
    (re.compile(r"\\varnothing(?![a-zA-Z])|\\\{\s*\\\}"), r"\\emptyset "),
    (re.compile(r"\\([lg])e(?:q|qslant)?(?![a-zA-Z])"), r"\\\1eq "),
    (re.compile(r"\\lt(?![a-zA-Z])"), "<"),
    (re.compile(r"\\gt(?![a-zA-Z])"), ">"),
    (re.compile(rf"\\(frac|sqrt)(?![a-zA-Z])\s*{_TOKEN}"), r"\\\1{\2}"),
    (re.compile(rf"(\\frac\s*{_NESTED})\s*{_TOKEN}"), r"\1{\2}"),
]
_SPACES = re.compile(r"(?<!\d)\s+|\s+(?!\d)")
_ONE_CHARACTER_BRACES = re.compile(r"([\^_])\{(\w)\}")
_TEXT = re.compile(r"\\text\{([^{}]*)\}")


def clean(answer: str) -> str:
    r"""Return an answer in one LaTeX spelling: plain characters, no fonts, `\frac{a}{b}`, no full stop."""
    answer = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda run: f"^{{{run.group().translate(_RAISED)}}}", answer)
    answer = re.sub("[₀₁₂₃₄₅₆₇₈₉]+", lambda run: f"_{{{run.group().translate(_LOWERED)}}}", answer)
    answer = re.sub(r"√\s*(\d+|\([^()]*\))", r"\\sqrt{\1}", answer).translate(_TRANSLATION)
    for pattern, replacement in _REWRITES:
        answer = pattern.sub(replacement, answer)
    answer = re.sub(r"(?:\\\\|[\s.,;:])+$", "", answer).strip()
    while _wrapped_in_braces(answer):
        answer = answer[1:-1].strip()
    return re.sub(r"\s+", " ", answer)


def key(cleaned: str) -> str:
    """Return a cleaned answer without spaces and braces that do not print; equal keys are equal answers."""
    return _ONE_CHARACTER_BRACES.sub(r"\1\2", _SPACES.sub("", cleaned))


def words(cleaned: str) -> str:
    r"""Return a cleaned answer with every `\text{...}` replaced by its content."""
    return _TEXT.sub(r"\1", cleaned).strip()


def _wrapped_in_braces(answer: str) -> bool:
    """Tell whether the first brace is closed by the last character."""
    if not (answer.startswith("{") and answer.endswith("}") and not answer.endswith(r"\}")):
        return False
    depths = list(itertools.accumulate((c == "{") - (c == "}") for c in re.sub(r"\\.", "  ", answer)))
    return depths[-1] == 0 and 0 not in depths[:-1]
