"""Spans and original tokens of prompts, on the demo tokenizer and on small ones of each
kind.
"""

import itertools

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
from lib.prompts import CONDITIONS, Filler, build_prompt, parse_condition
from lib.prompts.building import cut_to_tokens
from lib.prompts.conditions import (
    FORMATS,
    INSTRUCTION,
    POSITIONS,
    RANDOM_SENTENCE,
    WORKED,
    Example,
)

PROBLEMS = [
    r"What is $\frac{1}{2}+3$?",
    "2 + 2",
    "/ or he?",
    "'s",
    " What is 12 / 4?\n",
    "Ünïcode 中文 😀 e\u0301",
]
PROBLEMS += [r"\[x\]", "one\n\n  two\t three"]
ENDS = ("<s>", "<end>", "<turn>")
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
    """GPT-2's kind; digits stand alone, so that the space before one is a token of its
    own.
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
    """Sentencepiece's kind, with bytes for what the vocabulary lacks.

    Prepended it is Llama 2's: the normaliser puts the mark of a space before the text,
    and nothing is split.
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
    tokenizer.add_special_tokens(["<s>", "<turn>", "<end>"])
    if bos:
        special = [("<s>", tokenizer.token_to_id("<s>"))]
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=special
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>" if bos else None,
        chat_template=template,
    )


KINDS = {
    "byte-level": lambda: wrapped(byte_level()),
    "byte-level-trimmed": lambda: with_content(
        "message['content'] | trim", trim_offsets=True
    ),
    "byte-level-bos": lambda: wrapped(byte_level(), bos=True),
    "metaspace-bpe-bos": lambda: wrapped(metaspace_bpe(), bos=True),
    "prepended-bpe-bos": lambda: wrapped(metaspace_bpe(prepended=True), bos=True),
}


def with_content(expression, **options):
    """A tokenizer whose chat template puts this in place of the message's content."""
    return wrapped(
        byte_level(**options), template=CHAT.replace("message['content']", expression)
    )


def merging(*pairs):
    """A byte-level tokenizer of single bytes that joins `pairs` of pieces, also across
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
    """A tokenizer in which neither bytes nor an unknown token stand in for what it
    lacks.
    """
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(["abc", INSTRUCTION], BpeTrainer(show_progress=False))
    return wrapped(tokenizer)


@pytest.fixture(scope="module", params=["demo", *KINDS])
def tokenizer(request):
    if request.param == "demo":
        return request.getfixturevalue("demo").tokenizer
    return KINDS[request.param]()


def characters(tokenizer, prompt, name):
    """The text under a span, by the tokenizer's own offsets."""
    encoded = tokenizer(
        prompt.text, add_special_tokens=False, return_offsets_mapping=True
    )
    offsets = encoded["offset_mapping"]
    shift = len(prompt) - len(offsets)  # special tokens before the text
    span = prompt.spans[name]
    part = offsets[span.start - shift : span.stop - shift]
    if not part:
        return ""
    begin, _ = part[0]
    _, end = part[-1]
    return prompt.text[begin:end].strip()


def checked(tokenizer, problem, condition, format="plain", filler=None):
    """Build the prompt of a condition, check whatever must hold for any, return it."""
    wanted = parse_condition(condition).filler(filler or Filler())
    length = 0 if condition == "none" else wanted.length
    form = {"format": format, "filler": filler}
    baseline = build_prompt(tokenizer, problem, "none", **form)
    prompt = build_prompt(tokenizer, problem, condition, **form)
    ids = prompt.input_ids.tolist()
    inserted = prompt.spans["inserted"]

    # So many tokens are inserted, and all others stay as they were.
    assert inserted.stop - inserted.start == length
    assert prompt.input_ids[prompt.original].tolist() == baseline.input_ids.tolist()
    others = [*range(inserted.start), *range(inserted.stop, len(prompt))]
    assert prompt.original.tolist() == others
    assert ids == tokenizer(prompt.text, add_special_tokens=format == "plain").input_ids
    if format == "plain":
        assert max(inserted.stop, prompt.spans["problem"].stop) == len(prompt)
    if wanted.position == "random":
        around = prompt.spans["instruction"], prompt.spans["problem"]
        assert any(part.start < inserted.start < part.stop for part in around)
    else:
        check_place(baseline, prompt, wanted.position, length)
        assert characters(tokenizer, prompt, "instruction") == INSTRUCTION
    # The demo's, SmolLM2's, opens every turn with its own.
    if tokenizer.bos_token and tokenizer.name_or_path == "":
        assert ids[0] == tokenizer.bos_token_id
        assert ids.count(tokenizer.bos_token_id) == 1
    return prompt


