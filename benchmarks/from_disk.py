"""What a score costs of a model whose weights stay on disk, against a whole one.

    python benchmarks/from_disk.py [--problems math500] [--layers 3] [--repeats 2]

The checkpoint has random weights in the layer shape of Qwen2.5-Math-7B. It has few of
its layers and as small a share of its words, so that layers and head take their usual
parts of the time. Tokens come from the demo's tokenizer. Under each condition the same
texts, some batches of them, are scored in both ways, which take turns; times are of the
processor. Writes benchmarks/results/from_disk.csv and prints the table: seconds of the
texts, and their ratio.
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
from lib.evaluation.scoring import SCORED_TOKENS, Texts, TextToScore, score_rows
from lib.models import memory
from lib.models.conversion import converted
from lib.models.loading import Loaded, load
from lib.models.names import known_models, resolve
from lib.profiles import Likelihood
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems

SHAPE = "Qwen2.5-Math-7B"
CONDITIONS = ("none", "mless", "hidden-from-layer-1", "dilution", "gap", "example")
PROBLEMS = 100
TOKENS = 4 * SCORED_TOKENS  # of the texts that are scored
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


def some_texts(loaded: Loaded, source: str, condition: str) -> Texts:
    """Return the first texts of `laptop` under a condition."""
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
        if tokens >= TOKENS:
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
    texts = some_texts(models["whole"], source, condition)
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
        "from_disk_of_whole": seconds["from_disk"] / seconds["whole"],
        "nats_apart": (nats["from_disk"] - nats["whole"]).abs().max(),
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
        models = {"whole": load(name, **settings)}
        memory.free_memory = lambda: 0
        models["from_disk"] = load(name, offload=True, **settings)
        rows = []
        for condition in options.conditions:
            row = measure(models, options.problems, condition, options.repeats)
            rows.append(row)
            table = pd.DataFrame(rows)
            print(table.round(4).to_string(index=False), flush=True)
            threads = torch.get_num_threads()
            keep("from_disk", table, layers=options.layers, threads=threads)


if __name__ == "__main__":
    main()
