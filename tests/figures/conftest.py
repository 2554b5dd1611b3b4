"""Axes, every figure closed again, and a profile that draws into an empty folder."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest

from lib.profiles import load_profile


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return plt.subplots(figsize=(7.2, 2))[1]


@pytest.fixture
def run(tmp_path):
    """What figures ask of a profile: its sections, and folders of its own."""
    sections = dict(load_profile("demo"))
    return SimpleNamespace(**sections, figures=tmp_path / "figures", results=tmp_path)
