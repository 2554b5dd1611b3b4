"""Stopping, elicitation and temperature, on a model whose next token depends only on
the last one, as a script says.
"""

import itertools

import pytest
from transformers import LlamaConfig, LlamaForCausalLM

from lib.errors import InputError
from lib.generation.engine_interface import Request, Sampling, engine_class
from reproduction.evaluation.answer_run import ELICITATION

WIDTH = 64
CONTEXT = 64
SURE = 40.0  # a logit that gives its token practically all of the probability
START = 5000  # the last token of a prompt; the script ignores those before it
BOXED_START = 6000  # the last token of another prompt
END = 4999  # a stop token of the model; the tokenizer has another one
SECOND_END = END - 1
PROMPT = [7, 8, START]


def scripted_model(script, vocabulary):
    """Return a Llama whose layers do nothing and whose output head looks up the script.

    script: {token: {next token: logit}}
    """
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=WIDTH,
        intermediate_size=4,
        num_hidden_layers=2,
        num_attention_heads=2,
        head_dim=4,
        max_position_embeddings=CONTEXT,
    )
    model = LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        parameter.data.zero_()
    model.model.norm.weight.data.fill_(1)
    for column, (token, scores) in enumerate(script.items()):
        model.model.embed_tokens.weight.data[token, column] = 1
        for following, score in scores.items():
            # The norm scales the embedding's only non-zero number to sqrt(WIDTH).
            model.lm_head.weight.data[following, column] = score / WIDTH**0.5
    model.generation_config.eos_token_id = [END, SECOND_END]
    return model


class Scripted:
    """An engine over a scripted model; `fed` has all ids that the model received, in
    order.
    """

    def __init__(self, loaded):
        self.fed = []
        loaded.model.model.embed_tokens.register_forward_pre_hook(self._see)
        self.engine = engine_class("transformers")(loaded, 8)
        # Measuring this runs a forward pass, which must not count as part of an answer.
        assert self.engine.bytes_per_position

    def _see(self, _, inputs):
        self.fed.extend(inputs[0].view(-1).tolist())

    def complete(self, *requests, max_new_tokens=10, **sampling):
        """Return completions by key."""
        completions = self.engine.complete(
            requests, Sampling(max_new_tokens, **sampling)
        )
        return {completion.key: completion for completion in completions}

    def complete_prompt(self, **sampling):
        """Complete PROMPT, and return the completion and the ids that the model
        received after the prompt.
        """
        self.fed.clear()
        completions = self.complete(Request("a", PROMPT), **sampling)
        assert self.fed[:3] == PROMPT
        assert completions["a"].prompt_tokens == 3
        return completions["a"], self.fed[3:]


def chain(*tokens):
    """Return a script in which each token is followed by the next one."""
    return {token: {following: SURE} for token, following in itertools.pairwise(tokens)}


@pytest.fixture
def scripted(tokenizer, speaking):
    """A function that makes an engine over a script."""

    def make(script):
        return Scripted(speaking(scripted_model(script, len(tokenizer))))

    return make


@pytest.mark.parametrize("end", [END, SECOND_END, None])
@pytest.mark.parametrize("limit", [10, None])
@pytest.mark.parametrize(
    "text, elicit", [(" The sum is", ""), (r" \boxed{42}", ELICITATION)]
)  # an answer with a box needs no elicitation
def test_an_answer_ends_at_a_stop_token_or_at_the_token_limit(
    scripted, tokenizer, ids, end, limit, text, elicit
):
    words = ids(text)
    end = end or tokenizer.eos_token_id
    engine = scripted(chain(START, *words, end))
    completion, fed = engine.complete_prompt(
        max_new_tokens=limit or len(words), elicit=elicit
    )
    assert completion.text == text
    assert completion.finish_reason == ("stop" if limit else "length")
    assert not completion.elicited
    assert completion.completion_tokens == len(words)
    # The last chosen token is not fed again, whether it is a stop token or a word.
    written = [*words, end] if limit else words
    assert completion.token_ids == tuple(written)
    assert fed == written[:-1]


