"""Commands on a copy of the repository, typed within the test's own process: to import what they need takes seconds."""

import contextlib
import io
import shutil
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib import paths
from lib.__main__ import main
from lib.measurement.networks import let_go

ROOT = paths.ROOT
PLACES = ("ROOT", "NOTEBOOKS", "DATA", "PROFILES", "FIGURES", "RESULTS")

# A command that is over.
Run = namedtuple("Run", "code out err")


def copy_repository(folder: Path) -> Path:
    """Copy what commands need, without anything that they made."""
    for name in ("lib", "notebooks", "data"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    return folder


@contextlib.contextmanager
def commands_in(copy: Path, environment: dict[str, str] | None = None) -> Iterator[Callable[..., Run]]:
    """Yield a function that runs a command in the copy; its notebooks get the environment too."""
    with pytest.MonkeyPatch.context() as patch:
        for name in PLACES:
            patch.setattr(paths, name, copy / getattr(paths, name).relative_to(ROOT))
        for name, value in {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(copy), **(environment or {})}.items():
            patch.setenv(name, value)
        patch.chdir(copy)
        yield _typed
        let_go()


def _typed(*arguments: str) -> Run:
    let_go()  # as little as a new process has of an earlier one's weights
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(list(arguments))
    return Run(code, out.getvalue(), err.getvalue())
