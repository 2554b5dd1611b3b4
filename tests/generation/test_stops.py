"""The tokens that end an assistant's turn, read from chat templates."""

from types import SimpleNamespace

import pytest
from transformers import GenerationConfig

from lib.generation.engine_interface import Request, Sampling
from lib.generation.running_answer import Row
from lib.generation.stop_tokens import stop_tokens, turn_end
from lib.grading import grade

TURN = "<|im_start|>{{ m.role }}\n{{ m.content }}"
CHATML = "{% for m in messages %}" + TURN + "<|im_end|>\n{% endfor %}"
OPEN = CHATML.replace("<|im_end|>", "{% if not loop.last %}<|im_end|>{% endif %}")
# As in gpt-oss: a separate channel for thoughts, which ends with the token that also
# ends earlier turns.
CHANNELS = (
    "{% for m in messages %}<|start|>{{ m.role }}"
    "{% if m.thinking and loop.last %}<|channel|>analysis<|message|>{{ m.thinking }}"
    "<|end|><|start|>assistant{% endif %}<|channel|>final<|message|>{{ m.content }}"
    "{% if loop.last %}<|return|>{% else %}<|end|>{% endif %}{% endfor %}"
)
SAID = (
    "<|channel|>analysis<|message|>Is it \\boxed{11}?<|end|><|start|>assistant"
    "<|channel|>final<|message|>It is \\boxed{12}.<|return|>"
)
MARKS = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>"]


@pytest.fixture
def marked(tokenizer):
    """A tokenizer with the special tokens of channels."""
    tokenizer.add_special_tokens({"additional_special_tokens": MARKS})
    return tokenizer


@pytest.mark.parametrize(
    "template, end",
    [
        (CHATML, ["<|im_end|>"]),
        # The same token ends all turns, with a space before it.
        (
            "{% for m in messages %}{{ m.content }} {{ eos_token }}{% endfor %}",
            ["<|endoftext|>"],
        ),
        # Turns end with plain text and no special token.
        ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", []),
        ("{{ raise_exception('tools are needed') }}", []),
        (None, []),
        # If the template leaves the last turn open or refuses it, an earlier turn shows
        # the end.
        (OPEN, ["<|im_end|>"]),
        ("{{ raise_exception('?') if not messages[2:] }}" + CHATML, ["<|im_end|>"]),
        (CHANNELS, ["<|return|>"]),
        (CHANNELS.replace("m.thinking", "m.reasoning_content"), ["<|return|>"]),
        # A token that closes a thought does not end the turn.
        (CHANNELS.replace("<|return|>", "<|end|>"), []),
    ],
)
def test_the_end_of_a_turn_is_read_from_the_chat_template(marked, template, end):
    marked.chat_template = template
    marked.eos_token = "<|endoftext|>"
    assert turn_end(marked) == marked.convert_tokens_to_ids(end)


@pytest.mark.parametrize("declared, several", [(None, []), (5, [5]), ([5, 6], [5, 6])])
def test_stop_tokens_include_those_of_the_model_and_of_the_tokenizer(
    tokenizer, declared, several
):
    config = GenerationConfig(eos_token_id=declared)
    model = SimpleNamespace(generation_config=config)
    tokenizer.chat_template = CHATML
    tokenizer.eos_token = "<|endoftext|>"
    ends = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>"])
    assert stop_tokens(model, tokenizer) == {*ends, *several}


def test_an_answer_continues_after_its_closed_thought(marked, ids):
    marked.chat_template = CHANNELS
    writer = SimpleNamespace(
        stops=turn_end(marked), tokenizer=marked, loaded=SimpleNamespace(device="cpu")
    )
    row = Row(writer, Request("a", [1]), Sampling(100))
    finished = [row.take(token) for token in ids(SAID)]
    assert finished.index(True) == len(finished) - 1
    assert grade("12", row.completion().text).correct
