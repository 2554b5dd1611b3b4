"""Everything that asks for a GPU, in parts that can be interrupted: `make gpu` on a machine with CUDA.

    python benchmarks/gpu.py [--out results/gpu] [--device cuda] [--only extraction] [--problems math500]

A part is a process of at most 9 minutes and leaves OUT/PART.json; what is there already is not done again, and a part
that failed leaves OUT/PART.log. With --device cpu every part runs on tiny models, so that each line of it has run
somewhere. Models have the shape of the real ones and random weights, but for MATH-500, which asks the families' own.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from extraction import reduce
from measuring import machine, random_ids
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Gemma3TextConfig,
    LlamaConfig,
    PretrainedConfig,
    Qwen2Config,
)

from lib.arm.settings import Arm
from lib.attention.received import received_attention
from lib.generation.interface import Job, Request, Sampling, complete_all, make_engine
from lib.models.conversion import converted
from lib.models.loading import load
from lib.models.names import known_models, resolve
from lib.paths import RESULTS, ROOT, write_json
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems

SECONDS = 540  # of a part
SHAPES = {
    "Qwen2.5-Math-7B": (Qwen2Config, 3584, 18944, 28, 28, 4, 128, 152064),
    "Llama-3.1-8B": (LlamaConfig, 4096, 14336, 32, 32, 8, 128, 128256),
    "Gemma-3-4b": (Gemma3TextConfig, 2560, 10240, 34, 8, 4, 256, 262208),
}
NAMES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
NAMES += ("head_dim", "vocab_size")
TINY = (64, 128, 3, 4, 2, 16)
LENGTHS = {"cuda": (128, 256, 512, 1024, 2048, 4096, 8192), "cpu": (128, 256)}
PROMPTS = {"cuda": 256, "cpu": 4}
NEW_TOKENS = {"cuda": 256, "cpu": 4}
BATCH = {"cuda": 256, "cpu": 4}


def config(name: str, device: str) -> PretrainedConfig:
    """Return a model's shape, or a tiny one of its family for a processor."""
    kind, *sizes, vocabulary = SHAPES[name]
    shape = (*sizes, vocabulary) if device == "cuda" else (*TINY, 49152)
    return kind(**dict(zip(NAMES, shape, strict=True)), max_position_embeddings=16384)


def fresh(name: str, device: str):
    """Return a model with random weights, made where it will run."""
    with torch.device(device):
        dtype = torch.bfloat16 if device == "cuda" else torch.float32
        return AutoModelForCausalLM.from_config(config(name, device), dtype=dtype).eval()


def extraction(name: str, device: str) -> list[dict]:
    """Return seconds and GPU memory of received attention, SDPA and eager at each length; what does not fit is said."""
    model, rows = fresh(name, device), []
    decoder, usual = model.get_decoder(), model.config._attn_implementation
    ways = {
        "layer1": lambda ids: received_attention(model, ids, [1])[0],
        "all": lambda ids: received_attention(model, ids)[0],
        "sdpa": lambda ids: decoder(ids, use_cache=False),
        "eager": lambda ids: reduce([a.cpu() for a in decoder(ids, output_attentions=True, use_cache=False)[-1]]),
    }
    for tokens in LENGTHS[device]:
        ids = random_ids(tokens).to(device)
        for way, call in ways.items():
            decoder.set_attn_implementation("eager" if way == "eager" else usual)
            rows.append({"model": name, "way": way, "tokens": tokens} | timed(call, ids))
    return rows


@torch.inference_mode()
def timed(call, ids: torch.Tensor, repeats: int = 5) -> dict:
    """Return the median seconds of a call and the most GPU memory, or that it does not fit."""
    times, cuda = [], ids.device.type == "cuda"
    try:
        for _ in range(repeats + 1):  # the first only warms up
            begin = time.perf_counter()
            call(ids)
            if cuda:
                torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return {"skipped": "out of memory"}
    peak = torch.cuda.max_memory_allocated() / 2**20 if cuda else None
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    return {"seconds": statistics.median(times[1:]), "peak_mib": peak}


