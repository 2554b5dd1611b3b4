"""The numbers of `families`, computed again from what is stored and held against the csv files of its figures.

The notebooks' own cells compute them, into a folder of the test's: a change that moves a number fails here, whatever
writes the figures anew. Nothing is painted.
"""

import matplotlib.figure
import nbformat
import pandas as pd
import pytest
from PIL import Image

from lib import paths
from lib.figures.page import largest_difference
from lib.profiles import load_profile

WRITTEN = load_profile("families").figures
NUMBERS = sorted(path.name for path in WRITTEN.glob("*.csv"))


@pytest.fixture(scope="module")
def again(tmp_path_factory):
    """The folder into which the cells of the notebooks have written the figures of `families`."""
    folder, blank = tmp_path_factory.mktemp("families"), Image.new("RGB", (1, 1))

    def unpainted(figure, target, format=None, **options):
        blank.save(target, format or "png")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "FIGURES", folder / "figures")
        patch.setattr(paths, "RESULTS", folder / "results")
        patch.setattr(matplotlib.figure.Figure, "savefig", unpainted)
        for notebook in paths.notebooks(["01", "02", "03", "04", "06", "07"]):
            names = {"display": lambda *shown: None}
            for cell in nbformat.read(notebook, as_version=4).cells:
                if cell.cell_type == "code":
                    exec(cell.source, names)  # which store the profile families
    return folder / "figures" / "families"


def test_every_figure_has_its_numbers(again):
    assert sorted(path.name for path in again.glob("*.csv")) == NUMBERS


@pytest.mark.parametrize("name", NUMBERS)
def test_the_numbers_behind_a_figure_follow_from_what_is_stored(again, name):
    largest, where = largest_difference(pd.read_csv(WRITTEN / name), pd.read_csv(again / name))
    assert largest < 1, where
