"""The package is installed in editable form; without the repository's files, lib names
what is missing.
"""

import shutil
import subprocess
import sys

import pytest

from lib.paths import ROOT


@pytest.fixture
def clone(tmp_path):
    """A copy of the files that an installation reads."""
    for name in ("pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    for package in ("lib", "reproduction"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    return tmp_path


def built(clone, hook):
    """Call a hook of the build as pip does."""
    call = f"from setuptools import build_meta; build_meta.{hook}('.')"
    command = [sys.executable, "-c", call]
    return subprocess.run(command, cwd=clone, capture_output=True, text=True)


def test_lib_without_the_repository_says_what_is_missing(clone):
    command = [sys.executable, "-m", "reproduction", "plan"]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True)
    assert done.returncode
    assert done.stderr.startswith(f"error: {clone} has no data/models.yaml, which lib")
    assert "run `make install`, or `pip install --editable .`" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_editable_installation_can_be_built(clone):
    done = built(clone, "build_editable")
    assert done.returncode == 0, done.stderr[-2000:]
    assert list(clone.glob("*.whl"))


def test_a_checkout_keeps_the_line_ends_of_unix_whatever_git_is_set_to(tmp_path):
    for name in (".gitattributes", "Makefile"):
        shutil.copy(ROOT / name, tmp_path)
    git = ["git", "-c", "core.autocrlf=true"]
    for command in ("init --quiet", "add ."):
        subprocess.run([*git, *command.split()], cwd=tmp_path, check=True)
    makefile = tmp_path / "Makefile"
    makefile.unlink()
    subprocess.run([*git, "checkout", "--", "Makefile"], cwd=tmp_path, check=True)
    assert b"\r" not in makefile.read_bytes()
