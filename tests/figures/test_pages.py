"""A page saves, notes and shows what is drawn on it, and names the models where they belong."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from lib.figures import pages
from lib.figures.pages import page, say, show
from lib.figures.saving import recorded

TABLE = pd.DataFrame({"model": ["a", "b"], "effect": [0.1234, None], "n": [1, None], "kind": ["x", None]})


@pytest.fixture
def run(tmp_path):
    return SimpleNamespace(results=tmp_path / "results", figures=tmp_path / "figures")


@pytest.fixture
def shown(monkeypatch):
    images = []
    monkeypatch.setattr(pages, "display", images.append)
    return images


def test_a_page_is_saved_noted_and_shown_at_twice_its_size(run, shown):
    with page(run, "fig", TABLE, rows=2, columns=3, note="n = 1.") as axes:
        assert axes.shape == (2, 3)
    assert {path.name for path in run.figures.iterdir()} == {"fig.png", "fig.pdf", "fig.csv"}
    assert recorded(run.results)["fig"]["changed"]
    (image,) = shown
    assert image.data == (run.figures / "fig.png").read_bytes() and image.width == 720


def test_a_page_that_fails_leaves_nothing(run, shown):
    with pytest.raises(ZeroDivisionError), page(run, "fig", TABLE):
        1 / 0  # noqa: B018
    assert not shown and not run.figures.exists() and not plt.get_fignums()


def test_one_model_is_named_in_the_caption(run, shown):
    with page(run, "fig", TABLE, columns=2, note="n = 1.", models=["a @ 1", "a @ 1"]) as axes:
        figure = axes[0, 0].figure
    assert figure.get_supxlabel() == "a @ 1. n = 1." and axes[0, 0].get_xlabel() == ""


BY_COLUMN = ["a", "b"], [["", ""], ["a", "b"]]
BY_PANEL = ["a", "b", "c", "d"], [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize("models, rows", [BY_COLUMN, BY_PANEL])
def test_several_models_are_named_under_their_own_panels_only(run, shown, models, rows):
    with page(run, "fig", TABLE, rows=2, columns=2, note="n = 1.", models=models) as axes:
        figure = axes[0, 0].figure
    assert figure.get_supxlabel() == "n = 1." and [[ax.get_xlabel() for ax in row] for row in axes] == rows


def test_names_in_a_folded_row_are_as_wide_as_its_panels(run, shown):
    models = [f"Qwen2.5-Coder-1.5B-Instruct @ {n}" for n in range(4)]
    with page(run, "fig", TABLE, columns=4, models=models) as axes:
        assert axes.shape == (1, 4)
    assert [ax.get_xlabel() for ax in axes.flat] == models


def test_a_model_stands_below_the_name_of_the_axis(run, shown):
    with page(run, "fig", TABLE, columns=2, models=["a", "b"]) as axes:
        axes[0, 0].set_xlabel("Head")
    assert axes[0, 0].get_xlabel() == "Head\na"


def test_show_rounds_and_leaves_gaps_empty():
    assert show(TABLE, ["model", "effect", "n"]).to_csv() == "model,effect,n\na,0.12,1\nb,,\n"
    assert show(TABLE, ["kind", "effect"], {"effect": 3}).to_csv() == "kind,effect\nx,0.123\n,\n"


def test_of_a_table_without_rows_nothing_is_shown():
    assert show(pd.DataFrame(columns=["model", "n"])) is None


def test_show_gives_a_column_with_gaps_equal_decimals_and_no_p_of_zero():
    found = pd.DataFrame({"x": ["a", "b", "c"], "effect": [12.5, 10.42, None], "p": [1e-9, 0.25, None]})
    assert show(found).to_csv() == "x,effect,p\na,12.50,< 0.001\nb,10.42,0.250\nc,,\n"


def test_an_estimate_and_its_ends_become_one_column():
    rows = [("a", 0.0232, 0.000132, 0.0464, 5.0, 1.04, -2.2, 4.4), ("b", *[None] * 3, 6.0, *[None] * 3)]
    found = pd.DataFrame(rows, columns=["x", "mean", "low", "high", "n", "effect", "effect_low", "effect_high"])
    shown = show(found)
    assert list(shown) == ["mean", "n", "effect"]
    assert shown.to_csv(sep=";") == "x;mean;n;effect\na;0.023 [0.000, 0.046];5.0;+1.0 [-2.2, +4.4]\nb;;6.0;\n"
    assert "..." not in str(shown) and str(show(found.assign(mean=[1.0, None]))).count("\\") == 0


def test_text_of_a_wide_table_is_not_folded():
    found = pd.DataFrame({f"column {index}": ["a value of many words"] for index in range(12)})
    assert len(str(show(found)).splitlines()) == 3


def test_say_prints_a_sentence_on_one_line(capsys):
    say("mless-like words " * 20, "one more")
    assert capsys.readouterr().out.splitlines() == ["mless-like words " * 20, "one more"]
