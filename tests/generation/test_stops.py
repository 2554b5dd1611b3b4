"""What chat templates put behind an assistant's turn."""

from types import SimpleNamespace

import pytest
from transformers import GenerationConfig

from lib.generation.writer import stop_tokens, turn_end

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    "{% endfor %}"
)


@pytest.mark.parametrize(
    "template, end",
    [
        (CHATML, ["<|im_end|>"]),
        # A space before the end, and one token that ends all turns.
        (
            "{% for m in messages %}{{ m.content }} {{ eos_token }}{% endfor %}",
            ["<|endoftext|>"],
        ),
        # Words alone, which are no tokens of their own.
        ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", []),
        ("{{ raise_exception('tools are needed') }}", []),
        (None, []),
    ],
)
def test_the_turns_end_is_read_off_the_template(tokenizer, template, end):
    tokenizer.chat_template = template
    tokenizer.eos_token = "<|endoftext|>"
    assert turn_end(tokenizer) == tokenizer.convert_tokens_to_ids(end)


@pytest.mark.parametrize("declared, several", [(None, []), (5, [5]), ([5, 6], [5, 6])])
def test_declared_ends_and_the_tokenizers_own_stop_too(tokenizer, declared, several):
    config = GenerationConfig(eos_token_id=declared)
    model = SimpleNamespace(generation_config=config)
    tokenizer.chat_template = CHATML
    tokenizer.eos_token = "<|endoftext|>"
    own = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    assert stop_tokens(model, tokenizer) == {*own, *several}
