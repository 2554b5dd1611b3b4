"""What a GPU is to show: extraction, likelihoods, and answers beside vLLM.

    python benchmarks/gpu.py [--model Qwen/Qwen2.5-Math-7B] [--prompts 256]

Three rows of tokens a second, in the dtype of the device: received attention of all
layers beside a plain forward, log p of texts beside the same, and answers to problems
with slashes beside vLLM's, where it is installed. Writes benchmarks/results/gpu.csv and
prints it.
"""

import argparse
import functools
import gc
import importlib.util
import time
from collections.abc import Callable

import pandas as pd
import torch
from measuring import in_turns, keep

from lib.attention.received import received_attention
from lib.generation.engines import engine_class, make_engine
from lib.generation.prefill import prefill
from lib.generation.requests import Request, Sampling
from lib.models.loading import Loaded, load, load_without_weights
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems

TOKENS = 1024
ROWS = 16
NEW_TOKENS = 256
REPEATS = 3


def clock() -> float:
    """Return the time when the device has done what it was asked for."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def tokens_per_second(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return how fast ways go over the same ROWS prompts, at best."""
    times = in_turns(ways, REPEATS, clock)
    return {way: ROWS * TOKENS / min(seconds) for way, seconds in times.items()}


@torch.inference_mode()
def forwards(loaded: Loaded) -> list[dict]:
    """Return the rows of extraction and of likelihoods."""
    model = loaded.model
    ids = torch.randint(100, 10_000, (ROWS, TOKENS), device=model.device)
    texts = ids.tolist()
    places = [range(TOKENS // 2, TOKENS - 1)] * ROWS
    forward = functools.partial(model.get_decoder(), ids, use_cache=False)
    extraction = {
        "ours": functools.partial(received_attention, model, ids),
        "other": forward,
    }
    likelihood = {
        "ours": functools.partial(prefill, model, texts, places),
        "other": forward,
    }
    return [
        {"row": "extraction"} | tokens_per_second(extraction),
        {"row": "likelihood"} | tokens_per_second(likelihood),
    ]


def answers(spec: str, engine: str, prompts: int) -> float:
    """Return tokens a second of an engine that answers problems."""
    gc.collect()
    torch.cuda.empty_cache()  # vLLM takes nearly all of the memory
    loaded = engine_class(engine).load(load_without_weights(spec))
    writer = make_engine(engine, loaded, None, {})
    style = "chat" if loaded.tokenizer.chat_template else "plain"
    requests = []
    for problem in load_problems("embedded", limit=prompts, seed=0):
        prompt = build_prompt(loaded.tokenizer, problem.problem, "mless", format=style)
        requests.append(Request(problem.id, prompt.input_ids.tolist()))
    list(writer.complete(requests[:2], Sampling(NEW_TOKENS)))
    start = clock()
    completions = list(writer.complete(requests, Sampling(NEW_TOKENS)))
    tokens = sum(completion.completion_tokens for completion in completions)
    return tokens / (clock() - start)


def main() -> None:
    """Measure the three rows and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="demo")
    parser.add_argument("--prompts", type=int, default=256)
    options = parser.parse_args()
    loaded = load(options.model)
    settings = {"model": loaded.name, "dtype": loaded.dtype}
    rows = forwards(loaded)
    del loaded
    engines = {"ours": "transformers"}
    if importlib.util.find_spec("vllm"):
        engines["other"] = "vllm"
    row: dict = {"row": "answers"}
    for column, engine in engines.items():
        row[column] = answers(options.model, engine, options.prompts)
    table = pd.DataFrame([*rows, row], columns=["row", "ours", "other"])
    print(keep("gpu", table, **settings).iloc[:, :5].to_string(index=False))


if __name__ == "__main__":
    main()
