"""The tokenizer of all tiny models of these tests."""

import pytest
from transformers import AutoTokenizer

from lib.models.loading import Loaded
from lib.models.sources import Source


@pytest.fixture
def tokenizer(tiny_llama):
    return AutoTokenizer.from_pretrained(tiny_llama)


@pytest.fixture
def ids(tokenizer):
    """A function that returns the token ids of a text."""
    return lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]


@pytest.fixture
def speaking(tokenizer):
    """A function that returns a model as a Loaded with this tokenizer."""
    source = Source(name="tiny", spec="tiny", revision="none")
    return lambda model: Loaded(model, tokenizer, source, "cpu", "float32")