def check_place(baseline, prompt, position, length):
    """Check where tokens were inserted, and that what lies behind has moved."""
    instruction = baseline.spans["instruction"]
    problem = baseline.spans["problem"]
    places = {
        "before": instruction.start,
        "between": problem.start,
        "end": problem.stop,
    }
    place = places[position]
    assert prompt.spans["inserted"].start == place
    for name in ("instruction", "problem"):
        was = baseline.spans[name]
        now = prompt.spans[name]
        assert now.start == was.start + length * (was.start >= place)
        assert now.stop == was.stop + length * (was.stop > place)


@pytest.mark.parametrize("format", FORMATS)
def test_spans_are_exact_and_original_tokens_stay(tokenizer, format):
    for problem, condition in itertools.product(PROBLEMS, CONDITIONS):
        prompt = checked(tokenizer, problem, condition, format)
        # Not for any text: the demo's vocabulary lacks some rare bytes, and its offsets
        # fall short behind them.
        assert characters(tokenizer, prompt, "problem") == problem.strip()
        if condition == "random":
            assert (
                characters(tokenizer, prompt, "inserted")
                == cut_to_tokens(tokenizer, RANDOM_SENTENCE, 55).strip()
            )
    for name, position in itertools.product(["mless", "random"], POSITIONS):
        checked(tokenizer, "What is 7 plus 12 plus 3?", f"{name}:9@{position}", format)


@pytest.mark.parametrize("length", [2, 3])
def test_a_run_is_cut_to_tokens_of_a_longer_run(demo, length):
    # The vocabulary has tokens of several spaces; the one before a filler joins them.
    encoded = demo.tokenizer("." + " " * 512, add_special_tokens=False)
    first = demo.tokenizer.decode(encoded["input_ids"][1 : length + 1])
    assert " " + cut_to_tokens(demo.tokenizer, " ", length) == first


LATEX = [
    r"\frac{1}{2}",
    "$",
    r"\boxed{}",
    "^2",
    r"\le",
    " ",
    "\n",
    "7",
    "he",
    "/",
    ".",
    "x",
]
TEXTS = (
    st.lists(st.one_of(st.sampled_from(LATEX), st.text(max_size=6)), max_size=8)
    .map("".join)
    .filter(str.strip)
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(problem=TEXTS, format=st.sampled_from(FORMATS), length=st.integers(2, 60))
def test_original_tokens_stay_for_any_problem(tokenizer, problem, format, length):
    for condition in CONDITIONS:
        checked(tokenizer, problem, condition, format, Filler(length=length))


@pytest.mark.parametrize("text, length", [("7", 4), ("1 a", 4), ("😀", 10)])
@pytest.mark.parametrize("trim_offsets", [False, True])
def test_filler_whose_spaces_or_characters_are_several_tokens_has_the_length_asked_for(
    text, length, trim_offsets
):
    checked(
        wrapped(byte_level(trim_offsets)),
        "What is it?",
        "mless",
        filler=Filler(length=length, mless=text),
    )


@pytest.mark.parametrize(
    "text, position",
    [*itertools.product([" ", "\n", " \n"], POSITIONS[1:]), ("\n", "before")],
)
@pytest.mark.parametrize("tokenizer", ["demo", "byte-level-trimmed"], indirect=True)
def test_spaces_and_line_breaks_are_fillers(tokenizer, text, position):
    for length in (1, 2, 55):
        prompt = checked(
            tokenizer,
            "What is 7?",
            f"mless:{length}@{position}",
            filler=Filler(mless=text),
        )
        assert prompt.text.split() == f"{INSTRUCTION} What is 7?".split()


def test_what_a_tokenizer_puts_behind_a_text_is_not_in_one_that_goes_on():
    expected = build_prompt(KINDS["byte-level-bos"](), "What is <end>", "mless")
    tokenizer = KINDS["byte-level-bos"]()
    special = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ENDS]
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A <end> <turn>", special_tokens=special
    )
    assert tokenizer("a").input_ids[-2:] == [place for _, place in special[1:]]
    prompt = build_prompt(tokenizer, "What is <end>", "mless")
    assert prompt.input_ids.tolist() == expected.input_ids.tolist()
    assert prompt.offsets == expected.offsets
    assert prompt.spans == expected.spans


