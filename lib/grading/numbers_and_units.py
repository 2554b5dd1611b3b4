"""Parse an answer in its LaTeX spelling: its name, its number and its units."""

import re
from fractions import Fraction

_DECIMAL = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
# A mixed number, a decimal or a quotient, and its power of ten; fractions are spelled
# a/b here.
_NUMBER = re.compile(
    rf"(?:(\d+) +(?=\d+ ?/))?([+-]?{_DECIMAL})(?: ?/ ?([+-]?{_DECIMAL}))?"
    r"(?:(?: ?\\(?:times|cdot) ?10 ?\^ ?\{? ?|[eE])([+-]?\d{1,3}) ?\}?)?"
)
_PERIODIC = re.compile(r"(\d*)\.(\d*)\\overline ?\{ ?(\d+) ?\}")  # 0.1\overline{6}


def parse_number(spelled: str) -> Fraction | None:
    r"""Return the exact value of a plain number; None for other answers.

    Plain numbers are integers with or without groups of thousands, decimals, fractions,
    mixed numbers, `a \times 10^b`, 1e-7 and `0.\overline{3}`. 0.33 is not 1/3.
    """
    sign = -1 if spelled.startswith("-") else 1
    body = re.sub(r"\A- ?", "", spelled)
    periodic = _PERIODIC.fullmatch(body)
    if periodic:
        whole, fixed, period = periodic.groups()
        ninths = int(whole + fixed + period) - int(whole + fixed or 0)
        return sign * Fraction(ninths, (10 ** len(period) - 1) * 10 ** len(fixed))

    body = re.sub(r"\\frac ?\{ ?([-.\d]+) ?\} ?\{ ?([-.\d]+) ?\}", r" \1/\2", body)
    match = _NUMBER.fullmatch(re.sub(r"(?<=\d)[, ](?=\d{3}(?!\d))", "", body).strip())
    if match is None:
        return None
    whole, over, under = (Fraction(match[n] or 0) for n in (1, 2, 3))
    if match[3] and not under:
        return None
    return sign * (whole + over / (under or 1)) * Fraction(10) ** int(match[4] or 0)


_LETTER = r"(?:[a-zA-Z]|\\[a-zA-Z]+ ?)'*(?:_\w|_\{\w+\})?"
# x = 5, f(x) = 5, f^{-1}(x) = 5, (r, \theta) = (3, 4), x \in [2, 7].
NAMED_VALUE = re.compile(
    r"([a-zA-Z]'*(?:_\w|_\{\w+\})?(?:\^\{? ?-1 ?\}?)?(?: ?\([a-zA-Z0-9, ]+\))?"
    rf"|\\[a-z]+|\( ?{_LETTER}(?: ?, ?{_LETTER})* ?\))"
    r" ?(?:=|\\in(?![a-z])) ?([^=<>].*)"
)


def named(spelled: str) -> tuple[str, str]:
    """Return the name of a value, such as x of x = 5, and the value; the name is "" if
    there is none.
    """
    match = NAMED_VALUE.fullmatch(spelled)
    return (key(match[1]), match[2]) if match else ("", spelled)


def key(spelled: str) -> str:
    """Return an answer without spaces, except between digits, to compare texts."""
    return re.sub(r"(?<!\d)\s+|\s+(?!\d)", "", spelled)


