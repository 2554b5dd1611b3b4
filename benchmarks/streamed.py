"""What a score costs of a model that is read one layer at a time, against a whole one.

    python benchmarks/streamed.py [--problems math500] [--layers 3] [--repeats 2]

The checkpoint has random weights in the layer shape of Qwen2.5-Math-7B. It has few of
its layers and as small a share of its words, so that layers and head take their usual
parts of the time. Tokens come from the demo's tokenizer. Under each condition the first
texts that fill a sweep are scored in both ways, which take turns; times are of the
processor. Writes benchmarks/results/streamed.csv and prints the table: seconds of a
sweep, and their ratio.
"""

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch
from measuring import keep
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from lib.evaluation.likelihood import texts_wanted
from lib.evaluation.scoring import SWEPT_TOKENS, Texts, TextToScore, score_rows
from lib.models.conversion import converted
from lib.models.loading import Loaded, load
from lib.models.names import known_models, resolve
from lib.profiles import Likelihood
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems

SHAPE = "Qwen2.5-Math-7B"
CONDITIONS = ("none", "mless", "hidden-from-layer-1", "dilution", "gap", "example")
PROBLEMS = 100
DTYPE = "float32"


def write_checkpoint(folder: Path, layers: int) -> None:
    """Write a checkpoint in bfloat16 with so many layers of the 7B's shape."""
    shape = known_models()[SHAPE]["config"]
    words = shape["vocab_size"] * layers // shape["num_hidden_layers"]
    smaller = {"num_hidden_layers": layers, "vocab_size": words}
    config = AutoConfig.for_model(**shape | smaller)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(converted(resolve("demo"), DTYPE))
    tokenizer.save_pretrained(folder)


def texts_of_a_sweep(loaded: Loaded, source: str, condition: str) -> Texts:
    """Return the texts of `laptop` under a condition, as many as fill a sweep."""
    problems = load_problems(source, PROBLEMS)
    settings = Likelihood.model_validate(
        {
            "models": [loaded.spec],
            "problems": source,
            "conditions": [condition],
            "format": "plain",
        }
    )
    wanted = texts_wanted(loaded, settings, Filler(), problems)
    texts = {}
    tokens = 0
    for key, text in wanted.items():
        if tokens >= SWEPT_TOKENS:
            break
        texts[key] = with_few_words(text, loaded.model.config.vocab_size)
        tokens += len(text.ids)
    return texts


def with_few_words(text: TextToScore, words: int) -> TextToScore:
    """Return a text whose ids are below the number of words."""
    prompt = replace(text.prompt, input_ids=text.prompt.input_ids % words)
    lead = [token % words for token in text.lead]
    return replace(
        text, prompt=prompt, lead=lead, text=[token % words for token in text.text]
    )


def measure(
    models: dict[str, Loaded], source: str, condition: str, repeats: int
) -> dict[str, object]:
    """Return the seconds of both ways under a condition, and how far scores differ."""
    texts = texts_of_a_sweep(models["whole"], source, condition)
    times: dict[str, list[float]] = {way: [] for way in models}
    nats: dict[str, pd.Series] = {}
    for turn in range(repeats):
        for way in sorted(models, reverse=turn % 2 == 1):
            start = time.process_time()
            rows = list(score_rows(models[way], texts))
            times[way].append(time.process_time() - start)
            nats[way] = pd.DataFrame(rows).set_index("key")["nats"]

    seconds = {way: statistics.median(times[way]) for way in models}
    return {
        "condition": condition,
        "texts": len(texts),
        "tokens": sum(len(text.ids) for text in texts.values()),
        **seconds,
        "streamed_of_whole": seconds["streamed"] / seconds["whole"],
        "nats_apart": (nats["streamed"] - nats["whole"]).abs().max(),
    }


def main() -> None:
    """Measure under every condition of `laptop` and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", default="math500")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--conditions", nargs="+", default=CONDITIONS)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as name:
        write_checkpoint(Path(name), options.layers)
        settings = {"device": "cpu", "dtype": DTYPE}
        models = {
            "whole": load(name, **settings),
            "streamed": load(name, streamed=True, **settings),
        }
        rows = []
        for condition in options.conditions:
            row = measure(models, options.problems, condition, options.repeats)
            rows.append(row)
            table = pd.DataFrame(rows)
            print(table.round(4).to_string(index=False), flush=True)
            threads = torch.get_num_threads()
            keep("streamed", table, layers=options.layers, threads=threads)


if __name__ == "__main__":
    main()
