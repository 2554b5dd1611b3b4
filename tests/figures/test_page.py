"""A page is saved with its table, unless the numbers that are there say the same;
tables are told in few digits.
"""

import io

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lib.errors import InputError
from lib.figures.page import largest_difference, page, provenance, recorded, say, show

NAN = float("nan")
TABLE = pd.DataFrame(
    {"model": ["a", "b", "c"], "value": [0.5, NAN, -200.0], "n": [1, 2, 3]}
)
ENDS = pd.DataFrame(
    {
        "effect": [0.02, 5.0],
        "low": [0.00013, 4.0],
        "high": [0.0464, 6.0],
        "p_holm": [0.044, 3e-16],
    }
)
CURVE = pd.DataFrame({"token": [1, 2, 3], "weight": [1 / 3, 0.25, NAN]})


def changed(column, row, value, table):
    return table.assign(
        **{
            column: [
                value if place == row else old
                for place, old in enumerate(table[column])
            ]
        }
    )


@pytest.mark.parametrize(
    "table, column, row, value, size",
    [
        (TABLE, "value", 0, 0.502, 0.1),  # beside 200, 0.5 counts as 2
        (TABLE, "value", 2, -198.0, 1),
        (TABLE, "value", 2, 200.0, 200),
        (TABLE, "value", 1, 0.1, np.inf),  # a gap that is filled
        (TABLE, "n", 1, 3, np.inf),  # a count
        (TABLE, "model", 1, "x", np.inf),
        (
            ENDS,
            "low",
            0,
            0.000132,
            8.64e-4,
        ),  # another processor: 1.4 % of the number, nothing of the interval
        (ENDS, "effect", 0, 0.021, 0.02 / 0.04627),
    ],
)
def test_a_number_is_compared_by_its_size_and_an_estimate_by_its_interval(
    table, column, row, value, size
):
    found, where = largest_difference(table, changed(column, row, value, table))
    assert found == pytest.approx(size, rel=0.01)
    assert where.startswith(f"{column} in line {row + 2}: {value}, was ")


@pytest.mark.parametrize(
    "old, new, same",
    [
        (0.044, 0.0488, True),
        (0.0499, 0.0501, False),
        (0.3, 0.8, True),
        (0.004, 0.04, False),
        (3e-16, 9e-4, True),
    ],
)
def test_a_p_value_is_compared_by_what_it_decides_and_by_its_order_of_magnitude(
    old, new, same
):
    tables = (pd.DataFrame({"p_holm": [value, 1.0]}) for value in (old, new))
    assert (largest_difference(*tables)[0] < 1) == same


@pytest.mark.parametrize(
    "other",
    [TABLE.iloc[:2], TABLE.rename(columns={"n": "N"}), TABLE[["value", "model", "n"]]],
)
def test_other_rows_and_columns_are_another_table(other):
    assert largest_difference(TABLE, other)[0] == np.inf and largest_difference(
        other[:0], other[:0]
    ) == (0, "")


def test_gaps_are_equal_to_gaps_and_an_interval_without_width_has_one():
    for values in (["a", None], [True, None], ["", "1"], [None, None]):
        table = pd.read_csv(
            io.StringIO(pd.DataFrame({"x": values, "n": [1, 2]}).to_csv())
        )
        assert largest_difference(table, table.copy()) == (0, "")
    even = pd.DataFrame({"ratio": [1.0, 2.0], "low": [1.0, 1.5], "high": [1.0, 2.5]})
    assert largest_difference(even, changed("ratio", 0, 1 + 1e-7, even))[
        0
    ] == pytest.approx(8e-4)


def draw(run, table=CURVE, label="None"):
    """Return the files of a page of two panels, by name."""
    with page(
        run, "fig", [table], "attention", panels=2, ylabel="weight", note="One prompt."
    ) as axes:
        for ax in axes:
            ax.plot(table.token, table.weight, label=label)
    return {path.name: path.read_bytes() for path in run.figures.iterdir()}