# Separators of the values of a list, in addition to a comma.
SEPARATORS = re.compile(
    r"\\text\{ ?,? ?(?:or|and) ?,? ?\}|(?<![a-zA-Z\\])(?:or|and)(?![a-zA-Z])"
    r"|\\(?:lor|land|vee|wedge)(?![a-z])|\\&|;"
)
# Units that are distinguished; the first name of each is its spelling here. Any other
# word may be a unit, too: apples, students, points.
_NAMES = (
    "mm millimeter millimetre; cm centimeter centimetre; m meter metre; km kilometer"
    " kilometre; in inch inche; foot ft feet; yard yd; mile mi; second s sec; minute"
    " min; '; ''; hour h hr; day; week; month; year yr; cent; dollar usd; degree deg"
    " circ; radian rad; g gram; kg kilogram; ounce oz; pound lb; ml milliliter"
    " millilitre; l liter litre; mph; am; pm; % percent"
)
UNITS = {
    name: names.split()[0] for names in _NAMES.split(";") for name in names.split()
}
KNOWN_UNITS = frozenset(UNITS.values())
_IGNORED = {"per", "square", "cubic", "sq", "cu", "unit", "of", "a", "an", "cdot"}
# A value that does not end in an operator, then a unit and its power.
_WITH_UNIT = re.compile(
    r"(?P<value>.*[^\s_^{(\[=,+\-*/<>|&\\:](?<!\\cdot)(?<!\\times))"
    r" ?(?:\\(?:cdot|times)|/)? ?"
    r"(?:(?P<plain>\b(?<![A-Za-z\\])[A-Za-z]{2,}(?:/[a-z]+)?)\.?"
    r"|(?P<marked>\^ ?\\circ ?[CF]?|\\?%|(?<=\d)'{1,2}"
    r"|\\text\{[A-Za-z0-9 ./^'\\\u00a2-\uffff-]*\}))"
    r" ?(?:\^ ?\{? ?-?\d ?\}?)?"
)


def split_unit(spelled: str) -> tuple[str, list[str]]:
    """Return the value and its units, without powers: ("15", ["cm"]) for `15 cm^2`.

    Known units have one spelling. An answer that has only words is not split.
    """
    text = spelled.strip()
    match = _WITH_UNIT.fullmatch(text)
    if match is None:
        return text, []
    units = _unit_words(match["plain"] or match["marked"])
    # Letters outside of \text may be a product of variables.
    if match["plain"] and not KNOWN_UNITS.issuperset(units):
        return text, []
    value, before = split_unit(match["value"])
    return value, before + units


def _unit_words(text: str) -> list[str]:
    """Return the units of a text in one spelling; none for a rate: "per week"."""
    plain = text.replace(r"\text", "").lower()
    if re.match(r"\{? ?per ", plain):
        return []
    words = re.findall(r"[a-z]+|%|(?<!\w)'+", plain)
    singular = [word if word in UNITS else word.removesuffix("s") for word in words]
    return [UNITS.get(word, word) for word in singular if word not in _IGNORED]


_POWER = re.compile(r"\^ ?\{? ?(-?\d) ?\}?$")
_SCALE = re.compile(r"(?:\\circ|degrees?)[ }]*(?:\\text\{)? ?([CF])", re.IGNORECASE)
# One prime is minutes of an angle or feet, two are seconds or inches.
_PRIMES = {"'": ("minute", "foot"), "''": ("second", "in")}


def unit(gold: str, answer: str) -> bool | None:
    """Return False if two answers have different known units, or different powers or
    temperature scales; None otherwise. An unknown or missing unit matches any.
    """
    expected = split_unit(gold)[1]
    given = split_unit(answer)[1]
    if _differ(_SCALE, gold, answer):
        return False
    if not (expected and given) or not KNOWN_UNITS.issuperset(expected + given):
        return None
    sizes = {len(expected), len(given)}
    # The unit after "dollars per" may be missing, like any unit.
    are_all = len(sizes) == 1 or (1 in sizes and expected[0] == "dollar")
    are_same = are_all and all(map(_same_unit, expected, given))
    return None if are_same and not _differ(_POWER, gold, answer) else False


def _differ(pattern: re.Pattern[str], gold: str, answer: str) -> bool:
    """Return whether a pattern finds different texts, without case, in two answers."""
    expected = pattern.search(gold)
    given = pattern.search(answer)
    if not expected or not given:
        return False
    return expected[1].lower() != given[1].lower()


def _same_unit(unit: str, other: str) -> bool:
    alike = _PRIMES.get(unit, ()) + _PRIMES.get(other, ())
    return unit == other or unit in alike or other in alike
