"""The device that benchmarks/gpu.py measures, and models of the real ones' shapes.

Their weights are random, and nothing is downloaded.
"""

import functools
import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

import torch
from measuring import ROOT
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from lib.models.conversion import converted
from lib.models.loading import Loaded
from lib.models.names import known_models, resolve

# Of data/models.yaml, which has their configs.
QWEN = "Qwen2.5-Math-7B"
SMALL_QWEN = "Qwen2.5-Math-1.5B"
LLAMA = "Llama-3.1-8B-Instruct"
GEMMA = "Gemma-3-4b-it"
TINY = {
    "vocab_size": 49152,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}
PATIENCE = 8  # seconds, after which what is timed is not repeated


class Gpu:
    """The device that is measured; one model lies in its memory at a time.

    Without `large` every model and array is tiny.
    """

    def __init__(self, device: str, large: bool | None = None):
        self.device = device
        self.cuda = device == "cuda"
        self.large = self.cuda if large is None else large
        self.tokenizer_folder = ROOT / "tokenizer"
        torch.backends.cuda.enable_cudnn_sdp(False)  # as after a model is loaded

    def config(self, name: str) -> dict:
        """Return a model's config, of a tiny one where models are."""
        config = known_models()[name]["config"]
        return config if self.large else config | TINY

    def model(self, name: str, dtype: torch.dtype = torch.bfloat16):
        """Return a model with random weights, the one before where it is the same."""
        return self._made(name, dtype)

    @functools.lru_cache(maxsize=1)  # noqa: B019 (the one object lives as long as the process)
    def _made(self, name: str, dtype: torch.dtype):
        """Return a new model, made where it runs."""
        changed = {"max_position_embeddings": 16384, "pad_token_id": 0}
        config = AutoConfig.for_model(**self.config(name) | changed)
        self._made.cache_clear()  # before there are two
        gc.collect()
        if self.cuda:
            torch.cuda.empty_cache()
        # Also where a row that asks for it first is in inference mode.
        with torch.inference_mode(False):
            if not self.large:
                model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
                return model.to(self.device).eval()
            with torch.device(self.device):
                return AutoModelForCausalLM.from_config(config, dtype=dtype).eval()

    @functools.cached_property
    def tokenizer(self):
        """The demo model's, from the folder that was filled or from its conversion."""
        folder = self.tokenizer_folder
        if not folder.is_dir():
            folder = converted(resolve("demo"), "float32")
        return AutoTokenizer.from_pretrained(folder)

    def loaded(self, name: str) -> Loaded:
        """Return the random model with the demo's tokenizer."""
        model = self.model(name)
        return Loaded(
            model,
            self.tokenizer,
            name,
            resolve(name),
            "",
            self.device,
            str(model.dtype).removeprefix("torch."),
            model.config.num_hidden_layers,
        )

    def timed(self, call: Callable[[], object], repeats: int = 5) -> dict:
        """Return the median seconds of a call, the first one's, and the memory it took.

        The memory is the most on the GPU beside what lay there.
        """
        before = 0
        if self.cuda:
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        times: list[float] = []
        # The first only warms up.
        while len(times) <= repeats and (len(times) < 2 or sum(times) < PATIENCE):
            begin = time.perf_counter()
            call()
            if self.cuda:
                torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        row = {"seconds": statistics.median(times[1:]), "first_seconds": times[0]}
        if self.cuda:
            peak = torch.cuda.max_memory_allocated() - before
            row["peak_mib"] = peak // 2**20
        return row


@contextmanager
def setting(module: ModuleType, **values: object) -> Iterator[None]:
    """Let names of a module have other values until the block ends."""
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)
