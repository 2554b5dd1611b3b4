"""A figure is saved with its numbers, unless the saved one has the same numbers."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from artists import texts

from lib.files.atomic import write_atomically
from reproduction.figures import notebook_tables, saved_figures
from reproduction.figures.saved_figures import grid

CURVE = pd.DataFrame({"token": [1, 2, 3], "weight": [1 / 3, 0.25, float("nan")]})


@pytest.fixture
def run(tmp_path):
    return SimpleNamespace(figures=tmp_path / "figures")


@pytest.fixture
def shown(monkeypatch):
    """The list of objects that were displayed."""
    displayed = []
    monkeypatch.setattr(saved_figures, "display", displayed.append)
    return displayed


def draw(run, table=CURVE, label="None"):
    """Save a figure of two panels and return the contents of its files by name."""
    figure, axes = grid(2)
    for ax in axes:
        ax.plot(table.token, table.weight, label=label)
    saved_figures.keep(run, "fig", figure, table)
    return {path.name: path.read_bytes() for path in run.figures.iterdir()}


def test_a_figure_is_saved_in_three_files_and_shown_with_its_file_name(run, shown):
    files = draw(run)
    assert set(files) == {"fig.csv", "fig.pdf", "fig.png"}
    assert files["fig.csv"] == b"token,weight\n1,0.333333\n2,0.25\n3,\n"
    picture, saved = shown
    assert picture.data == files["fig.png"]
    assert f"`{run.figures}/fig.png`" in saved.data
    assert not plt.get_fignums()


def test_a_caveat_stands_above_a_figure(run, shown, monkeypatch):
    monkeypatch.setattr(notebook_tables, "caveat", "Results of another profile.")
    monkeypatch.setattr(notebook_tables, "display", shown.append)
    draw(run)
    caveat, *_ = shown
    assert caveat.data == "Results of another profile."


def test_a_saved_figure_with_the_same_numbers_is_not_rewritten(run, shown):
    before = draw(run)
    assert draw(run, CURVE * [1, 1 + 1e-5], "Another look") == before


LOST = [("png", None), ("pdf", None), ("csv", None), ("csv", b'a,b\n1,2,3\n"')]


@pytest.mark.parametrize("kind, content", LOST)
def test_a_file_of_a_figure_that_is_missing_or_damaged_is_rewritten(
    run, shown, kind, content
):
    before = draw(run)
    file = run.figures / f"fig.{kind}"
    file.unlink()
    if content:
        file.write_bytes(content)
    assert draw(run) == before


def test_a_missing_picture_is_drawn_again_and_its_table_is_unchanged(run, shown):
    before = draw(run)
    (run.figures / "fig.png").unlink()
    after = draw(run, CURVE * [1, 1 + 1e-4], "Another look")
    assert after["fig.csv"] == before["fig.csv"]
    assert after["fig.pdf"] != before["fig.pdf"]


def test_a_figure_with_changed_numbers_is_rewritten(run, shown):
    before = draw(run)
    after = draw(run, CURVE * [1, 1.02])
    assert b"0.255" in after["fig.csv"]
    assert after["fig.png"] != before["fig.png"]


@pytest.mark.parametrize("kind", [".png", ".pdf", ".csv"])
def test_a_figure_whose_writing_was_interrupted_is_drawn_again(
    run, shown, monkeypatch, kind
):
    draw(run)
    changed = CURVE * [1, 1.02]

    def interrupted(path, content):
        if path.suffix == kind:
            raise KeyboardInterrupt
        write_atomically(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(saved_figures, "write_atomically", interrupted)
        with pytest.raises(KeyboardInterrupt):
            draw(run, changed)
    other = SimpleNamespace(figures=run.figures.with_name("other"))
    assert draw(run, changed) == draw(other, changed)


def test_an_axis_without_numbers_has_no_label(run, shown):
    figure, axes = grid(2, sharey=True)
    for ax in axes:
        ax.set(xlabel="layer", ylabel="λ")
    saved_figures.keep(run, "fig", figure, CURVE)
    assert [ax.get_ylabel() for ax in axes] == ["λ", ""]
    assert [ax.get_xlabel() for ax in axes] == ["layer", "layer"]


def test_a_bar_of_colours_has_a_label(run, shown):
    figure, (ax,) = grid()
    bar = figure.colorbar(ax.pcolormesh([[1, 2]]), label="λ")
    saved_figures.keep(run, "fig", figure, CURVE)
    assert bar.ax.get_ylabel() == "λ"


def test_a_long_legend_has_rows_of_equal_length(run, shown):
    figure, (ax,) = grid()
    for number in range(6):
        ax.plot([number], label=number)
    saved_figures.keep(run, "fig", figure, CURVE)
    (legend,) = figure.legends
    assert legend._ncols == 3


def test_the_legend_names_the_form_of_prompts_and_each_series_once(run, shown):
    figure, axes = grid(2)
    for ax in axes:
        ax.plot([1, 2], label="None")
    saved_figures.keep(run, "fig", figure, CURVE, prompts="In a chat prompt")
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "In a chat prompt"
    assert texts(legend.get_texts()) == ["None"]
