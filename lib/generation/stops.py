"""Which tokens end an answer: those that a model declares, and its turn's end."""

from typing import Any

from transformers import PreTrainedModel

QUESTION = "What is the answer?"
ANSWER = "The answer is forty-two."


def stop_tokens(model: PreTrainedModel, tokenizer: Any) -> set[int]:
    """Return the tokens that end an answer.

    Base models may have a chat template without declaring what ends its turns: without
    that token they would go on into a turn of their own.
    """
    declared = model.generation_config.eos_token_id
    several = declared if isinstance(declared, list) else [declared]
    return {*several, tokenizer.eos_token_id, *turn_end(tokenizer)} - {None}


def turn_end(tokenizer: Any) -> list[int]:
    """Return the special token that the chat template puts behind an assistant's turn,
    or nothing where there is none.
    """
    if not tokenizer.chat_template:
        return []
    question = {"role": "user", "content": QUESTION}
    answer = {"role": "assistant", "content": ANSWER}
    try:
        text = tokenizer.apply_chat_template(
            [question, answer, question], tokenize=False
        )
    except Exception:  # a template is a program of the checkpoint's, which may fail
        return []
    behind = text.partition(ANSWER)[2].lstrip()
    tokens = tokenizer(behind, add_special_tokens=False)["input_ids"]
    return [token for token in tokens[:1] if token in tokenizer.added_tokens_decoder]
