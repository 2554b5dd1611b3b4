"""A page is saved with its table, unless the numbers that are there say the same."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from artists import texts

from lib.errors import InputError
from lib.figures.compare import MISSING, recorded
from lib.figures.layout import (
    Layout,
    caption_provenance,
    in_model_order,
    page,
    panels,
)

NAN = float("nan")
CURVE = pd.DataFrame({"token": [1, 2, 3], "weight": [1 / 3, 0.25, NAN]})
TWO_PANELS = Layout(panels=2, ylabel="weight", note="One prompt.")


def draw(run, table=CURVE, label="None"):
    """Return the files of a page of two panels, by name."""
    with page(run, "fig", [table], "attention", TWO_PANELS) as axes:
        for ax in axes:
            ax.plot(table.token, table.weight, label=label)
    return {path.name: path.read_bytes() for path in run.figures.iterdir()}


def test_a_page_is_saved_in_three_files_that_are_named_and_shown(run, shown, capsys):
    files = draw(run)
    assert capsys.readouterr().out == f"{run.figures}/fig.png, .pdf and .csv\n"
    assert set(files) == {"fig.csv", "fig.pdf", "fig.png"}
    assert files["fig.csv"] == b"token,weight\n1,0.333333\n2,0.25\n3,\n"
    assert shown[0].data == files["fig.png"]
    assert shown[0].width > 100
    assert not plt.get_fignums()


def test_a_page_whose_numbers_are_there_is_kept(run, shown):
    before = draw(run)
    assert draw(run, CURVE * [1, 1 + 1e-5], "Another look") == before
    assert recorded(run.results) == {"fig": ""}


LOST = [
    ("png", None, MISSING),
    ("pdf", None, MISSING),
    ("csv", None, MISSING),
    ("csv", b'a,b\n1,2,3\n"', MISSING),
    ("csv", b"", MISSING),
]


@pytest.mark.parametrize("kind, damage, reason", LOST)
def test_a_file_that_is_lost_or_damaged_is_written_again(
    run, shown, kind, damage, reason
):
    before = draw(run)
    file = run.figures / f"fig.{kind}"
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    assert draw(run) == before
    assert recorded(run.results) == {"fig": reason}


def test_another_number_is_written_and_named(run, shown):
    before = draw(run)
    after = draw(run, CURVE * [1, 1.02])
    assert recorded(run.results)["fig"].startswith("weight: ")
    assert b"0.255" in after["fig.csv"]
    assert after["fig.png"] != before["fig.png"]


def test_a_page_that_fails_leaves_nothing(run, shown):
    with pytest.raises(ZeroDivisionError), page(run, "fig", [CURVE], "attention"):
        1 / 0  # noqa: B018
    assert not shown
    assert not run.figures.exists()
    assert not plt.get_fignums()


def test_a_page_without_panels_is_none(run, shown):
    with page(run, "fig", [CURVE], "attention", Layout(panels=0)) as axes:
        assert not len(axes)
    assert not run.figures.exists()


def test_a_folder_that_cannot_be_written_is_named(run, shown):
    run.figures.write_text("a file")
    with pytest.raises(
        InputError, match=r"cannot write figure fig to .*figures: File exists"
    ):
        draw(run)


LEGENDS = [(["without", "with"], 6), ([letter * 62 for letter in "abcd"], 2)]


@pytest.fixture(params=LEGENDS, ids=["short", "long"])
def four_panels(request, run, shown, monkeypatch):
    """A drawn page of four panels with its legend's labels and columns."""
    labels, columns = request.param
    figures = []
    monkeypatch.setattr(plt, "close", figures.append)
    layout = Layout(panels=4, note="One prompt.")
    with page(run, "fig", [CURVE], "attention", layout) as axes:
        for index, ax in enumerate(axes):
            ax.plot([0, 1], [0, index], label=labels[index % len(labels)])
            ax.set_title("a\nb" * (index % 2))
    (figure,) = figures
    figure.canvas.draw()
    return figure, axes, labels, columns


