"""Complete prompts with vLLM, for runs that need a GPU or several.

The interface is that of the package. vLLM alone reads the checkpoint, in processes of
its own, and schedules `batch_size` prompts at once. The second step of an elicited
answer is a new prompt that begins with the first, so its prefix comes from vLLM's
cache. Completions come chunk by chunk.
"""

import os
from collections.abc import Iterator
from typing import Any

from lib.arm.settings import Arm
from lib.errors import InputError
from lib.generation.writer import (
    Completion,
    Request,
    Row,
    Sampling,
    Writer,
    chunk_size,
    elicitation_tokens,
)
from lib.models.loading import Loaded, load_without_weights
from lib.models.memory import free_memory

# Read when vLLM is imported, and by the processes it starts, which talk to each other
# on this machine alone.
os.environ.setdefault("VLLM_HOST_IP", "127.0.0.1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
try:
    from vllm import LLM, SamplingParams, TokensPrompt
except ImportError as error:
    how = (
        "pip install --no-deps -r requirements/vllm.txt (CPU) or pip install"
        " vllm==0.32.0 (CUDA)"
    )
    raise InputError(f"engine vllm cannot be imported ({error}): {how}") from error

# Positions of a block on a CPU. Only whole blocks are cached, and vLLM's own 128 is
# longer than many prompts.
CPU_BLOCK = 32
CPU_SHARE = 0.5  # of the memory that is free, what the cache takes on a CPU


class Engine(Writer):
    """Runs on `gpus` devices, over which it spreads the model.

    Its greedy output in float32 equals the transformers engine's. ARM is refused.
    """

    llm: Any = None  # until the first prompt
    room = 0  # positions of a prompt, with what follows

    @staticmethod
    def load(loaded: Loaded) -> Loaded:
        """Return a model with its weights fetched, which vLLM reads by itself."""
        return load_without_weights(loaded.spec, loaded.device, loaded.dtype)

    def _accept(self, arm: Arm) -> None:
        raise InputError("engine vllm does not run ARM: use engine transformers")

    def _stream(
        self, requests: list[Request], sampling: Sampling, positions: int
    ) -> Iterator[Completion]:
        if positions > self.room:
            self._start(positions)
        elicitation = elicitation_tokens(self.tokenizer, sampling)
        size = chunk_size(self.batch_size)
        for begin in range(0, len(requests), size):
            chunk = requests[begin : begin + size]
            rows = [Row(self, request, sampling) for request in chunk]
            unfinished = rows
            if sampling.max_new_tokens:  # vLLM writes one token at least
                unfinished = self._continue(rows, [], sampling.max_new_tokens)
            if unfinished:
                self._continue(unfinished, elicitation, sampling.elicit_tokens)
            for row in rows:
                yield row.completion()

    def _continue(
        self, rows: list[Row], elicitation: list[int], limit: int
    ) -> list[Row]:
        """Let vLLM write up to a limit of tokens of each row, behind what is written
        and the elicitation, which may be none; return the rows that are not finished.
        """
        prompts = []
        parameters = []
        for row in rows:
            request = row.request
            ids = [*request.input_ids, *row.written, *elicitation]
            prompts.append(TokensPrompt(prompt_token_ids=ids))
            how = SamplingParams(
                temperature=row.sampling.temperature,
                top_p=row.sampling.top_p,
                max_tokens=limit,
                # Another one behind the elicitation, or an answer's draws would repeat.
                seed=(request.seed + bool(elicitation)) % 2**63,
                stop_token_ids=sorted(self.stops),
                detokenize=False,
            )
            parameters.append(how)
        outputs = self.llm.generate(prompts, parameters, use_tqdm=False)
        return [
            row
            for row, output in zip(rows, outputs, strict=True)
            if not any(map(row.take, output.outputs[0].token_ids))
        ]

    def _start(self, positions: int) -> None:
        """Start vLLM with room for prompts of so many positions."""
        self.llm = None  # whose processes end before there are others
        self.room = positions
        # Token ids go in and come out, and `Sampling` says what a checkpoint's
        # generation config would.
        arguments = {
            "model": self.model.name_or_path,
            "load_format": "safetensors",
            "skip_tokenizer_init": True,
            "generation_config": "vllm",
            "dtype": self.loaded.dtype,
            "tensor_parallel_size": self.gpus,
            "enable_prefix_caching": True,
            "max_model_len": positions,
            "disable_log_stats": True,
            "use_tqdm_on_load": False,
        }
        if self.batch_size:
            arguments["max_num_seqs"] = self.batch_size
        if self.loaded.device == "cpu":
            # Compiling asks for a C++ compiler and a minute, and of memory vLLM would
            # take nine tenths.
            arguments |= {
                "enforce_eager": True,
                "block_size": CPU_BLOCK,
                "kv_cache_memory_bytes": int(free_memory() * CPU_SHARE),
            }
        try:
            self.llm = LLM(**arguments)
        # Of any kind; the reason stands in the output of vLLM's processes.
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            raise InputError(f"vllm did not start: {reason}") from error
