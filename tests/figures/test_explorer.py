"""The charts of single heads, as tables and as specifications; a click in them is tested in a browser."""

import json

import pytest
import vl_convert
from report_folder import measured

from lib.figures.explorer import head_explorer, head_tables, page_chart
from lib.paths import write_json
from lib.report.parts import CHART


def test_what_was_inserted_has_no_value_without_it():
    heads, tokens = head_tables(measured(tokens=7), "mless")
    assert list(tokens.text) == [" is", "?", " /", " /", " 4"] and list(tokens.position) == [1, 2, 3, 4, 5]
    assert heads["without"][0][2:4] == [None, None] and None not in heads["with"][0]
    assert heads["λ"].tolist() == pytest.approx([0.5, 0.68, 0.86, 1.04, 1.22, 1.4])


def test_few_layers_make_a_small_chart_that_vega_takes():
    chart = head_explorer(measured(layers=30, heads=9, tokens=115), "mless", layers=3)
    assert vl_convert.vegalite_to_vega(chart.to_dict())["marks"]
    assert len(chart.to_json(indent=1)) < 2e5


def test_jupyterlab_gets_the_version_that_it_draws_itself():
    bundle = head_explorer(measured(), "mless")._repr_mimebundle_()
    assert bundle["application/vnd.vegalite.v5+json"]["$schema"].endswith("/v5.json")


def test_the_reports_page_draws_the_same_chart(tmp_path):
    write_json(tmp_path / "received.json", page_chart())
    assert json.loads((tmp_path / "received.json").read_text()) == json.loads(CHART.read_text()), (
        "write it anew: write_json(CHART, page_chart())"
    )
