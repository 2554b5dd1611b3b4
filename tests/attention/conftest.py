"""Tiny random models, whose weights tell heads apart and keep hidden states near 1."""

import pytest
import torch
from families import FAMILIES, KINDS, spread


@pytest.fixture(params=KINDS, scope="module")
def model(request):
    """One model of each family that differs in its attention."""
    torch.manual_seed(1)
    return spread(FAMILIES[request.param](), 0.15)


@pytest.fixture
def llama():
    """A Llama that a test may change: three layers, four heads, two key heads of width
    8, a context of 512 tokens.
    """
    torch.manual_seed(1)
    return spread(FAMILIES["llama"](), 0.15)
