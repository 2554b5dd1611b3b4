"""Complete prompts with vLLM, for runs that need a GPU or several; the interface is
that of the package.

vLLM alone reads the checkpoint, in processes of its own, and schedules `batch_size`
prompts at once. The second step of an elicited answer is a new prompt that begins with
the first, so its prefix comes from vLLM's cache.
"""

import functools
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
from lib.generation import Completion, Request, Sampling, Writer
from lib.generation.vllm_arm import ArmExtension, change_for
from lib.grading.answer import last_box
from lib.models.loading import load

# Read when vLLM is imported and by the processes it starts, which talk to each other on
# this machine alone.
os.environ.setdefault("VLLM_HOST_IP", "127.0.0.1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "0"  # ARM reads its batch from the other one
try:
    from vllm import EngineArgs, LLMEngine, SamplingParams, TokensPrompt
    from vllm.sampling_params import RequestOutputKind
except ImportError as error:
    how = (
        "pip install --no-deps -r requirements/vllm.txt (CPU) or pip install"
        " vllm==0.32.0 (CUDA)"
    )
    raise InputError(f"engine vllm cannot be imported ({error}): {how}") from error

# of one step at least: under ARM no prompt is cut, whose statistics need all of it
PREFILL_TOKENS = 8192
# positions, on a CPU; only whole blocks are cached, and vLLM's own 128 is longer than
# many prompts
BLOCK = 32


class Engine(Writer):
    """Runs on `tensor_parallel` devices; greedy float32 output equals the transformers
    engine's.

    ARM on several devices is refused at the call, an activation module that is unknown
    in vLLM before any completion.
    """

    load = staticmethod(functools.partial(load, read=False))

    def __init__(self, loaded, batch_size: int, tensor_parallel: int = 1):
        super().__init__(loaded, batch_size)
        self.folder, self.tensor_parallel = loaded.model.name_or_path, tensor_parallel
        if not os.path.isdir(self.folder):
            raise InputError(
                f"engine vllm reads a checkpoint folder, and {loaded.spec} was loaded"
                " from none"
            )
        self.llm: LLMEngine = None  # until the first prompt
        self.needed, self.changes = (
            0,
            set(),
        )  # positions, and (layer, mode) of ARM's, that were asked for so far

    def _accept(self, arm: Arm | None, positions: int) -> None:
        super()._accept(arm, positions)
        if arm and self.tensor_parallel > 1:
            raise InputError(
                "ARM needs whole activations, which tensor_parallel above 1 divides:"
                " use workers"
            )
        changes = self.changes | ({(arm.layer, arm.mode)} if arm else set())
        if positions > self.needed or changes != self.changes:
            # it is started again with room for these prompts and access to this layer
            self.close()
            self.needed, self.changes = max(self.needed, positions), changes

    def _stream(
        self,
        requests: list[Request],
        sampling: Sampling,
        elicit: list[int],
        positions: int,
    ) -> Iterator[Completion]:
        if not self.llm:
            self._start()
        running, written = (
            {request.key: request for request in requests},
            {},
        )  # by key; ids and why they end
        for request in requests:
            self._ask(
                request,
                request.input_tokens,
                request.seed,
                sampling.max_new_tokens - len(request.resumed_tokens),
                sampling,
            )
        try:
            while running:
                for output in self.llm.step():
                    request, new = running[output.request_id], output.outputs[0]
                    stopped = new.finish_reason == "stop"
                    ids = list(new.token_ids[:-1] if stopped else new.token_ids)
                    if request.key in written:
                        first, end, finish = written[request.key]
                        boxes = (
                            last_box(sampling.elicit + self._decode(ids[:n]))
                            for n in range(1, len(ids))
                        )
                        after = ids[
                            : next(
                                (
                                    n
                                    for n, box in enumerate(boxes, 1)
                                    if box is not None
                                ),
                                len(ids),
                            )
                        ]
                    else:
                        first, finish = (
                            [*request.resumed_tokens, *ids],
                            new.finish_reason,
                        )
                        end, after = list(new.token_ids[len(ids) :]), []
                        if elicit and last_box(self._decode(first)) is None:
                            written[request.key] = first, end, finish
                            both, seed = (
                                [*request.input_ids, *first, *elicit],
                                (request.seed + 1) % 2**63,
                            )
                            self._ask(
                                request, both, seed, sampling.elicit_tokens, sampling
                            )
                            continue
                    del running[request.key]
                    yield self._completion(request, sampling, finish, first, end, after)
        finally:
            if running and self.llm:
                self.llm.abort_request(list(running))

    def _ask(
        self,
        request: Request,
        prompt: list[int],
        seed: int,
        limit: int,
        sampling: Sampling,
    ) -> None:
        """Let vLLM go on behind these tokens, by at most `limit` new ones."""
        tokens, change = TokensPrompt(prompt_token_ids=prompt), None
        if request.arm:
            change = change_for(request.arm, request.seed, len(request.input_ids))
            tokens["cache_salt"] = (
                request.key
            )  # so that no other request reads what is written under ARM
        given = dict(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=limit,
            seed=seed,
        )
        given |= dict(
            stop_token_ids=sorted(self.stops),
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        # What is changed differs between requests with equal prompts.
        given |= dict(extra_args=change, skip_reading_prefix_cache=bool(change))
        self.llm.add_request(request.key, tokens, SamplingParams(**given))

    def close(self) -> None:
        """End vLLM's processes; without this call they end with the engine."""
        if self.llm:
            self._shutdown()
        self.llm = None

    def _start(self) -> None:
        made: Future = Future()
        threading.Thread(
            target=_make, args=(self._arguments(), made), daemon=True
        ).start()
        try:
            self.llm = made.result()
        except (
            Exception
        ) as error:  # of any kind; the reason stands in the output of vLLM's processes
            raise InputError(
                f"vllm did not start: {' '.join(str(error).split())[:300]}"
            ) from error
        self._shutdown = weakref.finalize(self, self.llm.engine_core.shutdown, 60)
        layers = sorted({layer for layer, _ in self.changes})
        refusals = (
            self.llm.collective_rpc("install_arm", args=(layers,)) if layers else []
        )
        if any(refusals):
            self.close()
            self.changes = set()
            raise InputError(
                f"engine vllm cannot run ARM on {self.loaded.spec}: {refusals[0]}"
            )

    def _arguments(self) -> dict:
        # Token ids go in and come out, and `Sampling` says what a checkpoint's
        # generation config would.
        arguments = dict(
            skip_tokenizer_init=True,
            generation_config="vllm",
            enable_prefix_caching=True,
        )
        arguments |= dict(
            model=self.folder,
            load_format="safetensors",
            dtype=self.loaded.dtype,
            use_tqdm_on_load=False,
        )
        arguments |= dict(
            tensor_parallel_size=self.tensor_parallel, disable_log_stats=True
        )
        arguments |= dict(max_model_len=self.needed, max_num_seqs=self.batch_size)
        if self.changes:
            arguments["worker_extension_cls"] = (
                f"{ArmExtension.__module__}.{ArmExtension.__name__}"
            )
            arguments["async_scheduling"] = (
                # under which the batch that ARM reads is a step ahead of the tokens
                False
            )
            arguments |= dict(
                enable_chunked_prefill=False,
                max_num_batched_tokens=max(PREFILL_TOKENS, self.needed),
            )
            # What is compiled or recorded is not changed afterwards: prompts run
            # eagerly, and all where ARM decodes.
            plain = dict(
                compilation_config={"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY"}
            )
            arguments |= (
                dict(enforce_eager=True)
                if any(mode == "code" for _, mode in self.changes)
                else plain
            )
        if self.loaded.device == "cpu":
            # Compiling asks for a C++ compiler and a minute; without a size vLLM takes
            # nine tenths of all memory.
            room = self.batch_size * (self.needed + BLOCK) * self._bytes_per_position()
            room = min(
                room, psutil.virtual_memory().available // 2
            )  # prompts then wait for each other
            arguments.pop("compilation_config", None)
            arguments |= dict(
                enforce_eager=True, block_size=BLOCK, kv_cache_memory_bytes=room
            )
        return arguments


def _make(arguments: dict, made: Future) -> None:
    """Start vLLM from a thread that Ctrl-C does not reach, nor the processes started
    here, which inherit its mask.
    """
    resource_tracker.ensure_running()  # its own start would lift the mask
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        made.set_result(LLMEngine.from_engine_args(EngineArgs(**arguments)))
    except BaseException as error:
        made.set_exception(error)
