"""Axes, and every figure closed again."""

import matplotlib.pyplot as plt
import pytest

from lib.figures import grid


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return grid()[1][0]
