"""Spans and original tokens of prompts, on the demo model's tokenizer and on small
tokenizers of each kind.
"""

import copy
import gc
import itertools
import re
import weakref
from unittest.mock import Mock

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    normalizers,
    pre_tokenizers,
    processors,
)
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

from lib.errors import InputError
from lib.prompts import (
    CONDITIONS,
    Filler,
    build_prompt,
    insertions,
    parse_condition,
)
from lib.prompts.conditions import (
    INSTRUCTION,
    POSITIONS,
    RANDOM_SENTENCE,
    WORKED_EXAMPLE,
    Example,
)
from lib.prompts.insertions import cut_to_tokens

SPACED_FORMATS = ("plain", "chat")
PROBLEMS = [
    r"What is $\frac{1}{2}+3$?",
    "2 + 2",
    "/ or he?",
    "'s",
    " What is 12 / 4?\n",
    "Ünïcode 中文 😀 e\u0301",
]
PROBLEMS += [r"\[x\]", "one\n\n  two\t three"]
ENDS = ["<s>", "<end>", "<turn>"]
CORPUS = [
    INSTRUCTION,
    RANDOM_SENTENCE,
    "and / / / / / / / / or he he he he he he he he",
]
TURN = "{{ '<turn>user\n' + message['content'] + '<end>\n' }}"
CHAT = (
    "{{ bos_token or '' }}{% for message in messages %}"
    + TURN
    + "{% endfor %}{{ '<turn>assistant\n' }}"
)
DIGITS_ALONE = Regex(r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def byte_level(trim_offsets=False):
    """Return a tokenizer like GPT-2's, but with single digits, so that the space before
    a digit is a separate token.
    """
    tokenizer = Tokenizer(BPE())
    digits = pre_tokenizers.Split(DIGITS_ALONE, "isolated")
    spaced = pre_tokenizers.ByteLevel(
        add_prefix_space=False, trim_offsets=trim_offsets, use_regex=False
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, spaced])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def metaspace_bpe(prepended=False):
    """Return a tokenizer like SentencePiece's, with bytes for unknown characters.

    prepended: as in Llama 2, the normaliser adds a space mark before the text, and
    nothing splits the text into words.
    """
    tokenizer = Tokenizer(BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    special = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.train_from_iterator(
        CORPUS, BpeTrainer(vocab_size=500, special_tokens=special, show_progress=False)
    )
    if prepended:
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
        tokenizer.pre_tokenizer = None
    return tokenizer


def wrapped(tokenizer, bos=False, template=CHAT):
    """Return a tokenizer of transformers with a chat template.

    bos: begin texts with a start token, and end every text with end tokens, even one
    that will be continued.
    """
    tokenizer.add_special_tokens(ENDS)
    if bos:
        special = [(token, tokenizer.token_to_id(token)) for token in ENDS]
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A <end> <turn>", special_tokens=special
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>" if bos else None,
        chat_template=template,
    )


def with_content(expression, **options):
    """Return a tokenizer whose chat template replaces the content of a message."""
    return wrapped(
        byte_level(**options), template=CHAT.replace("message['content']", expression)
    )


TRIMMED = "message['content'] | trim"
KINDS = {
    "byte-level-trimmed": lambda: with_content(TRIMMED, trim_offsets=True),
    "byte-level-bos": lambda: wrapped(byte_level(), bos=True),
    "metaspace-bpe-bos": lambda: wrapped(metaspace_bpe(), bos=True),
    "prepended-bpe-bos": lambda: wrapped(metaspace_bpe(prepended=True), bos=True),
}


def merging(*pairs):
    """Return a tokenizer of single bytes that merges `pairs` of pieces, even across
    spaces.
    """
    pieces = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces += ["".join(pair) for pair in pairs]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=list(pairs)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=False, trim_offsets=False, use_regex=False
    )
    return wrapped(tokenizer)


