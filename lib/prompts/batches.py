"""Take many prompts of unequal lengths through a function, in batches that fit the
memory there is.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from lib.errors import InputError

# Padded tokens of one batch: on a CPU what a 1.5B keeps of them stays below a gigabyte;
# a GPU wants more at once.
BATCH_TOKENS = {"cpu": 4096, "cuda": 32768}
# torch's words on CPU and GPU.
NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")
Output = TypeVar("Output")


def pad(
    prompts: Sequence[torch.Tensor], value: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Stack id vectors into (B, T), padded on the right, and return them with their
    lengths (B,).
    """
    lengths = torch.tensor([len(ids) for ids in prompts])
    padded = torch.nn.utils.rnn.pad_sequence(
        list(prompts), batch_first=True, padding_value=value
    )
    return padded, lengths


def in_batches(
    lengths: Sequence[int],
    run: Callable[[list[int]], Output],
    tokens: int = BATCH_TOKENS["cpu"],
) -> Iterator[tuple[list[int], Output]]:
    """Yield (indices, run(indices)) for prompts of like length, at most `tokens` padded
    tokens together.

    The longest come first: what does not fit shows at once. Out of memory halves the
    budget and goes on with what is left. Raises InputError when one prompt alone does
    not fit.
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
        # Only here, outside the handler, is what the failed batch held no longer
        # referred to.
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def batch_tokens(device: str) -> int:
    """Return how many padded tokens a batch may have on this kind of device."""
    return BATCH_TOKENS[device.partition(":")[0]]


def _is_out_of_memory(error: BaseException) -> bool:
    """Say whether an error means that memory ran out, on CPU or GPU."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return any(words in str(error) for words in NO_MEMORY)