def test_a_template_that_reads_lists_of_parts_gets_the_text_as_one_part():
    parts = "message['content'][0]['text']"
    tokenizer = with_content(f"({parts} or '')")
    options = {"format": "chat", "examples": [Example(problem="1+1?", solution="2")]}
    prompt = build_prompt(tokenizer, "What is 7?", "mless", **options)
    expected = build_prompt(
        with_content("message['content']"), "What is 7?", "mless", **options
    )
    assert prompt.text == expected.text
    assert prompt.input_ids.tolist() == expected.input_ids.tolist()


def test_a_template_that_names_the_day_gives_the_same_prompt_every_day():
    tokenizer = wrapped(byte_level(), template="{{ strftime_now('%d %b %Y') }} " + CHAT)
    prompt = build_prompt(tokenizer, "What is 7?", "mless", format="chat")
    assert prompt.text.startswith("26 Jul 2024 <turn>")


IN_CHAT = {"format": "chat"}
BYTES = merging()
TAKING = merging(("Ġ", "/"), (".", "Ġ/"))
LOUD = with_content("message['content'] | upper")
TWICE = with_content("message['content'] * 2")
TWO_STARTS = wrapped(byte_level(), bos=True, template="<s>" + CHAT)


@pytest.mark.parametrize(
    "tokenizer, condition, options, message",
    [
        (BYTES, "none", {"problem": "\u3000\n"}, "the problem is blank"),
        (BYTES, "none", {"format": "html"}, "unknown prompt format 'html'"),
        (BYTES, "mless:9", {"filler": Filler(mless="😀")}, "inside a character"),
        (LOUD, "mless:1", {"filler": Filler(mless="7")}, "is only a space"),
        (TAKING, "mless:3", {}, "changes original token 69: '.' became"),
        (dropping(), "mless:4", {"problem": "abc"}, "drops its characters"),
        (dropping(), "mless:4", {"problem": "///"}, "no token of the problem '///'"),
        (wrapped(byte_level(), template=None), "none", IN_CHAT, "no chat template"),
        (TWO_STARTS, "none", IN_CHAT, "starts with two BOS tokens"),
        (LOUD, "none", IN_CHAT, "changes the problem's text"),
        (TWICE, "none", IN_CHAT, "changes the problem's text"),
    ],
)
def test_what_cannot_be_built_is_refused(tokenizer, condition, options, message):
    asked = {"problem": "What?", "condition": condition} | options
    with pytest.raises(InputError, match=message):
        build_prompt(tokenizer, **asked)


@pytest.mark.parametrize("condition", ["mless:", "mless@middle", "none:5"])
def test_what_is_no_condition_is_refused(condition):
    with pytest.raises(InputError, match=f"condition '{condition}'"):
        parse_condition(condition)


def test_a_filler_that_comes_out_longer_than_it_was_cut_is_refused(demo, refused):
    filler = Filler(mless="unbelievable")
    asked = demo.tokenizer, "What is 7?", "mless:2@before"
    message = refused(build_prompt, *asked, filler=filler)
    assert message.startswith("filler for mless:2@before became 3 tokens between")


