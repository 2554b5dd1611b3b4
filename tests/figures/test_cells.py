"""Notebook cells with drawing code of their own, on hand-made tables: the figure that
they save shows the numbers of the table.
"""

from textwrap import fill
from types import SimpleNamespace

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
from artists import table, texts

from reproduction import figures, paths
from reproduction.profiles import load_profile

# Names that earlier cells of the notebook define.
DEFINED = {"figures": figures, "plt": plt, "fill": fill}
DEFINED |= {"run": load_profile("families"), "measured": None}


@pytest.fixture
def draw(monkeypatch):
    """A function that runs the cells of a notebook that begin with these words, the
    last of which saves a figure, and returns the figure's axes.

    names: further names that earlier cells define.
    """

    def run(notebook, *beginnings, **names):
        kept = []
        monkeypatch.setattr(
            figures, "keep", lambda run, name, *it, **_: kept.append(it)
        )
        (path,) = paths.NOTEBOOKS.glob(f"{notebook}_*.ipynb")
        cells = [cell.source for cell in nbformat.read(path, as_version=4).cells]
        names = DEFINED | names
        for beginning in beginnings:
            (source,) = [cell for cell in cells if cell.startswith(beginning)]
            exec(source, names)
        ((figure, *_),) = kept
        return figure.axes

    return run


def found(*names, gives):
    """Return a namespace in which functions of these names return a table."""
    return SimpleNamespace(**dict.fromkeys(names, lambda *args, **options: gives))


BARS = table("""source,model,condition,accuracy,low,high,n
this run,m,none,63,59,67,5
this run,m,mless,66,62,70,5
the paper,n,none,44,,,500
""")
BAR_TABLES = ("answered_under_all", "summarise", "beside_the_paper")
HEAD = table("""model,layer,head,condition,position,part,received
m,1,1,none,0,original,0.5
m,1,1,none,1,original,0.4
m,1,1,mless,0,original,0.3
m,1,1,mless,1,inserted,0.1
m,1,1,mless,2,original,0.2
m,1,1,mful,0,original,0.3
m,1,1,mful,1,inserted,0.1
m,1,1,mful,2,original,0.2
""")
MASS = table("""model,inserted,layer,mass,low,high,n
m,slashes,1,5,4,7,24
m,slashes,2,1,0.7,1.5,24
m,another,1,3,2,4,100
""")
DEEP = table("""model,condition,layer,head,lambda,low,high
m,mless,1,1,0.3,0.2,0.4
m,mless,1,2,1.1,1.01,1.2
m,mless,2,1,,,
m,mless,2,2,1.01,0.9,1.1
""")
STANDS = table("""claim,model,word,lost,specific
It a,m,contradicted,False,
It a,n,in part,True,True
It b,n,supported,False,False
It c,n,undecided,False,
It d,m,too few,False,
""")


def test_bars_show_the_accuracies_and_those_of_the_paper_are_hatched(draw):
    bars, *_ = draw(
        "03",
        'names = {"none": "none", "mless": "slashes", "mful"',
        "figure, axes = plt.subplot_mosaic",
        describe=str,
        answers=None,
        measure=lambda *args: None,
        answer_tables=found(*BAR_TABLES, gives=BARS),
        head_curves=found("received_by_token", gives=HEAD),
    )
    *of_conditions, hatched = bars.patches
    assert [bar.get_height() for bar in of_conditions] == [63, 44, 66]
    none, papers, mless = (bar.get_facecolor() for bar in of_conditions)
    assert none == papers != mless
    assert hatched.get_hatch()
    assert hatched.get_bbox().bounds == of_conditions[1].get_bbox().bounds
    # On an interval or hatching, a number would be hard to read.
    assert texts(bars.texts) == ["63", "66", "44"]
    assert all(text.xy[1] == 0 and text.get_va() == "top" for text in bars.texts)
    assert all(text.get_position()[1] < 0 for text in bars.texts)
    _, labels = bars.get_legend_handles_labels()
    assert labels == ["none", "slashes", "the paper's numbers"]
    assert texts(bars.get_xticklabels()) == ["m\n(this run)", "n\n(the paper)"]
    ends = [line.get_segments()[0][:, 1].tolist() for line in bars.collections]
    assert [59, 67] in ends
    assert [62, 70] in ends


