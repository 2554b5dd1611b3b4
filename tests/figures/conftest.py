"""Axes to draw on; every figure is closed after its test."""

import matplotlib.pyplot as plt
import pytest

from reproduction.figures import grid


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return grid()[1][0]
