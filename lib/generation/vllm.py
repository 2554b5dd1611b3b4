"""Complete prompts with vLLM, for runs that need a GPU or several.

The interface is that of the package. vLLM alone reads the checkpoint, in processes of
its own, and schedules `batch_size` prompts at once. The second step of an elicited
answer is a new prompt that begins with the first, so its prefix comes from vLLM's
cache. Completions come chunk by chunk.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lib.arm.settings import Arm
from lib.errors import InputError
from lib.generation.requests import Completion, Request, Sampling
from lib.generation.writer import Answer, Writer, chunk_size
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


class _Asked(NamedTuple):
    """A prompt to continue by at most `limit` tokens."""

    prompt: list[int]
    seed: int
    limit: int


class Engine(Writer):
    """Runs on `tensor_parallel` devices.

    Its greedy output in float32 equals the transformers engine's. ARM is refused.
    """

    @staticmethod
    def load(loaded: Loaded) -> Loaded:
        """Return a model with its weights fetched, which vLLM reads by itself."""
        return load_without_weights(loaded.spec, loaded.device, loaded.dtype)

    def __init__(self, loaded, batch_size: int | None, tensor_parallel: int = 1):
        super().__init__(loaded, batch_size)
        self.folder = loaded.model.name_or_path
        self.tensor_parallel = tensor_parallel
        if not os.path.isdir(self.folder):
            raise InputError(
                f"engine vllm reads a checkpoint folder, and {loaded.spec} was loaded"
                " from none"
            )
        self.llm: Any = None  # until the first prompt
        self.room = 0  # positions of a prompt, with what follows

    def _accept(self, arm: Arm) -> None:
        raise InputError("engine vllm does not run ARM: use engine transformers")

    def _stream(
        self,
        requests: list[Request],
        sampling: Sampling,
        elicitation: list[int],
        positions: int,
    ) -> Iterator[Completion]:
        if positions > self.room:
            self._start(positions)
        size = chunk_size(self.batch_size)
        for begin in range(0, len(requests), size):
            answers = []
            for request in requests[begin : begin + size]:
                answer = Answer(list(request.resumed_tokens), [], [], "length")
                answers.append((request, answer))
            self._write(answers, sampling)
            self._elicit(answers, elicitation, sampling)
            for request, answer in answers:
                yield self._completion(request, sampling, answer)

    def _write(self, answers: list[tuple[Request, Answer]], sampling: Sampling) -> None:
        """Let each answer go on to its end or to the limit."""
        if not sampling.max_new_tokens:  # vLLM writes one token at least
            return
        asked = []
        for request, answer in answers:
            left = sampling.max_new_tokens - len(answer.written)
            asked.append(_Asked(request.input_tokens, request.seed, left))
        written = self._generate(asked, sampling)
        for (_, answer), (tokens, end) in zip(answers, written, strict=True):
            answer.written += tokens
            answer.end = end
            answer.finish_reason = "stop" if end else "length"

    def _elicit(
        self,
        answers: list[tuple[Request, Answer]],
        elicitation: list[int],
        sampling: Sampling,
    ) -> None:
        """Let each answer without a box go on behind the elicitation, up to its box."""
        if not elicitation:
            return
        asked = []
        unboxed = []
        for request, answer in answers:
            if not self._closes_a_box("", answer.written):
                prompt = [*request.input_ids, *answer.written, *elicitation]
                seed = (request.seed + 1) % 2**63
                asked.append(_Asked(prompt, seed, sampling.elicit_tokens))
                unboxed.append(answer)
        written = self._generate(asked, sampling)
        for answer, (tokens, _) in zip(unboxed, written, strict=True):
            while tokens and self._closes_a_box(sampling.elicit, tokens[:-1]):
                tokens.pop()
            answer.elicited = tokens

    def _generate(
        self, asked: Sequence[_Asked], sampling: Sampling
    ) -> list[tuple[list[int], list[int]]]:
        """Return what vLLM writes behind each prompt, and the token that ended it, if
        one did.
        """
        prompts = [TokensPrompt(prompt_token_ids=one.prompt) for one in asked]
        parameters = [
            SamplingParams(
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                max_tokens=one.limit,
                seed=one.seed,
                stop_token_ids=sorted(self.stops),
                detokenize=False,
            )
            for one in asked
        ]
        written = []
        for output in self.llm.generate(prompts, parameters, use_tqdm=False):
            [generated] = output.outputs
            tokens = list(generated.token_ids)
            end = tokens[-1:] if generated.finish_reason == "stop" else []
            written.append((tokens[: len(tokens) - len(end)], end))
        return written

    def _start(self, positions: int) -> None:
        """Start vLLM with room for prompts of so many positions."""
        self.llm = None  # whose processes end before there are others
        self.room = positions
        try:
            self.llm = LLM(**self._arguments())
        # Of any kind; the reason stands in the output of vLLM's processes.
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            raise InputError(f"vllm did not start: {reason}") from error

    def _arguments(self) -> dict:
        """Return what vLLM is started with."""
        # Token ids go in and come out, and `Sampling` says what a checkpoint's
        # generation config would.
        arguments = {
            "model": self.folder,
            "load_format": "safetensors",
            "skip_tokenizer_init": True,
            "generation_config": "vllm",
            "dtype": self.loaded.dtype,
            "tensor_parallel_size": self.tensor_parallel,
            "enable_prefix_caching": True,
            "max_model_len": self.room,
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
        return arguments
