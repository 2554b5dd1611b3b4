r"""What a response answers: its last closed `\boxed{...}` in one spelling, as an exact
number, with its units.

All of it is linear in the text and changes no value. Numbers are exact fractions, never
floats: 0.33 is not 1/3.
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
    """Return the response up to the first new problem or chat turn, and whether
    anything came after it.

    A header at the very start is the response's own; end-of-text tokens alone are no
    run-on.
    """
    marker = _RUN_ON.search(response, next(_HEADER.finditer(response)).end())
    end = marker.start() if marker else len(response)
    return response[:end], bool(re.sub(_SPECIAL, "", response[end:]).strip())


def last_box(text: str) -> str | None:
    r"""Return the content of the last closed `\boxed{...}` or `\fbox{...}`, None when
    there is none.

    Of two nested boxes it is the inner one; a space may stand before the brace, and
    escaped braces do not count.
    """
    opened, first, last = (
        [],
        -1,
        -1,
    )  # where the content of each open brace begins, -1 where it is no box
    for token in _BRACE.finditer(text):
        if token["opens"]:
            opened.append(token.end() if token["box"] else -1)
        elif token["closes"] and opened and (begin := opened.pop()) > first:
            first, last = begin, token.start()
    return text[first:last] if first >= 0 else None


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
    (
        (
            r"\\(?:text(?:bf|rm|it|sf|tt|normal)?|[mh]box|emph)\s*\{|\\mathrm\s*\{(?=\s*[A-Za-z][A-Za-z."
            r" ]+\})"
        ),
        r"\\text{",
    ),
    (
        rf"\\(?:left|right|[bB]igg?[lrm]?)(?![a-zA-Z])\s*\.?|\\(?:{_FONTS})(?![a-zA-Z])|\\q?quad(?![a-zA-Z])",
        " ",
    ),
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
    r"""Return an answer in one LaTeX spelling: plain characters, no fonts,
    `\frac{a}{b}`, no full stop.
    """
    answer = re.sub(
        "[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda run: f"^{{{normalize('NFKC', run[0])}}}", answer
    )
    answer = re.sub(
        "[₀₁₂₃₄₅₆₇₈₉]+", lambda run: f"_{{{normalize('NFKC', run[0])}}}", answer
    )
    answer = re.sub(
        "[¼½¾⅐-⅞]",
        lambda one: re.sub("(.+)⁄(.+)", r"\\frac{\1}{\2}", normalize("NFKC", one[0])),
        answer,
    )
    answer = re.sub(r"√\s*(\d+|\([^()]*\))", r"\\sqrt{\1}", answer)
    answer = normalize("NFKC", answer).translate(_CHARACTERS)
    for pattern, replacement in _SPELLINGS:
        answer = re.sub(pattern, replacement, answer)
    while re.fullmatch(_NESTED, answer := answer.strip()):
        answer = answer[1:-1]
    return answer


_DECIMAL = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?: \d{3})+|\d+(?:\.\d*)?|\.\d+)"
_SIGNED = rf"([+-]?{_DECIMAL})"
_NUMBERS = {
    rf"({_DECIMAL})": lambda value: value,
    rf"\\frac ?\{{ ?{_SIGNED} ?\}} ?\{{ ?{_SIGNED} ?\}}": lambda a, b: a / b,
    rf"{_SIGNED} ?/ ?{_SIGNED}": lambda a, b: a / b,
    r"(\d+) ?\\frac ?\{ ?(\d+) ?\} ?\{ ?(\d+) ?\}": lambda whole, a, b: whole + a / b,
    r"(\d+) (\d+) ?/ ?(\d+)": lambda whole, a, b: whole + a / b,
    rf"({_DECIMAL}) ?(?:\\times|\\cdot|\*) ?10 ?\^ ?\{{? ?([+-]?\d{{1,3}}) ?\}}?": (
        lambda a, n: a * Fraction(10) ** n
    ),
    r"(\d+\.\d+)[eE]([+-]?\d{1,3})": lambda a, n: a * Fraction(10) ** n,
}


def parse_number(cleaned: str) -> Fraction | None:
    r"""Return the exact value of a plain number, None for anything else.

    Integers with or without groups of thousands, decimals, fractions, mixed numbers, `a
    \times 10^b`, `0.\overline{3}`.
    """
    body, sign = re.sub(r"\A[+-] ?", "", cleaned), -1 if cleaned.startswith("-") else 1
    for pattern, value in _NUMBERS.items():
        if match := re.fullmatch(pattern, body):
            with suppress(ZeroDivisionError):
                return sign * value(
                    *(Fraction(re.sub("[, ]", "", part)) for part in match.groups())
                )
    if match := re.fullmatch(r"(\d*)\.(\d*) ?\\overline ?\{ ?(\d+) ?\}", body):
        whole, fixed, period = match.groups()
        ninths = Fraction(
            int(whole + fixed + period) - int(whole + fixed or 0), 10 ** len(period) - 1
        )
        return sign * ninths / 10 ** len(fixed)
    return None


_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_NAMES = (
    "mm millimeter millimetre; cm centimeter centimetre; m meter metre; km kilometer"
    " kilometre; in inch in inches; foot ft feet; yard yd; mile mi; second s sec;"
    " minute min; hour h hr; day; week; month; year yr; cent; dollar usd; degree deg;"
    " radian rad; g gram; kg kilogram; ounce oz; pound lb; ml milliliter millilitre; l"
    " liter litre; mph; am; pm"
)
_UNITS = {
    alias: names.split()[0] for names in _NAMES.split(";") for alias in names.split()
}
UNITS = frozenset(_UNITS.values())
_IGNORED = {"per", "square", "cubic", "sq", "cu", "unit", "of", "a", "an"}
_NOT_UNITS = {
    "or",
    "and",
    "not",
    "no",
    "if",
    "is",
    "are",
    "where",
    "when",
    "for",
    "base",
    "mod",
}
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
    """Return the value and its units, known ones in one spelling: `15 cm^2` gives
    ("15", ("cm",)).

    A percent sign is the unit "%"; "3 million" becomes a power of ten. Nothing is split
    off mere words.
    """
    rest, units = cleaned.rstrip(), ()
    while match := _UNIT.search(rest):
        before, text = (
            rest[: match.start()].rstrip(),
            match["text"] or match["plain"] or "",
        )
        found = re.findall(
            "[a-z]+", text.lower().replace("p.m", "pm").replace("a.m", "am")
        )
        named = [
            _UNITS.get(word) or _UNITS.get(word.removesuffix("s")) or word
            for word in found
        ]
        known = match["text"] or set(named) <= UNITS | _SCALES.keys()
        if match["sign"]:
            named = ["%" if "%" in match["sign"] else "degree"]
        elif (
            not found
            or not known
            or not _UNIT_TEXT.fullmatch(text)
            or _NOT_UNITS.intersection(found)
        ):
            break
        if not before or _OPEN_END.search(before):
            break
        unit = tuple(
            word.removesuffix("s")
            for word in named
            if word.removesuffix("s") not in _IGNORED
        )
        if unit and unit[0] in _SCALES:
            before, unit = rf"{before} \times 10^{{{_SCALES[unit[0]]}}}", unit[1:]
        rest, units = before, unit + units
    return rest, units


NAMED = re.compile(
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
    r"""Return what stands after the name of `x = 5` or `x \in [2, 7]`, or the answer
    itself.
    """
    named = NAMED.fullmatch(cleaned)
    return named[2] if named else cleaned


def evaluated(gold: str, answer: str) -> bool:
    r"""Return False when the gold is a number and no side of the answer is worked out,
    as `8 + 4` for 12; both cleaned.

    Fractions, roots, multiples of \pi and i, units, percents and powers of ten write a
    number; sums, products, powers, factorials and functions of numbers are still to be
    carried out.
    """

    def holds_operation(text: str) -> bool:
        value = split_unit(text.strip())[0]
        return (
            parse_number(value) is None
            and _OPERATION.search(_MULTIPLE.sub("", value)) is not None
        )

    value = split_unit(value_of(gold))[0]
    if parse_number(value) is None and (
        not _PLAIN.fullmatch(value) or holds_operation(value)
    ):
        return True
    sides = re.split(r"=|\\approx(?![a-zA-Z])", value_of(answer))
    return any(
        not holds_operation(side)
        for side in sides
        if re.search(r"\d|\\pi", side) or len(sides) == 1
    )
