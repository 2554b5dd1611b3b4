"""Read what a cleaned answer is worth: its number and units, worked out or not.

All of it is linear in the text. Numbers are exact fractions, never floats: 0.33 is not
1/3.
"""

import re
from contextlib import suppress
from fractions import Fraction

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
