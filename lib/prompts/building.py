"""Build the token ids of a problem under a condition, with the spans of instruction,
insertion and problem.

In the formats plain and chat, the string is `instruction + " " + filler + " " +
problem`. Every part begins with a space, so that byte-level and sentencepiece
vocabularies keep the original tokens unchanged whatever is inserted. Each prompt is
checked for this.

The format authors is the string of the paper's released code, `instruction + filler +
problem` without anything between them, and authors-chat the same in the user's turn of
a chat. There, tokens merge across the borders: the instruction's full stop and the
first slash become one token in most vocabularies. Such tokens belong to no part, and
they are not among the original tokens, which are those that have an equal counterpart
in the prompt without insertion.
"""

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch

from lib.errors import InputError
from lib.prompts.conditions import (
    AUTHORS_FORMATS,
    AUTHORS_INSTRUCTION,
    INSTRUCTION,
    WORKED_EXAMPLE,
    Condition,
    Example,
    Filler,
    is_chat,
    parse_condition,
)
from lib.prompts.insertions import (
    insertions,
    joined_text,
    possible_starts,
    require_no_special_token,
)
from lib.prompts.problems import Problem, posed

# The date for templates that print today's: otherwise prompts would change every day,
# and all answers would be computed again. Llama 3.1's template has this date.
DAY = datetime.datetime(2024, 7, 26)


