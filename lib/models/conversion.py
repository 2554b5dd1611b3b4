"""From a GGUF file to a safetensors checkpoint, one tensor in memory at a time.

Names, permutations and offsets of each family are transformers' own, as are config and tokenizer; its way of
loading holds every tensor at once, and more than once.
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFReader, ReaderTensor, dequantize
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig, PreTrainedModel
from transformers import modeling_gguf_pytorch_utils as gguf_utils

from lib.errors import InputError
from lib.models.checkpoints import DTYPES, SINGLE, Tensor, write_tensors
from lib.models.failures import checkpoint_errors

# What ends an answer: the end of a turn or of a text, and padding, which Qwen2.5 gives as its second end.
STOPS = ("eos_token_id", "eot_token_id", "padding_token_id")


def convert(gguf: Path, folder: Path, dtype: str) -> None:
    """Write the model of a GGUF file into `folder`, its weights dequantised and in `dtype`.

    Weights that an earlier call has written are kept. Raises InputError for what is no GGUF file, an architecture
    that transformers cannot read from GGUF, and tensors that do not make up the model.
    """
    logging.getLogger("transformers.modeling_gguf_pytorch_utils").setLevel(logging.ERROR)
    with checkpoint_errors(gguf):
        reader = GGUFReader(gguf)
        config = AutoConfig.from_pretrained(gguf.parent, gguf_file=gguf.name)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, dtype=dtype)
        model.config.architectures = [type(model).__name__]
        model.config.save_pretrained(folder)
        _generation_config(reader).save_pretrained(folder)
        tokenizer: Any = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        tokenizer.save_pretrained(folder)
        _write_weights(reader, model, folder / SINGLE, gguf.name)


def _write_weights(reader: GGUFReader, model: PreTrainedModel, target: Path, label: str) -> None:
    processor_class = gguf_utils.TENSOR_PROCESSORS.get(
        _value(reader, "general.architecture"), gguf_utils.TensorProcessor
    )
    processor = processor_class(config=model.config.to_dict())
    stored = {tensor.name: tensor for tensor in reader.tensors}
    names = gguf_utils.get_gguf_hf_weights_map(model, processor)
    sources = {name: stored[gguf_name] for gguf_name, name in names.items() if gguf_name in stored}
    expected = dict(model.named_parameters())  # tied ones are named once
    if missing := sorted(expected.keys() - sources.keys()):
        raise InputError(f"{label}: the file lacks {len(missing)} tensors, the first is {missing[0]}")
    layout, position = [], 0
    kind = next(name for name, dtype in DTYPES.items() if dtype == model.dtype)
    for name in sorted(expected):
        stop = position + expected[name].numel() * model.dtype.itemsize
        layout.append(Tensor(name, target.name, kind, tuple(expected[name].shape), position, stop))
        position = stop

    def read(skip: int) -> Iterator[bytes | memoryview]:
        for tensor in layout:
            if tensor.stop > skip:
                values = _dequantised(sources[tensor.name], processor, label).to(model.dtype)
                if values.shape != tensor.shape:
                    raise InputError(f"{label}: {tensor.name} has the shape {tuple(values.shape)}, not {tensor.shape}")
                yield values.contiguous().view(-1).view(torch.uint8).numpy().data[max(skip - tensor.start, 0) :]

    write_tensors(layout, read, target, f"{label} to safetensors")


def _dequantised(tensor: ReaderTensor, processor: gguf_utils.TensorProcessor, label: str) -> torch.Tensor:
    made = processor.process(weights=dequantize(tensor.data, tensor.tensor_type), name=tensor.name)
    if made.name is None:
        raise InputError(f"{label}: {tensor.name} holds several tensors in one, which is not supported")
    return torch.from_numpy(np.require(made.weights, requirements="W"))  # what was not quantised is still in the file


def _generation_config(reader: GGUFReader) -> GenerationConfig:
    """Return what ends an answer according to the file's own metadata."""
    ids = {name: _value(reader, f"tokenizer.ggml.{name}") for name in ("bos_token_id", *STOPS)}
    stops = list(dict.fromkeys(ids[name] for name in STOPS if ids[name] is not None))
    return GenerationConfig(
        bos_token_id=ids["bos_token_id"],
        eos_token_id=stops[0] if len(stops) == 1 else stops,
        pad_token_id=ids["padding_token_id"],
    )


def _value(reader: GGUFReader, key: str) -> Any:
    field = reader.get_field(key)
    return None if field is None else field.contents()
