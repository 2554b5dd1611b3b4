"""A hub with two copies of the same model."""

import shutil

import pytest
from hub_server import serving


@pytest.fixture
def hub(tmp_path, tiny_llama, monkeypatch):
    """A hub with org/open and org/gated, whose folders a test may change."""
    root = tmp_path / "repositories"
    for name in ("org/open", "org/gated"):
        shutil.copytree(tiny_llama, root / name)
    with serving(root, tmp_path, monkeypatch) as server:
        yield server
