"""Compare words (choices, names and other texts), and split lists, points and intervals
into their brackets and their values.

Letters are words inside `\\text`, and elsewhere if they spell real words: `p - q` is a
formula, in which upper case and signs count.
"""

import re

from lib.grading.numbers_and_units import NAMED_VALUE, SEPARATORS

_TEXT = re.compile(r"\\text\{([^{}]*)\}")
# Letters that are no product of variables.
_REAL_WORD = re.compile(r"(?=[a-z]*[aeiouy])[a-z]{4,}|yes|no|odd|and|or|the|an", re.I)
_OPERATOR = re.compile(r"[-+=<>^_/*|!]")


def choice(gold: str, answer: str) -> bool | None:
    r"""Compare the letter of a multiple choice, after which an answer may have the text
    of the choice, as in (B) 5.

    None if the gold answer is neither a letter in parentheses nor one in `\text`; a
    bare A may be a variable. An answer that names a second letter is wrong, and so is a
    letter without both parentheses before a text: B) 5, B: 5.
    """
    letter = re.fullmatch(r"\(?([A-Z])\)?", _plain(gold))
    if not letter or gold == letter[1]:
        return None
    text = _plain(answer)
    chosen = re.match(r"\([A-Za-z]\)|[A-Za-z]$", text)
    if not chosen or _REFUSED.search(text):
        return False
    named = [chosen[0].strip("()"), *("".join(pair) for pair in _OPTION.findall(text))]
    return {name.upper() for name in named} == {letter[1]}


# A letter that is named as a choice, and words that withdraw a choice.
_OPTION = re.compile(r"\(([A-Za-z])\)|(?:\b(?:or|and)\b|[,/&]) ?\(?([A-Z])\b(?!')")
_REFUSED = re.compile(r"\b(?:is|can)(?:n't| ?not| wrong| incorrect| false)\b")


def word(gold: str, answer: str) -> bool | None:
    r"""Compare words without case, articles and the order of a list.

    "and" and "or" only separate the items of a list. This decides about a gold answer
    in `\text`, and if words that change the meaning, as in "12 or more", are in only
    one of the two answers. None: undecided.
    """
    expected = _listed(gold, answer)
    if expected and expected == _listed(answer, gold):
        return True
    is_text = re.fullmatch(r"\\text\{[^{}\d]*\}", gold)
    is_changed = changing_words(gold) != changing_words(answer)
    return False if is_text or is_changed else None


def _plain(spelled: str) -> str:
    """Return an answer with its texts as plain words, without "the answer is"."""
    lead = r"^(?i:(?:the )?(?:correct )?(?:answer|choice|option) is:? )"
    return re.sub(lead, "", _TEXT.sub(r"\1", spelled).strip())


def _listed(spelled: str, other: str) -> list[str] | None:
    """Return the words of a list in alphabetical order; None if it has a formula.

    other: the other answer; if it is a text, letters that spell no known word are read
    as words, too.
    """
    bare = _TEXT.sub(" ", spelled)
    letters = re.findall("[A-Za-z]+", bare)
    is_formula = not all(map(_REAL_WORD.fullmatch, letters))
    if is_formula and (_OPERATOR.search(bare) or not _TEXT.fullmatch(other)):
        return None
    plain = re.sub(r"^\\\{(.*)\\\}$", r"\1", _plain(spelled)).casefold()
    plain = re.sub(r"\b(?:the|an?) (?=[^\W\d_]{2})(?!and\b|or\b)", "", plain)
    if not re.fullmatch(r"[^\W\d_][^\\(]+", plain):
        return None
    parts = re.split(r",|\band\b|\bor\b", re.sub(r"[ .-]+", " ", plain))
    return sorted(part.strip() for part in parts if part.strip())


