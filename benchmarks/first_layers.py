"""The size of the first layers of the paper's models, from their configurations.

    python benchmarks/first_layers.py

The table has the bytes to fetch and the memory that they take. Nothing is fetched: the
configurations are in data/models.yaml, and parameters are counted as in `plan`.
Writes benchmarks/results/first_layers.csv, which docs/running.md shows, and prints it.
"""

import pandas as pd
from measuring import RESULTS

from lib.models.name_resolution import resolve
from lib.plan.model_sizes import shape_of

MODELS = (
    "Qwen2.5-Math-1.5B",
    "Qwen2.5-Math-7B",
    "Llama-3.1-8B-Instruct",
    "Gemma-3-4b-it",
)
BYTES_ON_HUB = 2  # of a weight in bfloat16
BYTES_IN_MEMORY = 4  # of a weight in float32, on a CPU
GB = 1e9


def main() -> None:
    """Write and print a row per model."""
    rows = []
    for name in MODELS:
        source = resolve(name)
        shape = shape_of(source)
        row = {"model": name}
        labels = {1: "layer 1", 3: "layers 1-3", source.layers: "all layers"}
        for layers, label in labels.items():
            count = shape.parameters(layers)
            row[f"{label}: GB to fetch"] = count * BYTES_ON_HUB / GB
            row[f"{label}: GB of RAM"] = count * BYTES_IN_MEMORY / GB
        rows.append(row)
    table = pd.DataFrame(rows).round(2)
    table.to_csv(RESULTS / "first_layers.csv", index=False)
    print(table.T.to_string(header=False))


if __name__ == "__main__":
    main()