# With a limit of 0 the elicitation follows the prompt directly.
@pytest.mark.parametrize("limit", [10, 3, 2, 0])
def test_the_elicitation_follows_the_answer_and_ends_at_the_closing_brace(
    scripted, tokenizer, ids, limit
):
    words = ids(" The sum is")
    elicitation = ids(ELICITATION)
    answer = ids("42}")
    script = chain(START, *words, END) | chain(elicitation[-1], *answer, *ids(" so"))
    engine = scripted(script)
    completion, fed = engine.complete_prompt(max_new_tokens=limit, elicit=ELICITATION)
    written = words[:limit]
    assert fed == [*written, *elicitation, *answer[:-1]]
    assert completion.completion_tokens == len(written) + len(answer)
    assert completion.text == tokenizer.decode(written) + ELICITATION + "42}"
    assert completion.elicited
    assert completion.finish_reason == ("stop" if limit == 10 else "length")
    assert completion.token_ids == (*written, END)[:limit]


def test_the_end_of_a_turn_stops_an_answer_whatever_the_model_declares(
    scripted, tokenizer, ids
):
    # A base model with a chat template may declare another end token.
    script = chain(START, *ids(r" \boxed{5}<|im_end|> no, seven"))
    tokenizer.eos_token = "<|endoftext|>"
    completion, _ = scripted(script).complete_prompt(max_new_tokens=30)
    assert completion.text == r" \boxed{5}"
    assert completion.finish_reason == "stop"


# Text added to the elicitation, the text that the model would write, the token limit,
# and the text that is kept: a brace that closes a fraction does not end the answer.
ELICITED = [
    ("", "4", 12, "4"),
    ("", " one two three four", 3, " one two three"),
    ("", "", 12, ""),
    (r"\frac{", "1}2", 12, "1}2"),
]


@pytest.mark.parametrize("begun, behind, limit, written", ELICITED)
def test_a_boxed_answer_is_elicited_after_an_empty_answer(
    scripted, ids, begun, behind, limit, written
):
    elicit = ELICITATION + begun
    script = chain(START, END) | chain(ids(elicit)[-1], *ids(behind), END)
    completion, _ = scripted(script).complete_prompt(elicit=elicit, elicit_tokens=limit)
    assert completion.text == (elicit + written if written else "")
    assert completion.elicited == bool(written)
    assert completion.completion_tokens == len(ids(written))
    assert completion.finish_reason == "stop"


def test_rows_of_one_batch_end_independently(scripted, ids):
    # After BOXED_START the answer has a box; after START a box is elicited.
    script = chain(START, *ids(" The sum is"), END)
    script |= chain(BOXED_START, *ids(r" \boxed{7}"), END)
    engine = scripted(script)
    requests = [
        Request(str(number), [7] * number + [last])
        for number, last in enumerate((START, BOXED_START, START, BOXED_START, START))
    ]
    together = engine.complete(*requests, elicit=ELICITATION)
    elicited = [together[key].elicited for key in "01234"]
    assert elicited == [True, False, True, False, True]
    assert together["0"].text == f" The sum is{ELICITATION}7}}"
    assert together["1"].text == r" \boxed{7}"
    for request in requests:
        alone = engine.complete(request, elicit=ELICITATION)
        assert alone[request.key] == together[request.key]


def test_a_prompt_fits_if_the_context_also_holds_all_that_may_follow(scripted, ids):
    engine = scripted(chain(START, END))
    room = CONTEXT - 10 - len(ids(ELICITATION)) - 3
    fits = Request("fits", [*[7] * (room - 1), START])
    longer = Request("longer", [*[7] * room, START])
    completions = engine.complete(fits, elicit=ELICITATION, elicit_tokens=3)
    assert completions["fits"].finish_reason == "stop"
    with pytest.raises(InputError, match=f"has room for {CONTEXT} tokens"):
        engine.complete(fits, longer, elicit=ELICITATION, elicit_tokens=3)


@pytest.mark.parametrize(
    "temperature, top_p, drawn",
    [(0, 1, 1), (1, 1, 2), (1, 0.6, 1), (1, 0.8, 2), (2, 0.63, 2)],
)
def test_temperature_and_top_p_limit_the_tokens_that_can_be_drawn(
    scripted, ids, temperature, top_p, drawn
):
    [yes] = ids(" yes")
    [no] = ids(" no")  # its probability is 0.73, and 0.62 at temperature 2
    script = {START: {yes: SURE - 1, no: SURE}} | chain(yes, END) | chain(no, END)
    engine = scripted(script)
    requests = [Request(str(seed), [START], seed) for seed in range(24)]
    completions = engine.complete(
        *requests, max_new_tokens=1, temperature=temperature, top_p=top_p
    )
    texts = {completion.text for completion in completions.values()}
    assert texts == {*(" no", " yes")[:drawn]}
