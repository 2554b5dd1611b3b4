"""Test the prompts of the authors' released code, whose parts nothing separates.

Their code concatenates three strings: the instruction with doubled braces, 55 slashes
joined by spaces (or another filler), and the problem. The strings are written by hand
here.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.prompts import CONDITIONS, build_prompt
from lib.prompts.conditions import RANDOM_SENTENCE, SEPARATOR_TEXTS

INSTRUCTION = "Please reason step by step and put your final answer within \\boxed{{}}."
PROBLEM = "A bag holds $3$ red and $4$ blue balls. How many balls does it hold?"
SLASHES = "/" + " /" * 54
BY_HAND = {
    "none": INSTRUCTION + PROBLEM,
    "mless": INSTRUCTION + SLASHES + PROBLEM,
    "mless:1": INSTRUCTION + "/" + PROBLEM,
    "mless:5": INSTRUCTION + "/ / / / /" + PROBLEM,
    "mless:10": INSTRUCTION + "/ / / / / / / / / /" + PROBLEM,
    "mful": INSTRUCTION + "he" + " he" * 54 + PROBLEM,
    "mful:5": INSTRUCTION + "he he he he he" + PROBLEM,
    "question:3": INSTRUCTION + "? ? ?" + PROBLEM,
    "mless@before": SLASHES + INSTRUCTION + PROBLEM,
    "mless@end": INSTRUCTION + PROBLEM + SLASHES,
    "mless-spaced": INSTRUCTION + " " + SLASHES + " " + PROBLEM,
    "space": INSTRUCTION + " " + PROBLEM,
    "newline": INSTRUCTION + "\n" + PROBLEM,
    "blank-line": INSTRUCTION + "\n\n" + PROBLEM,
    "comma": INSTRUCTION + "," + PROBLEM,
    "heading": INSTRUCTION + "Problem: " + PROBLEM,
    "gap": INSTRUCTION + SLASHES + PROBLEM,
}


@pytest.mark.parametrize("condition", BY_HAND)
def test_the_prompt_is_byte_for_byte_that_of_the_authors_code(demo, condition):
    prompt = build_prompt(demo.tokenizer, PROBLEM, condition, format="authors")
    assert prompt.text == BY_HAND[condition]
    assert prompt.input_ids.tolist() == demo.tokenizer(BY_HAND[condition]).input_ids


def test_in_a_chat_the_same_string_is_the_users_turn(demo):
    prompt = build_prompt(demo.tokenizer, PROBLEM, "mless", format="authors-chat")
    assert f"<|im_start|>user\n{BY_HAND['mless']}<|im_end|>" in prompt.text
    assert prompt.text.endswith("<|im_start|>assistant\n")


def test_the_random_position_is_between_two_words(demo):
    prompt = build_prompt(demo.tokenizer, PROBLEM, "mless@random", format="authors")
    without = prompt.text.replace(SLASHES, "", 1)
    assert without == BY_HAND["none"]


def test_a_sentence_is_cut_to_the_number_of_tokens(demo):
    prompt = build_prompt(demo.tokenizer, PROBLEM, "random:9", format="authors")
    assert prompt.text.startswith(f"{INSTRUCTION}{RANDOM_SENTENCE[:30]}")


def test_tokens_that_merge_across_a_border_belong_to_no_part(demo):
    prompt = build_prompt(demo.tokenizer, PROBLEM, "mless", format="authors")
    texts, parts = prompt.texts, prompt.parts
    assert [texts[index] for index in prompt.merged] == ["}", "./"]
    assert [texts[i] for i, part in enumerate(parts) if part == "merged"] == ["}", "./"]
    assert texts[prompt.spans["inserted"]] == [" /"] * 54
    assert "".join(texts[prompt.spans["problem"]]) == PROBLEM


def test_without_insertion_no_token_is_merged(demo):
    prompt = build_prompt(demo.tokenizer, PROBLEM, "none", format="authors")
    assert prompt.merged == []
    assert prompt.original.tolist() == prompt.counterparts.tolist()
    assert len(prompt.original) == len(prompt)


CONDITIONS_OF_AUTHORS = [
    *CONDITIONS,
    *SEPARATOR_TEXTS,
    "mless-spaced",
    "mless:5@before",
]


@settings(max_examples=60, deadline=None)
@given(
    st.text(min_size=1, max_size=12).filter(str.strip),
    st.sampled_from(CONDITIONS_OF_AUTHORS),
)
def test_original_tokens_are_equal_to_their_counterparts(demo, text, condition):
    problem = f"What is {text}?"
    baseline = build_prompt(demo.tokenizer, problem, "none", format="authors")
    prompt = build_prompt(demo.tokenizer, problem, condition, format="authors")
    same = baseline.input_ids[prompt.counterparts]
    assert prompt.input_ids[prompt.original].tolist() == same.tolist()
    assert prompt.original.tolist() == sorted({*prompt.original.tolist()})
    changed = len(baseline) - len(prompt.original)
    assert changed <= 4  # at most two tokens on each side of the insertion
