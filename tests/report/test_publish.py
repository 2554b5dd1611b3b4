"""Notebooks and the report of two pages lie beside the page and link to it."""

import os

import pytest
from report_folder import made_profile

from lib import paths
from lib.profiles import load_profile
from lib.report.publish import publish_notebooks, publish_report

profile = made_profile
NAME = "01_attention_maps"
REPORT = """# Report
<!-- begin numbers -->
![A map](../figures/families/map.png) and [how to cite](../CITATION.cff).
<!-- end numbers -->
"""


def test_a_notebook_is_a_page_that_links_to_the_one_above_it(profile, tmp_path):
    assert publish_notebooks(profile, tmp_path) == {NAME: f"notebooks/{NAME}.html"}
    html = (tmp_path / "notebooks" / f"{NAME}.html").read_text()
    assert f"<title>Notebook {NAME}, as it ran</title>" in html
    assert 'href="../index.html"' in html


@pytest.mark.parametrize("seconds, stays", [(-5, False), (0, True), (5, True)])
def test_a_page_stays_that_is_no_older_than_its_notebook(
    profile, tmp_path, seconds, stays
):
    page = tmp_path / "page" / "notebooks" / f"{NAME}.html"
    page.parent.mkdir(parents=True)
    page.write_text("kept")
    changed = (paths.NOTEBOOKS / f"{NAME}.ipynb").stat().st_mtime + seconds
    os.utime(page, (changed, changed))
    publish_notebooks(profile, tmp_path / "page")
    assert (page.read_text() == "kept") == stays


def test_the_reports_figures_lie_beside_it_and_other_files_in_the_repository(
    tmp_path, monkeypatch
):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "report.md").write_text(REPORT)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    place = publish_report(load_profile("families"), tmp_path, "https://host/repo")
    assert place == "report.html"
    html = (tmp_path / place).read_text()
    assert 'src="figures/map.png"' in html
    assert 'href="https://host/repo/blob/main/CITATION.cff"' in html
    assert 'href="index.html"' in html
    assert "begin numbers" not in html


def test_of_another_profile_there_is_no_report(tmp_path):
    assert publish_report(load_profile("demo"), tmp_path, "") is None
    assert not list(tmp_path.iterdir())
