"""Render a problem as the text that a model reads: plain, or by its chat template."""

import datetime
from typing import Any
from weakref import WeakKeyDictionary

from lib.errors import InputError
from lib.prompts.conditions import FORMATS

# The date for templates that print today's: otherwise prompts would change every day,
# and all answers would be computed again. Llama 3.1's template has this date.
DAY = datetime.datetime(2024, 7, 26)
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


def without_chat(format: str) -> str:
    """Return the format that replaces a requested one if the tokenizer has no chat
    template: plain instead of chat, authors instead of authors-chat.
    """
    return {"chat": "plain", "authors-chat": "authors"}.get(format, format)


def is_chat(format: str) -> bool:
    """Return whether a format uses the model's chat template.

    Raises InputError for an unknown format.
    """
    if format not in FORMATS:
        raise InputError(
            f"unknown prompt format {format!r}: choose from {', '.join(FORMATS)}"
        )
    return format in ("chat", "authors-chat")


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
