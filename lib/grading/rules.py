r"""Decide whether two answers are equal: strings, then typed rules, then algebra where those settle nothing.

`decide` returns None where only algebra can tell. It gets the algebra as an argument: the calling process runs the
cheap rules alone, a worker process the same rules with math-verify behind them.
"""

import re
from collections.abc import Callable

from lib.grading.normalise import clean, key, words
from lib.grading.quantity import parse_number, split_unit, units_differ
from lib.grading.sequences import Sequence, as_interval, is_relation, parse_sequence

Verdict = tuple[bool, str]
Algebra = Callable[[str, str], Verdict | None]

_BASE_WORDS = {
    **{"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8"},
    **{"nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "sixteen": "16"},
}
_BASED = re.compile(r"\(?([0-9A-Z]+)\)?_\{?\(?(\d+|[a-z]+)\)?\}?")
_CHOICE = re.compile(r"\(?([A-Z])\)?")
_LABELLED = re.compile(r"\(([A-Z])\)[^()]*")
_NAMES = (
    r"[a-zA-Z]'*(?:_\w|_\{\w+\})?(?: ?\([a-zA-Z0-9, ]+\))?",
    r"\\[a-z]+",
    r"\\text\{[^{}]*\}",
    r"\( ?(?:[a-z]|\\[a-z]+)(?: ?, ?(?:[a-z]|\\[a-z]+))+ ?\)",
)
_NAMED = re.compile(rf"({'|'.join(_NAMES)}) ?(?:=|\\in(?![a-z])) ?([^=<>].*)", re.DOTALL)
_HAS_RELATION = re.compile(r"[=<>]|\\(?:leq|geq|neq|in)(?![a-z])")


def decide(gold: str, answer: str, algebra: Algebra = lambda gold, answer: None) -> Verdict | None:
    """Return whether the answer equals the gold and what decided, None when only algebra can tell."""
    return _decide(clean(gold), clean(answer), algebra)


def _decide(gold: str, answer: str, algebra: Algebra) -> Verdict | None:
    """Apply the rules to cleaned strings in their order; each returns None for what is not its business."""
    if key(gold) == key(answer):
        return True, "equal"
    answer = re.split(r"\\approx(?![a-z])", answer)[0].strip() or answer
    for rule in (_base, _choice, _word, _number):
        if verdict := rule(gold, answer):
            return verdict
    for rule in (_unit, _interval, _sequence, _name):
        handled, verdict = rule(gold, answer, algebra)
        if handled:
            return verdict
    return algebra(gold, answer)


def value_of(cleaned: str) -> str:
    """Return what stands after the name of `x = 5`, or the answer itself."""
    named = _NAMED.fullmatch(cleaned)
    return named.group(2) if named else cleaned


def _base(gold: str, answer: str) -> Verdict | None:
    r"""Compare digits and base as written, `52_8` is not `52_9` or 42; a base left out is as asked."""
    gold_digits, gold_base = _split_base(gold)
    digits, base = _split_base(answer)
    if gold_base is None and (base is None or gold_digits is None):
        return None
    same_base = None in (gold_base, base) or gold_base == base
    return digits == gold_digits and same_base, "base"


def _split_base(cleaned: str) -> tuple[str | None, str | None]:
    """Return digits and base of `52_8`, (digits, None) of plain digits, (None, None) of anything else."""
    spelled = re.sub(r"_?[{(]? ?base ?", "_", words(cleaned))
    text = key(spelled).rpartition("=")[2]
    if text.isdecimal():
        return text, None
    if not (match := _BASED.fullmatch(text)):
        return None, None
    base = _BASE_WORDS.get(match.group(2), match.group(2))
    return (match.group(1), base) if base.isdecimal() and match.group(1)[0].isdigit() else (None, None)


def _choice(gold: str, answer: str) -> Verdict | None:
    r"""Compare the letter of a multiple choice; `(C)` may be followed by what it stands for."""
    letter = _CHOICE.fullmatch(words(gold).replace(" ", ""))
    if not letter or not (r"\text" in gold or "(" in gold):
        return None
    given = words(answer)
    found = _CHOICE.fullmatch(given.upper().replace(" ", "")) or _LABELLED.fullmatch(given)
    return found is not None and found.group(1) == letter.group(1), "choice"


def _word(gold: str, answer: str) -> Verdict | None:
    r"""Compare words without case, articles and the order of a list; a gold in `\text` is settled by this."""
    gold_words, in_text = _word_list(gold), re.fullmatch(r"\\text\{[^{}]*\}", gold)
    if gold_words is None:
        return None
    same = gold_words == _word_list(answer)
    return (same, "word") if in_text or same else None


def _word_list(cleaned: str) -> list[str] | None:
    plain = words(cleaned).casefold()
    if not re.fullmatch(r"[a-z][a-z .,'-]{2,}", plain) and not re.fullmatch(r"\\text\{[^{}\d]*\}", cleaned):
        return None
    parts = re.split(r",|\band\b|\bor\b", re.sub(r"\b(?:the|an?) ", "", plain))
    return sorted(re.sub(r"[ .-]+", " ", part).strip() for part in parts if part.strip())


def _number(gold: str, answer: str) -> Verdict | None:
    r"""Compare two plain numbers exactly, units aside; a percent sign on one side only may count or not."""
    (gold_text, gold_unit), (text, unit) = split_unit(gold), split_unit(answer)
    expected, value = parse_number(gold_text), parse_number(text)
    if expected is None or value is None:
        return None
    if units_differ(gold_unit, unit):
        return False, "unit"
    same = expected == value
    if "%" in gold_unit and "%" not in unit:
        same = same or expected == 100 * value
    if "%" in unit and "%" not in gold_unit:
        same = same or value == 100 * expected
    return same, "decimal"


def _unit(gold: str, answer: str, algebra: Algebra) -> tuple[bool, Verdict | None]:
    """Compare what stands before the units, after checking that those do not contradict each other."""
    (gold_value, gold_unit), (value, unit) = split_unit(gold), split_unit(answer)
    if (gold_value, value) == (gold, answer):
        return False, None
    return True, (False, "unit") if units_differ(gold_unit, unit) else _decide(gold_value, value, algebra)


def _interval(gold: str, answer: str, algebra: Algebra) -> tuple[bool, Verdict | None]:
    """Turn the inequalities of one side into an interval when the other side is one."""
    if is_relation(gold) == is_relation(answer):
        return False, None
    relation, other = (gold, answer) if is_relation(gold) else (answer, gold)
    if (interval := as_interval(relation)) is None or parse_number(other) is not None:
        return False, None
    pair = (interval, other) if relation is gold else (other, interval)
    return True, _decide(*map(clean, pair), algebra=algebra)


def _sequence(gold: str, answer: str, algebra: Algebra) -> tuple[bool, Verdict | None]:
    """Compare item by item where both hold several values; a single number never equals several."""
    expected, given = parse_sequence(gold), parse_sequence(answer)
    single = next((side for side in (expected, given) if side and len(side.items) == 1), None)
    if single:
        unwrapped = [side.items[0] if side is single else text for side, text in ((expected, gold), (given, answer))]
        return True, _decide(*unwrapped, algebra=algebra)
    if expected and given:
        return True, _same_items(expected, given, algebra)
    alone = answer if expected else gold
    if (expected or given) and parse_number(split_unit(alone)[0]) is not None:
        return True, (False, "sequence")
    return False, None


def _same_items(gold: Sequence, answer: Sequence, algebra: Algebra) -> Verdict | None:
    """Match items in order, or in any order for two lists; a vector may stand as a tuple."""
    kinds = {"()" if kind in ("column", f"1x{len(gold.items)}") else kind for kind in (gold.kind, answer.kind)}
    written = {gold.kind, answer.kind}
    if len(gold.items) != len(answer.items) or len(kinds) > 1 or (len(written) > 1 and "()" not in written):
        return False, "sequence"
    if "list" in kinds:
        return _same_list(gold.items, answer.items, algebra)
    return _all([_decide(*pair, algebra) for pair in zip(gold.items, answer.items, strict=True)])


def _same_list(gold: tuple[str, ...], answer: tuple[str, ...], algebra: Algebra) -> Verdict | None:
    """Give each gold item an answer item of its own; equality is transitive, so the first fit will do."""
    left, verdicts = list(answer), []
    for item in gold:
        tried = [_decide(item, other, algebra) for other in left]
        chosen = next((i for i, verdict in enumerate(tried) if verdict and verdict[0]), None)
        if chosen is None:
            return None if None in tried else (False, "sequence")
        verdicts.append(tried[chosen])
        left.pop(chosen)
    return _all(verdicts)


def _all(verdicts: list[Verdict | None]) -> Verdict | None:
    """Join the verdicts of items: one wrong is wrong, one unknown is unknown; algebra is named if used."""
    known = [verdict for verdict in verdicts if verdict]
    if wrong := next((verdict for verdict in known if not verdict[0]), None):
        return wrong
    if len(known) < len(verdicts):
        return None
    return True, "math-verify" if (True, "math-verify") in known else "sequence"


def _name(gold: str, answer: str, algebra: Algebra) -> tuple[bool, Verdict | None]:
    r"""Drop the name of `x = 5` or `x \in [2, 7]` where the other side gives no name, or the same."""
    named_gold, named = _NAMED.fullmatch(gold), _NAMED.fullmatch(answer)
    values = [match.group(2) if match else text for match, text in ((named_gold, gold), (named, answer))]
    if not (named_gold or named) or any(_HAS_RELATION.search(value) for value in values):
        return False, None
    names = {key(match.group(1)) for match in (named_gold, named) if match}
    # y and f(x) name the same curve; two different letters are different claims.
    if len(names) == 2 and not any(name.endswith(")") for name in names):
        constants = all(parse_number(value) is not None for value in values)
        return constants, (False, "name") if constants else None
    return True, _decide(*values, algebra=algebra)
