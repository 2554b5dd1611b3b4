"""Spans and original tokens of prompts, on the demo tokenizer and on small ones of each kind."""

import itertools

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE, Unigram
from tokenizers.trainers import BpeTrainer, UnigramTrainer
from transformers import PreTrainedTokenizerFast

from lib.errors import InputError, valid
from lib.prompts.building import build_prompt, cut_to_tokens
from lib.prompts.conditions import (
    CONDITIONS,
    FORMATS,
    INSTRUCTION,
    POSITIONS,
    RANDOM_SENTENCE,
    WORKED,
    Condition,
    Example,
    Filler,
    parse_condition,
)

CORPUS = [
    INSTRUCTION,
    RANDOM_SENTENCE,
    r"What is $\frac{1}{2} + 3$? If he has 7 / 12 of the pies, then he / she has the rest.",
    "and / / / / / / / / or he he he he he he he he",
    r"Let $f(x) = \sqrt{x^2 + 1}$. Find all $x$ such that $f(x) = 10$, where he knows $x > 0$.",
]
PROBLEMS = [
    r"What is $\frac{1}{2}+3$?",
    "2 + 2",
    "/ or he?",
    "'s",
    " What is 12 / 4?\n",
    "Ünïcode 中文 😀 e\u0301",
    r"\[x\]",
    "one\n\n  two\t three",
]
TURN = "{{ '<turn>user\n' + message['content'] + '<end>\n' }}"
CHAT = "{{ bos_token or '' }}{% for message in messages %}" + TURN + "{% endfor %}{{ '<turn>assistant\n' }}"
DIGITS_ALONE = Regex(r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def byte_level(trim_offsets=False):
    """GPT-2's kind; digits stand alone, so that the space before one is a token of its own."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(DIGITS_ALONE, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=trim_offsets, use_regex=False),
        ]
    )
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(CORPUS, BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False))
    return tokenizer


def metaspace_bpe():
    """Sentencepiece's kind, with bytes for what the vocabulary lacks."""
    tokenizer = Tokenizer(BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = BpeTrainer(vocab_size=500, special_tokens=["<unk>", *fallback], show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def prepended_bpe():
    """Llama 2's kind: the mark of a space is put before the text by the normaliser, and nothing is split."""
    tokenizer = metaspace_bpe()
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = None
    return tokenizer


def unigram():
    tokenizer = Tokenizer(Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = UnigramTrainer(vocab_size=150, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def wrapped(tokenizer, bos=False, chat_template=CHAT):
    tokenizer.add_special_tokens(["<s>", "<turn>", "<end>"])
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>" if bos else None, chat_template=chat_template
    )


KINDS = {
    "byte-level": lambda: wrapped(byte_level()),
    "byte-level-trimmed": lambda: wrapped(byte_level(trim_offsets=True)),
    "byte-level-bos": lambda: wrapped(byte_level(), bos=True),
    "metaspace-bpe-bos": lambda: wrapped(metaspace_bpe(), bos=True),
    "prepended-bpe-bos": lambda: wrapped(prepended_bpe(), bos=True),
    "unigram": lambda: wrapped(unigram()),
}


@pytest.fixture(scope="module", params=["demo", *KINDS])
def tokenizer(request):
    if request.param == "demo":
        return request.getfixturevalue("demo").tokenizer
    return KINDS[request.param]()


@pytest.fixture(scope="module")
def plain_bytes():
    return wrapped(byte_level())


def refusal(*arguments, **options):
    """The message with which a prompt is refused; it must be one line."""
    with pytest.raises(InputError) as caught:
        build_prompt(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def characters(tokenizer, prompt, name):
    """The text under a span, by the tokenizer's own offsets."""
    offsets = tokenizer(prompt.text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    shift = len(prompt) - len(offsets)  # special tokens before the text
    part = offsets[prompt.spans[name].start - shift : prompt.spans[name].stop - shift]
    return prompt.text[part[0][0] : part[-1][1]].strip() if part else ""


def check_all_conditions(tokenizer, problem, format, filler):
    """Build the prompt under every condition and check whatever must hold for each."""
    baseline = build_prompt(tokenizer, problem, "none", format=format)
    for condition in CONDITIONS:
        prompt = build_prompt(tokenizer, problem, condition, format=format, filler=filler)
        instruction, inserted, asked = (prompt.spans[name] for name in ("instruction", "inserted", "problem"))
        assert instruction.start < instruction.stop == inserted.start
        assert inserted.stop == asked.start < asked.stop <= len(prompt)
        assert inserted.stop - inserted.start == (0 if condition == "none" else filler.length)
        assert prompt.input_ids[prompt.original].tolist() == baseline.input_ids.tolist()
        kept = set(prompt.original.tolist())
        assert kept == set(range(len(prompt))) - set(range(inserted.start, inserted.stop))
        whole = tokenizer(prompt.text, add_special_tokens=format == "plain").input_ids
        assert prompt.input_ids.tolist() == whole
        assert characters(tokenizer, prompt, "instruction") == INSTRUCTION
        if format == "plain":
            assert asked.stop == len(prompt)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_spans_are_exact_and_original_tokens_stay(tokenizer, problem, format):
    check_all_conditions(tokenizer, problem, format, Filler())
    # Not for any text: the demo's vocabulary lacks some rare bytes, and its offsets fall short behind them.
    for condition in CONDITIONS:
        prompt = build_prompt(tokenizer, problem, condition, format=format)
        assert characters(tokenizer, prompt, "problem") == problem.strip()
    prompt = build_prompt(tokenizer, problem, "random", format=format)
    assert characters(tokenizer, prompt, "inserted") == cut_to_tokens(tokenizer, RANDOM_SENTENCE, 55).strip()


LATEX = [r"\frac{1}{2}", "$", r"\boxed{}", "^2", r"\le", " ", "\n", "7", "he", "/", ".", "x"]
TEXTS = st.lists(st.one_of(st.sampled_from(LATEX), st.text(max_size=6)), max_size=8).map("".join)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(problem=TEXTS, format=st.sampled_from(FORMATS), length=st.integers(2, 60))
def test_original_tokens_stay_for_any_problem(tokenizer, problem, format, length):
    if problem.strip():
        check_all_conditions(tokenizer, problem, format, Filler(length=length))
    else:
        assert "blank" in refusal(tokenizer, problem, "mless", format=format)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("problem", ["", "  ", "\n\t", "\u3000"])
def test_a_blank_problem_is_refused(plain_bytes, problem, condition):
    assert refusal(plain_bytes, problem, condition) == "the problem is blank"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", [name for name in KINDS if name.endswith("bos")])
def test_bos_comes_first_and_only_once(kind, format):
    tokenizer = KINDS[kind]()
    for condition in CONDITIONS:
        ids = build_prompt(tokenizer, "What is 7?", condition, format=format).input_ids.tolist()
        assert ids[0] == tokenizer.bos_token_id and ids.count(tokenizer.bos_token_id) == 1


def test_a_doubled_bos_is_refused():
    tokenizer = wrapped(byte_level(), bos=True, chat_template="{{ bos_token }}" + CHAT)
    assert "two BOS tokens" in refusal(tokenizer, "What is 7?", "none", format="chat")


def test_filler_is_cut_at_a_token_and_repeated_as_needed(tokenizer):
    assert cut_to_tokens(tokenizer, "he", 3) == "he he he"
    assert cut_to_tokens(tokenizer, " he\n", 2) == "he he"
    assert len(cut_to_tokens(tokenizer, RANDOM_SENTENCE, 300)) > len(RANDOM_SENTENCE) / 2


def test_a_filler_is_not_cut_inside_a_character(plain_bytes):
    message = "the filler '😀' cannot be cut to 9 tokens inside a character: take 10 or 11"
    assert refusal(plain_bytes, "What is it?", "mless", filler=Filler(length=9, mless="😀")) == message
    check_all_conditions(plain_bytes, "What is it?", "plain", Filler(length=10, mless="😀"))


@pytest.mark.parametrize("text", ["7", "4 2", "1 a", "- -"])
def test_filler_whose_spaces_are_tokens_of_their_own_has_the_length_asked_for(text):
    for trim_offsets in (False, True):
        tokenizer = wrapped(byte_level(trim_offsets))
        check_all_conditions(tokenizer, "What is it?", "plain", Filler(length=4, mless=text, mful=text))


def test_a_filler_of_nothing_is_refused(plain_bytes):
    for wrong in ({"length": 0}, {"length": -1}, {"mless": ""}):
        with pytest.raises(InputError, match=f"filler: {next(iter(wrong))}: "):
            valid(Filler, wrong, "filler")
    with pytest.raises(InputError, match="a filler needs a text and at least one token"):
        cut_to_tokens(plain_bytes, "", 5)


@pytest.mark.parametrize("text, position", [*itertools.product([" ", "\n", " \n"], POSITIONS[1:]), ("\n", "before")])
@pytest.mark.parametrize("kind", ["demo", "byte-level", "byte-level-trimmed"])
def test_spaces_and_line_breaks_are_fillers(demo, kind, text, position):
    tokenizer = demo.tokenizer if kind == "demo" else KINDS[kind]()
    problem = "What is seven plus three?"
    baseline = build_prompt(tokenizer, problem, "none")
    for length in (1, 2, 9, 55):
        prompt = build_prompt(tokenizer, problem, "mless", filler=Filler(length=length, position=position, mless=text))
        inserted = prompt.spans["inserted"]
        assert inserted.stop - inserted.start == length
        assert prompt.input_ids[prompt.original].tolist() == baseline.input_ids.tolist()
        assert prompt.text.split() == baseline.text.split()


def merging(*pairs):
    """A byte-level tokenizer of single bytes that joins `pairs` of pieces, also across spaces."""
    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in pairs)]
    tokenizer = Tokenizer(BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=list(pairs)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    return wrapped(tokenizer)


@pytest.mark.parametrize(
    "pairs, change",
    [
        ([("Ġ", "Ġ")], "'Ġ' became 'ĠĠ'"),  # the last, a space, joins the space of the problem
        ([("Ġ", "/"), (".", "Ġ/")], "'.' became 'Ġ'"),  # the first takes the end of the instruction
    ],
)
def test_a_filler_that_merges_with_its_neighbours_is_refused_and_the_token_named(pairs, change):
    message = refusal(merging(*pairs), "What?", "mless", filler=Filler(length=3))
    assert message.startswith("inserting changes original token ") and change in message


def test_a_filler_whose_first_token_is_only_a_space_cannot_be_one_token():
    message = refusal(wrapped(byte_level()), "What?", "mless", filler=Filler(length=1, mless="7"))
    assert message == "the filler '7' cut to length 1 is only a space"


@pytest.mark.parametrize(
    "problem, message",
    [
        ("abc", "the filler '/' cannot be cut to 4 tokens: the tokenizer drops its characters"),
        ("///", "the tokenizer makes no token of the problem '///'"),
    ],
)
def test_text_that_the_tokenizer_drops_is_refused(problem, message):
    tokenizer = Tokenizer(BPE())  # neither bytes nor an unknown token stand in for what it lacks
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(["abc", INSTRUCTION], BpeTrainer(show_progress=False))
    assert refusal(wrapped(tokenizer), problem, "mless", filler=Filler(length=4)) == message


@pytest.mark.parametrize("condition", ["None", "", "meaningless"])
def test_an_unknown_condition_is_refused(plain_bytes, condition):
    message = refusal(plain_bytes, "What is 7?", condition)
    assert message.startswith(f"unknown condition {condition!r}")
    assert ": choose from none, mless, mful, random, question, letters, dots, pause, arm, mless+arm, gap," in message


@pytest.mark.parametrize(
    "condition, message",
    [
        ("mless@middle", "condition 'mless@middle': position: must be 'before', 'between', 'end' or 'random'"),
        ("none:5", "condition 'none:5': none inserts nothing"),
        ("mless:", "unknown condition 'mless:'"),
        ("mless:0", "condition 'mless:0': length: must be greater than 0, not 0"),
    ],
)
def test_an_impossible_length_or_position_is_refused(plain_bytes, condition, message):
    assert refusal(plain_bytes, "What is 7?", condition).startswith(message)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["mless", "random"])
def test_an_insertion_stands_where_it_should(tokenizer, name, format):
    problem = "What is 7 plus 12 plus 3?"
    baseline = build_prompt(tokenizer, problem, "none", format=format)
    starts = {}
    for position in POSITIONS:
        prompt = build_prompt(tokenizer, problem, f"{name}:9@{position}", format=format)
        inserted = prompt.spans["inserted"]
        assert inserted.stop - inserted.start == 9
        assert prompt.input_ids[prompt.original].tolist() == baseline.input_ids.tolist()
        starts[position] = inserted.start
        inside = [
            n for n in ("instruction", "problem") if prompt.spans[n].start < inserted.start < prompt.spans[n].stop
        ]
        assert len(inside) == (position == "random")
    assert starts["before"] == baseline.spans["instruction"].start
    assert starts["between"] == baseline.spans["problem"].start
    assert starts["end"] == baseline.spans["problem"].stop


def test_the_random_place_is_the_same_for_every_filler_and_differs_between_problems(plain_bytes):
    problems = [f"What is {n} plus one plus two plus three plus four?" for n in range(8)]
    starts = {
        name: [build_prompt(plain_bytes, p, f"{name}@random").spans["inserted"].start for p in problems]
        for name in ("mless", "letters")
    }
    assert starts["mless"] == starts["letters"] and len(set(starts["mless"])) > 3


def test_the_fillers_length_and_position_hold_where_the_condition_gives_none(plain_bytes):
    filler = Filler(length=4, position="end")
    assert parse_condition("mless").filler(filler) == filler
    assert parse_condition("mless:7").filler(filler) == Filler(length=7, position="end")
    assert parse_condition("mless@between").filler(filler) == Filler(length=4)
    assert parse_condition("question:7@random") == Condition(name="question", length=7, position="random")


@pytest.mark.parametrize("condition", CONDITIONS)
def test_an_unknown_format_is_refused(plain_bytes, condition):
    message = refusal(plain_bytes, "What is 7?", condition, format="html")
    assert message == "unknown prompt format 'html': choose from plain, chat"


def test_chat_needs_a_chat_template():
    tokenizer = wrapped(byte_level(), chat_template=None)
    assert "no chat template" in refusal(tokenizer, "What is 7?", "none", format="chat")
    assert build_prompt(tokenizer, "What is 7?", "none").text == f"{INSTRUCTION} What is 7?"


def with_content(expression):
    return wrapped(byte_level(), chat_template=CHAT.replace("message['content']", expression))


def test_a_chat_template_may_trim():
    tokenizer = with_content("message['content'] | trim")
    check_all_conditions(tokenizer, "  What is 7?\n", "chat", Filler(length=9))


@pytest.mark.parametrize(
    "expression",
    ["message['content'] | upper", "message['content'] | replace(' ', '_')", "message['content'] * 2", "''"],
)
def test_a_chat_template_that_alters_the_text_is_refused(expression):
    message = refusal(with_content(expression), "What is 7?", "mless", format="chat")
    assert "the chat template changes the problem's text" in message


@pytest.mark.parametrize("condition", ["none", "mless"])
def test_worked_examples_are_finished_turns_before_the_same_prompt(demo, condition):
    example = Example(problem="What is $1 + 1$?", solution="It is $\\boxed{2}$.")
    alone = build_prompt(demo.tokenizer, "What is $3$?", condition, format="chat")
    shown = build_prompt(demo.tokenizer, "What is $3$?", condition, format="chat", examples=[example, example])
    begin = shown.text.index(f"{INSTRUCTION} What is $1 + 1$?")
    assert begin < shown.text.index(example.solution) < shown.text.rindex(INSTRUCTION)
    assert shown.text.count(example.solution) == 2
    for name, span in alone.spans.items():
        ids = shown.input_ids[shown.spans[name]]
        assert torch.equal(ids, alone.input_ids[span])
    assert len(shown) - len(alone) == shown.spans["problem"].start - alone.spans["problem"].start


def test_worked_examples_stand_before_a_plain_prompt_as_paragraphs(demo):
    example = Example(problem="What is $1 + 1$?", solution="It is $\\boxed{2}$.")
    shown = build_prompt(demo.tokenizer, "What is $3$?", "mless:4", examples=[example])
    assert shown.text == (
        f"{INSTRUCTION} What is $1 + 1$?\n\nIt is $\\boxed{{2}}$.\n\n{INSTRUCTION} / / / / What is $3$?"
    )
    assert demo.tokenizer.decode(shown.input_ids[shown.spans["inserted"]]) == " / / / /"


def test_an_example_is_shown_under_a_condition_of_that_name(demo):
    shown = build_prompt(demo.tokenizer, "What is $3$?", "example", format="chat")
    assert shown.text == build_prompt(demo.tokenizer, "What is $3$?", "none", format="chat", examples=[WORKED]).text


def test_bare_leaves_the_instruction_out(demo):
    found = build_prompt(demo.tokenizer, "What is $3$?", "bare", format="chat")
    expected = build_prompt(demo.tokenizer, "What is $3$?", "none", format="chat").text
    assert found.text == expected.replace(f"{INSTRUCTION} ", "")
    assert found.spans["instruction"].start == found.spans["instruction"].stop == found.spans["problem"].start


@pytest.mark.parametrize("condition", ["gap", "dilution", "layer-1-only", "hidden-from-layers-1-to-4", "gap:55"])
def test_views_have_the_prompt_of_mless(demo, condition):
    expected = build_prompt(demo.tokenizer, "What is $3$?", "mless", format="chat")
    found = build_prompt(demo.tokenizer, "What is $3$?", condition, format="chat")
    assert found.text == expected.text and found.spans == expected.spans
