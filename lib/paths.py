"""Where things are, whatever the current folder is; files that are written whole or not at all, and their keys."""

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from lib.errors import InputError

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
DATA = ROOT / "data"
PROFILES = DATA / "profiles"
FIGURES = ROOT / "figures"
RESULTS = ROOT / "results"


def cache_folder() -> Path:
    """Return the per-user folder for what can be computed or fetched again (XDG cache)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "meaningless-tokens"


def notebooks(only: Sequence[str] = ()) -> list[Path]:
    """Return the notebooks of these numbers or names, all for none; raises InputError for an unknown one."""
    found = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
    names = {name: notebook for notebook in found for name in (notebook.stem, notebook.stem.split("_")[0])}
    if unknown := [name for name in only if name not in names]:
        known = ", ".join(notebook.stem for notebook in found)
        raise InputError(f"unknown notebook {unknown[0]!r}: choose from {known}")
    return sorted({names[name] for name in only}) or found


def shown(path: Path) -> str:
    """Return how a message names a file: one of this repository without the folders above it."""
    return str(path).removeprefix(f"{ROOT}/")


def read_yaml(path: Path) -> Any:
    """Return what a YAML file holds; an InputError names the file and the line."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
            reason = f"line {error.problem_mark.line + 1}: {error.problem}"
        raise InputError(f"{shown(path)}: {reason}") from error


def write_json(path: str | Path, value: object) -> None:
    """Replace the file by the value as JSON, at once or not at all; raises InputError for any OSError."""
    write_whole(Path(path), (json.dumps(value, indent=1) + "\n").encode("ascii"))


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Replace the file by the content, at once or not at all; raises InputError for any OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as stream:
            stream.write(content)
            stream.flush()
            # Otherwise a power cut may leave the new name on an empty file.
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def settings_key(**parts: object) -> str:
    """Return 16 hex digits that stand for the parts, whatever their order."""
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
