"""What the first layers of the paper's models weigh, from their configurations.

    python benchmarks/first_layers.py

Told are the bytes to fetch and the memory to hold them. Nothing is fetched: the
configurations are in data/models.yaml, the models are built without weights and their
parameters counted. Writes benchmarks/results/first_layers.csv, which `make readme` puts
into the README, and prints it.
"""

from pathlib import Path

import pandas as pd
import torch
from transformers import AutoConfig, AutoModel

from lib.models.names import known_models

MODELS = (
    "Qwen2.5-Math-1.5B",
    "Qwen2.5-Math-7B",
    "Llama-3.1-8B-Instruct",
    "Gemma-3-4b-it",
)
BYTES_ON_HUB = 2  # of a weight in bfloat16
BYTES_IN_MEMORY = 4  # of a weight in float32, on a CPU
GB = 1e9
RESULTS = Path(__file__).parent / "results" / "first_layers.csv"


def parameters(config: dict, layers: int) -> int:
    """Return how many weights embedding, first layers and final norm have."""
    shape = AutoConfig.for_model(**config | {"num_hidden_layers": layers})
    with torch.device("meta"):
        model = AutoModel.from_config(shape)
    return sum(weights.numel() for weights in model.parameters())


def main() -> None:
    """Write and print a row per model."""
    rows = []
    for name in MODELS:
        config = known_models()[name]["config"]
        labels = {1: "layer 1", 3: "layers 1-3"}
        labels[config["num_hidden_layers"]] = "all layers"
        row = {"model": name}
        for layers, label in labels.items():
            count = parameters(config, layers)
            row[f"{label}: GB to fetch"] = count * BYTES_ON_HUB / GB
            row[f"{label}: GB of RAM"] = count * BYTES_IN_MEMORY / GB
        rows.append(row)
    table = pd.DataFrame(rows).round(2)
    RESULTS.parent.mkdir(exist_ok=True)
    table.to_csv(RESULTS, index=False)
    print(table.T.to_string(header=False))


if __name__ == "__main__":
    main()
