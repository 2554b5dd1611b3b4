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
    Answer,
    Completion,
    Request,
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
        size = chunk_size(self.batch_size)
        for begin in range(0, len(requests), size):
            chunk = requests[begin : begin + size]
            answers = [Answer() for _ in chunk]
            if sampling.max_new_tokens:  # vLLM writes one token at least
                self._write(chunk, answers, sampling)
            if sampling.elicit:
                self._elicit(chunk, answers, sampling)
            for request, answer in zip(chunk, answers, strict=True):
                yield self._completion(request, sampling, answer)

    def _write(
        self, requests: list[Request], answers: list[Answer], sampling: Sampling
    ) -> None:
        """Let each answer go on to its end or to the limit."""
        written = self._generate(requests, sampling.max_new_tokens, sampling)
        for answer, tokens in zip(answers, written, strict=True):
            if tokens[-1] in self.stops:
                answer.end = [tokens.pop()]
            answer.written = tokens

    def _elicit(
        self, requests: list[Request], answers: list[Answer], sampling: Sampling
    ) -> None:
        """Let each answer without a box go on behind the elicitation, up to its box."""
        elicitation = elicitation_tokens(self.tokenizer, sampling)
        unboxed = []
        asked = []
        for request, answer in zip(requests, answers, strict=True):
            if not self._closes_a_box("", answer.written):
                unboxed.append(answer)
                ids = [*request.input_ids, *answer.written, *elicitation]
                asked.append(Request(request.key, ids, (request.seed + 1) % 2**63))
        written = self._generate(asked, sampling.elicit_tokens, sampling)
        for answer, tokens in zip(unboxed, written, strict=True):
            for token in tokens:
                if token in self.stops:
                    break
                answer.elicited.append(token)
                if self._closes_a_box(sampling.elicit, answer.elicited):
                    break

    def _generate(
        self, requests: list[Request], limit: int, sampling: Sampling
    ) -> list[list[int]]:
        """Return what vLLM writes behind each prompt, up to a limit of tokens, with the
        one that ended it.
        """
        stops = sorted(self.stops)
        prompts = []
        parameters = []
        for request in requests:
            prompts.append(TokensPrompt(prompt_token_ids=request.input_ids))
            how = SamplingParams(
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                max_tokens=limit,
                seed=request.seed,
                stop_token_ids=stops,
                detokenize=False,
            )
            parameters.append(how)
        outputs = self.llm.generate(prompts, parameters, use_tqdm=False)
        return [list(output.outputs[0].token_ids) for output in outputs]

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
