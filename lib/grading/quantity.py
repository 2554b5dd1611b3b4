"""Plain numbers as exact fractions, never floats (0.33 is not 1/3), and the units written after them."""

import re
from fractions import Fraction

_DECIMAL = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?: \d{3})+|\d+(?:\.\d*)?|\.\d+)"
_SIGNED = rf"([+-]?{_DECIMAL})"
_EXPONENT = r"([+-]?\d{1,3})"
_FORMS = [
    ("plain", re.compile(_DECIMAL)),
    ("quotient", re.compile(rf"\\frac ?\{{ ?{_SIGNED} ?\}} ?\{{ ?{_SIGNED} ?\}}|{_SIGNED} ?/ ?{_SIGNED}")),
    ("mixed", re.compile(r"(\d+) ?(?:\\frac ?\{ ?(\d+) ?\} ?\{ ?(\d+) ?\}| (\d+) ?/ ?(\d+))")),
    ("scientific", re.compile(rf"({_DECIMAL}) ?(?:\\times|\\cdot|\*) ?10 ?\^ ?\{{? ?{_EXPONENT} ?\}}?")),
    ("scientific", re.compile(rf"(\d+\.\d+)[eE]{_EXPONENT}")),
    ("repeating", re.compile(r"(\d*)\.(\d*) ?\\overline ?\{ ?(\d+) ?\}")),
]

_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_UNIT_NAMES = (
    "mm millimeter millimetre; cm centimeter centimetre; m meter metre; km kilometer kilometre; inch in inches; "
    "foot ft feet; yard yd; mile mi; second s sec; minute min; hour h hr; day; week; month; year yr; cent; "
    "dollar usd; degree deg; radian rad; g gram; kg kilogram; ounce oz; pound lb; ml milliliter millilitre; "
    "l liter litre; mph; am; pm"
)
_UNITS = {alias: names.split()[0] for names in _UNIT_NAMES.split(";") for alias in names.split()}
_IGNORED = {"per", "square", "cubic", "sq", "cu", "unit", "of", "a", "an"}
_NOT_UNITS = {"or", "and", "not", "no", "if", "is", "are", "where", "when", "for", "base", "mod"}
_TEXT_UNIT = re.compile(r"\\text\{([^{}]*)\} ?(?:\^ ?\{?\d\}?)?$")
_PLAIN_UNIT = re.compile(r"(?<=[\d}) ])([A-Za-z]{2,})\.? ?(?:\^ ?\{?\d\}?)?$")
_DEGREE = re.compile(r"\^\\circ ?[CF]?$")
_PERCENT = re.compile(r" ?\\?%$")
_OPEN_END = re.compile(r"(?:[_^{(\[=,+\-*/<>|&\\:]|\\[a-zA-Z]+)$")
# A Greek letter or a constant may stand before a unit, an operator may not.
_VALUE_COMMANDS = re.compile(r"\\(?:pi|theta|alpha|beta|gamma|lambda|mu|infty)$")


def parse_number(cleaned: str) -> Fraction | None:
    r"""Return the exact value of a plain number, None for anything else.

    Integers with or without groups of thousands, decimals, fractions, mixed numbers, `a \times 10^b`, `0.\overline{3}`.
    """
    body = re.sub(r"\A[+-]? ?", "", cleaned)
    for form, pattern in _FORMS:
        if match := pattern.fullmatch(body):
            try:
                value = _value(form, match)
            except ZeroDivisionError:
                return None
            return -value if cleaned.startswith("-") else value
    return None


def _value(form: str, match: re.Match) -> Fraction:
    """Return the value of one matched form; raises ZeroDivisionError for a zero denominator."""
    if form == "plain":
        return _decimal(match.group())
    parts = [part for part in match.groups() if part is not None]
    if form == "quotient":
        return _decimal(parts[0]) / _decimal(parts[1])
    if form == "mixed":
        return int(parts[0]) + Fraction(int(parts[1]), int(parts[2]))
    if form == "scientific":
        return _decimal(parts[0]) * Fraction(10) ** int(parts[1])
    whole, fixed, period = parts
    shift = 10 ** len(fixed)
    return Fraction(int(whole + fixed or "0"), shift) + Fraction(int(period), (10 ** len(period) - 1) * shift)


def _decimal(text: str) -> Fraction:
    return Fraction(text.replace(",", "").replace(" ", ""))


def split_unit(cleaned: str) -> tuple[str, tuple[str, ...]]:
    """Return the value and its units, known ones in one spelling: `15 cm^2` gives ("15", ("cm",)).

    A percent sign is the unit "%"; "3 million" becomes a power of ten. Nothing is split off mere words.
    """
    rest, units = cleaned.rstrip(), ()
    while (split := _split_last_unit(rest)) is not None:
        rest, last = split
        units = last + units
    return rest, units


def _split_last_unit(text: str) -> tuple[str, tuple[str, ...]] | None:
    if match := _DEGREE.search(text):
        unit = ("degree",)
    elif match := _PERCENT.search(text):
        unit = ("%",)
    elif match := _TEXT_UNIT.search(text):
        unit = _spell(match.group(1), known_only=False)
    elif match := _PLAIN_UNIT.search(text):
        unit = _spell(match.group(1), known_only=True)
    else:
        return None
    rest = text[: match.start()].rstrip()
    if unit is None or not rest or (_OPEN_END.search(rest) and not _VALUE_COMMANDS.search(rest)):
        return None
    if unit and unit[0] in _SCALES:
        return rf"{rest} \times 10^{{{_SCALES[unit[0]]}}}", unit[1:]
    return rest, unit


def _spell(text: str, known_only: bool) -> tuple[str, ...] | None:
    """Return the unit words of a text in one spelling, None when they are not units."""
    if not re.fullmatch(r"[A-Za-z0-9 ./^'-]*[A-Za-z][A-Za-z0-9 ./^'-]*", text):
        return None
    plain = re.sub(r"[\^'0-9-]", "", text.lower().replace("p.m", "pm").replace("a.m", "am"))
    found = re.findall("[a-z]+", plain)
    if _NOT_UNITS.intersection(found):
        return None
    spelled = [_UNITS.get(word) or _UNITS.get(word.removesuffix("s")) or word for word in found]
    if known_only and not set(spelled) <= set(_UNITS.values()) | set(_SCALES):
        return None
    return tuple(word.removesuffix("s") for word in spelled if word.removesuffix("s") not in _IGNORED)


def units_differ(gold: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Tell whether both name known units and not the same; a unit left out or unknown never differs."""
    known = set(_UNITS.values())
    return bool(gold and other and set(gold) <= known and set(other) <= known and gold != other)