def dropping():
    """Return a tokenizer that drops unknown characters."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(["abc", INSTRUCTION], BpeTrainer(show_progress=False))
    return wrapped(tokenizer)


@pytest.fixture(scope="module", params=["demo", *KINDS])
def tokenizer(request):
    if request.param == "demo":
        return request.getfixturevalue("demo").tokenizer
    return KINDS[request.param]()


def characters(prompt, name):
    """Return the text of a span."""
    part = prompt.offsets[prompt.spans[name]]
    return prompt.text[part[0][0] : part[-1][1]].strip()


def checked(tokenizer, problem, condition, format="plain", filler=None):
    """Build and return the prompt of a condition, after checks that hold for any
    prompt.
    """
    form = {"format": format, "filler": filler}
    baseline = build_prompt(tokenizer, problem, "none", **form)
    prompt = build_prompt(tokenizer, problem, condition, **form)
    ids = prompt.input_ids
    encoded = tokenizer(prompt.text, add_special_tokens=format == "plain").input_ids
    assert ids.tolist() == encoded[: len(ids)]

    # The filler has the wanted length, and all other tokens are unchanged.
    wanted = parse_condition(condition).filler(filler or Filler())
    length = 0 if condition == "none" else wanted.length
    inserted = prompt.spans["inserted"]
    assert inserted.stop - inserted.start == length == len(ids) - len(baseline)
    assert ids[prompt.original].tolist() == baseline.input_ids.tolist()
    assert [prompt.parts[index] for index in prompt.original] == baseline.parts

    start = baseline.spans["instruction"].start
    question = baseline.spans["problem"]
    positions = {
        "before": [start],
        "between": [question.start],
        "end": [question.stop],
        "random": range(start + 1, question.stop),
    }
    assert inserted.start in positions[wanted.position]
    if wanted.position != "random":
        assert characters(prompt, "instruction") == INSTRUCTION
    return prompt


@pytest.mark.parametrize("format", SPACED_FORMATS)
def test_spans_are_exact_and_original_tokens_are_unchanged(tokenizer, format):
    cases = [*itertools.product(PROBLEMS, CONDITIONS)]
    cases += [("What is 7 + 12 + 3?", f"mless:9@{position}") for position in POSITIONS]
    for problem, condition in cases:
        prompt = checked(tokenizer, problem, condition, format)
        # This does not hold for any text: the demo model's vocabulary lacks some rare
        # bytes, after which its offsets are too small.
        assert characters(prompt, "problem") == problem.strip()
        if condition == "random":
            words = cut_to_tokens(tokenizer, RANDOM_SENTENCE, 55)
            assert characters(prompt, "inserted") == words.strip()


def test_a_filler_before_the_instruction_is_never_only_a_line_break(demo, refused):
    message = refused(build_prompt, demo.tokenizer, "What is $3$?", "mless:1@before")
    assert "became 2 tokens between its neighbours, not 1" in message
    prompt = checked(demo.tokenizer, "What is $3$?", "mless:2@before")
    assert prompt.text.startswith("/\nPlease")


@pytest.mark.parametrize("length", [2, 3])
def test_a_filler_of_spaces_has_the_tokens_of_a_longer_run_of_spaces(demo, length):
    # The vocabulary has tokens of several spaces; the space before a filler merges with
    # the filler's spaces.
    encoded = demo.tokenizer("." + " " * 512, add_special_tokens=False)
    first = demo.tokenizer.decode(encoded["input_ids"][1 : length + 1])
    assert " " + cut_to_tokens(demo.tokenizer, " ", length) == first


LATEX = [r"\frac{1}{2}", "$", r"\boxed{}", " ", "\n", "7", "he", "/", "."]
TEXTS = (
    st.lists(st.one_of(st.sampled_from(LATEX), st.text(max_size=6)))
    .map("".join)
    .filter(str.strip)
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(
    TEXTS,
    st.sampled_from(CONDITIONS),
    st.sampled_from(SPACED_FORMATS),
    st.integers(2, 60),
)
def test_original_tokens_are_unchanged_for_any_problem(
    tokenizer, problem, condition, format, length
):
    checked(tokenizer, problem, condition, format, Filler(length=length))


@pytest.mark.parametrize("format", ["plain", "chat", "authors"])
@pytest.mark.parametrize("text", ["<|im_end|>", "a <|im_end|>"])
def test_a_text_with_a_special_token_is_refused(demo, refused, text, format):
    example = Example(problem=text, solution="Seven.")
    plain = {"problem": "What is 7?", "condition": "mless", "format": format}
    changes = {
        "filler": {"filler": Filler(mless=text)},
        "problem": {"problem": text},
        "example": {"examples": [example]},
    }
    for name, change in changes.items():
        message = refused(build_prompt, demo.tokenizer, **plain | change)
        assert re.match(f"the {name} .* contains <.im_end.>, a special token", message)


SPACES = ["between", "end", "random"]


@pytest.mark.parametrize(
    "text, lengths, positions",
    [
        # The space before the text, or its character, is more than one token.
        ("7", [4], SPACES),
        ("1 a", [4], SPACES),
        ("😀", [10], SPACES),
        # Several repetitions share a token.
        (" ", [1, 2, 55], SPACES),
        ("\n", [1, 2, 55], POSITIONS),
        (" \n", [1, 2, 55], SPACES),
    ],
)
@pytest.mark.parametrize(
    "tokenizer", ["demo", "byte-level-bos", "byte-level-trimmed"], indirect=True
)
def test_fillers_of_unusual_tokens_have_the_requested_length(
    tokenizer, text, lengths, positions
):
    for length, position in itertools.product(lengths, positions):
        condition = f"mless:{length}@{position}"
        checked(tokenizer, "What is 7?", condition, filler=Filler(mless=text))


def test_a_chat_template_with_a_date_gives_the_same_prompt_every_day():
    tokenizer = wrapped(byte_level(), template="{{ strftime_now('%d %b %Y') }} " + CHAT)
    prompt = build_prompt(tokenizer, "What is 7?", "mless", format="chat")
    assert prompt.text.startswith("26 Jul 2024 <turn>")


def test_a_filler_is_cut_once_per_tokenizer_and_length(monkeypatch):
    tokenizer = wrapped(byte_level())
    counted = Mock(side_effect=insertions._cut)
    monkeypatch.setattr(insertions, "_cut", counted)
    for problem, condition in itertools.product(PROBLEMS, ["none", "mless", "mful:9"]):
        build_prompt(tokenizer, problem, condition)
    assert counted.call_count == 2
    build_prompt(tokenizer, "What?", "mless:9")
    assert counted.call_count == 3


def test_a_refused_filler_is_refused_again_and_a_changed_copy_is_not_mixed_up(refused):
    tokenizer = wrapped(byte_level())
    changed = copy.deepcopy(tokenizer)
    build_prompt(tokenizer, "What?", "mless")
    changed.add_special_tokens({"additional_special_tokens": ["/"]})
    for _ in range(2):
        message = refused(build_prompt, changed, "What?", "mless")
        assert "contains /, a special token" in message


def test_a_tokenizer_is_not_kept_in_memory_because_a_filler_was_cut():
    tokenizer = wrapped(byte_level())
    build_prompt(tokenizer, "What?", "mless")
    kept = weakref.ref(tokenizer)
    del tokenizer
    gc.collect()
    assert kept() is None


IN_CHAT = {"format": "chat"}
BYTES = merging()
TAKING = merging(("Ġ", "/"), (".", "Ġ/"))
# The filler "ab" is one token after a space and two tokens at the start.
JOINING = merging(("Ġ", "a"), ("Ġa", "b"))
LOUD = with_content("message['content'] | upper")
TWICE = with_content("message['content'] * 2")
FAILING = wrapped(
    byte_level(),
    template="{{ raise_exception(messages[0].content is string and 'as text') }}",
)
TWO_STARTS = wrapped(byte_level(), bos=True, template="<s>" + CHAT)


@pytest.mark.parametrize(
    "tokenizer, condition, options, message",
    [
        (BYTES, "none", {"problem": "\u3000\n"}, "the problem is blank"),
        (BYTES, "none", {"format": "html"}, "unknown prompt format 'html'"),
        (BYTES, "mless:9", {"filler": Filler(mless="😀")}, "inside a character"),
        (LOUD, "mless:1", {"filler": Filler(mless="7")}, "is only a space"),
        (BYTES, "repeat", {}, "repeat changes the text of the problem: give a"),
        (BYTES, "hint", {}, "hint changes the text of the problem: give a"),
        (BYTES, "mless-last-9:4", {}, "9 tokens cannot be visible of 4"),
        (BYTES, "mful-first-56", {}, "56 tokens cannot be visible of 55"),
        (TAKING, "mless:3", {}, "changes original token 69: '.' became"),
        (JOINING, "mless:2@before", {"filler": Filler(mless="ab")}, "became 3 tokens"),
        (dropping(), "mless:4", {"problem": "abc"}, "drops its characters"),
        (dropping(), "mless:4", {"problem": "///"}, "no token of the problem '///'"),
        (wrapped(byte_level(), template=None), "none", IN_CHAT, "no chat template"),
        (TWO_STARTS, "none", IN_CHAT, "starts with two BOS tokens"),
        (FAILING, "none", IN_CHAT, "chat template fails: as text"),
        (LOUD, "none", IN_CHAT, "changes the problem's text"),
        (TWICE, "none", IN_CHAT, "changes the problem's text"),
        (BYTES, "newline", {}, "newline: format plain has spaces between its parts"),
        (BYTES, "mless-spaced", IN_CHAT, "format chat has spaces between its parts"),
    ],
)
def test_a_prompt_that_cannot_be_built_is_refused(
    tokenizer, condition, options, message
):
    arguments = {"problem": "What?", "condition": condition} | options
    with pytest.raises(InputError, match=message):
        build_prompt(tokenizer, **arguments)


NO_CONDITIONS = (
    "mless: mless@middle none:5 none-last-5 he-last-5 mless-last-0 comma:2 space@end"
    " none-spaced comma-spaced newline-last-1"
)


@pytest.mark.parametrize("condition", NO_CONDITIONS.split())
def test_an_invalid_condition_is_refused(condition):
    with pytest.raises(InputError, match=f"condition '{condition}'"):
        parse_condition(condition)


def test_the_random_position_is_the_same_for_every_filler_and_differs_by_problem():
    starts = []
    for n in range(8):
        problem = f"What is {n} plus one plus two plus three plus four?"
        slashes = build_prompt(BYTES, problem, "mless@random").spans["inserted"]
        letters = build_prompt(BYTES, problem, "letters@random").spans["inserted"]
        assert slashes.start == letters.start
        starts.append(slashes.start)
    assert len(set(starts)) > 3


PLAIN = (
    f"{INSTRUCTION} What is $1 + 1$?\n\nIt is $\\boxed{{2}}$.\n\n{INSTRUCTION} / / / /"
    " What is $3$?"
)
CHATTED = (
    f"<turn>user\n{INSTRUCTION} What is $1 + 1$?<end>\n<turn>user\nIt is"
    f" $\\boxed{{2}}$.<end>\n<turn>user\n{INSTRUCTION} / / / / What is"
    " $3$?<end>\n<turn>assistant\n"
)


@pytest.mark.parametrize("format, words", [("plain", PLAIN), ("chat", CHATTED)])
def test_worked_examples_are_complete_turns_before_the_prompt(format, words):
    tokenizer = with_content(TRIMMED)
    arguments = tokenizer, "What is $3$?", "mless:4"
    example = Example(problem="What is $1 + 1$?", solution="It is $\\boxed{2}$.")
    shown = build_prompt(*arguments, format=format, examples=[example])
    assert shown.text == words
    inserted = shown.input_ids[shown.spans["inserted"]]
    assert tokenizer.decode(inserted) == " / / / /"

    # The prompt after the example is the same as without it, only later.
    alone = build_prompt(*arguments, format=format)
    for name, span in alone.spans.items():
        assert torch.equal(shown.input_ids[shown.spans[name]], alone.input_ids[span])
    moved = shown.spans["problem"].start - alone.spans["problem"].start
    assert len(shown) - len(alone) == moved


def test_a_worked_example_may_pose_the_same_problem():
    example = Example(problem="What is $3$?", solution="Three.")
    prompt = build_prompt(BYTES, "What is $3$?", "none", examples=[example])
    assert prompt.spans["problem"].stop == len(prompt)


# A condition that leaves the prompt as it is, and the condition with the same prompt.
SAME = """
example none
arm:c=0.2 none
mless:7+arm mless:7
gap mless
gap:55 mless
dilution mless
layer-1-only mless
hidden-from-layers-1-to-4 mless
mless-last-5 mless
letters-middle-3:7 letters:7
"""


@pytest.mark.parametrize("row", SAME.strip().splitlines())
def test_conditions_that_do_not_change_a_prompt_have_the_prompt_of_another(row):
    condition, other = row.split()
    examples = [WORKED_EXAMPLE] if condition == "example" else []
    found = build_prompt(BYTES, "What is $3$?", condition, format="chat")
    expected = build_prompt(
        BYTES, "What is $3$?", other, format="chat", examples=examples
    )
    assert (found.text, found.spans) == (expected.text, expected.spans)


def test_the_condition_bare_leaves_the_instruction_out():
    bare = build_prompt(BYTES, "What is $3$?", "bare", format="chat")
    assert bare.text == "<turn>user\nWhat is $3$?<end>\n<turn>assistant\n"
    problem = bare.spans["problem"]
    assert bare.spans["instruction"] == slice(problem.start, problem.start)


@pytest.mark.parametrize(
    "condition, length, position",
    [("mless", 4, "end"), ("mless:7", 7, "end"), ("mless@between", 4, "between")],
)
def test_length_and_position_of_a_condition_override_those_of_the_filler(
    condition, length, position
):
    filler = parse_condition(condition).filler(Filler(length=4, position="end"))
    assert filler == Filler(length=length, position=position)


# A condition, which of five layers hide the inserted tokens, and which silence them.
VIEWS = """
mless | |
gap | 1 2 3 4 5 |
dilution | 2 3 4 5 | 1
layer-1-only | 2 3 4 5 |
layers-1-to-4-only | 5 |
hidden-from-layers-1-to-4 | 1 2 3 4 |
"""


@pytest.mark.parametrize(
    "condition, visible",
    [
        ("mless-first-5", slice(20, 25)),
        ("mless-middle-5", slice(22, 27)),
        ("random-last-1", slice(29, 30)),
        ("mful-last-10:10", slice(20, 30)),
        ("mless", None),
    ],
)
def test_a_condition_shows_the_first_middle_or_last_of_the_hidden_tokens(
    condition, visible
):
    parsed = parse_condition(condition)
    if visible is None:
        assert parsed.visible is None
    else:
        assert parsed.visible.within(slice(20, 30)) == visible
        assert parsed.view.hidden(3) == [1, 2, 3]
        assert parsed.for_likelihood


@pytest.mark.parametrize("row", VIEWS.strip().splitlines())
def test_a_condition_names_the_layers_that_hide_or_silence_the_inserted_tokens(row):
    condition, *layers = row.split(" |")
    hidden, silenced = ([*map(int, numbers.split())] for numbers in layers)
    view = parse_condition(condition).view
    assert view.hidden(5) == hidden
    for depth in (1, 5):
        assert list(view.shown(depth) if view.silent else ()) == silenced
