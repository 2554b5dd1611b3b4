"""Complete prompts with vLLM, for runs on one or several GPUs.

vLLM reads the checkpoint in its worker processes, so that this process needs no
weights, and runs `batch_size` prompts at once. To elicit an answer, a new prompt is
made of the prompt, the answer so far and the elicitation; vLLM's prefix cache has all
but the last part. Completions are returned chunk by chunk.
"""

import os
from collections.abc import Iterator
from typing import Any

from lib.arm.settings import Arm
from lib.errors import InputError
from lib.generation.engine_interface import (
    Completion,
    Request,
    Sampling,
    Writer,
    chunk_size,
    elicitation_tokens,
)
from lib.generation.running_answer import Row
from lib.models.available_memory import free_memory
from lib.models.loading import Loaded, load_without_weights

# Positions of a cache block on a CPU. Only complete blocks are reused as a prefix, and
# vLLM's default of 128 is longer than many prompts.
CPU_BLOCK = 32
CPU_SHARE = 0.5  # share of the free memory that the cache may use on a CPU


def imported_vllm() -> Any:
    """Return the package vllm, imported with the environment that it needs; raise
    InputError if it cannot be imported.

    vLLM reads these variables when it is imported, and its processes inherit them. They
    communicate only within this machine.
    """
    os.environ.setdefault("VLLM_HOST_IP", "127.0.0.1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    try:
        import vllm
    except ImportError as error:
        command = (
            "pip install --no-deps -r requirements/vllm.txt (CPU) or pip install"
            " vllm==0.32.0 (CUDA)"
        )
        raise InputError(
            f"engine vllm cannot be imported ({error}): {command}"
        ) from error
    return vllm


class Engine(Writer):
    """An engine that runs vLLM on `gpus` GPUs, over which it spreads the model.

    Its greedy output in float32 equals that of the transformers engine. ARM is refused.
    """

    llm: Any = None  # vllm.LLM; None before the first prompt
    capacity = 0  # maximum length of a prompt with its answer, in tokens

    @staticmethod
    def require_installed() -> None:
        """Raise InputError if vLLM cannot be imported."""
        imported_vllm()

    @staticmethod
    def load(loaded: Loaded) -> Loaded:
        """Download the weights if they are missing, and return the model without
        loading them, because vLLM reads the checkpoint itself.
        """
        return load_without_weights(loaded.spec, loaded.device, loaded.dtype)

    def _accept(self, arm: Arm) -> None:
        raise InputError("engine vllm does not run ARM: use engine transformers")

    def _stream(
        self, requests: list[Request], sampling: Sampling, positions: int
    ) -> Iterator[Completion]:
        if positions > self.capacity:
            self._start(positions)
        elicitation = elicitation_tokens(self.tokenizer, sampling)
        size = chunk_size(self.batch_size)
        for begin in range(0, len(requests), size):
            chunk = requests[begin : begin + size]
            rows = [Row(self, request, sampling) for request in chunk]
            unfinished = rows
            if sampling.max_new_tokens:  # vLLM generates at least one token
                unfinished = self._continue(rows, [], sampling.max_new_tokens)
            if unfinished:
                self._continue(unfinished, elicitation, sampling.elicit_tokens)
            for row in rows:
                yield row.completion()

    def _continue(
        self, rows: list[Row], elicitation: list[int], limit: int
    ) -> list[Row]:
        """Generate up to `limit` tokens of each row, and return the rows that are not
        finished.

        elicitation: tokens that are appended to the answer so far; empty before the
        elicitation.
        """
        vllm = imported_vllm()
        prompts = []
        parameters = []
        for row in rows:
            request = row.request
            ids = [*request.input_ids, *row.written, *elicitation]
            prompts.append(vllm.TokensPrompt(prompt_token_ids=ids))
            settings = vllm.SamplingParams(
                temperature=row.sampling.temperature,
                top_p=row.sampling.top_p,
                max_tokens=limit,
                # A different seed after the elicitation, because the same one would
                # repeat the draws of the answer.
                seed=(request.seed + bool(elicitation)) % 2**63,
                stop_token_ids=sorted(self.stops),
                detokenize=False,
            )
            parameters.append(settings)
        outputs = self.llm.generate(prompts, parameters, use_tqdm=False)
        return [
            row
            for row, output in zip(rows, outputs, strict=True)
            if not any(map(row.take, output.outputs[0].token_ids))
        ]

    def _start(self, positions: int) -> None:
        """Start vLLM for prompts and answers of at most so many positions together."""
        self.llm = None  # ends the processes of an earlier start, which hold memory
        self.capacity = positions
        # vLLM receives and returns token ids, and takes the decoding settings from
        # `Sampling` instead of the checkpoint's generation config.
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
            # Compiling needs a C++ compiler and takes a minute. Without a limit, vLLM
            # would use nine tenths of the memory.
            arguments |= {
                "enforce_eager": True,
                "block_size": CPU_BLOCK,
                "kv_cache_memory_bytes": int(free_memory() * CPU_SHARE),
            }
        try:
            self.llm = imported_vllm().LLM(**arguments)
        # vLLM's processes fail with exceptions of any type, and print the details.
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            raise InputError(f"vllm did not start: {reason}") from error
