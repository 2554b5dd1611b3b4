r"""Read what a response answers: its last closed `\boxed{...}`, number and units.

An answer is brought into one spelling. All of it is linear in the text and changes no
value. Numbers are exact fractions, never floats: 0.33 is not 1/3.
"""

import re
from contextlib import suppress
from fractions import Fraction
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


_DECIMAL = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?: \d{3})+|\d+(?:\.\d*)?|\.\d+)"
_SIGNED = rf"([+-]?{_DECIMAL})"
_TEN_TO_THE = r"(?:\\times|\\cdot|\*) ?10 ?\^ ?\{? ?([+-]?\d{1,3}) ?\}?"


def _quotient(a: Fraction, b: Fraction) -> Fraction:
    return a / b


def _mixed(whole: Fraction, a: Fraction, b: Fraction) -> Fraction:
    return whole + a / b


def _scaled(a: Fraction, n: Fraction) -> Fraction:
    return a * Fraction(10) ** int(n)


# How a number may be written, and what its parts give.
_NUMBERS = {
    rf"({_DECIMAL})": Fraction,
    rf"\\frac ?\{{ ?{_SIGNED} ?\}} ?\{{ ?{_SIGNED} ?\}}": _quotient,
    rf"{_SIGNED} ?/ ?{_SIGNED}": _quotient,
    r"(\d+) ?\\frac ?\{ ?(\d+) ?\} ?\{ ?(\d+) ?\}": _mixed,
    r"(\d+) (\d+) ?/ ?(\d+)": _mixed,
    rf"({_DECIMAL}) ?{_TEN_TO_THE}": _scaled,
    r"(\d+\.\d+)[eE]([+-]?\d{1,3})": _scaled,
}
_PERIODIC = re.compile(r"(\d*)\.(\d*) ?\\overline ?\{ ?(\d+) ?\}")


def parse_number(cleaned: str) -> Fraction | None:
    r"""Return the exact value of a plain number, None for anything else.

    Plain are integers with or without groups of thousands, decimals, fractions, mixed
    numbers, `a \times 10^b` and `0.\overline{3}`.
    """
    sign = -1 if cleaned.startswith("-") else 1
    body = re.sub(r"\A[+-] ?", "", cleaned)
    for pattern, value in _NUMBERS.items():
        match = re.fullmatch(pattern, body)
        if match:
            parts = [Fraction(re.sub("[, ]", "", part)) for part in match.groups()]
            with suppress(ZeroDivisionError):
                return sign * value(*parts)

    match = _PERIODIC.fullmatch(body)
    if match is None:
        return None
    whole, fixed, period = match.groups()
    before = int(whole + fixed or 0)
    ninths = Fraction(int(whole + fixed + period) - before, 10 ** len(period) - 1)
    return sign * ninths / 10 ** len(fixed)


_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
# The first name of each unit is its spelling here.
_UNIT_NAMES = (
    "mm millimeter millimetre; cm centimeter centimetre; m meter metre; km kilometer"
    " kilometre; in inch in inches; foot ft feet; yard yd; mile mi; second s sec;"
    " minute min; hour h hr; day; week; month; year yr; cent; dollar usd; degree deg;"
    " radian rad; g gram; kg kilogram; ounce oz; pound lb; ml milliliter millilitre; l"
    " liter litre; mph; am; pm"
)
_SPELLING_OF_UNIT = {}
for _names in map(str.split, _UNIT_NAMES.split(";")):
    _SPELLING_OF_UNIT |= dict.fromkeys(_names, _names[0])
UNITS = frozenset(_SPELLING_OF_UNIT.values())
_IGNORED = {"per", "square", "cubic", "sq", "cu", "unit", "of", "a", "an"}
_NOT_UNITS = {"or", "and", "not", "no", "if", "is", "are", "where", "when", "for"}
_NOT_UNITS |= {"base", "mod"}
_UNIT = re.compile(
    r"(?:(?P<sign>\^\\circ ?[CF]?| ?\\?%)|\\text\{(?P<text>[^{}]*)\} ?(?:\^ ?\{?\d\}?)?"
    r"|(?<=[\d}) ])(?P<plain>[A-Za-z]{2,})\.? ?(?:\^ ?\{?\d\}?)?)$"
)
_UNIT_TEXT = re.compile(r"[A-Za-z0-9 ./^'-]*")
# A Greek letter or a constant may stand before a unit, an operator may not.
_OPEN_END = re.compile(
    r"(?:[_^{(\[=,+\-*/<>|&\\:]|(?!\\(?:pi|theta|alpha|beta|gamma|lambda|mu|infty)$)\\[a-zA-Z]+)$"
)


