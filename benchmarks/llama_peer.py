"""llama.cpp as a way to answer a batch of prompts at once, greedily.

Its own weights, the GGUF file from which ours are dequantised, stay packed. For `pip
install llama-cpp-python==0.3.36`, which builds for ten minutes.
"""

from pathlib import Path

import llama_cpp
import numpy as np
import torch


class LlamaPeer:
    """A GGUF file in llama.cpp."""

    def __init__(self, path: Path, end: int):
        settings = llama_cpp.llama_model_default_params()
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), settings)
        vocabulary = llama_cpp.llama_model_get_vocab(self.model)
        self.words = llama_cpp.llama_vocab_n_tokens(vocabulary)
        self.end = end

    def complete(self, prompts: list[list[int]], new_tokens: int) -> list[list[int]]:
        """Return the ids that follow each prompt, without the one that ends them."""
        settings = llama_cpp.llama_context_default_params()
        settings.n_seq_max = len(prompts)
        settings.n_ctx = len(prompts) * (max(map(len, prompts)) + new_tokens)
        settings.n_batch = settings.n_ubatch = sum(map(len, prompts))
        settings.n_threads = settings.n_threads_batch = torch.get_num_threads()
        context = llama_cpp.llama_init_from_model(self.model, settings)
        written: list[list[int]] = [[] for _ in prompts]
        places = [0] * len(prompts)
        unread = dict(enumerate(prompts))
        for _ in range(new_tokens):
            chosen = self._read(context, unread, places)
            unread = {row: [token] for row, token in chosen.items()}
            unread = {row: ids for row, ids in unread.items() if ids != [self.end]}
            for row, ids in unread.items():
                written[row] += ids
            if not unread:
                break
        llama_cpp.llama_free(context)
        return written

    def _read(
        self, context, unread: dict[int, list[int]], places: list[int]
    ) -> dict[int, int]:
        """Read ids of rows, from their places on; return the next token of each row."""
        batch = llama_cpp.llama_batch_init(sum(map(len, unread.values())), 0, 1)
        last = {}
        for row, ids in unread.items():
            for number, token in enumerate(ids, 1):
                at = batch.n_tokens
                batch.token[at] = token
                batch.pos[at] = places[row]
                batch.n_seq_id[at] = 1
                batch.seq_id[at][0] = row
                batch.logits[at] = number == len(ids)
                batch.n_tokens += 1
                places[row] += 1
                last[row] = at
        if llama_cpp.llama_decode(context, batch):
            raise RuntimeError("llama.cpp found no room in its cache")
        chosen = {}
        for row, at in last.items():
            logits = llama_cpp.llama_get_logits_ith(context, at)
            numbers = np.ctypeslib.as_array(logits, shape=(self.words,))
            chosen[row] = int(numbers.argmax())
        llama_cpp.llama_batch_free(batch)
        return chosen