def test_a_page_is_saved_in_three_files_that_are_named_and_shown_and_only_another_number_is_written(
    run, shown, capsys
):
    before = draw(run)
    assert capsys.readouterr().out == f"{run.figures}/fig.png, .pdf and .csv\n"
    assert set(before) == {"fig.csv", "fig.pdf", "fig.png"} and not plt.get_fignums()
    assert before["fig.csv"] == b"token,weight\n1,0.333333\n2,0.25\n3,\n"
    assert shown[0].data == before["fig.png"] and shown[0].width > 100
    assert draw(run, CURVE * [1, 1 + 1e-5], "Another look") == before
    found = recorded(run.results)["fig"]
    assert not found["changed"] and found["largest"] == pytest.approx(1.2e-3, rel=0.1)
    for kind, damage in [
        ("png", None),
        ("pdf", None),
        ("csv", None),
        ("csv", b'a,b\n1,2,3\n"'),
        ("csv", b""),
    ]:
        (
            (run.figures / f"fig.{kind}").unlink()
            if damage is None
            else (run.figures / f"fig.{kind}").write_bytes(damage)
        )
        assert draw(run) == before and recorded(run.results)["fig"]["changed"]
    after = draw(run, CURVE * [1, 1.02])
    assert (
        recorded(run.results)["fig"]["changed"]
        == "weight in line 2: 0.34, was 0.333333"
    )
    assert b"0.255" in after["fig.csv"] and after["fig.png"] != before["fig.png"]


def test_a_page_that_fails_leaves_nothing_one_without_panels_is_none_and_a_folder_may_be_a_file(
    run, shown
):
    with pytest.raises(ZeroDivisionError), page(run, "fig", [CURVE], "attention"):
        1 / 0  # noqa: B018
    with page(run, "fig", [CURVE], "attention", panels=0) as axes:
        assert not len(axes)
    assert not shown and not run.figures.exists() and not plt.get_fignums()
    run.figures.write_text("a file")
    with pytest.raises(
        InputError, match=r"cannot write figure fig to .*figures: File exists"
    ):
        draw(run)


@pytest.mark.parametrize(
    "names, columns",
    [(["without", "with"], 6), ([letter * 62 for letter in "abcd"], 2)],
)
def test_legend_and_caption_stand_once_outside_the_panels_of_equal_height(
    run, shown, monkeypatch, names, columns
):
    figures = []
    monkeypatch.setattr(plt, "close", figures.append)
    with page(run, "fig", [CURVE], "attention", panels=4, note="One prompt.") as axes:
        for index, ax in enumerate(axes):
            ax.plot([0, 1], [0, index], label=names[index % len(names)])
            ax.set_title("a\nb" * (index % 2))
    (figure,) = figures
    figure.canvas.draw()
    (legend,) = figure.legends
    assert [
        text.get_text() for text in legend.get_texts()
    ] == names and legend._ncols == columns
    boxes = [ax.get_tightbbox() for ax in axes]
    assert legend.get_window_extent().y0 >= max(box.y1 for box in boxes)
    assert np.ptp([ax.get_position().height for ax in axes]) < 1e-6
    label = figure._supxlabel.get_window_extent()
    assert label.y1 <= min(box.y0 for box in boxes) and label.x1 < figure.bbox.x1


def test_a_caption_names_models_weights_problems_and_n(run):
    table = pd.DataFrame(
        [
            {
                "model": "SmolLM2-135M-Instruct",
                "low": 0.1,
                "n": 1300,
                "revision": "0123456789abcdef",
            }
        ]
    )
    problems = (
        "Problems: embedded set, plain prompt, n = 1,300. 95 % intervals over"
        " problems. "
    )
    assert (
        provenance(run, "attention", table)
        == f"{table.model[0]} @ 0123456789ab, Q4_1, dequantised. {problems}"
    )
    both = pd.concat(
        [
            table.assign(source="this run", n=[96]),
            table.assign(source="the paper", n=500),
        ]
    )
    assert "chat prompt, n = 96. " in provenance(run, "accuracy", both)
    assert provenance(run, None, table).startswith(
        "SmolLM2"
    ) and "Problems" not in provenance(run, None, table)


def test_show_rounds_and_leaves_gaps_and_what_repeats_empty():
    table = pd.DataFrame(
        {
            "model": ["a", "a"],
            "effect": [0.1234, None],
            "n": [1, None],
            "kind": ["x", None],
        }
    )
    assert (
        show(table, ["model", "effect", "n"]).to_csv()
        == "model,effect,n\na,0.12,1\n,,\n"
    )
    assert (
        show(table, ["kind", "effect"], {"effect": 3}).to_csv()
        == "kind,effect\nx,0.123\n,\n"
    )
    found = pd.DataFrame(
        {"x": ["a", "b", "c"], "effect": [12.5, 10.42, None], "p": [1e-9, 0.25, None]}
    )
    assert show(found).to_csv() == "x,effect,p\na,12.50,< 0.001\nb,10.42,0.250\nc,,\n"


def test_sentences_are_not_folded_and_a_table_without_rows_says_so(capsys):
    say("mless-like words " * 20, "one more")
    assert show(TABLE[:0]) is None
    long, other, last = capsys.readouterr().out.splitlines()
    assert long == "mless-like words " * 20 and other == "one more"
    assert "profile demo" in last
