"""The log-likelihood of one text, without and with hidden tokens."""

import pytest
import torch

from lib.attention.custom_attention import hiding
from lib.generation.log_likelihoods import log_likelihood
from lib.models.loading import load
from lib.prompts.building import build_prompt

TEXT = " It is 7."


@pytest.fixture(scope="module")
def loaded(tiny_llama):
    return load(str(tiny_llama))


def by_hand(loaded, prompt):
    """Return log p(TEXT | prompt) by one forward pass of the model."""
    text = loaded.tokenizer(TEXT, return_tensors="pt", add_special_tokens=False)
    ids = torch.cat([prompt.input_ids, text.input_ids[0]])
    with torch.inference_mode():
        nats = loaded.model(ids[None]).logits[0].log_softmax(-1)
    return sum(float(nats[at - 1, ids[at]]) for at in range(len(prompt), len(ids)))


def test_a_text_has_the_probability_that_the_model_gives_it(loaded):
    prompt = build_prompt(loaded.tokenizer, "What is $3 + 4$?", "mless")
    assert log_likelihood(loaded, prompt, TEXT) == pytest.approx(
        by_hand(loaded, prompt)
    )


def test_a_condition_hides_the_filler_from_the_layers_that_it_names(loaded):
    prompt = build_prompt(loaded.tokenizer, "What is $3 + 4$?", "mless")
    nats = log_likelihood(loaded, prompt, TEXT, "hidden-from-layer-1")
    with hiding(loaded.model, [prompt.spans["inserted"]], [1], []):
        assert nats == pytest.approx(by_hand(loaded, prompt), abs=1e-4)
    assert nats != pytest.approx(by_hand(loaded, prompt), abs=1e-4)


def test_an_empty_text_is_refused(loaded, refused):
    prompt = build_prompt(loaded.tokenizer, "What is $3 + 4$?", "mless")
    assert "the text is empty" in refused(log_likelihood, loaded, prompt, "")