def test_a_ratio_that_leaves_the_axis_is_marked(draw):
    one = HEAD[HEAD.condition != "mful"]
    much = one.received.where(one.received != 0.2, 0.9)  # 0.9 / 0.4 of the last token
    tables = found("received_by_token", gives=one.assign(received=much))
    _, below = draw("02", 'names = {"none": "without slashes"', head_curves=tables)
    ratios, mark, inserted, _ = below.lines
    assert inserted.get_xdata() == [0.5, 0.5]
    assert ratios.get_ydata() == pytest.approx([0.6, 2.25])
    assert mark.get_xydata().tolist() == [[1, 2]]
    assert mark.get_label() == "ratio above 2"


def test_lines_over_layers_have_every_estimate_and_its_interval(draw):
    tables = found("mass_table", gives=MASS)
    (ax,) = draw("02", "mass = ", network_tables=tables)
    another, slashes = ax.containers
    # The series lie beside the integers, so that no interval hides another.
    assert slashes[0].get_xydata().round().tolist() == [[1, 5], [2, 1]]
    ends = [segment[:, 1].tolist() for segment in slashes[2][0].get_segments()]
    assert np.allclose(ends, [[4, 7], [0.7, 1.5]])
    assert another[0].get_xydata().round().tolist() == [[1, 3]]
    assert [slashes.get_label(), another.get_label()] == ["slashes", "another"]


def test_panels_with_one_scale_cut_off_no_estimate(draw):
    higher = MASS.assign(model="n", mass=9 * MASS["mass"], high=9 * MASS["high"])
    tables = found("mass_table", gives=pd.concat([MASS, higher]))
    first, second = draw("02", "mass = ", network_tables=tables)
    assert first.get_ylim() == second.get_ylim()
    assert second.get_ylim()[1] >= 63


def test_a_map_has_the_ratio_of_each_head_and_dots_at_intervals_above_one(draw):
    ax, _ = draw("02", "deep = ", network_tables=found("heads_table", gives=DEEP))
    (image,) = ax.collections
    assert image.get_array().filled(-1).tolist() == [[0.3, 1.1], [-1, 1.01]]
    assert (image.norm.vmin, image.norm.vmax) == (0.5, 2)
    assert ax.lines[0].get_xydata().tolist() == [[2, 1]]
    assert ax.yaxis_inverted()


def test_verdicts_have_a_row_per_claim_a_column_per_model_and_a_mark_per_status(draw):
    kept = ["id", "reading", "effect", "low", "high", "unit", "n"]
    own = {"Title": STANDS.reindex(columns=[*STANDS, *kept])}
    beginnings = ("SUPPORTED", 'columns = ["id", "claim"')
    (ax,) = draw("06", *beginnings, own=own, counts=[4], models=["m", "n"])
    sentences = sorted(set(STANDS.claim))
    *marks, dagger, same = ax.lines
    for line, row in zip(marks, STANDS.itertuples(), strict=True):
        assert line.get_label() == row.word
        cell = ["mn".index(row.model), sentences.index(row.claim)]
        assert line.get_xydata().tolist() == [cell]
    looks = {(line.get_marker(), line.get_fillstyle()) for line in marks}
    assert len(looks) == len(STANDS)
    assert not {marker for marker, _ in looks} & set("<>^v1234")
    # The legend has every sign that stands beside a verdict.
    signs = {text.xy: text.get_text() for text in ax.texts if text.get_text()}
    assert signs == {(1, 0): "†", (1, 1): "="}
    assert [dagger.get_marker(), same.get_marker()] == ["$†$", "$=$"]
    assert not {dagger.get_label(), same.get_label()} & set(STANDS.word)
    assert texts(ax.get_xticklabels()) == ["m", "n"]
    assert texts(ax.get_yticklabels()) == ["It a", "It b", "It c", "It d"]
    assert ax.yaxis_inverted()
