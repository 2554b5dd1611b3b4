"""A hub on this machine with checkpoints of the exact shapes of the paper's models.

    python benchmarks/stand_in_hub.py [--folder results/stand-in-hub] [--narrow]

It serves until it is interrupted, and prints the address for HF_ENDPOINT. Configs and
shapes are those of the models, tokenizers those of small models of the same families
(requirements/families.txt). Weights are random numbers that the server makes up while
it sends them: files are holes on disk behind a header that says what lies where. With
--narrow models have as many layers, heads and words, but few numbers in each.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import BinaryIO

import torch
from measuring import ROOT
from transformers import AutoConfig, AutoModelForCausalLM

from lib.models.checkpoint import ONLY_SHARD, SHARD_INDEX
from lib.models.conversion import converted
from lib.models.names import known_models, resolve
from lib.paths import RESULTS

sys.path.append(str(ROOT / "tests" / "support"))
from hub_server import HubServer

LARGEST_SHARD = 4e9  # bytes, as those of the 7B
# Which model's tokenizer a model of this family speaks through.
TOKENIZERS = {
    "qwen2": "Qwen2.5-Coder-0.5B-Instruct",
    "llama": "demo",
    "gemma3_text": "gemma-3-270m",
}
NARROW = {"hidden_size": 128, "intermediate_size": 256, "head_dim": 16}
NUMBERS = 1_000_003  # random ones, which come again and again: no multiple of a row
DEVIATION = 0.02
ONE = torch.ones(1, dtype=torch.bfloat16).view(torch.uint8).numpy().tobytes()
MODELS = (
    "Qwen2.5-Math-1.5B",
    "Qwen2.5-Math-7B",
    "Gemma-3-4b-it",
    "Llama-3.1-8B-Instruct",
)


class StandInHub(HubServer):
    """Serves checkpoints whose weights are random, and those of norms one."""

    def __init__(self, root: Path, narrow: bool):
        self.changes = NARROW if narrow else {}
        generator = torch.Generator().manual_seed(0)
        numbers = DEVIATION * torch.randn(NUMBERS, generator=generator)
        self.noise = numbers.bfloat16().view(torch.uint8).numpy().tobytes() * 2
        # Of each shard: where its header ends, and where norms begin and end.
        self.headers: dict[str, int] = {}
        self.norms: dict[str, list[tuple[int, int]]] = {}
        super().__init__(root)

    def add(self, name: str) -> None:
        """Have a model of data/models.yaml, with its config and its tokenizer."""
        known = known_models()[name]
        config = AutoConfig.for_model(**known["config"] | self.changes)
        folder = self.root / known["hub"]
        folder.mkdir(parents=True, exist_ok=True)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        config.architectures = [type(model).__name__]
        config.dtype = "bfloat16"
        config.save_pretrained(folder)
        small = TOKENIZERS[config.model_type]
        for path in converted(resolve(small), "float32").iterdir():
            if path.name.startswith(("token", "chat_template", "generation_config")):
                shutil.copy(path, folder)

        shapes = {key: list(tensor.shape) for key, tensor in model.state_dict().items()}
        if config.tie_word_embeddings:
            shapes.pop("lm_head.weight")
        self._write_shards(folder, shapes)

    def read(self, file: BinaryIO, size: int) -> bytes:
        """Return the next bytes of a file, behind a shard's header random ones."""
        if file.name not in self.headers:
            return file.read(size)
        start = file.tell()
        if start < self.headers[file.name]:
            return file.read(min(size, self.headers[file.name] - start))
        offset = start % (2 * NUMBERS)
        sent = bytearray(self.noise[offset : offset + size])
        for begin, end in self.norms[file.name]:
            first, last = max(begin, start), min(end, start + size)
            if first < last:
                ones = ONE * ((last - first) // 2 + 1)
                shift = (first - begin) % 2
                sent[first - start : last - start] = ones[shift:][: last - first]
        file.seek(start + size)
        return bytes(sent)

    def _write_shards(self, folder: Path, shapes: dict[str, list[int]]) -> None:
        """Write the index, and each shard's header before a hole."""
        shards: list[dict[str, list[int]]] = [{}]
        size = 0
        for key, shape in shapes.items():
            stored = 2 * torch.Size(shape).numel()
            if size + stored > LARGEST_SHARD and shards[-1]:
                shards.append({})
                size = 0
            shards[-1][key] = shape
            size += stored
        names = [ONLY_SHARD]
        if len(shards) > 1:
            count = len(shards)
            names = [
                f"model-{number:05}-of-{count:05}.safetensors"
                for number in range(1, count + 1)
            ]
            index = {
                key: name
                for name, shard in zip(names, shards, strict=True)
                for key in shard
            }
            content = {"metadata": {}, "weight_map": index}
            (folder / SHARD_INDEX).write_text(json.dumps(content))
        for name, shard in zip(names, shards, strict=True):
            self._write_header(folder / name, shard)

    def _write_header(self, path: Path, shapes: dict[str, list[int]]) -> None:
        """Write where a shard's tensors lie, and make it as long as they need."""
        header = {}
        norms = []
        end = 0
        for key, shape in shapes.items():
            begin, end = end, end + 2 * torch.Size(shape).numel()
            header[key] = {
                "dtype": "BF16",
                "shape": shape,
                "data_offsets": [begin, end],
            }
            if "norm" in key:
                norms.append((begin, end))
        encoded = json.dumps(header).encode()
        encoded += b" " * (-len(encoded) % 8)
        length = 8 + len(encoded)
        with open(path, "wb") as file:
            file.write(len(encoded).to_bytes(8, "little"))
            file.write(encoded)
            file.truncate(length + end)
        self.headers[str(path)] = length
        self.norms[str(path)] = [(length + begin, length + end) for begin, end in norms]


def stand_in_hub(folder: Path, models=MODELS, narrow: bool = False) -> StandInHub:
    """Return a running hub with these models; it ends with its `with` block."""
    folder.mkdir(parents=True, exist_ok=True)
    hub = StandInHub(folder, narrow)
    for name in models:
        hub.add(name)
    return hub


def main() -> None:
    """Serve all models until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=RESULTS / "stand-in-hub")
    parser.add_argument("--narrow", action="store_true")
    options = parser.parse_args()
    with stand_in_hub(options.folder, narrow=options.narrow) as hub:
        print(f"export HF_ENDPOINT={hub.url}", flush=True)
        try:
            while sys.stdin.readline():
                print(f"{hub.sent_weights / 1e9:.2f} GB of weights sent", flush=True)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
