"""Axes under the figures' style; every figure is closed again."""

import matplotlib.pyplot as plt
import pytest

from lib.figures.style import figure_with_rows, style


@pytest.fixture(autouse=True)
def styled():
    with style():
        yield
    plt.close("all")


@pytest.fixture
def ax():
    return figure_with_rows(1, 1)[1][0, 0]


@pytest.fixture
def legend_texts(ax):
    return lambda: [text.get_text() for text in ax.get_legend().get_texts()]
