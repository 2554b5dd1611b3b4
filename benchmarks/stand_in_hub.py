"""A hub on this machine with checkpoints of the exact shapes of the paper's models.

Configs and shapes are those of the models, tokenizers those of small models of the same
families (requirements/families.txt). All weights are random numbers that the server
generates while it sends them: on disk each file is sparse after its header, which has
the offsets of the tensors.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import torch
from huggingface_hub import split_torch_state_dict_into_shards
from measuring import ROOT
from transformers import AutoConfig, AutoModelForCausalLM

from lib.models.checkpoint import SHARD_INDEX
from lib.models.conversion import converted
from lib.models.sources import known_models, resolve

sys.path.append(str(ROOT / "tests" / "support"))
from hub_server import HubServer

# The model whose tokenizer is served for each family.
TOKENIZERS = {
    "qwen2": "Qwen2.5-Coder-0.5B-Instruct",
    "llama": "demo",
    "gemma3_text": "gemma-3-270m",
}
NUMBERS = (
    1_000_003  # random numbers, repeated; a prime, so that rows of a matrix differ
)
DEVIATION = 0.02
MODELS = (
    "Qwen2.5-Math-1.5B",
    "Qwen2.5-Math-7B",
    "Gemma-3-4b-it",
    "Llama-3.1-8B-Instruct",
)


class StandInHub(HubServer):
    """Serves checkpoints whose weights are random."""

    def __init__(self, root: Path, models: Sequence[str]):
        generator = torch.Generator().manual_seed(0)
        numbers = DEVIATION * torch.randn(NUMBERS, generator=generator)
        self.noise = numbers.bfloat16().view(torch.uint8).numpy().tobytes() * 2
        self.headers: dict[str, int] = {}  # where the header of each shard ends
        super().__init__(root)
        for name in models:
            self._add(name)

    def read(self, file: BinaryIO, size: int) -> bytes:
        """Return the next bytes of a file, which are random after a shard's header."""
        start = file.tell()
        header = self.headers.get(file.name)
        if header is None:
            return file.read(size)
        if start < header:
            return file.read(min(size, header - start))
        offset = start % (2 * NUMBERS)
        sent = self.noise[offset : offset + size]
        file.seek(start + len(sent))
        return sent

    def _add(self, name: str) -> None:
        """Have a model of data/models.yaml, with its config and its tokenizer."""
        known = known_models()[name]
        config = AutoConfig.for_model(**known.config)
        folder = self.root / known.repo
        folder.mkdir(parents=True, exist_ok=True)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        config.architectures = [type(model).__name__]
        config.dtype = "bfloat16"
        config.save_pretrained(folder)
        small = TOKENIZERS[config.model_type]
        for path in converted(resolve(small), "float32").iterdir():
            if path.name.startswith(("token", "chat_template", "generation_config")):
                shutil.copy(path, folder)

        weights = model.state_dict()
        if config.tie_word_embeddings:
            weights.pop("lm_head.weight")
        split = split_torch_state_dict_into_shards(weights, max_shard_size="4GB")
        if split.is_sharded:
            index = {"metadata": {}, "weight_map": split.tensor_to_filename}
            (folder / SHARD_INDEX).write_text(json.dumps(index))
        for file, keys in split.filename_to_tensors.items():
            self._write_header(folder / file, {key: weights[key] for key in keys})

    def _write_header(self, path: Path, weights: dict[str, torch.Tensor]) -> None:
        """Write where a shard's tensors lie, and make it as long as they need."""
        header = {}
        end = 0
        for key, tensor in weights.items():
            begin, end = end, end + tensor.nbytes
            header[key] = {
                "dtype": "BF16",
                "shape": list(tensor.shape),
                "data_offsets": [begin, end],
            }
        encoded = json.dumps(header).encode()
        encoded += b" " * (-len(encoded) % 8)
        length = 8 + len(encoded)
        with open(path, "wb") as file:
            file.write(len(encoded).to_bytes(8, "little"))
            file.write(encoded)
            file.truncate(length + end)
        self.headers[str(path)] = length
