"""Complete prompts with vLLM, for runs that need a GPU or several.

The interface is that of the package. vLLM alone reads the checkpoint, in processes of
its own, and schedules `batch_size` prompts at once. The second step of an elicited
answer is a new prompt that begins with the first, so its prefix comes from vLLM's
cache.
"""

import os
import signal
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from multiprocessing import resource_tracker

import psutil

from lib.arm.settings import Arm
from lib.errors import InputError
from lib.generation.requests import Completion, Request, Sampling
from lib.generation.vllm_arm import ArmExtension, change_for
from lib.generation.writer import Answer, Writer
from lib.grading.answer import last_box
from lib.models.loading import Loaded, load_without_weights

# Read when vLLM is imported, and by the processes it starts, which talk to each other
# on this machine alone.
os.environ.setdefault("VLLM_HOST_IP", "127.0.0.1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
# ARM reads the batch of the older model runner.
os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "0"
try:
    from vllm import EngineArgs, LLMEngine, SamplingParams, TokensPrompt
    from vllm.sampling_params import RequestOutputKind
except ImportError as error:
    how = (
        "pip install --no-deps -r requirements/vllm.txt (CPU) or pip install"
        " vllm==0.32.0 (CUDA)"
    )
    raise InputError(f"engine vllm cannot be imported ({error}): {how}") from error

# What one step takes at least: under ARM no prompt is cut, since its statistics need
# all of it.
PREFILL_TOKENS = 8192
# Positions of a block on a CPU. Only whole blocks are cached, and vLLM's own 128 is
# longer than many prompts.
CPU_BLOCK = 32
SHUTDOWN_SECONDS = 60


class Engine(Writer):
    """Runs on `tensor_parallel` devices.

    Its greedy output in float32 equals the transformers engine's. ARM on several
    devices is refused at the call, an activation module that is unknown in vLLM before
    any completion.
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
        self.llm: LLMEngine = None  # until the first prompt
        # What was asked for so far: positions, and (layer, mode) of ARM.
        self.needed = 0
        self.changes: set[tuple[int, str]] = set()

    def _accept(self, arm: Arm | None, positions: int) -> None:
        super()._accept(arm, positions)
        if arm and self.tensor_parallel > 1:
            raise InputError(
                "ARM needs whole activations, which tensor_parallel above 1 divides:"
                " use workers"
            )
        changes = self.changes | ({(arm.layer, arm.mode)} if arm else set())
        if positions > self.needed or changes != self.changes:
            # It is started again, with room for these prompts and access to this layer.
            self.close()
            self.needed = max(self.needed, positions)
            self.changes = changes

    def _stream(
        self,
        requests: list[Request],
        sampling: Sampling,
        elicitation: list[int],
        positions: int,
    ) -> Iterator[Completion]:
        if not self.llm:
            self._start()
        running = {request.key: request for request in requests}
        elicited: dict[str, Answer] = {}  # those that were asked for a box
        for request in requests:
            limit = sampling.max_new_tokens - len(request.resumed_tokens)
            self._ask(request, request.input_tokens, request.seed, limit, sampling)
        try:
            while running:
                for output in self.llm.step():
                    request = running[output.request_id]
                    [generated] = output.outputs
                    if request.key in elicited:
                        answer = elicited.pop(request.key)
                        answer.elicited = self._up_to_the_box(generated, sampling)
                    else:
                        answer = _answer(request, generated)
                        box = last_box(self._decode(answer.written))
                        if elicitation and box is None:
                            elicited[request.key] = answer
                            self._elicit(request, answer, elicitation, sampling)
                            continue
                    del running[request.key]
                    yield self._completion(request, sampling, answer)
        finally:
            if running and self.llm:
                self.llm.abort_request(list(running))

    def _elicit(
        self,
        request: Request,
        answer: Answer,
        elicitation: list[int],
        sampling: Sampling,
    ) -> None:
        """Let vLLM go on behind an answer and the elicitation."""
        prompt = [*request.input_ids, *answer.written, *elicitation]
        seed = (request.seed + 1) % 2**63
        self._ask(request, prompt, seed, sampling.elicit_tokens, sampling)

    def _up_to_the_box(self, generated, sampling: Sampling) -> list[int]:
        """Return what was written behind the elicitation until that closed a box."""
        tokens, _ = _without_end(generated)
        for count in range(1, len(tokens)):
            text = sampling.elicit + self._decode(tokens[:count])
            if last_box(text) is not None:
                return tokens[:count]
        return tokens

    def _ask(
        self,
        request: Request,
        prompt: list[int],
        seed: int,
        limit: int,
        sampling: Sampling,
    ) -> None:
        """Let vLLM go on behind these tokens, by at most `limit` new ones."""
        tokens = TokensPrompt(prompt_token_ids=prompt)
        change = None
        if request.arm:
            change = change_for(request.arm, request.seed, len(request.input_ids))
            # So that no other request reads what is written under ARM.
            tokens["cache_salt"] = request.key
        parameters = SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=limit,
            seed=seed,
            stop_token_ids=sorted(self.stops),
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
            extra_args=change,
            # What is changed differs between requests with equal prompts.
            skip_reading_prefix_cache=bool(change),
        )
        self.llm.add_request(request.key, tokens, parameters)

    def close(self) -> None:
        """End vLLM's processes; without this call they end with the engine."""
        if self.llm:
            self._shutdown()
        self.llm = None

    def _start(self) -> None:
        """Start vLLM and let it change the layers that ARM asks for."""
        made: Future = Future()
        arguments = self._arguments()
        threading.Thread(target=_make, args=(arguments, made), daemon=True).start()
        try:
            self.llm = made.result()
        # Of any kind; the reason stands in the output of vLLM's processes.
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            raise InputError(f"vllm did not start: {reason}") from error
        shutdown = self.llm.engine_core.shutdown
        self._shutdown = weakref.finalize(self, shutdown, SHUTDOWN_SECONDS)

        layers = sorted({layer for layer, _ in self.changes})
        if not layers:
            return
        refusals = self.llm.collective_rpc("install_arm", args=(layers,))
        if any(refusals):
            self.close()
            self.changes = set()
            raise InputError(
                f"engine vllm cannot run ARM on {self.loaded.spec}: {refusals[0]}"
            )

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
            "max_model_len": self.needed,
            "disable_log_stats": True,
            "use_tqdm_on_load": False,
        }
        if self.batch_size:
            arguments["max_num_seqs"] = self.batch_size
        if self.changes:
            arguments |= self._arguments_for_arm()
        if self.loaded.device == "cpu":
            # Compiling asks for a C++ compiler and a minute.
            arguments.pop("compilation_config", None)
            arguments |= {
                "enforce_eager": True,
                "block_size": CPU_BLOCK,
                "kv_cache_memory_bytes": self._cpu_memory(),
            }
        return arguments

    def _arguments_for_arm(self) -> dict:
        """Return what lets ARM see whole prompts, and the batch it belongs to."""
        extension = f"{ArmExtension.__module__}.{ArmExtension.__name__}"
        arguments = {
            "worker_extension_cls": extension,
            # Else the batch that ARM reads would be a step ahead of the tokens.
            "async_scheduling": False,
            "enable_chunked_prefill": False,
            "max_num_batched_tokens": max(PREFILL_TOKENS, self.needed),
        }
        # What is compiled or recorded is not changed afterwards: prompts run eagerly,
        # and all tokens where ARM changes decoding too.
        if any(mode == "code" for _, mode in self.changes):
            return arguments | {"enforce_eager": True}
        plain = {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY"}
        return arguments | {"compilation_config": plain}

    def _cpu_memory(self) -> int:
        """Return how many bytes vLLM's cache may take on a CPU.

        By itself vLLM takes nine tenths of all memory. Where a whole batch needs more
        than half of what is free, prompts wait for each other.
        """
        half = psutil.virtual_memory().available // 2
        if not self.batch_size:
            return half
        positions = self.batch_size * (self.needed + CPU_BLOCK)
        return min(positions * self._bytes_per_position(), half)


def _without_end(generated) -> tuple[list[int], list[int]]:
    """Return the tokens of a vLLM output, and the one that ended it, if one did."""
    tokens = list(generated.token_ids)
    if generated.finish_reason == "stop":
        return tokens[:-1], tokens[-1:]
    return tokens, []


def _answer(request: Request, generated) -> Answer:
    """Return what vLLM wrote, behind what the request resumed."""
    tokens, end = _without_end(generated)
    written = [*request.resumed_tokens, *tokens]
    return Answer(written, end, [], generated.finish_reason)


def _make(arguments: dict, made: Future) -> None:
    """Start vLLM from a thread that Ctrl-C does not reach.

    Neither does it reach the processes that are started here, which inherit its mask.
    """
    resource_tracker.ensure_running()  # its own start would lift the mask
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        made.set_result(LLMEngine.from_engine_args(EngineArgs(**arguments)))
    except BaseException as error:
        made.set_exception(error)
