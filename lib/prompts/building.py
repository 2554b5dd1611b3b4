"""Turn a problem and a condition into token ids, and say which tokens are instruction,
inserted, problem.

The string is `instruction + " " + filler + " " + problem`, so every part begins with a
space and byte-level and sentencepiece vocabularies alike keep the original tokens the
same whatever is inserted. That they did is checked for each prompt.
"""

import datetime
import hashlib
import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from lib.errors import InputError
from lib.prompts.conditions import (
    FORMATS,
    INSTRUCTION,
    WORKED,
    Condition,
    Example,
    Filler,
    parse_condition,
)

# What templates take for today: else a prompt would be another one on the next day, and
# all answers would be asked for again. It is the day that Llama 3.1's template names.
DAY = datetime.datetime(2024, 7, 26)


@dataclass(frozen=True)
class Prompt:
    """Token ids (T,) with the slices of their parts; `original` indexes the tokens that
    were not inserted.
    """

    input_ids: torch.Tensor
    spans: dict[str, slice]
    original: torch.Tensor
    text: str = field(repr=False)
    # (T,) start and stop in the text.
    offsets: list[tuple[int, int]] = field(repr=False, default_factory=list)

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def parts(self) -> list[str]:
        """The part that each token is of; an insertion, the last of the spans, may lie
        in another.
        """
        parts = ["template"] * len(self)
        for name, span in self.spans.items():
            parts[span] = [name] * (span.stop - span.start)
        return parts


def build_prompt(
    tokenizer,
    problem: str,
    condition: str | Condition,
    *,
    format: str = "plain",
    filler: Filler | None = None,
    examples: Sequence[Example] = (),
) -> Prompt:
    """Build the prompt of one problem under one condition (the paper's appendix).

    The plain format is the form of the released code. Worked examples stand before it
    as finished turns of a chat. Raises InputError for an unknown condition or format, a
    blank problem, a filler that cannot be cut to its length, and when inserting changes
    one of the original tokens (the message names it).
    """
    condition = parse_condition(condition)
    filler = condition.filler(filler or Filler())
    problem = problem.strip()
    if not problem:
        raise InputError("the problem is blank")
    content = f"{INSTRUCTION} {problem}" if condition.instructed else problem
    parts = {"problem": [len(content) - len(problem), len(content)]}
    if condition.instructed:
        parts = {"instruction": [0, len(INSTRUCTION)], **parts}
    turns = _turns([*examples, *[WORKED] * condition.example])
    baseline = _encode(tokenizer, content, parts, format, turns)
    if condition.inserted == "none":
        return baseline
    reasons = []
    between = parts["problem"][0] - 1
    inserted = filler.text(condition.inserted)
    for place, text in _insertions(tokenizer, content, between, inserted, filler):
        moved = _moved(parts, place, text)
        whole = content[:place] + text + content[place:]
        prompt = _encode(tokenizer, whole, moved, format, turns)
        reason = _what_changed(tokenizer, baseline, prompt, condition, filler.length)
        if not reason:
            return prompt
        reasons.append(reason)
    raise InputError(reasons[0])


def _turns(examples: Sequence[Example]) -> list[dict]:
    """Return worked examples as the turns of a chat."""
    turns = []
    for example in examples:
        question = f"{INSTRUCTION} {example.problem}"
        turns.append({"role": "user", "content": question})
        turns.append({"role": "assistant", "content": example.solution})
    return turns


def _moved(parts: dict[str, list[int]], place: int, text: str) -> dict[str, list[int]]:
    """Return where parts and the insertion begin and end, once a text is inserted.

    What is behind the place moves; a part that the place lies in holds the insertion.
    """
    size = len(text)
    moved = {}
    for name, ends in parts.items():
        moved[name] = [end + size if end > place or not place else end for end in ends]
    # The space at which it joins the rest is no part of the insertion.
    if place:
        moved["inserted"] = [place + 1, place + size]
    else:
        moved["inserted"] = [0, size - text.endswith(" ")]
    return moved


def _insertions(
    tokenizer, content: str, between: int, text: str, filler: Filler
) -> list[tuple[int, str]]:
    """Return (place, inserted text): where in the content, in characters, the insertion
    may go, best first.
    """
    if filler.position == "before":
        # What opens a text has no space before it: a line break leaves the
        # instruction's first token as it is, and counts as inserted. A vocabulary that
        # marks the start of a text as a space needs a space there.
        shorter = (
            cut_to_tokens(tokenizer, text, filler.length - 1)
            if filler.length > 1
            else ""
        )
        inserted = cut_to_tokens(tokenizer, text, filler.length)
        return [(0, f"{shorter}\n"), (0, f"{inserted}\n"), (0, f"{inserted} ")]
    places = [between if filler.position == "between" else len(content)]
    if filler.position == "random":
        # Drawn from the text alone, so alike for every filler.
        places = [match.start() for match in re.finditer(r"(?<=\S) (?=\S)", content)]
        random.Random(hashlib.sha256(content.encode()).digest()).shuffle(places)
    inserted = cut_to_tokens(tokenizer, text, filler.length)
    return [(place, f" {inserted}") for place in places]


