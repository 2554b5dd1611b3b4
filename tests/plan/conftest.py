"""A hub with two models that are alike."""

import shutil

import pytest
from hub_server import serving


@pytest.fixture
def hub(tmp_path, tiny_llama, monkeypatch):
    """A hub that serves them, of which a test may alter the folders."""
    root = tmp_path / "repositories"
    for name in ("org/open", "org/gated"):
        shutil.copytree(tiny_llama, root / name)
    with serving(root, tmp_path, monkeypatch) as server:
        yield server
