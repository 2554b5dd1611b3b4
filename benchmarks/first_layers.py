"""The size of the first layers of the paper's models, from their configurations.

    python benchmarks/first_layers.py

The table has the bytes to fetch and the memory that they take. Nothing is fetched: the
configurations are in data/models.yaml.
Writes benchmarks/results/first_layers.csv, which docs/running.md shows, and prints it.
"""

import pandas as pd
import torch
import transformers
from measuring import RESULTS

from lib.models.sources import Source, resolve

MODELS = (
    "Qwen2.5-Math-1.5B",
    "Qwen2.5-Math-7B",
    "Llama-3.1-8B-Instruct",
    "Gemma-3-4b-it",
)
BYTES_ON_HUB = 2  # of a weight in bfloat16
BYTES_IN_MEMORY = 4  # of a weight in float32, on a CPU
GB = 1e9


def parameters(source: Source, layers: int) -> int:
    """Return the number of parameters of a model's embedding and first layers; of the
    complete model, with its output head, if these are all layers.
    """
    config = transformers.AutoConfig.for_model(**source.config).get_text_config()
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    if layers == source.layers:
        return model.num_parameters()
    decoder = model.get_decoder()
    parts = [model.get_input_embeddings(), *decoder.layers[:layers]]
    return sum(weight.numel() for part in parts for weight in part.parameters())


def main() -> None:
    """Write and print a row per model."""
    rows = []
    for name in MODELS:
        source = resolve(name)
        row = {"model": name}
        labels = {1: "layer 1", 3: "layers 1-3", source.layers: "all layers"}
        for layers, label in labels.items():
            count = parameters(source, layers)
            row[f"{label}: GB to fetch"] = count * BYTES_ON_HUB / GB
            row[f"{label}: GB of RAM"] = count * BYTES_IN_MEMORY / GB
        rows.append(row)
    table = pd.DataFrame(rows).round(2)
    table.to_csv(RESULTS / "first_layers.csv", index=False)
    print(table.T.to_string(header=False))


if __name__ == "__main__":
    main()
