"""Turn a problem and a condition into token ids, and say which tokens are instruction, inserted, problem.

The string is `instruction + " " + filler + " " + problem`, so every part begins with a space and byte-level
and sentencepiece vocabularies alike keep the original tokens the same whatever is inserted. That they did is
checked for each prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from lib.errors import InputError

INSTRUCTION = r"Please reason step by step and put your final answer within \boxed{}."
CONDITIONS = ("none", "mless", "mful", "random")
FORMATS = ("plain", "chat")
RANDOM_SENTENCE = (
    "The harbour master walked along the wet pier before sunrise, counting fishing boats, while his sister "
    "painted the kitchen window green, boiled two eggs for breakfast, and wrote a long letter to an old "
    "friend about the garden, the weather, a lost umbrella, her neighbour's violin, and the slow train that "
    "carried oranges over the mountains every second winter until the bridge was closed for repairs."
)


@dataclass(frozen=True)
class Filler:
    """What the conditions insert: `length` tokens cut from a text that is repeated as often as needed."""

    length: int = 55
    mless: str = "/"
    mful: str = "he"
    random: str = RANDOM_SENTENCE


@dataclass(frozen=True)
class Prompt:
    """Token ids (T,) with the slices of their parts; `original` indexes the tokens that were not inserted."""

    input_ids: torch.Tensor
    spans: dict[str, slice]
    original: torch.Tensor
    text: str = field(repr=False)

    def __post_init__(self):
        for name, span in self.spans.items():
            if not 0 <= span.start <= span.stop <= len(self):
                raise InputError(
                    f"the {name} span {span.start} to {span.stop} lies outside a prompt of {len(self)} tokens"
                )

    def __len__(self) -> int:
        return len(self.input_ids)


def build_prompt(
    tokenizer,
    problem: str,
    condition: str,
    *,
    format: str = "plain",
    instruction: str = INSTRUCTION,
    filler: Filler | None = None,
) -> Prompt:
    """Build the prompt of one problem under one condition (the paper's appendix).

    The plain format is the form of the released code.

    Raises InputError for an unknown condition or format, a blank problem, a filler that cannot be cut to its
    length, and when inserting changes one of the original tokens (the message names it).
    """
    if condition not in CONDITIONS:
        raise InputError(f"unknown condition {condition!r}: choose from {', '.join(CONDITIONS)}")
    if not problem.strip():
        raise InputError("the problem is blank")
    baseline = _encode(tokenizer, instruction, "", problem, format)
    if condition == "none":
        return baseline
    filler = filler or Filler()
    inserted = cut_to_tokens(tokenizer, getattr(filler, condition), filler.length)
    prompt = _encode(tokenizer, instruction, inserted, problem, format)
    _check_same_tokens(tokenizer, baseline, prompt)
    found = prompt.spans["inserted"].stop - prompt.spans["inserted"].start
    if found != filler.length:
        raise InputError(
            f"filler for {condition} became {found} tokens between its neighbours, not {filler.length}: "
            "its ends merge with them; choose another filler text"
        )
    return prompt


def cut_to_tokens(tokenizer, text: str, length: int) -> str:
    """Return `text`, repeated with spaces between, up to the end of its token number `length`."""
    if length < 1 or not text.strip():
        raise InputError(f"a filler needs a text and at least one token, not {text!r} with length {length}")
    # A word is at least one token, so this many copies are enough.
    # The full stop stands for the instruction: vocabularies that mark the start of a text mark it there.
    repeated = "." + f" {text.strip()}" * length
    offsets = tokenizer(repeated, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    ends = [end for _, end in offsets if end > 1]
    if len(ends) < length:
        raise InputError(f"the filler {text!r} cannot be cut to {length} tokens: the tokenizer drops its characters")
    return repeated[2 : ends[length - 1]]


def pad(prompts: Sequence[torch.Tensor], value: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Stack id vectors into (B, T), padded on the right, and return them with their lengths (B,)."""
    lengths = torch.tensor([len(ids) for ids in prompts])
    return torch.nn.utils.rnn.pad_sequence(list(prompts), batch_first=True, padding_value=value), lengths


def _encode(tokenizer, instruction: str, inserted: str, problem: str, format: str) -> Prompt:
    parts = {"instruction": instruction.strip(), "inserted": inserted, "problem": problem.strip()}
    content = " ".join(part for part in parts.values() if part)
    text = _render(tokenizer, content, format)
    encoding = tokenizer(text, add_special_tokens=format == "plain", return_offsets_mapping=True)
    ids = encoding["input_ids"]
    bos = tokenizer.bos_token_id
    # Chat models such as SmolLM2 open every turn with their BOS token, so only a doubled one is a mistake.
    if bos is not None and ids[:2] == [bos, bos]:
        raise InputError("the prompt starts with two BOS tokens: the chat template adds what the tokenizer adds")
    spans, begin = {}, text.index(content)
    start = begin
    for name, part in parts.items():
        # A token belongs to the part that holds its last character, and the space before a part is the
        # part's: it may be a token of its own, whose offsets some tokenizers trim to nothing behind it.
        first, last = start + (start == begin), start + len(part)
        inside = [i for i, (_, end) in enumerate(encoding["offset_mapping"]) if first <= end <= last]
        if part and not inside:
            raise InputError(f"the tokenizer makes no token of the {name} {part!r}")
        spans[name] = slice(inside[0], inside[-1] + 1) if inside else slice(0, 0)
        start = last + 1 if part else start
    if not inserted:
        spans["inserted"] = slice(spans["problem"].start, spans["problem"].start)
    keep = torch.ones(len(ids), dtype=torch.bool)
    keep[spans["inserted"]] = False
    return Prompt(torch.tensor(ids), spans, keep.nonzero().squeeze(1), text)


def _render(tokenizer, content: str, format: str) -> str:
    if format == "plain":
        return content
    if format != "chat":
        raise InputError(f"unknown prompt format {format!r}: choose from {', '.join(FORMATS)}")
    if not tokenizer.chat_template:
        raise InputError("this model has no chat template: use the plain prompt format")
    messages = [{"role": "user", "content": content}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    if text.count(content) != 1:
        raise InputError("the chat template changes the problem's text, so token spans cannot be exact")
    return text


def _check_same_tokens(tokenizer, baseline: Prompt, prompt: Prompt) -> None:
    before, after = baseline.input_ids.tolist(), prompt.input_ids[prompt.original].tolist()
    for index, (old, new) in enumerate(zip(before, after, strict=False)):
        if old != new:
            tokens = tokenizer.convert_ids_to_tokens([old, new])
            raise InputError(
                f"inserting changes original token {index + 1}: {tokens[0]!r} became {tokens[1]!r}; "
                "choose a filler that does not merge with its neighbours"
            )
    if len(before) != len(after):
        raise InputError(f"inserting changes the number of original tokens from {len(before)} to {len(after)}")