def split_unit(cleaned: str) -> tuple[str, tuple[str, ...]]:
    """Return the value and its units: `15 cm^2` gives ("15", ("cm",)).

    Known units get one spelling. A percent sign is the unit "%"; "3 million" becomes a
    power of ten. Nothing is split off mere words.
    """
    rest = cleaned.rstrip()
    units: tuple[str, ...] = ()
    while match := _UNIT.search(rest):
        before = rest[: match.start()].rstrip()
        unit = _unit_of(match)
        if unit is None or not before or _OPEN_END.search(before):
            break
        if unit and unit[0] in _SCALES:
            before = rf"{before} \times 10^{{{_SCALES[unit[0]]}}}"
            unit = unit[1:]
        rest = before
        units = unit + units
    return rest, units


def _unit_of(match: re.Match[str]) -> tuple[str, ...] | None:
    """Return the words of what looks like a unit, without "square" and its like; None
    for something else.
    """
    if match["sign"]:
        return ("%",) if "%" in match["sign"] else ("degree",)

    text = match["text"] or match["plain"] or ""
    words = re.findall("[a-z]+", text.lower().replace("p.m", "pm").replace("a.m", "am"))
    if not words or not _UNIT_TEXT.fullmatch(text) or _NOT_UNITS.intersection(words):
        return None
    spelled = [_spelled(word) for word in words]
    # Letters that stand bare may be a product of variables.
    if not match["text"] and not set(spelled) <= UNITS | _SCALES.keys():
        return None
    singular = [word.removesuffix("s") for word in spelled]
    return tuple(word for word in singular if word not in _IGNORED)


def _spelled(word: str) -> str:
    singular = word.removesuffix("s")
    return _SPELLING_OF_UNIT.get(word) or _SPELLING_OF_UNIT.get(singular) or word


NAMED_VARIABLE = re.compile(
    r"([a-zA-Z]'*(?:_\w|_\{\w+\})?(?: ?\([a-zA-Z0-9, ]+\))?|\\[a-z]+)"
    r" ?(?:=|\\in(?![a-z])) ?([^=<>].*)",
    re.DOTALL,
)
_PLAIN = re.compile(
    r"(?:[\d\s.{}\[\]/-]|\\(?:frac|sqrt|pi|overline)(?![a-zA-Z])|(?<![a-zA-Z])i(?![a-zA-Z]))+"
)
# What may stand between a number and the root, \pi or i that it multiplies.
_MULTIPLE = re.compile(
    r"(?<=[\d}]) ?(?:\\cdot|\\times|\*) ?(?=\\sqrt|\\pi|i(?![a-zA-Z]))"
)
_OPERATION = re.compile(
    r"(?<=[^\s{(\[^]) ?[+-]"  # a sum; a sign stands at the beginning
    r"|\\(?:cdot|times|div|ast|pm)(?![a-zA-Z])|[*!|:÷]|/[^/]*/"
    r"|(?<=[\d)}i]) ?\^(?! ?\{? ?\\circ)"  # a power
    r"|(?<=[\d)}]) ?\(|\) ?(?=[\d\\])"  # factors side by side
    r"|\\(?:gcd|lcm|[dt]?binom|log|ln|exp|sin|cos|tan|sum|prod|max|min|lfloor|lceil|lvert|b?mod|pmod|operatorname)"
    r"|(?<![a-zA-Z\\])[a-zA-Z]+(?:_\w)? ?\("  # a function by its name
    r"|(?<![a-zA-Z])(?:gcd|lcm|mod|plus|minus|times|divided)(?![a-zA-Z])"
)


def value_of(cleaned: str) -> str:
    r"""Return what `x = 5` or `x \in [2, 7]` says of x, or an answer without a name."""
    named = NAMED_VARIABLE.fullmatch(cleaned)
    return named[2] if named else cleaned


def evaluated(gold: str, answer: str) -> bool:
    r"""Return whether an answer to a number is worked out, as 12 is and `8 + 4` is not.

    Fractions, roots, multiples of \pi and i, units, percents and powers of ten write a
    number; sums, products, powers, factorials and functions of numbers are still to be
    carried out. One side of an equation is enough, and to a gold answer that is no
    number everything is worked out. Both are cleaned.
    """
    value = split_unit(value_of(gold))[0]
    is_plain = _PLAIN.fullmatch(value) and not _holds_operation(value)
    if parse_number(value) is None and not is_plain:
        return True
    sides = re.split(r"=|\\approx(?![a-zA-Z])", value_of(answer))
    if len(sides) > 1:
        sides = [side for side in sides if re.search(r"\d|\\pi", side)]
    return not all(_holds_operation(side) for side in sides)


def _holds_operation(text: str) -> bool:
    value = split_unit(text.strip())[0]
    if parse_number(value) is not None:
        return False
    return _OPERATION.search(_MULTIPLE.sub("", value)) is not None
