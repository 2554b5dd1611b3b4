"""Find the tokens that end an answer."""

from typing import Any

from transformers import PreTrainedModel

# A conversation whose template shows what ends a turn.
QUESTION = "What is the answer?"
THOUGHT = "Six times seven comes to mind."
ANSWER = "The answer is forty-two."


def stop_tokens(model: PreTrainedModel, tokenizer: Any) -> set[int]:
    """Return the tokens that end an answer: those of the generation config and the
    tokenizer, and the end of a turn in the chat template.

    Base models may have a chat template without declaring its end of a turn. Without
    that token they would continue with another turn.
    """
    declared = model.generation_config.eos_token_id
    several = declared if isinstance(declared, list) else [declared]
    return {*several, tokenizer.eos_token_id, *turn_end(tokenizer)} - {None}


def turn_end(tokenizer: Any) -> list[int]:
    """Return the special token that the chat template puts after an assistant's last
    turn, as a list; empty if there is none.

    If the template leaves the last turn open, the token after an earlier turn is
    returned. A token that the template also puts between thought and answer is never
    returned, because it would end the answer before it begins.
    """
    if not tokenizer.chat_template:
        return []
    question = {"role": "user", "content": QUESTION}
    # Templates read a thought from either field.
    thought = {"thinking": THOUGHT, "reasoning_content": THOUGHT}
    answer = {"role": "assistant", "content": ANSWER, **thought}
    # The assistant's turn as the last one, then followed by another turn.
    for turns in ([question, answer], [question, answer, question]):
        try:
            text = tokenizer.apply_chat_template(turns, tokenize=False)
        except Exception:  # a template is a program, which may raise anything
            continue
        before, _, behind = text.partition(ANSWER)
        end = _tokens(tokenizer, behind.lstrip())[:1]
        if end and end[0] in tokenizer.added_tokens_decoder:
            between = _tokens(tokenizer, before.partition(THOUGHT)[2])
            return [] if end[0] in between else end
    return []


def _tokens(tokenizer: Any, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"]