def test_the_legend_stands_once_above_the_panels(four_panels):
    figure, axes, labels, columns = four_panels
    (legend,) = figure.legends
    assert texts(legend.get_texts()) == labels
    assert legend._ncols == columns
    highest = max(ax.get_tightbbox().y1 for ax in axes)
    assert legend.get_window_extent().y0 >= highest


def test_the_caption_stands_below_panels_of_equal_height(four_panels):
    figure, axes, *_ = four_panels
    caption = figure._supxlabel.get_window_extent()
    assert caption.y1 <= min(ax.get_tightbbox().y0 for ax in axes)
    assert caption.x1 < figure.bbox.x1
    assert np.ptp([ax.get_position().height for ax in axes]) < 1e-6


def test_each_value_has_its_panels_named_after_it(run, shown):
    table = pd.DataFrame({"model": ["a", "a", "b", "b"], "layer": [1, 2, 1, 2]})
    titles, sizes = [], []
    for axes, rows in panels(run, "fig", table, ["model"], layout=Layout(each=2)):
        titles.append(axes[0].get_title())
        sizes.append((len(axes), len(rows)))
    assert titles == ["a", "b"]
    assert sizes == [(2, 2), (2, 2)]


def test_values_of_a_second_column_stand_beside_each_other(run, shown):
    table = pd.DataFrame({"model": ["a", "a", "b"], "layer": [1, 2, 1]})
    places = {}
    for (ax,), _ in panels(run, "fig", table, ["model", "layer"]):
        place = ax.get_subplotspec()
        places[ax.get_title()] = (place.rowspan.start, place.colspan.start)
    assert places == {"a\n1": (0, 0), "a\n2": (0, 1), "b\n1": (1, 0)}


ROW = {"model": "SmolLM2-135M-Instruct", "low": 0.1, "n": 1300}
TABLE = pd.DataFrame([ROW | {"revision": "0123456789abcdef"}])


def test_a_caption_names_models_weights_problems_and_n(run):
    assert caption_provenance(run, "attention", TABLE) == (
        "SmolLM2-135M-Instruct @ 0123456789ab, Q4_1, dequantised. "
        "Problems: embedded set, plain prompt, n = 1,300. "
        "95 % intervals over problems. "
    )


def test_a_caption_counts_the_problems_of_this_run_alone(run):
    own = TABLE.assign(source="this run", n=96)
    both = pd.concat([own, TABLE.assign(source="the paper", n=500)])
    assert "chat prompt, n = 96. " in caption_provenance(run, "accuracy", both)


def test_a_caption_of_all_parts_names_no_problems(run):
    caption = caption_provenance(run, None, TABLE)
    assert caption.count("SmolLM2") == 1
    assert caption.startswith("SmolLM2")
    assert "Problems" not in caption


@pytest.mark.parametrize("form", ["chat", "plain"])
def test_a_caption_of_likelihoods_says_where_a_chat_prompt_is_none(run, form):
    run.likelihood = run.likelihood.model_copy(update={"format": form})
    caption = caption_provenance(run, "likelihood", TABLE)
    assert f", {form} prompt" in caption
    is_told = "(plain where a model has no chat template)" in caption
    assert is_told == (form == "chat")


def test_models_that_the_profile_lacks_come_last_and_rows_keep_their_order(run):
    own = ROW["model"]
    table = pd.DataFrame({"model": ["z", "a", own] * 20, "row": range(60)})
    ordered = in_model_order(run, table)
    assert list(dict.fromkeys(ordered.model)) == [own, "z", "a"]
    for _, rows in ordered.groupby("model"):
        assert rows.row.is_monotonic_increasing


def test_panels_are_as_wide_and_as_high_as_they_are_asked_to_be(run, shown):
    layout = Layout(panels=4, mosaic=[[0, 1], [2, 3]], widths=(1, 3), heights=(2, 1))
    with page(run, "fig", [CURVE], "attention", layout) as axes:
        grid = axes[0].get_gridspec()
        assert tuple(grid.get_width_ratios()) == (1, 3)
        assert tuple(grid.get_height_ratios()) == (2, 1)
