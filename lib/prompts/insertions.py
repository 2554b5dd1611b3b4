"""Repeat a filler until it has a number of tokens, and find positions for it."""

import hashlib
import itertools
import random
import re
from typing import Any
from weakref import WeakKeyDictionary

from lib.errors import InputError
from lib.prompts.conditions import SEPARATOR_TEXTS, Condition, Filler, Position

# By tokenizer, then by text and length: a cut is the same for every problem. The keys
# are weak, so that a tokenizer does not outlive its model.
_CUTS: WeakKeyDictionary[Any, dict[tuple[str, int], str]] = WeakKeyDictionary()
# The special tokens of each tokenizer, which may be thousands and take 20 ms to list.
# The keys are weak, because such a tokenizer needs 300 MB: it must not outlive its
# model.
_SPECIAL: WeakKeyDictionary[Any, list[str]] = WeakKeyDictionary()


def require_no_special_token(tokenizer, text: str, name: str) -> None:
    """Raise InputError for a text with a special token, such as the end of a turn,
    which the model would not read as letters.

    name: of the text, for the message.
    """
    if tokenizer not in _SPECIAL:
        added = tokenizer.added_tokens_decoder.values()
        _SPECIAL[tokenizer] = [token.content for token in added if token.special]
    for token in _SPECIAL[tokenizer]:
        if token in text:
            raise InputError(
                f"{name} contains {token}, a special token of this tokenizer: choose"
                " another text"
            )


def insertions(
    tokenizer, content: str, between: int, text: str, filler: Filler
) -> list[tuple[int, str]]:
    """Return candidates (position, text to insert), best first; positions are in
    characters of the content.

    between: the position between instruction and problem. text: repeated until it has
    the filler's length. Several candidates are needed because at some positions the
    insertion merges with its neighbours in some vocabularies.
    """
    if filler.position == "before":
        # The first word of a text has no space before it. A line break after the
        # insertion leaves the instruction's first token unchanged, and counts as
        # inserted. A vocabulary that marks the start of a text with a space needs one.
        inserted = cut_to_tokens(tokenizer, text, filler.length)
        candidates = [(0, f"{inserted}\n"), (0, f"{inserted} ")]
        if filler.length > 1:  # otherwise only the line break would be inserted
            shorter = cut_to_tokens(tokenizer, text, filler.length - 1)
            candidates.insert(0, (0, f"{shorter}\n"))
        return candidates
    inserted = cut_to_tokens(tokenizer, text, filler.length)
    starts = possible_starts(content, between, filler.position)
    return [(start, f" {inserted}") for start in starts]


def possible_starts(content: str, between: int, position: Position) -> list[int]:
    """Return where a text can be inserted, best first, in characters of the content.

    At random these are the spaces between two words. between: the position between
    instruction and problem.
    """
    if position != "random":
        return [{"before": 0, "between": between, "end": len(content)}[position]]
    # Drawn from the text only, so that the position is the same for every filler.
    starts = [match.start() for match in re.finditer(r"(?<=\S) (?=\S)", content)]
    random.Random(hashlib.sha256(content.encode()).digest()).shuffle(starts)
    return starts


def joined_text(tokenizer, condition: Condition, filler: Filler) -> str:
    """Return the text that the authors' formats insert: as in their code, a word is
    repeated `filler.length` times with spaces between, and a longer text is cut to so
    many tokens.

    Raises InputError as `cut_to_tokens`.
    """
    text = filler.text(condition.inserted)
    if condition.inserted in SEPARATOR_TEXTS:
        return text
    joined = cut_to_tokens(tokenizer, text, filler.length)
    if len(text.split()) == 1:
        joined = " ".join([text.strip()] * filler.length)
    return f" {joined} " if condition.spaced else joined


def cut_to_tokens(tokenizer, text: str, length: int) -> str:
    """Return copies of a text, cut off after `length` tokens.

    The copies are separated by spaces unless the text is only white space. The result
    is cached, so a tokenizer must not be changed after its first prompt. Raises
    InputError if the cut would be inside a character, if the tokenizer drops the text,
    and for a text with a special token, such as the end of a turn.
    """
    cuts = _CUTS.setdefault(tokenizer, {})
    if (text, length) not in cuts:
        cuts[text, length] = _cut(tokenizer, text, length)
    return cuts[text, length]


def _cut(tokenizer, text: str, length: int) -> str:
    """Return what `cut_to_tokens` caches."""
    require_no_special_token(tokenizer, text, f"the filler {text!r}")
    word = text.strip()
    # A word is at least one token, so `length` copies are enough. Spaces and line
    # breaks share tokens.
    numbers = [length] if word else [length * 2**doublings for doublings in range(9)]
    for copies in numbers:
        # The full stop replaces the instruction, because some vocabularies mark the
        # start of a text.
        repeated = "." + (f" {word}" * copies if word else f" {text * copies}")
        offsets = tokenizer(
            repeated, add_special_tokens=False, return_offsets_mapping=True
        )["offset_mapping"]
        ends = [end for _, end in offsets if end > 1]
        if len(ends) > length:  # the last of a run may be shorter than the others
            break
    if len(ends) < length:
        raise InputError(
            f"the filler {text!r} cannot be cut to {length} tokens: the tokenizer drops"
            " its characters"
        )
    if ends[length - 1 : length] == ends[length : length + 1]:
        possible = [
            n
            for n, (end, following) in enumerate(itertools.pairwise(ends), 1)
            if end != following
        ]
        nearest = sorted(possible, key=lambda n: abs(n - length))[:2]
        raise InputError(
            f"the filler {text!r} cannot be cut to {length} tokens inside a character:"
            f" choose {' or '.join(map(str, sorted(nearest)))}"
        )
    cut = repeated[2 : ends[length - 1]]
    if word and not cut:
        raise InputError(f"the filler {text!r} cut to length {length} is only a space")
    return cut
