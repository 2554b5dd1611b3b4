"""Stopping, elicitation and temperature, on a model whose next token a script gives
from the last one alone.
"""

import itertools

import pytest
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from lib.evaluation.run import ELICITATION
from lib.generation import Request, Sampling, engine_class
from lib.models.loading import Loaded

WIDTH, CONTEXT, SURE = 64, 64, 40.0
START = 5000  # a prompt's last token; those before it play no part
END = 4999  # ends an answer beside the tokenizer's own end


class Scripted:
    """An engine over the script {token: {next token: score}}, and all ids that its
    model was fed, in order.
    """

    def __init__(self, tokenizer, script):
        shape = dict(
            hidden_size=WIDTH,
            intermediate_size=4,
            num_hidden_layers=2,
            num_attention_heads=2,
            head_dim=4,
        )
        shape |= dict(vocab_size=len(tokenizer), max_position_embeddings=CONTEXT)
        model = LlamaForCausalLM(LlamaConfig(**shape)).eval()
        for parameter in model.parameters():
            parameter.data.zero_()
        model.model.norm.weight.data.fill_(1)
        for place, (token, scores) in enumerate(script.items()):
            model.model.embed_tokens.weight.data[token, place] = (
                1  # of width 8 after the norm
            )
            for following, score in scores.items():
                model.lm_head.weight.data[following, place] = score / WIDTH**0.5
        model.generation_config.eos_token_id = [END, END - 1]
        self.fed = []
        model.model.embed_tokens.register_forward_pre_hook(
            lambda _, given: self.fed.extend(given[0].view(-1).tolist())
        )
        loaded = Loaded(
            model, tokenizer, "scripted", "scripted", "none", "cpu", "float32", 2
        )
        self.engine = engine_class("transformers")(loaded, 8)

    def complete(self, *requests, **sampling):
        found = self.engine.complete(
            requests, Sampling(**{"max_new_tokens": 10, **sampling})
        )
        return {completion.key: completion for completion in found}

    def one(self, **sampling):
        """Complete a prompt of three tokens; return the completion and what was fed
        after the prompt.
        """
        self.fed.clear()
        (completion,) = self.complete(Request("a", [7, 8, START]), **sampling).values()
        assert self.fed[:3] == [7, 8, START] and completion.prompt_tokens == 3
        return completion, self.fed[3:]


def chain(*tokens):
    """Each token is surely followed by the next."""
    return {token: {following: SURE} for token, following in itertools.pairwise(tokens)}


@pytest.fixture(scope="module")
def tokenizer(tiny_llama):
    return AutoTokenizer.from_pretrained(tiny_llama)


@pytest.fixture
def ids(tokenizer):
    return lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize(
    "end", [END, END - 1, None], ids=["declared", "second", "tokenizer's"]
)
@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize(
    "text, elicit", [(" The sum is", ""), (r" \boxed{42}", ELICITATION)]
)  # asked for no other box
def test_an_answer_ends_with_what_ends_it_or_at_the_limit(
    tokenizer, ids, end, finish, text, elicit
):
    words = ids(text)
    scripted = Scripted(tokenizer, chain(START, *words, end or tokenizer.eos_token_id))
    found, fed = scripted.one(
        max_new_tokens=10 if finish == "stop" else len(words), elicit=elicit
    )
    assert (found.text, found.finish_reason) == (text, finish) and not found.elicited
    assert found.completion_tokens == len(words) and fed == (
        words if finish == "stop" else words[:-1]
    )
    stopped_by = [end or tokenizer.eos_token_id] if finish == "stop" else []
    assert found.token_ids == (*words, *stopped_by)


@pytest.mark.parametrize(
    ("limit", "finish"), [(10, "stop"), (3, "length"), (2, "length")]
)
def test_the_elicitation_follows_what_was_written_and_ends_at_the_closing_brace(
    tokenizer, ids, limit, finish
):
    words, asked, answer = ids(" The sum is"), ids(ELICITATION), ids("42}")
    scripted = Scripted(
        tokenizer, chain(START, *words, END) | chain(asked[-1], *answer, *ids(" so"))
    )
    (found, fed), written = (
        scripted.one(max_new_tokens=limit, elicit=ELICITATION),
        words[:limit],
    )
    assert fed == [*written, *asked, *answer[:-1]] and found.completion_tokens == len(
        written
    ) + len(answer)
    assert found.text == tokenizer.decode(written) + ELICITATION + "42}"
    assert found.elicited and found.finish_reason == finish
    assert found.token_ids == (*written, *([END] if finish == "stop" else []))


