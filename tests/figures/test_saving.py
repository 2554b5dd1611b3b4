"""Files of a figure: written whole, and only when what they say differs from what is there."""

import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib.errors import InputError
from lib.figures.received import draw_received
from lib.figures.saving import DPI, agreement, caption, record, save_figure
from lib.figures.style import figure_with_rows, look_of

TABLE = pd.DataFrame({"token": [1, 2, 3], "weight": [1 / 3, 0.25, float("nan")]})


def figure_of(table, title="Layer 1 Head 1"):
    figure, axes = figure_with_rows(1, 1)
    draw_received(axes[0, 0], {"none": np.array(table.weight)}, title)
    caption(figure, "SmolLM2-135M-Instruct, n = 3, float32")
    return figure


def save(folder, table=TABLE, name="fig", title="Layer 1 Head 1"):
    return save_figure(figure_of(table, title), folder, name, table)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def scaled(row, factor):
    table = TABLE.copy()
    table.loc[row, "weight"] *= factor
    return table


@pytest.mark.parametrize(
    "text",
    [
        "SmolLM2-135M-Instruct, float32, " * 8,
        "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, dequantised; gemma-3-270m, Q4_K_M, dequantised; SmolLM2-135M",
        "MMMM-WWWW-135M-MWMW " * 30,
        "W" * 300,
    ],
)
def test_the_caption_lies_below_the_axes_and_inside_the_figure(ax, text):
    label = caption(ax.figure, text)
    ax.figure.set_dpi(DPI)
    ax.figure.canvas.draw()
    box = label.get_window_extent()
    assert box.y1 <= ax.get_tightbbox().y0
    assert min(box.x0, box.y0) >= 0 and box.x1 <= ax.figure.bbox.x1
    assert "".join(label.get_text().split()) == "".join(text.split())


def test_save_writes_three_files_and_nothing_else(tmp_path):
    found = save(tmp_path / "new" / "demo")
    files = contents(tmp_path / "new" / "demo")
    assert sorted(files) == ["fig.csv", "fig.pdf", "fig.png"] and found["changed"]
    assert files["fig.csv"] == b"token,weight\n1,0.333333\n2,0.25\n3,\n"


def test_the_same_data_give_the_same_bytes(tmp_path):
    save(tmp_path / "a")
    time.sleep(1.1)  # dates in a file count whole seconds
    save(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_numbers_that_differ_in_the_sixth_digit_leave_the_files_as_they_are(tmp_path):
    save(tmp_path)
    before = contents(tmp_path)
    found = save(tmp_path, scaled(1, 1 + 1e-5))
    assert contents(tmp_path) == before
    assert not found["changed"] and found["largest"] == pytest.approx(1.2e-5, rel=0.01)
    assert found["where"] == "weight in line 3: 0.250003, was 0.25"


def test_a_number_that_differs_by_more_than_a_percent_is_written(tmp_path):
    save(tmp_path)
    assert save(tmp_path, scaled(1, 1.02))["changed"] == "weight in line 3: 0.255, was 0.25"
    assert b"0.255" in contents(tmp_path)["fig.csv"]


def test_another_drawing_of_the_same_numbers_keeps_the_csv(tmp_path):
    save(tmp_path)
    before = contents(tmp_path)
    assert save(tmp_path, scaled(1, 1 + 1e-5), title="Another head")["changed"] == "the drawing differs"
    after = contents(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {"fig.png", "fig.pdf"}


@pytest.mark.parametrize("kind", ["png", "pdf", "csv"])
def test_a_missing_file_is_written_again(tmp_path, kind):
    save(tmp_path)
    before = contents(tmp_path)
    (tmp_path / f"fig.{kind}").unlink()
    assert save(tmp_path)["changed"] and contents(tmp_path) == before


@pytest.mark.parametrize("kind", ["png", "csv"])
@pytest.mark.parametrize("damage", [b"", b"\xff\xfe\x00", b'a,b\n1,2,3\n"'])
def test_a_damaged_file_is_written_again(tmp_path, kind, damage):
    save(tmp_path)
    before = contents(tmp_path)
    (tmp_path / f"fig.{kind}").write_bytes(damage)
    assert save(tmp_path)["changed"] and contents(tmp_path) == before


def test_a_run_names_the_figure_with_the_percents_and_not_the_one_in_the_sixth_digit(tmp_path):
    for name, table in {"fig09": scaled(0, 1 + 1e-6 * 3), "fig10": scaled(1, 1.02), "fig11": TABLE}.items():
        save(tmp_path, table, name)
    for name in ("fig09", "fig10", "fig11", "fig12"):
        record(tmp_path / "results", name, save(tmp_path, TABLE, name))
    first, *others = agreement(tmp_path / "results").splitlines()
    assert first == (
        "2 of 4 figures agree with the files that were there; the largest difference is 0.0003 % of an interval or a "
        "number (fig09: weight in line 2: 0.333333, was 0.333334); 1 new."
    )
    assert others == ["fig10 was drawn anew: weight in line 3: 0.25, was 0.255"]


@pytest.mark.parametrize("damage", ["", "[", None])
def test_a_damaged_record_starts_anew(tmp_path, damage):
    if damage is not None:
        (tmp_path / "figures.json").write_text(damage)
    assert agreement(tmp_path) == "0 of 0 figures agree with the files that were there."
    record(tmp_path, "fig", {"changed": "", "largest": 0.0, "where": ""})
    assert agreement(tmp_path).startswith("1 of 1 figures agree")


def test_the_colours_of_a_png_are_the_figures(tmp_path):
    save(tmp_path)
    with Image.open(tmp_path / "fig.png") as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1000)}
        assert picture.mode == "P" and picture.width == 1440
    line = tuple(bytes.fromhex(look_of("none")[0].colour[1:]))
    assert (255, 255, 255) in colours and min(
        max(abs(a - b) for a, b in zip(line, c, strict=True)) for c in colours
    ) < 4


def test_pdf_embeds_truetype_even_outside_the_style(tmp_path):
    with plt.rc_context({"pdf.fonttype": 3}):
        save(tmp_path)
    pdf = contents(tmp_path)["fig.pdf"]
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf


def test_an_unwritable_folder_is_an_input_error(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match="taken") as caught:
        save(tmp_path / "taken")
    assert "\n" not in str(caught.value)


def test_a_failed_write_leaves_no_partial_file(tmp_path):
    (tmp_path / "fig.png").mkdir()
    with pytest.raises(InputError):
        save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fig.csv", "fig.png"]