@dataclass(frozen=True)
class Prompt:
    """A prompt of T tokens, in which the tokens of each part are known."""

    input_ids: torch.Tensor  # (T,)
    # The tokens of "instruction", "problem" and "inserted"; empty if there are none.
    spans: dict[str, slice]
    original: torch.Tensor  # indices of the tokens that were not inserted
    counterparts: torch.Tensor  # their indices in the prompt without insertion
    text: str = field(repr=False)  # what the tokenizer read
    format: str  # one of FORMATS
    # (T,) start and stop of each token in the text, in characters
    offsets: list[tuple[int, int]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def parts(self) -> list[str]:
        """The name of each token's part: a name of `spans`, or "template".

        A token of the insertion is "inserted", even inside another part, and one of
        `merged` is "merged".
        """
        parts = ["template"] * len(self)
        for name, span in self.spans.items():
            parts[span] = [name] * (span.stop - span.start)
        for index in self.merged:
            parts[index] = "merged"
        return parts

    @property
    def merged(self) -> list[int]:
        """Indices of the tokens that are neither inserted nor among the original ones,
        because the insertion changes them; only the authors' formats have any.
        """
        inserted = self.spans["inserted"]
        others = {*self.original.tolist(), *range(inserted.start, inserted.stop)}
        return [index for index in range(len(self)) if index not in others]

    @property
    def texts(self) -> list[str]:
        """The text of each token."""
        return [self.text[start:stop] for start, stop in self.offsets]


def build_prompt(
    tokenizer,
    problem: str | Problem,
    condition: str | Condition,
    *,
    format: str = "plain",
    filler: Filler | None = None,
    examples: Sequence[Example] = (),
) -> Prompt:
    """Return the prompt of a problem under a condition (the paper's appendix).

    problem: a `Problem`, which the condition may pose in another text, or its text, in
    LaTeX. format: "plain" or "chat" with spaces between the parts, "authors", as in the
    authors' released code, or "authors-chat". filler: the texts that conditions insert;
    None: the defaults. examples: worked examples, which precede the problem as finished
    turns of the chat. Raises InputError for an unknown condition or format, repeat and
    hint, which change the text, without a `Problem`, a blank problem, a text with a
    special token, a filler that cannot be cut to its length, a separator or spaces in a
    format that has spaces anyway, and if the insertion changes one of the original
    tokens in such a format (the message names it).
    """
    condition = parse_condition(condition)
    if isinstance(problem, Problem):
        problem = posed(problem, condition)
    elif condition.posed:
        raise InputError(
            f"{condition} changes the text of the problem: give a"
            " lib.prompts.problems.Problem instead of a text"
        )
    filler = condition.filler(filler or Filler())
    text = problem.strip()
    if not text:
        raise InputError("the problem is blank")
    require_no_special_token(tokenizer, text, f"the problem {text[:40]!r}")
    for example in examples:
        shown = f"{example.problem}\n{example.solution}"
        require_no_special_token(tokenizer, shown, f"the example {shown[:40]!r}")
    content = _content(text, condition, format, examples)
    baseline = _encode(tokenizer, content)
    if condition.inserted == "none":
        return baseline
    if content.is_glued:
        inserted = joined_text(tokenizer, condition, filler)
        between = content.bounds["problem"][0]
        start = possible_starts(content.text, between, filler.position)[0]
        prompt = _encode(tokenizer, content.with_insertion(start, inserted))
        return _with_counterparts(prompt, baseline)
    return _spaced(tokenizer, content, baseline, condition, filler)


class _Content(NamedTuple):
    """What a prompt says, without the marks of a chat."""

    text: str  # instruction, insertion and problem
    bounds: dict[str, list[int]]  # of these parts in `text`, in characters
    format: str
    turns: list[dict]  # worked examples that come before

    @property
    def is_glued(self) -> bool:
        """Whether nothing stands between the parts."""
        return self.format in AUTHORS_FORMATS

    def with_insertion(self, start: int, text: str) -> "_Content":
        """Return the content with a text inserted at a character.

        Later parts move, and a part that contains `start` then contains the insertion.
        """
        size = len(text)
        bounds = {
            name: [first + size * (first >= start), last + size * (last > start)]
            for name, (first, last) in self.bounds.items()
        }
        bounds["inserted"] = [start, start + size]
        text = self.text[:start] + text + self.text[start:]
        return self._replace(text=text, bounds=bounds)


def _content(
    problem: str, condition: Condition, format: str, examples: Sequence[Example]
) -> _Content:
    """Return the content of a problem without insertion.

    Raises InputError if the condition is for the authors' formats and this is another.
    """
    is_glued = format in AUTHORS_FORMATS
    if condition.is_for_authors_formats and not is_glued:
        raise InputError(
            f"{condition}: format {format} has spaces between its parts already: set"
            " format to authors"
        )
    instruction = AUTHORS_INSTRUCTION if is_glued else INSTRUCTION
    before_problem = instruction if is_glued else f"{instruction} "
    turns = [
        {"role": role, "content": text}
        for example in [*examples, *[WORKED_EXAMPLE] * condition.example]
        for role, text in (
            ("user", before_problem + example.problem),
            ("assistant", example.solution),
        )
    ]
    if not condition.instructed:
        return _Content(problem, {"problem": [0, len(problem)]}, format, turns)
    text = before_problem + problem
    bounds = {
        "instruction": [0, len(instruction)],
        "problem": [len(before_problem), len(text)],
    }
    return _Content(text, bounds, format, turns)


def _spaced(
    tokenizer,
    content: _Content,
    baseline: Prompt,
    condition: Condition,
    filler: Filler,
) -> Prompt:
    """Return the prompt of a content with an insertion between spaces.

    Raises InputError if every possible position changes an original token, or the
    filler's length.
    """
    reasons = []
    between = content.bounds["problem"][0] - 1
    inserted = filler.text(condition.inserted)
    places = insertions(tokenizer, content.text, between, inserted, filler)
    for start, text in places:
        longer = content.with_insertion(start, text)
        # The space beside the other parts is not part of the insertion.
        longer.bounds["inserted"][0] += start > 0
        longer.bounds["inserted"][1] -= not start and text.endswith(" ")
        prompt = _encode(tokenizer, longer)
        reason = _change_of_originals(
            tokenizer, baseline, prompt, condition, filler.length
        )
        if not reason:
            return prompt
        reasons.append(reason)
    raise InputError(reasons[0])


def _encode(tokenizer, content: _Content) -> Prompt:
    """Return the prompt of a content, with the tokens of its parts.

    Raises InputError if a part has no token.
    """
    text = render(tokenizer, content.text, content.format, content.turns)
    ids, offsets = _tokenized(tokenizer, text, content.format)
    # The last occurrence: a worked example may pose the same problem.
    begin = text.rindex(content.text)
    spans = {}
    for name, (start, stop) in content.bounds.items():
        if content.is_glued:
            span = _span_within(offsets, begin + start, begin + stop)
        else:
            span = _span_of(offsets, content.text, start, stop, begin)
        if span:
            spans[name] = span
        elif name != "inserted":  # an insertion's length is checked by itself
            part = content.text[start:stop]
            raise InputError(f"the tokenizer makes no token of the {name} {part!r}")
    for name in ("instruction", "inserted"):
        spans.setdefault(name, slice(spans["problem"].start, spans["problem"].start))
    inserted = spans["inserted"]
    original = torch.tensor([*range(inserted.start), *range(inserted.stop, len(ids))])
    counterparts = torch.arange(len(original))
    ids = torch.tensor(ids)
    format = content.format
    return Prompt(ids, spans, original, counterparts, text, format, offsets)


def render(tokenizer, content: str, format: str, turns: list[dict]) -> str:
    """Return the text that a model reads: worked examples and then the content of a
    user's turn, plain or in the chat template.

    turns: of the examples, each with its `role` and `content`. Raises InputError for an
    unknown format, and for a template that is missing, that fails or that changes the
    content.
    """
    if not is_chat(format):
        return "\n\n".join([*(turn["content"] for turn in turns), content])
    if not tokenizer.chat_template:
        raise InputError("this model has no chat template: set format to plain")
    messages = [*turns, {"role": "user", "content": content}]
    try:
        text = tokenizer.apply_chat_template(
            messages,
            tokenize=False,
            add_generation_prompt=True,
            strftime_now=DAY.strftime,
        )
    except Exception as error:  # a template is a program, which may raise anything
        raise InputError(
            f"the model's chat template fails: {error}; use the plain prompt format"
        ) from error
    if text.count(content) != 1:
        raise InputError(
            "the chat template changes the problem's text, so token spans cannot be"
            " exact"
        )
    return text


def _tokenized(
    tokenizer, text: str, format: str
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the token ids of a text, and the start and stop of each token in it.

    Raises InputError if they begin with two BOS tokens.
    """
    encoding = tokenizer(
        text,
        add_special_tokens=not is_chat(format),
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


def _span_within(offsets: list[tuple[int, int]], first: int, last: int) -> slice | None:
    """Return the tokens that lie between two characters of the text with all of their
    characters; None if there are none.
    """
    inside = [
        i for i, (start, end) in enumerate(offsets) if first <= start < end <= last
    ]
    return slice(inside[0], inside[-1] + 1) if inside else None


def _with_counterparts(prompt: Prompt, baseline: Prompt) -> Prompt:
    """Return a prompt whose original tokens are those that are equal to a token of the
    prompt without insertion, at the same distance from its start or its end.
    """
    ids, before = prompt.input_ids.tolist(), baseline.input_ids.tolist()
    inserted = prompt.spans["inserted"]
    front = _shared(ids[: inserted.start], before)
    back = _shared(ids[inserted.stop :][::-1], before[front:][::-1])
    original = [*range(front), *range(len(ids) - back, len(ids))]
    counterparts = [*range(front), *range(len(before) - back, len(before))]
    return replace(
        prompt,
        original=torch.tensor(original),
        counterparts=torch.tensor(counterparts),
    )


def _shared(ids: list[int], others: list[int]) -> int:
    """Return how many tokens at the start of two lists are equal."""
    return len(os.path.commonprefix([ids, others]))  # noqa: RUF071 (of any sequences)


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