def test_the_random_place_is_the_same_for_every_filler_and_differs_between_problems():
    places = []
    for n in range(8):
        problem = f"What is {n} plus one plus two plus three plus four?"
        slashes = build_prompt(BYTES, problem, "mless@random").spans["inserted"]
        letters = build_prompt(BYTES, problem, "letters@random").spans["inserted"]
        assert slashes.start == letters.start
        places.append(slashes.start)
    assert len(set(places)) > 3


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
def test_a_prompt_is_these_words_and_worked_examples_are_finished_turns_before_it(
    format, words
):
    tokenizer = wrapped(byte_level())
    asked = tokenizer, "What is $3$?", "mless:4"
    example = Example(problem="What is $1 + 1$?", solution="It is $\\boxed{2}$.")
    shown = build_prompt(*asked, format=format, examples=[example])
    assert shown.text == words
    inserted = shown.input_ids[shown.spans["inserted"]]
    assert tokenizer.decode(inserted) == " / / / /"

    # What is asked is the same behind it, so many tokens later.
    alone = build_prompt(*asked, format=format)
    for name, span in alone.spans.items():
        assert torch.equal(shown.input_ids[shown.spans[name]], alone.input_ids[span])
    moved = shown.spans["problem"].start - alone.spans["problem"].start
    assert len(shown) - len(alone) == moved


SAME = {"example": "none", "arm:c=0.2": "none", "mless:7+arm": "mless:7"}
SAME |= dict.fromkeys(
    ("gap", "dilution", "layer-1-only", "hidden-from-layers-1-to-4", "gap:55"), "mless"
)


@pytest.mark.parametrize("condition", SAME)
def test_conditions_that_change_no_prompt_have_that_of_another(demo, condition):
    given = {"examples": [WORKED]} if condition == "example" else {}
    found = build_prompt(demo.tokenizer, "What is $3$?", condition, format="chat")
    expected = build_prompt(
        demo.tokenizer, "What is $3$?", SAME[condition], format="chat", **given
    )
    assert found.text == expected.text and found.spans == expected.spans


def test_bare_leaves_the_instruction_out(demo):
    bare = build_prompt(demo.tokenizer, "What is $3$?", "bare", format="chat")
    whole = build_prompt(demo.tokenizer, "What is $3$?", "none", format="chat")
    assert bare.text == whole.text.replace(f"{INSTRUCTION} ", "")
    instruction = bare.spans["instruction"]
    assert instruction.start == instruction.stop == bare.spans["problem"].start


@pytest.mark.parametrize(
    "condition, length, position",
    [("mless", 4, "end"), ("mless:7", 7, "end"), ("mless@between", 4, "between")],
)
def test_a_condition_has_a_length_and_a_place_of_its_own_or_the_fillers(
    condition, length, position
):
    filler = parse_condition(condition).filler(Filler(length=4, position="end"))
    assert filler == Filler(length=length, position=position)


@pytest.mark.parametrize(
    "condition, hidden, silenced",
    [
        ("mless", [], []),
        ("gap", [1, 2, 3, 4, 5], []),
        ("dilution", [2, 3, 4, 5], [1]),
        ("layer-1-only", [2, 3, 4, 5], []),
        ("layers-1-to-4-only", [5], []),
        ("hidden-from-layers-1-to-4", [1, 2, 3, 4], []),
    ],
)
def test_a_condition_has_layers_that_hide_or_silence_what_is_inserted(
    condition, hidden, silenced
):
    view = parse_condition(condition).view
    assert view.hidden(5) == hidden
    assert view.silenced(5) == silenced


@pytest.mark.parametrize(
    "text", ["none", "mless:25@end+arm:c=0.1:p1=95", "none+arm", "arm:p1=95:c=0.1"]
)
def test_a_condition_is_called_by_its_text(text):
    condition = parse_condition(text)
    assert str(condition) == text
    assert parse_condition(condition) is condition
