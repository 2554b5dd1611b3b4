"""What asks for a GPU, row by row: `make gpu`, or on a node without network in the
folder that `make gpu-folder` fills.

    python3 benchmarks/gpu.py [--out results/gpu] [--device cuda] [--only decode]

Each row is written to OUT/rows.jsonl and printed as it is measured, the most telling
ones first: a run may be stopped at any time, and goes on with what is missing. A row
that ended the whole process twice is left out. Models have the shape of the real ones
and random weights, so nothing is downloaded. With --device cpu every row runs on tiny
models, so that each line of it has run somewhere.
"""

import argparse
import collections
import functools
import gc
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import transformers
from extraction import reduce
from measuring import PACKAGES, ROOT, random_ids
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DynamicCache,
    Gemma3TextConfig,
    LlamaConfig,
    Qwen2Config,
)

from lib.arm.moving import redistribute
from lib.arm.settings import Arm
from lib.attention.received import received_attention
from lib.generation import Request, Sampling
from lib.generation.drawing import choose
from lib.generation.step import DecodeSteps
from lib.generation.transformers import Engine
from lib.measurement.activations import measure_activations
from lib.measurement.attention import measure_attention, prompts_of
from lib.models.conversion import converted
from lib.models.loading import Loaded
from lib.models.names import resolve
from lib.prompts.problems import load_problems

QWEN, LLAMA, GEMMA = "Qwen2.5-Math-7B", "Llama-3.1-8B", "Gemma-3-4b"
SHAPES = {
    QWEN: (Qwen2Config, 3584, 18944, 28, 28, 4, 128, 152064),
    LLAMA: (LlamaConfig, 4096, 14336, 32, 32, 8, 128, 128256),
    GEMMA: (Gemma3TextConfig, 2560, 10240, 34, 8, 4, 256, 262208),
}
NAMES = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
)
NAMES += ("head_dim", "vocab_size")
TINY = (64, 128, 3, 4, 2, 16, 49152)
SHORT, LONG, EAGER_MOST = (128, 256, 512, 1024, 2048), (4096, 8192), 2048  # tokens
POSITIONS, STEPS = (
    512,
    20,
)  # what each row's cache holds in a decode step, and how many steps are timed
PROMPTS = {"cuda": 64, "cpu": 2}