def cut_to_tokens(tokenizer, text: str, length: int) -> str:
    """Return `text`, repeated, up to the end of its token number `length`; copies of
    words have spaces between. Raises InputError for a text that cannot be cut so, and
    for one with a special token, such as what ends a turn.
    """
    for token in tokenizer.added_tokens_decoder.values():
        if token.special and token.content in text:
            raise InputError(
                f"the filler {text!r} holds {token.content}, a special token of this"
                " tokenizer: choose another text"
            )
    word = text.strip()
    # A word is at least one token, so `length` copies are enough. Spaces and line
    # breaks share tokens.
    numbers = [length] if word else [length * 2**doublings for doublings in range(9)]
    for copies in numbers:
        # The full stop stands for the instruction: vocabularies that mark the start of
        # a text mark it there.
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
        whole = [
            n
            for n, (end, following) in enumerate(itertools.pairwise(ends), 1)
            if end != following
        ]
        nearest = sorted(whole, key=lambda n: abs(n - length))[:2]
        raise InputError(
            f"the filler {text!r} cannot be cut to {length} tokens inside a character:"
            f" take {' or '.join(map(str, sorted(nearest)))}"
        )
    cut = repeated[2 : ends[length - 1]]
    if word and not cut:
        raise InputError(f"the filler {text!r} cut to length {length} is only a space")
    return cut


def _encode(
    tokenizer, content: str, parts: dict[str, list[int]], format: str, turns: list[dict]
) -> Prompt:
    """Return the prompt of a content whose parts begin and end at these characters."""
    text = _render(tokenizer, content, format, turns)
    encoding = tokenizer(
        text,
        add_special_tokens=format == "plain",
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
    )
    # What some tokenizers put behind every text would end one that is to be continued.
    length = len(encoding["input_ids"])
    while length and encoding["special_tokens_mask"][length - 1]:
        length -= 1
    ids = encoding["input_ids"][:length]
    offsets = encoding["offset_mapping"][:length]
    bos = tokenizer.bos_token_id
    # Chat models such as SmolLM2 open every turn with their BOS token, so only a
    # doubled one is a mistake.
    if bos is not None and ids[:2] == [bos, bos]:
        raise InputError(
            "the prompt starts with two BOS tokens: the chat template adds what the"
            " tokenizer adds"
        )
    spans = {}
    begin = text.index(content)
    for name, (start, stop) in parts.items():
        # A token belongs to the part that holds its last character, and the space
        # before a part is the part's: it may be a token of its own, whose offsets some
        # tokenizers trim to nothing behind it.
        spaced = start > 0 and content[start - 1] == " "
        first = begin + start + (not spaced)
        last = begin + stop
        inside = [i for i, (_, end) in enumerate(offsets) if first <= end <= last]
        if inside:
            spans[name] = slice(inside[0], inside[-1] + 1)
        elif name != "inserted":  # an insertion's length is checked by itself
            raise InputError(
                f"the tokenizer makes no token of the {name} {content[start:stop]!r}"
            )
    for name in ("instruction", "inserted"):
        spans.setdefault(name, slice(spans["problem"].start, spans["problem"].start))
    inserted = spans["inserted"]
    original = torch.tensor([*range(inserted.start), *range(inserted.stop, len(ids))])
    return Prompt(torch.tensor(ids), spans, original, text, offsets)


def format_for(tokenizer, format: str) -> str:
    """Return the format of a model's prompts: plain where chat is asked for and it has
    no template.
    """
    return format if tokenizer.chat_template else "plain"


def _render(tokenizer, content: str, format: str, turns: list[dict]) -> str:
    if format == "plain":
        return "\n\n".join([*(turn["content"] for turn in turns), content])
    if format != "chat":
        raise InputError(
            f"unknown prompt format {format!r}: choose from {', '.join(FORMATS)}"
        )
    if not tokenizer.chat_template:
        raise InputError("this model has no chat template: set format to plain")
    messages = [*turns, {"role": "user", "content": content}]
    # Templates of models that also see read a message as a list of parts.
    in_parts = [
        {"role": turn["role"], "content": [{"type": "text", "text": turn["content"]}]}
        for turn in messages
    ]
    reasons = []
    for form in (messages, in_parts):
        try:
            text = tokenizer.apply_chat_template(
                form,
                tokenize=False,
                add_generation_prompt=True,
                strftime_now=DAY.strftime,
            )
        except Exception as error:  # a template is a program of the checkpoint's
            reasons.append(
                f"the model's chat template fails: {error}; use the plain prompt format"
            )
            continue
        if text.count(content) == 1:
            return text
        reasons.append(
            "the chat template changes the problem's text, so token spans cannot be"
            " exact"
        )
    raise InputError(reasons[0])


def _what_changed(
    tokenizer, baseline: Prompt, prompt: Prompt, condition: Condition, length: int
) -> str:
    """Say which of the original tokens inserting has changed, or that it has another
    length; "" for neither.
    """
    before = baseline.input_ids.tolist()
    after = prompt.input_ids[prompt.original].tolist()
    for number, pair in enumerate(zip(before, after, strict=False), 1):
        if pair[0] != pair[1]:
            old, new = tokenizer.convert_ids_to_tokens(pair)
            advice = "choose a filler that does not merge with its neighbours"
            return (
                f"inserting changes original token {number}: {old!r} became {new!r};"
                f" {advice}"
            )
    if len(before) != len(after):
        return (
            f"inserting changes the number of original tokens from {len(before)} to"
            f" {len(after)}"
        )
    inserted = prompt.spans["inserted"]
    tokens = inserted.stop - inserted.start
    if tokens == length:
        return ""
    return (
        f"filler for {condition} became {tokens} tokens between its neighbours, not"
        f" {length}: its ends merge with them; choose another filler text"
    )
