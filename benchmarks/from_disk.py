"""What a score costs of a model whose weights stay on disk, against a whole one.

    python benchmarks/from_disk.py [--layers 3] [--repeats 2]

The checkpoint has random weights in the layer shape of Qwen2.5-Math-7B. It has few of
its layers and as small a share of its words, so that layers and head take their usual
parts of the time. Batches of texts as they are scored go through both, in turns; times
are of the processor. Writes benchmarks/results/from_disk.csv and prints it: median
seconds of a batch, their ratio, and how far the logits differ.
"""

import argparse
import functools
import statistics
import tempfile
import time

import pandas as pd
import torch
from measuring import in_turns, keep
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from lib.evaluation.scoring import SCORED_TOKENS
from lib.generation.prefill import prefill
from lib.models import memory
from lib.models.loading import load
from lib.models.names import known_models

SHAPE = "Qwen2.5-Math-7B"
LENGTHS = (128, 256, 512, 1024)  # tokens of a text, half of which are scored
DTYPE = "float32"


def write_checkpoint(folder: str, layers: int) -> None:
    """Write a checkpoint in bfloat16 with so many layers of the 7B's shape."""
    shape = known_models()[SHAPE]["config"]
    words = shape["vocab_size"] * layers // shape["num_hidden_layers"]
    smaller = {"num_hidden_layers": layers, "vocab_size": words}
    config = AutoConfig.for_model(**shape | smaller)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    # Of one word: no text is read, and the demo's has more than so small a model.
    tokenizer = Tokenizer(WordLevel({"word": 0}, unk_token="word"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)


def main() -> None:
    """Measure texts of every length and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(folder, options.layers)
        whole = load(folder, device="cpu", dtype=DTYPE).model
        memory.free_memory = lambda: 0
        from_disk = load(folder, device="cpu", dtype=DTYPE, offload=True).model
        rows = []
        for length in LENGTHS:
            texts = torch.randint(100, 4000, (SCORED_TOKENS // length, length)).tolist()
            places = [range(length // 2, length - 1)] * len(texts)
            ways = {
                "whole": functools.partial(prefill, whole, texts, places),
                "from_disk": functools.partial(prefill, from_disk, texts, places),
            }
            times = in_turns(ways, options.repeats, time.process_time)
            row = {way: statistics.median(times[way]) for way in ways}
            row["from_disk_of_whole"] = row["from_disk"] / row["whole"]
            apart = ways["whole"]()[1] - ways["from_disk"]()[1]
            row["logits_apart"] = float(apart.abs().max())
            rows.append({"tokens": length} | row)
    table = pd.DataFrame(rows)
    print(table.round(4).to_string(index=False))
    threads = torch.get_num_threads()
    keep("from_disk", table, layers=options.layers, threads=threads)


if __name__ == "__main__":
    main()