def test_an_elicited_answer_ends_where_the_model_ends_it_or_at_its_own_limit(
    tokenizer, ids
):
    asked, four = ids(ELICITATION)[-1], ids("4")[0]
    ended, fed = Scripted(tokenizer, chain(START, END) | chain(asked, four, END)).one(
        elicit=ELICITATION
    )
    assert (
        ended.text == ELICITATION + "4"
        and ended.completion_tokens == 1
        and ended.finish_reason == "stop"
    )
    assert fed == [*ids(ELICITATION), four]
    forever = Scripted(
        tokenizer, chain(START, END) | chain(asked, four) | chain(four, four)
    )
    assert (
        forever.one(elicit=ELICITATION, elicit_tokens=5)[0].text
        == ELICITATION + "44444"
    )
    silent, _ = Scripted(tokenizer, chain(START, END, 0) | chain(asked, END)).one(
        elicit=ELICITATION
    )
    assert silent.text == "" and not silent.elicited and silent.completion_tokens == 0
    # A brace that closes a fraction does not end it.
    opened, one, closed, two = ids("{1}2")
    fraction = Scripted(
        tokenizer, chain(START, END) | chain(opened, one, closed, two, END)
    )
    assert (
        fraction.one(elicit=ELICITATION + r"\frac{")[0].text
        == ELICITATION + r"\frac{1}2"
    )


def test_rows_of_one_batch_end_by_themselves(tokenizer, ids):
    # the last token of prompts that are answered with a box; those after START are
    # asked for one
    boxed = 6000
    scripted = Scripted(
        tokenizer,
        chain(START, *ids(" The sum is"), END) | chain(boxed, *ids(r" \boxed{7}"), END),
    )
    asked = [
        Request(str(i), [7] * i + [last])
        for i, last in enumerate((START, boxed, START, boxed, START))
    ]
    together = scripted.complete(*asked, elicit=ELICITATION)
    assert [together[key].elicited for key in "01234"] == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert (
        together["0"].text == f" The sum is{ELICITATION}7}}"
        and together["1"].text == r" \boxed{7}"
    )
    for request in asked:
        assert (
            scripted.complete(request, elicit=ELICITATION)[request.key]
            == together[request.key]
        )


def test_a_prompt_fits_when_all_that_may_follow_it_does(tokenizer, ids):
    scripted = Scripted(tokenizer, chain(START, END))
    room = CONTEXT - 10 - len(ids(ELICITATION)) - 3
    requests = [Request(str(n), [*[7] * (n - 1), START]) for n in (room, room + 1)]
    found = scripted.complete(*requests, elicit=ELICITATION, elicit_tokens=3)
    assert [found[request.key].finish_reason for request in requests] == [
        "stop",
        "context",
    ]


@pytest.mark.parametrize(
    "temperature, top_p, drawn",
    [(0, 1, 1), (1, 1, 2), (1, 0.6, 1), (1, 0.8, 2), (2, 0.63, 2)],
)
def test_temperature_and_nucleus_decide_what_may_be_drawn(
    tokenizer, ids, temperature, top_p, drawn
):
    (yes,), (no,) = (
        ids(" yes"),
        ids(" no"),
    )  # which has 0.73 of the probability, 0.62 at temperature 2
    scripted = Scripted(
        tokenizer, {START: {yes: SURE - 1, no: SURE}} | chain(yes, END) | chain(no, END)
    )
    requests = [Request(str(seed), [START], seed) for seed in range(24)]
    found = scripted.complete(
        *requests, max_new_tokens=1, temperature=temperature, top_p=top_p
    )
    assert {completion.text for completion in found.values()} == {
        *(" no", " yes")[:drawn]
    }
