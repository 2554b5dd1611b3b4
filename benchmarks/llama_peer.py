"""llama.cpp as a way to answer many prompts at once, greedily.

Its own weights, the GGUF file from which ours are dequantised, stay packed. A prompt
takes the place of an answer that has ended, as in llama.cpp's example `parallel`. For
`pip install llama-cpp-python==0.3.36`, which builds for ten minutes.
"""

from collections.abc import Sequence
from pathlib import Path

import llama_cpp
import numpy as np
import torch

MOST_AT_ONCE = 2048  # tokens of a call


class LlamaPeer:
    """A GGUF file in llama.cpp, with places for so many answers at once."""

    def __init__(self, path: Path, places: int):
        settings = llama_cpp.llama_model_default_params()
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), settings)
        self.vocabulary = llama_cpp.llama_model_get_vocab(self.model)
        self.words = llama_cpp.llama_vocab_n_tokens(self.vocabulary)
        self.places = places

    def complete(
        self, prompts: Sequence[list[int]], new_tokens: int
    ) -> list[list[int]]:
        """Return the ids that follow each prompt, without the one that ends them."""
        context = self._context(max(map(len, prompts)) + new_tokens)
        batch = llama_cpp.llama_batch_init(MOST_AT_ONCE, 0, 1)
        memory = llama_cpp.llama_get_memory(context)
        answers: list[list[int]] = [[] for _ in prompts]
        waiting = list(reversed(range(len(prompts))))
        # By place: which prompt is answered there, and the tokens that are read next.
        asked: dict[int, int] = {}
        next_ids: dict[int, list[int]] = {}
        while waiting or asked:
            self._take_in(prompts, waiting, asked, next_ids)
            chosen = self._step(context, batch, next_ids, asked, prompts, answers)
            for place, token in chosen.items():
                answer = answers[asked[place]]
                ended = llama_cpp.llama_vocab_is_eog(self.vocabulary, token)
                if not ended:
                    answer.append(token)
                next_ids[place] = [token]
                if ended or len(answer) == new_tokens:
                    llama_cpp.llama_memory_seq_rm(memory, place, -1, -1)
                    del asked[place], next_ids[place]
        llama_cpp.llama_batch_free(batch)
        llama_cpp.llama_free(context)
        return answers

    def _context(self, positions: int):
        """Return a context that has so many positions for each place."""
        settings = llama_cpp.llama_context_default_params()
        settings.n_seq_max = self.places
        settings.n_ctx = self.places * positions
        settings.n_batch = settings.n_ubatch = MOST_AT_ONCE
        settings.n_threads = settings.n_threads_batch = torch.get_num_threads()
        return llama_cpp.llama_init_from_model(self.model, settings)

    def _take_in(self, prompts, waiting, asked, next_ids) -> None:
        """Give free places to prompts, as many as one call reads."""
        room = MOST_AT_ONCE - len(next_ids)
        for place in range(self.places):
            if place in asked or not waiting:
                continue
            ids = prompts[waiting[-1]]
            if len(ids) > room:
                return
            room -= len(ids)
            asked[place] = waiting.pop()
            next_ids[place] = ids

    def _step(
        self, context, batch, next_ids, asked, prompts, answers
    ) -> dict[int, int]:
        """Return the next token of every place."""
        rows = {}
        batch.n_tokens = 0
        for place, ids in next_ids.items():
            read = 0
            if ids is not prompts[asked[place]]:
                read = len(prompts[asked[place]]) + len(answers[asked[place]]) - 1
            for shift, token in enumerate(ids):
                row = batch.n_tokens
                batch.token[row] = token
                batch.pos[row] = read + shift
                batch.n_seq_id[row] = 1
                batch.seq_id[row][0] = place
                batch.logits[row] = shift == len(ids) - 1
                batch.n_tokens += 1
            rows[place] = batch.n_tokens - 1
        if llama_cpp.llama_decode(context, batch):
            raise RuntimeError("llama.cpp found no room in its cache")
        chosen = {}
        for place, row in rows.items():
            logits = llama_cpp.llama_get_logits_ith(context, row)
            numbers = np.ctypeslib.as_array(logits, shape=(self.words,))
            chosen[place] = int(numbers.argmax())
        return chosen