# Words that change the meaning of a number: "12 or more", "about 12".
_CHANGES = re.compile(
    r"\b(?:at (?:the )?(?:least|most)|\w+ than|up to|close to|about|around|approx"
    r"|(?:or|and) (?:more|less|fewer|so|up|greater|higher|lower|above|below)|roughly"
    r"|approximately|nearly|almost|maybe|perhaps|possibly|probably|not?|never|none"
    r"|cannot|impossible|invalid|undefined|incorrect|wrong|unknown|except|unless|if"
    r"|between|over|under|above|below|plus|minus|negative|dozen|half|twice|but"
    r"|(?:at|as) (?:an? )?(?:min|max)imum"
    r"|(?:opposite|inverse|reciprocal|logarithm|multiples?|\w+ root) of)\b"
    r"|\b(?:(?:min|max)(?:imum)?|sum|product|square|cube|factors?|divisors?) of[ }]*\d"
    r"|\d[ {]*(?:squared|cubed|factorial|(?:min|max)imum"
    r"|(?:ten|hundred|thousand)ths?)\b|\((?:or|and) "
    r"|至[少多]|最[少多]|大?约|左右|以[上下]|超过|不|没有|[少多大小]于|倍|分之|错"
)


def changing_words(spelled: str) -> set[str]:
    """Return the words of an answer that change the meaning of its number."""
    return set(_CHANGES.findall(re.sub(r"\\[a-z]+", " ", spelled.lower())))


_ONES = re.findall(
    r"\w+",
    "zero one two three four five six seven eight nine ten eleven twelve thirteen"
    " fourteen fifteen sixteen seventeen eighteen nineteen",
)
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_DIGITS = {name: value for value, name in enumerate(_ONES)} | {
    name: 10 * value for value, name in enumerate(_TENS, 2)
}
# A number in words that is not followed by another number, a fraction or a scale.
_IN_WORDS = re.compile(
    rf"(\\text\{{)? ?({'|'.join(sorted(_DIGITS, reverse=True))})"
    rf"(?:(?<=ty)[- ]({'|'.join(_ONES[1:10])}))?\b"
    r"(?! *(?:-|and|or|of|to|point|hal(?:f|ves)|thirds?|quarters?|\w+ths?|hundred"
    r"|thousand|[mb]illion|dozen)\b|-)(?(1)([^{}\d]*\})|$)",
    re.IGNORECASE,
)


def in_digits(spelled: str) -> str:
    r"""Return an answer with digits if it is a number below 100 in words, also with a
    unit in `\text`: 12 for twelve. Any other answer is returned as it is.
    """
    match = _IN_WORDS.fullmatch(spelled)
    if match is None:
        return spelled
    number = sum(_DIGITS[name.lower()] for name in match.group(2, 3) if name)
    unit = (match[4] or "}").strip()
    return str(number) if unit == "}" else rf"{number}\text{{ {unit}"


_BOTH_SIGNS = re.compile(r"\\pm(?![a-z])")


def split_values(text: str) -> tuple[str, list[str]]:
    r"""Return the brackets around a text ("" for none and for braces) and its values.

    If every value has a different name, as in x = 3, y = 4, the brackets are "=" and
    the values are in the order of the names.
    """
    text = SEPARATORS.sub(",", text).strip()
    enclosed = re.fullmatch(r"(\(|\[|\\\{)(.*)(\)|\]|\\\})", text)
    # (\pm 3, 0) is a list of two points, but \{\pm 3, 0\} a set of three values.
    is_list = text[:1] in "([" and _BOTH_SIGNS.search(text)
    if enclosed and not is_list and (inside := _between_commas(enclosed[2])):
        return (enclosed[1] + enclosed[3]).replace(r"\{\}", ""), inside
    values = _between_commas(text)
    matches = [NAMED_VALUE.fullmatch(value) for value in values]
    names = {match[1] for match in matches if match}
    if not len(names) == len(values) > 1:
        return "", values
    # Only letters of the alphabet are sorted: r and \theta stay in their order.
    return "=", values if any(name[0] == "\\" for name in names) else sorted(values)


def _between_commas(text: str) -> list[str]:
    """Return the values of a list; none if it closes a bracket that is not open."""
    depth = 0
    parts = [""]
    for token in re.findall(r"\\[a-zA-Z]+|\\.|.", text):
        depth += token in ("(", "[", "{", r"\{")
        depth -= token in (")", "]", "}", r"\}")
        if depth < 0:
            return []
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    signed = [value for part in parts for value in _with_both_signs(part.strip())]
    return [value for value in signed if value]


def _with_both_signs(value: str) -> list[str]:
    r"""Return both values of an expression with `\pm`; `\mp` has the opposite sign."""
    if not _BOTH_SIGNS.search(value):
        return [value]
    both = []
    for sign, other in ("+-", "-+"):
        signed = value.replace(r"\pm", sign, 1).replace(r"\mp", other, 1)
        both += _with_both_signs(signed)
    return both
