"""The repository is installed where it lies; a wheel, which would lack half, is not."""

import shutil
import subprocess
import sys

import pytest

from lib.paths import ROOT


@pytest.fixture
def clone(tmp_path):
    """A copy of what an installation reads."""
    for name in ("pyproject.toml", "setup.py", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "lib", tmp_path / "lib", ignore=ignored)
    return tmp_path


def built(clone, hook):
    """Call a hook of the build as pip does."""
    call = f"from setuptools import build_meta; build_meta.{hook}('.')"
    command = [sys.executable, "-c", call]
    return subprocess.run(command, cwd=clone, capture_output=True, text=True)


def test_a_wheel_is_refused_with_what_to_do_instead(clone):
    done = built(clone, "build_wheel")
    assert done.returncode
    assert "error: a wheel would lack profiles, data and notebooks" in done.stderr
    assert not list(clone.glob("*.whl"))


def test_the_package_is_installed_where_it_lies(clone):
    done = built(clone, "build_editable")
    assert done.returncode == 0, done.stderr[-2000:]
    assert list(clone.glob("*.whl"))