def generation(name: str, device: str, engine: str, out: Path) -> list[dict]:
    """Return completions per second of an engine with and without ARM, on prompts with slashes."""
    loaded = load(str(checkpoint(name, device, out)), device=device)
    problems = load_problems("embedded", limit=PROMPTS[device], seed=0)
    prompts = [build_prompt(loaded.tokenizer, problem.problem, "mless", format="chat") for problem in problems]
    made, sampling, rows = make_engine(engine, loaded, BATCH[device], {}), Sampling(NEW_TOKENS[device]), []
    for arm in (None, Arm(), Arm(mode="code", statistics="sequence")):
        jobs = [Job(Request(str(n), prompt.input_ids.tolist(), n), arm) for n, prompt in enumerate(prompts)]
        list(complete_all(made, jobs[:2], sampling))  # first use
        begin = time.perf_counter()
        tokens = sum(completion.completion_tokens for completion in complete_all(made, jobs, sampling))
        spent = time.perf_counter() - begin
        row = {"model": name, "engine": engine, "arm": arm.mode if arm else "none", "prompts": len(jobs)}
        rows.append(row | {"per_second": len(jobs) / spent, "tokens_per_second": tokens / spent})
    return rows


def checkpoint(name: str, device: str, out: Path) -> Path:
    """Return a folder with a random model that speaks through the demo model's tokenizer, made on first use."""
    folder = out / "checkpoints" / name
    if not (folder / "tokenizer.json").exists():
        fresh(name, device).save_pretrained(folder)
        AutoTokenizer.from_pretrained(converted(resolve("demo").gguf, "float32")).save_pretrained(folder)
    return folder


def tests() -> list[dict]:
    """Return how the tests marked cuda ended."""
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-m", "cuda", "tests"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    print(done.stdout)
    if done.returncode:
        raise SystemExit("tests marked cuda fail")
    return [{"ended": done.stdout.splitlines()[-1]}]


def accuracy(model: str, device: str, out: Path, problems: str) -> list[dict]:
    """Return the summary of a model's answers; a run that did not end in time continues when it is started again."""
    engine = "vllm" if device == "cuda" and importlib.util.find_spec("vllm") else "transformers"
    spec = model if device == "cuda" else str(checkpoint("Llama-3.1-8B", device, out))
    given = [f"--model={spec}", f"--problems={problems}", f"--engine={engine}", "--conditions=none,mless,arm"]
    small = [] if device == "cuda" else ["--limit=2", "--max-new-tokens=2", "--format=plain"]
    folder = out / "runs" / model
    subprocess.run([sys.executable, "-m", "lib", "evaluate", *given, *small, "--out", folder], cwd=ROOT, check=True)
    return json.loads((folder / "summary.json").read_text())


def parts(options: argparse.Namespace) -> dict:
    """Return by name what is to be done, as functions that return rows."""
    device, out = options.device, options.out
    found = {f"extraction-{name}": lambda name=name: extraction(name, device) for name in SHAPES}
    engines = ["transformers", *(["vllm"] if importlib.util.find_spec("vllm") else [])]
    for engine in engines:
        made = f"generation-{engine}"
        found[made] = lambda engine=engine: generation("Qwen2.5-Math-7B", device, engine, out)
    found["tests"] = tests
    for model in (name for name, entry in known_models().items() if "wheels" in entry and name != "demo"):
        found[f"math500-{model}"] = lambda model=model: accuracy(model, device, out, options.problems)
    return {name: work for name, work in found.items() if name.startswith(options.only)}


def environment(device: str) -> dict:
    """Return what the numbers belong to."""
    gpu = torch.cuda.get_device_name() if device == "cuda" else "none"
    return {**machine(), "gpu": gpu, "cuda": torch.version.cuda, "device": device}


def main() -> int:
    """Do what is not done yet; 1 when a part failed or took too long."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu", help="folder of results and environment")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--only", default="", help="parts whose names begin so")
    parser.add_argument("--problems", default="math500", help="or a file of them, where there is no hub")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out = options.out.resolve()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit(f"torch {torch.__version__} sees no GPU: --device cpu tries every part on tiny models")
    work = parts(options)
    if options.one:
        write_json(options.out / f"{options.one}.json", work[options.one]())
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(options.out / "environment.json", environment(options.device))
    ended = {name: (options.out / f"{name}.json").exists() or apart(name, options.out) for name in work}
    print("\n".join(f"{name}: {'done' if well else 'failed or late, see its log'}" for name, well in ended.items()))
    return int(not all(ended.values()))


def apart(name: str, out: Path) -> bool:
    """Do one part in a process of its own; return whether it ended well and in time."""
    print(f"{name} ...", flush=True)
    with open(out / f"{name}.log", "w") as log:
        command = [sys.executable, __file__, *sys.argv[1:], "--one", name]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            return process.wait(SECONDS) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):  # vLLM's processes too, and a run's
                os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
