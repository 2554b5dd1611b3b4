"""Build the token ids of a problem under a condition, with the spans of instruction,
insertion and problem.

The string is `instruction + " " + filler + " " + problem`. Every part begins with a
space, so that byte-level and sentencepiece vocabularies keep the original tokens
unchanged whatever is inserted. Each prompt is checked for this.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from lib.errors import InputError
from lib.prompts.conditions import (
    FORMATS,
    INSTRUCTION,
    WORKED_EXAMPLE,
    Condition,
    Example,
    Filler,
    parse_condition,
)
from lib.prompts.insertions import insertions

# The date for templates that print today's: otherwise prompts would change every day,
# and all answers would be computed again. Llama 3.1's template has this date.
DAY = datetime.datetime(2024, 7, 26)


def format_for(tokenizer, format: str) -> str:
    """Return the requested format, or plain if the tokenizer has no chat template."""
    return format if tokenizer.chat_template else "plain"


def render(tokenizer, content: str, format: str, turns: list[dict]) -> str:
    """Return the text that a model reads: worked examples and then the content of a
    user's turn, plain or in the chat template.

    turns: of the examples, each with its `role` and `content`. Raises InputError for an
    unknown format, and for a template that is missing, that fails or that changes the
    content.
    """
    if format == "plain":
        return "\n\n".join([*(turn["content"] for turn in turns), content])
    if format != "chat":
        raise InputError(
            f"unknown prompt format {format!r}: choose from {', '.join(FORMATS)}"
        )
    if not tokenizer.chat_template:
        raise InputError("this model has no chat template: set format to plain")
    messages = [*turns, {"role": "user", "content": content}]
    # Templates of multimodal models read a message as a list of parts.
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
        except Exception as error:  # a template is a program, which may raise anything
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


@dataclass(frozen=True)
class Prompt:
    """A prompt of T tokens, in which the tokens of each part are known."""

    input_ids: torch.Tensor  # (T,)
    # The tokens of "instruction", "problem" and "inserted"; empty if there are none.
    spans: dict[str, slice]
    original: torch.Tensor  # indices of the tokens that were not inserted
    text: str = field(repr=False)  # what the tokenizer read
    # (T,) start and stop of each token in the text, in characters
    offsets: list[tuple[int, int]] = field(repr=False, default_factory=list)

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def parts(self) -> list[str]:
        """The name of each token's part: a name of `spans`, or "template".

        A token of the insertion is "inserted", even inside another part.
        """
        parts = ["template"] * len(self)
        for name, span in self.spans.items():
            parts[span] = [name] * (span.stop - span.start)
        return parts

    @property
    def texts(self) -> list[str]:
        """The text of each token."""
        return [self.text[start:stop] for start, stop in self.offsets]


def build_prompt(
    tokenizer,
    problem: str,
    condition: str | Condition,
    *,
    format: str = "plain",
    filler: Filler | None = None,
    examples: Sequence[Example] = (),
) -> Prompt:
    """Return the prompt of a problem under a condition (the paper's appendix).

    problem: its text, in LaTeX. format: "plain", as in the authors' released code, or
    "chat". filler: the texts that conditions insert; None: the defaults. examples:
    worked examples, which precede the problem as finished turns of the chat. Raises
    InputError for an unknown condition or format, repeat and hint, which need another
    text of the problem, a blank problem, a filler that cannot be cut to its length, and
    if the insertion changes one of the original tokens (the message names it).
    """
    condition = parse_condition(condition)
    if condition.posed:
        raise InputError(
            f"{condition} changes the text of the problem: build the prompt of the text"
            " that lib.prompts.problems.posed returns, under none"
        )
    filler = condition.filler(filler or Filler())
    problem = problem.strip()
    if not problem:
        raise InputError("the problem is blank")
    content = f"{INSTRUCTION} {problem}" if condition.instructed else problem
    parts = {"problem": [len(content) - len(problem), len(content)]}
    if condition.instructed:
        parts = {"instruction": [0, len(INSTRUCTION)], **parts}
    turns = _turns([*examples, *[WORKED_EXAMPLE] * condition.example])
    baseline = _encode(tokenizer, content, parts, format, turns)
    if condition.inserted == "none":
        return baseline
    reasons = []
    between = parts["problem"][0] - 1
    inserted = filler.text(condition.inserted)
    for start, text in insertions(tokenizer, content, between, inserted, filler):
        moved = _moved(parts, start, text)
        with_insertion = content[:start] + text + content[start:]
        prompt = _encode(tokenizer, with_insertion, moved, format, turns)
        reason = _change_of_originals(
            tokenizer, baseline, prompt, condition, filler.length
        )
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


def _moved(parts: dict[str, list[int]], start: int, text: str) -> dict[str, list[int]]:
    """Return the bounds of the parts and of the insertion, in characters of the
    content, after `text` is inserted at `start`.

    Later parts move, and a part that contains `start` then contains the insertion.
    """
    size = len(text)
    moved = {}
    for name, ends in parts.items():
        moved[name] = [end + size if end > start or not start else end for end in ends]
    # The space before the insertion is not part of it.
    if start:
        moved["inserted"] = [start + 1, start + size]
    else:
        moved["inserted"] = [0, size - text.endswith(" ")]
    return moved


def _encode(
    tokenizer, content: str, parts: dict[str, list[int]], format: str, turns: list[dict]
) -> Prompt:
    """Return the prompt of a content, with the tokens of its parts.

    content: instruction, insertion and problem. parts: their bounds in the content, in
    characters. turns: worked examples that come before. Raises InputError if a part has
    no token.
    """
    text = render(tokenizer, content, format, turns)
    ids, offsets = _tokenized(tokenizer, text, format)
    spans = {}
    for name, (start, stop) in parts.items():
        # The last occurrence: a worked example may pose the same problem.
        span = _span_of(offsets, content, start, stop, text.rindex(content))
        if span:
            spans[name] = span
        elif name != "inserted":  # an insertion's length is checked by itself
            raise InputError(
                f"the tokenizer makes no token of the {name} {content[start:stop]!r}"
            )
    for name in ("instruction", "inserted"):
        spans.setdefault(name, slice(spans["problem"].start, spans["problem"].start))
    inserted = spans["inserted"]
    original = torch.tensor([*range(inserted.start), *range(inserted.stop, len(ids))])
    return Prompt(torch.tensor(ids), spans, original, text, offsets)


def _tokenized(
    tokenizer, text: str, format: str
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the token ids of a text, and the start and stop of each token in it.

    Raises InputError if they begin with two BOS tokens.
    """
    encoding = tokenizer(
        text,
        add_special_tokens=format == "plain",
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
    )
    # Some tokenizers append an end token, which would end a text that should continue.
    length = len(encoding["input_ids"])
    while length and encoding["special_tokens_mask"][length - 1]:
        length -= 1
    ids = encoding["input_ids"][:length]
    bos = tokenizer.bos_token_id
    # Chat models such as SmolLM2 open every turn with their BOS token, so only a
    # doubled one is a mistake.
    if bos is not None and ids[:2] == [bos, bos]:
        raise InputError(
            "the prompt starts with two BOS tokens: the chat template adds what the"
            " tokenizer adds"
        )
    return ids, encoding["offset_mapping"][:length]


def _span_of(
    offsets: list[tuple[int, int]], content: str, start: int, stop: int, begin: int
) -> slice | None:
    """Return the tokens of the characters from `start` to `stop` of the content; None
    if there are none.

    offsets: of the tokens, in the text. begin: where the content begins in the text.
    """
    # A token belongs to the part with its last character. The space before a part
    # belongs to the part: it may be a separate token, whose offsets some tokenizers
    # trim to an empty range after it.
    spaced = start > 0 and content[start - 1] == " "
    first = begin + start + (not spaced)
    last = begin + stop
    inside = [i for i, (_, end) in enumerate(offsets) if first <= end <= last]
    return slice(inside[0], inside[-1] + 1) if inside else None


def _change_of_originals(
    tokenizer, baseline: Prompt, prompt: Prompt, condition: Condition, length: int
) -> str:
    """Return an error message if the insertion changes an original token, or does not
    have `length` tokens; otherwise "".
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
        f" {length}: its ends merge with them; choose another filler text or length"
    )
