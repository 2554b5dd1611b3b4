"""Throughput on a GPU: received attention, likelihoods, and answers compared with vLLM.

    python benchmarks/gpu.py [--model Qwen/Qwen2.5-Math-7B]

Three rows with tokens per second, in the dtype of the device: received attention of all
layers and log p of texts, each compared with a plain forward pass, and answers to
problems with slashes, compared with vLLM's if it is installed. Writes
benchmarks/results/gpu.csv and prints it.
"""

import argparse
import functools
import gc
import importlib.util
import time

import pandas as pd
import torch
from likelihood import scored
from measuring import in_turns, keep

from lib.attention.received import received_attention
from lib.generation.engine_interface import (
    Request,
    Sampling,
    engine_class,
    processor_name,
)
from lib.models.loading import Loaded, load, load_without_weights
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems
from reproduction.evaluation.score_run import score_rows

TOKENS = 1024
ROWS = 16
SCORED = 256  # problems
ANSWERED = 256  # problems
NEW_TOKENS = 256
REPEATS = 3


def clock() -> float:
    """Return the time after the device has finished all of its work."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


@torch.inference_mode()
def forwards(loaded: Loaded) -> list[dict]:
    """Return the rows of received attention and of likelihoods, which are computed like
    those of the command `likelihood`.
    """
    model = loaded.model
    ids = torch.randint(100, 10_000, (ROWS, TOKENS), device=model.device)
    problems = load_problems("embedded", limit=SCORED)
    texts = {
        f"{number:016x}": scored(loaded, problem, "mless")
        for number, problem in enumerate(problems)
    }
    tokens = sum(len(text.ids) for text in texts.values())
    ways = {
        "other": functools.partial(model.get_decoder(), ids, use_cache=False),
        "extraction": functools.partial(received_attention, model, ids),
        "likelihood": lambda: list(score_rows(loaded, texts)),
    }
    times = in_turns(ways, REPEATS, clock)
    other = ROWS * TOKENS / min(times["other"])
    extraction = ROWS * TOKENS / min(times["extraction"])
    likelihood = tokens / min(times["likelihood"])
    return [
        {"row": "extraction", "ours": extraction, "other": other},
        {"row": "likelihood", "ours": likelihood, "other": other},
    ]


def answers(spec: str, engine: str) -> float:
    """Return the tokens per second of an engine that answers problems."""
    gc.collect()
    torch.cuda.empty_cache()  # vLLM takes nearly all of the memory
    loaded = engine_class(engine).load(load_without_weights(spec))
    writer = engine_class(engine)(loaded, None)
    style = "chat" if loaded.tokenizer.chat_template else "plain"
    requests = []
    for problem in load_problems("embedded", limit=ANSWERED):
        prompt = build_prompt(loaded.tokenizer, problem.problem, "mless", format=style)
        requests.append(Request(problem.id, prompt.input_ids.tolist()))
    # Begin with the longest prompt, because vLLM restarts for a longer context.
    longest = max(requests, key=lambda request: len(request.input_ids))
    list(writer.complete([longest], Sampling(NEW_TOKENS)))
    start = clock()
    completions = list(writer.complete(requests, Sampling(NEW_TOKENS)))
    tokens = sum(completion.completion_tokens for completion in completions)
    return tokens / (clock() - start)


def main() -> None:
    """Measure the three rows and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="demo")
    model = parser.parse_args().model
    loaded = load(model)
    settings = {"model": loaded.name, "dtype": loaded.dtype}
    settings["device"] = processor_name(loaded.device)
    rows = forwards(loaded)
    del loaded
    row: dict = {"row": "answers"}
    row["ours"] = answers(model, "transformers")
    if importlib.util.find_spec("vllm"):
        row["other"] = answers(model, "vllm")
    table = pd.DataFrame([*rows, row], columns=["row", "ours", "other"])
    keep("gpu", table, **settings)


if __name__ == "__main__":
    main()
