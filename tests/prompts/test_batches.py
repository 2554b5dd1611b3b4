"""Prompts of unequal lengths are processed in batches; running out of memory costs
time, but no results.
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lib.prompts.batches import in_batches


@given(st.lists(st.integers(1, 300), max_size=40), st.integers(1, 1000))
def test_every_prompt_is_processed_once_and_batches_keep_to_the_token_budget(
    lengths, tokens
):
    seen = []
    for indices, result in in_batches(lengths, lambda indices: list(indices), tokens):
        assert result == indices
        assert (
            len(indices) == 1
            or len(indices) * max(lengths[i] for i in indices) <= tokens
        )
        seen += indices
    assert sorted(seen) == list(range(len(lengths)))


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
)
def test_running_out_of_memory_halves_the_batch_and_loses_nothing(refused, error):
    tried = []

    def run(indices, most=3):
        tried.append(len(indices))
        if len(indices) > most:
            raise error
        return indices

    done = [i for indices, _ in in_batches([10] * 12, run, tokens=120) for i in indices]
    assert sorted(done) == list(range(12))
    assert tried == [12, 6, 3, 3, 3, 3]
    batches = in_batches([10, 70], lambda indices: run(indices, most=0), tokens=100)
    alone = "a prompt of 70 tokens does not fit into memory, even alone"
    assert refused(list, batches) == alone


def test_other_errors_are_not_treated_as_out_of_memory():
    def run(indices):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="shapes"):
        list(in_batches([10, 10], run))
