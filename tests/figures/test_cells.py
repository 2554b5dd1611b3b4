"""The cells of notebooks that draw by themselves, on made-up tables: what is drawn is
what is kept.
"""

from textwrap import fill
from types import SimpleNamespace

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
from artists import texts
from matplotlib.colors import LogNorm

from lib import figures, paths

NAN = float("nan")


@pytest.fixture
def draw(monkeypatch):
    """Run the cells of a notebook that end by keeping a figure and begin with these
    words, and return its axes.
    """

    def run(notebook, *beginnings, **names):
        kept = []
        monkeypatch.setattr(figures, "keep", lambda *args: kept.append(args[2]))
        (path,) = paths.NOTEBOOKS.glob(f"{notebook}_*.ipynb")
        cells = [cell.source for cell in nbformat.read(path, as_version=4).cells]
        names |= {"figures": figures}
        for beginning in beginnings:
            (source,) = [cell for cell in cells if cell.startswith(beginning)]
            exec(source, names)
        (figure,) = kept
        return figure.axes

    return run


def found(*names, table):
    """Return a namespace whose functions of these names give a table."""
    return SimpleNamespace(**dict.fromkeys(names, lambda *args, **options: table))


BARS = pd.DataFrame(
    {
        "source": ["this run", "this run", "the paper"],
        "model": ["m", "m", "n"],
        "condition": ["none", "mless", "none"],
        "accuracy": [63.0, 66.0, 44.0],
        "low": [59.0, 62.0, NAN],
        "high": [67.0, 70.0, NAN],
    }
)
HEAD = pd.DataFrame(
    {
        "model": "m",
        "layer": 1,
        "head": 1,
        "condition": ["none"] * 2 + ["mless"] * 3 + ["mful"] * 3,
        "position": [0, 1, 0, 1, 2, 0, 1, 2],
        "part": ["original"] * 3 + ["inserted", "original"] * 2 + ["original"],
        "received": [0.5, 0.4, 0.3, 0.1, 0.2, 0.3, 0.1, 0.2],
    }
)


def test_bars_are_the_accuracies_and_those_of_the_paper_are_hatched(draw):
    bars, *_ = draw(
        "03",
        'names = {"none": "None", "mless": "Mless", "mful"',
        "figure, axes = plt.subplot_mosaic",
        run=SimpleNamespace(accuracy=SimpleNamespace(problems="math500")),
        plt=plt,
        fill=fill,
        describe=str,
        table=None,
        measure=lambda *args: None,
        answer_tables=found("beside_the_paper", table=BARS),
        head_curves=found("curves", table=HEAD),
    )
    drawn = {bar.get_x(): bar for bar in bars.patches}
    ordered = [drawn[place] for place in sorted(drawn)]
    assert [bar.get_height() for bar in ordered] == [63, 66, 44]
    assert [bool(bar.get_hatch()) for bar in ordered] == [False, False, True]
    assert {text.get_text() for text in bars.texts} == {"63", "66", "44"}
    assert texts(bars.get_xticklabels()) == ["m\n(this run)", "n\n(the paper)"]
    ends = [line.get_segments()[0][:, 1].tolist() for line in bars.collections]
    assert [59, 67] in ends
    assert [62, 70] in ends


def test_lines_over_layers_have_every_estimate_and_its_interval(draw):
    mass = {"model": "m", "inserted": ["slashes", "slashes", "another"]}
    mass |= {"layer": [1, 2, 1], "mass": [5.0, 1.0, 3.0]}
    mass |= {"low": [4.0, 0.7, 2.0], "high": [7.0, 1.5, 4.0]}
    tables = found("mass_table", table=pd.DataFrame(mass))
    (ax,) = draw("02", "mass = ", run=None, measured_tables=tables, measured=None)
    slashes, another = ax.containers
    assert slashes[0].get_xydata().tolist() == [[1, 5], [2, 1]]
    ends = [segment[:, 1].tolist() for segment in slashes[2][0].get_segments()]
    assert np.allclose(ends, [[4, 7], [0.7, 1.5]])
    assert another[0].get_xydata().tolist() == [[1, 3]]
    assert [slashes.get_label(), another.get_label()] == ["Mless", "another"]


def test_a_map_has_the_ratio_of_each_layer_and_head_and_dots_above_one(draw):
    table = pd.DataFrame({"model": "m", "layer": [1, 1, 2, 2], "head": [1, 2, 1, 2]})
    deep = table.assign(**{"lambda": [0.3, 1.1, NAN, 0.9], "condition": "mless"})
    tables = found("heads_table", table=deep)
    names = {"measured_tables": tables, "measured": None, "LogNorm": LogNorm}
    ax, _ = draw("02", "deep = ", run=None, **names)
    (image,) = ax.collections
    assert image.get_array().filled(-1).tolist() == [[0.3, 1.1], [-1, 0.9]]
    assert (image.norm.vmin, image.norm.vmax) == (0.5, 2)
    assert ax.lines[0].get_xydata().tolist() == [[2, 1]]
    assert ax.yaxis_inverted()


STANDS = pd.DataFrame(
    [
        ("It a", "m", "contradicted", False),
        ("It a", "n", "small", True),
        ("It b", "m", "in part", False),
        ("It b", "n", "supported", False),
        ("It c", "n", "undecided", False),
        ("It d", "m", "too few", False),
        ("It d", "n", "contradicted, small", False),
    ],
    columns=["claim", "model", "word", "lost"],
)


def test_a_claim_is_a_row_a_model_a_column_and_each_way_to_stand_a_mark(draw):
    kept = ["id", "reading", "effect", "low", "high", "unit", "n"]
    own = {"Title": STANDS.reindex(columns=[*STANDS, *kept])}
    beginnings = ("SUPPORTED", "figure, axes = figures.grid(len(own)")
    names = {"own": own, "heights": [6], "models": ["m", "n"], "fill": fill}
    (ax,) = draw("06", *beginnings, run=None, **names)
    sentences = sorted(set(STANDS.claim))
    for line, row in zip(ax.lines, STANDS.itertuples(), strict=True):
        assert line.get_label() == row.word
        place = ["mn".index(row.model), sentences.index(row.claim)]
        assert line.get_xydata().tolist() == [place]
    looks = {(line.get_marker(), line.get_fillstyle()) for line in ax.lines}
    assert len(looks) == len(STANDS)
    assert not {marker for marker, _ in looks} & set("<>^v1234")
    (dagger,) = [text for text in ax.texts if text.get_text()]
    assert (dagger.get_text(), dagger.xy) == ("†", (1, 0))
    assert texts(ax.get_xticklabels()) == ["m", "n"]
    assert texts(ax.get_yticklabels()) == ["It a", "It b", "It c", "It d"]
    assert ax.yaxis_inverted()