class Rows:
    """What is to be measured on one device, in order; one model lies in its memory at a
    time.
    """

    def __init__(self, device: str):
        self.device, self.cuda = device, device == "cuda"
        self.lengths = (SHORT, LONG) if self.cuda else (SHORT[:1], SHORT[1:2])
        self.at_once = (64, 128, 256) if self.cuda else (4,)

    def __iter__(self) -> Iterator[tuple[str, Callable[[], dict]]]:
        """Yield (name, what measures it)."""
        make = functools.partial
        yield "versions", self.versions
        yield "tests", self.tests
        for rows in self.at_once:
            yield (
                f"decode, {QWEN}, {rows} rows, eager",
                make(self.decode, QWEN, rows, eager=True),
            )
        yield from self.extraction(QWEN, self.lengths[0])
        for elements in (10**6, 10**7) if self.cuda else (10**4,):
            yield f"order statistics, {elements} elements", make(self.order, elements)
        for mode in ("text", "code"):
            yield f"ARM, {mode}, prompts of 256 tokens", make(self.arm, mode, 256)
            yield f"ARM, {mode}, a token for each row", make(self.arm, mode, 1)
        yield f"measuring attention, {QWEN}", make(self.measuring, measure_attention)
        yield (
            f"measuring activations, {QWEN}",
            make(self.measuring, measure_activations),
        )
        for name in SHAPES:
            for rows in self.at_once:
                yield (
                    f"decode, {name}, {rows} rows, graphs",
                    make(self.decode, name, rows, eager=False),
                )
            for arm in (None, Arm(), Arm(mode="code", statistics="sequence")):
                yield (
                    f"answers, {name}, ARM {arm.mode if arm else 'none'}",
                    make(self.answers, name, arm),
                )
            yield from self.extraction(
                name, self.lengths[1] if name == QWEN else sum(self.lengths, ())
            )

    def extraction(
        self, name: str, lengths: tuple[int, ...]
    ) -> Iterator[tuple[str, Callable[[], dict]]]:
        """Yield received attention of layer 1 and of all layers, a plain forward, and
        what eager gives, reduced.
        """
        for tokens in lengths:
            for way in ("layer 1", "all", "sdpa", *["eager"] * (tokens <= EAGER_MOST)):
                yield (
                    f"extraction, {name}, {tokens} tokens, {way}",
                    functools.partial(self.extract, name, tokens, way),
                )

    @functools.lru_cache(maxsize=1)  # noqa: B019 (the one object lives as long as the process)
    def model(self, name: str):
        """Return a model with random weights, made where it runs."""
        kind, *sizes = SHAPES[name]
        config = kind(
            **dict(zip(NAMES, sizes if self.cuda else TINY, strict=True)),
            max_position_embeddings=16384,
            pad_token_id=0,
        )
        self.model.cache_clear()  # before there are two
        gc.collect()
        with torch.device(self.device):
            dtype = torch.bfloat16 if self.cuda else torch.float32
            return AutoModelForCausalLM.from_config(config, dtype=dtype).eval()

    @functools.cached_property
    def tokenizer(self):
        """Return the demo model's, from the folder that was filled or from its
        conversion.
        """
        folder = ROOT / "tokenizer"
        return AutoTokenizer.from_pretrained(
            folder if folder.is_dir() else converted(resolve("demo"), "float32")
        )

    def loaded(self, name: str) -> Loaded:
        """Return the random model with the demo's tokenizer."""
        model = self.model(name)
        dtype = str(model.dtype).removeprefix("torch.")
        return Loaded(
            model,
            self.tokenizer,
            name,
            name,
            "",
            self.device,
            dtype,
            model.config.num_hidden_layers,
        )

    def timed(self, call: Callable[[], object], repeats: int = 5) -> dict:
        """Return the median seconds of a call and the most GPU memory that it took
        beside what lay there.
        """
        times, before = [], 0
        if self.cuda:
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        for _ in range(repeats + 1):  # the first only warms up
            begin = time.perf_counter()
            call()
            if self.cuda:
                torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        found = {"seconds": statistics.median(times[1:])}
        return found | (
            {"peak_mib": (torch.cuda.max_memory_allocated() - before) // 2**20}
            if self.cuda
            else {}
        )

    def versions(self) -> dict:
        """Return what the numbers belong to, and how far float32 products are from
        float64's: 1e-3 would be TF32.
        """
        a = torch.randn(1024, 1024, device=self.device)
        exact = a.double() @ a.double()
        found = {
            "python": sys.version.split()[0],
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "gpu": torch.cuda.get_device_name() if self.cuda else "none",
            "float32_products": torch.get_float32_matmul_precision(),
            "float32_error": float((a @ a - exact).norm() / exact.norm()),
        }
        if self.cuda:
            a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
            found["bfloat16_tflops"] = (
                2 * 8192**3 / self.timed(lambda: a @ a)["seconds"] / 1e12
            )
        return found

    def tests(self) -> dict:
        """Return how the tests of what a GPU computes otherwise ended, the dtype matrix
        among them.
        """
        path = {
            "PYTHONPATH": os.pathsep.join(
                [str(ROOT), os.environ.get("PYTHONPATH", ""), str(PACKAGES)]
            )
        }
        asked = [
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "cuda" if self.cuda else "cpu_too",
        ]
        files = ["tests/test_on_a_gpu.py", "tests/generation/test_step.py"]
        command = [sys.executable, "-m", "pytest", *asked, *files]
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | path, capture_output=True, text=True
        )
        lines = (done.stdout or done.stderr).splitlines()
        if done.returncode:
            raise RuntimeError(
                "; ".join(
                    [
                        lines[-1],
                        *(
                            line
                            for line in lines
                            if line.startswith(("FAILED", "ERROR"))
                        ),
                    ]
                )
            )
        return {"ended": lines[-1]}

    @torch.inference_mode()
    def decode(self, name: str, rows: int, eager: bool) -> dict:
        """Return tokens per second of decode steps, how often one waits for the device,
        and what takes its time.
        """
        model, prefilled = self.model(name), DynamicCache()
        model.get_decoder()(
            random_ids(1).to(self.device), past_key_values=prefilled, use_cache=True
        )
        steps = DecodeSteps(model, rows, POSITIONS + 2 * STEPS)
        steps.eager = eager
        steps.cache.write(0, prefilled, [1])
        steps.cache.lengths = [POSITIONS] * rows
        tokens, draws = [1] * rows, [torch.Generator() for _ in range(rows)]
        step = lambda: choose(steps(tokens), Sampling(1), draws)  # noqa: E731
        with warnings.catch_warnings(record=True) as waits:
            step()
            warnings.simplefilter("always")
            if self.cuda:
                torch.cuda.set_sync_debug_mode("warn")
            waits.clear()
            step()
            if self.cuda:
                torch.cuda.set_sync_debug_mode("default")
        found = self.timed(step, STEPS)
        kinds = [
            torch.profiler.ProfilerActivity.CPU,
            *[torch.profiler.ProfilerActivity.CUDA] * self.cuda,
        ]
        with torch.profiler.profile(activities=kinds, acc_events=True) as profile:
            step()
        kernels = collections.Counter()
        for event in profile.events():
            if event.device_type == torch.autograd.DeviceType.CUDA:
                kernels[event.name[:40]] += event.device_time_total / 1000
        longest = {kernel: round(spent, 3) for kernel, spent in kernels.most_common(6)}
        about = {
            "waits": len(waits),
            "as_graphs": steps.as_graphs,
            "kernel_ms": kernels.total(),
            "longest_ms": longest,
        }
        return found | {"tokens_per_second": rows / found["seconds"]} | about

    @torch.inference_mode()
    def extract(self, name: str, tokens: int, way: str) -> dict:
        """Return seconds and memory of one way to a prompt's received attention."""
        model, ids = self.model(name), random_ids(tokens).to(self.device)
        decoder, usual = model.get_decoder(), model.config._attn_implementation
        calls = {
            "layer 1": lambda: received_attention(model, ids, [1]),
            "all": lambda: received_attention(model, ids),
            "sdpa": lambda: decoder(ids, use_cache=False),
            "eager": lambda: reduce(
                decoder(ids, output_attentions=True, use_cache=False)[-1]
            ),
        }
        decoder.set_attn_implementation("eager" if way == "eager" else usual)
        try:
            return self.timed(calls[way])
        finally:
            decoder.set_attn_implementation(usual)

    def order(self, elements: int) -> dict:
        """Return seconds of a sort, which gives every order statistic, and of kthvalue,
        which gives one.
        """
        values = torch.randn(elements, device=self.device)
        ways = {
            "sort": values.sort,
            "kthvalue": lambda: values.kthvalue(elements // 2),
            "topk": lambda: values.topk(99),
        }
        return {
            f"{way}_seconds": self.timed(call)["seconds"] for way, call in ways.items()
        }

    def arm(self, mode: str, tokens: int) -> dict:
        """Return seconds of ARM's move over as many activations as a batch of the 7B
        has in one layer.
        """
        rows, width = (
            (32 if tokens > 1 else 256, SHAPES[QWEN][2]) if self.cuda else (2, TINY[1])
        )
        x = torch.nn.functional.silu(
            torch.randn(rows, tokens, width, device=self.device)
        )
        return {"rows": rows} | self.timed(
            lambda: redistribute(x, mode=mode, statistics="sequence")
        )

    def measuring(self, measure: Callable) -> dict:
        """Return seconds for each problem of a measurement in all layers under two
        conditions.
        """
        loaded, problems = (
            self.loaded(QWEN),
            load_problems("embedded", limit=PROMPTS[self.device], seed=0),
        )
        prompts = prompts_of(loaded, problems, ["mless"])
        measured = lambda: list(measure(loaded, prompts))  # noqa: E731 (one measurement is an iterator)
        found = self.timed(measured, 1)
        return found | {
            "problems": len(problems),
            "seconds_per_problem": found["seconds"] / len(problems),
        }

    def answers(self, name: str, arm: Arm | None) -> dict:
        """Return tokens per second of the engine, prefill included, on prompts of 64 to
        319 tokens.
        """
        engine = Engine(self.loaded(name), self.at_once[-1])
        engine.stops, new = set(), 128 if self.cuda else 4
        asked = [
            Request(str(n), random_ids(64 + n % 256)[0].tolist(), n, arm)
            for n in range(2 * self.at_once[-1])
        ]
        found = self.timed(lambda: list(engine.complete(asked, Sampling(new))), 1)
        return found | {"tokens_per_second": new * len(asked) / found["seconds"]}


def main() -> int:
    """Measure what is missing, row by row; 1 when a row failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "results" / "gpu",
        help="folder of rows.jsonl",
    )
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--only", default="", help="rows whose names begin so")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit(
            f"torch {torch.__version__} sees no GPU: --device cpu tries every row on"
            " tiny models"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    path, failed = options.out / "rows.jsonl", 0
    lines = (
        [json.loads(line) for line in path.read_text().splitlines()]
        if path.exists()
        else []
    )
    done = {line["row"] for line in lines if "begun" not in line}
    begun = collections.Counter(line["row"] for line in lines if "begun" in line)
    for name, work in Rows(options.device):
        if name in done or begun[name] > 1 or not name.startswith(options.only):
            continue
        start = time.perf_counter()
        with open(
            path, "a"
        ) as file:  # a line of its own for the beginning: the row may end the process
            print(
                json.dumps({"row": name, "begun": time.strftime("%H:%M:%S")}),
                file=file,
                flush=True,
            )
            try:
                found = work()
            except (
                Exception
            ) as error:  # a row that fails is no reason to lose those behind it
                found = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
            if "error" in found:
                failed += "out of memory" not in found["error"]
                gc.collect()
                torch.cuda.empty_cache()
            row = (
                {"row": name}
                | found
                | {"in_all": round(time.perf_counter() - start, 1)}
            )
            print(json.dumps(row), file=file, flush=True)
        shown = {
            key: float(f"{value:.4g}") if isinstance(value, float) else value
            for key, value in row.items()
        }
        print(
            *(
                f"{key}={value}" if key != "row" else value
                for key, value in shown.items()
            ),
            flush=True,
        )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
