"""Run many prompts of unequal lengths through a function, in batches that fit into
memory.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from lib.errors import InputError

# Padded tokens per batch: on a CPU, a 1.5B model needs less than a gigabyte for them; a
# GPU is faster with more.
BATCH_TOKENS = {"cpu": 4096, "cuda": 32768}
# Parts of torch's messages on CPU and GPU.
NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")
Output = TypeVar("Output")


def pad(prompts: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return token ids of prompts as (B, T), padded on the right with 0, and their
    lengths (B,).
    """
    lengths = torch.tensor([len(ids) for ids in prompts])
    padded = torch.nn.utils.rnn.pad_sequence(list(prompts), batch_first=True)
    return padded, lengths


def in_batches(
    lengths: Sequence[int],
    run: Callable[[list[int]], Output],
    tokens: int = BATCH_TOKENS["cpu"],
) -> Iterator[tuple[list[int], Output]]:
    """Yield (indices, run(indices)) for batches of prompts of similar length.

    lengths: of the prompts, in tokens. run: is called with the indices of a batch.
    tokens: the maximum size of a batch, with padding. The longest prompts come first,
    so that a lack of memory shows at once. If memory runs out, the batch is repeated
    with half of its tokens. Raises InputError if a single prompt does not fit.
    """
    waiting = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    while waiting:
        longest = lengths[waiting[0]]
        batch = waiting[: max(1, tokens // longest)]
        try:
            result = run(batch)
        except (MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            if len(batch) == 1:
                raise InputError(
                    f"a prompt of {longest} tokens does not fit into memory, even alone"
                ) from error
            tokens = len(batch) * longest // 2
        else:
            yield batch, result
            waiting = waiting[len(batch) :]
            continue
        # Outside the handler, because inside it the exception still refers to the
        # failed batch.
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def batch_tokens(device: str) -> int:
    """Return the maximum number of tokens per batch, with padding, on a device."""
    return BATCH_TOKENS[device.partition(":")[0]]


def _is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory ran out, on CPU or GPU."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return any(words in str(error) for words in NO_MEMORY)
