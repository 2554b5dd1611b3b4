"""Axes under the figures' style, every figure closed again, and a profile that draws
into an empty folder.
"""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import pytest

from lib import figures
from lib.figures import layout
from lib.figures.looks import STYLE
from lib.profiles import load_profile


@pytest.fixture(autouse=True)
def styled(monkeypatch):
    monkeypatch.setattr(layout, "DPI", 30)  # to draw finely takes most of the time
    with plt.rc_context(STYLE):
        yield
    plt.close("all")


@pytest.fixture
def ax():
    return plt.subplots(figsize=(7.2, 2))[1]


@pytest.fixture
def run(tmp_path):
    """What figures ask of a profile: the demo's sections, a section for likelihoods,
    and folders of its own.
    """
    sections = dict(load_profile("demo")) | {
        "likelihood": load_profile("families").likelihood
    }
    return SimpleNamespace(**sections, figures=tmp_path / "figures", results=tmp_path)


@pytest.fixture
def shown(monkeypatch):
    """The images that were displayed."""
    images = []
    monkeypatch.setattr(layout, "display", images.append)
    return images


@pytest.fixture
def drawn(run, shown, monkeypatch):
    """Draw a figure; return its axes, of panels alone."""
    made = []
    close = plt.close

    def keep(figure):
        made.append(figure)
        close(figure)

    def draw(name, *tables):
        monkeypatch.setattr(plt, "close", keep)
        getattr(figures, name)(run, *tables)
        if not made:
            return []
        return [ax for ax in made[-1].axes if ax.get_label() != "<colorbar>"]

    return draw
