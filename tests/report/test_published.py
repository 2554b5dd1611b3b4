"""The folder of the families' page as it is published: nothing is asked of another
place, no link breaks, and the report stands on the page.
"""

import base64
import gzip
import json
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from lib import paths
from lib.claims.verdicts import stored_verdicts
from lib.models.names import resolve
from lib.profiles import load_profile
from lib.report.page import report_of

# Attributes through which a page asks for something without anybody's click.
ASKING = ("src", "srcset", "data", "poster")


@pytest.fixture(scope="module")
def pages(published):
    """The pages of the folder by their paths."""
    return {
        path: BeautifulSoup(path.read_bytes(), "html.parser")
        for path in published.rglob("*.html")
    }


@pytest.fixture(scope="module")
def page(published, pages):
    return pages[published / "index.html"]


def test_no_link_breaks_and_nothing_is_asked_of_another_place(pages):
    walked = 0
    for path, page in pages.items():
        asked = [tag["href"] for tag in page.select("link[href]")]
        for name in ASKING:
            asked += [tag[name] for tag in page.select(f"[{name}]")]
        assert {urlsplit(link).scheme for link in asked} <= {"", "data"}
        for link in asked + [tag["href"] for tag in page.select("a[href]")]:
            scheme, _, place, _, fragment = urlsplit(link)
            if scheme:
                continue
            walked += 1
            target = (path.parent / unquote(place)).resolve() if place else path
            assert target.is_file(), link
            assert not fragment or pages[target].find(id=unquote(fragment)), link
    assert walked > 80


def test_claims_figures_notebooks_and_the_report_are_all_there(published, pages, page):
    claims = {f"claim-{verdict.id}" for verdict in stored_verdicts("families")}
    assert {tag["id"] for tag in page.select("[id^=claim-]")} == claims
    figures = {f"figures/{path.name}" for path in published.glob("figures/*.png")}
    assert {image["src"] for image in page.select("img")} == figures
    notebooks = {path.stem for path in paths.NOTEBOOKS.glob("0*.ipynb")}
    assert {path.stem for path in pages} == {"index", *notebooks}
    assert len(page.select("h1")) == 1
    report = page.select_one("#report")
    assert report.select("table[tabindex='0']")
    assert "](" not in report.text
    assert len(page.encode()) < 1e6


def test_a_prompt_is_there_of_each_model_with_the_papers_55_tokens(page):
    packed = [base64.b64decode(one.text) for one in page.select("[id^=packed-]")]
    prompts = [json.loads(gzip.decompress(one)) for one in packed]
    specs = load_profile("families").attention.models
    assert [one["model"] for one in prompts] == [resolve(spec).name for spec in specs]
    assert all(55 in one["lengths"] for one in prompts)


REPORT = """# A title
[the card](../data/families/README.md), [how](running.md), [paper](https://host/a)

| |a|
|--|-:|
|1|2|

![A map](../figures/families/map.png)
"""


def test_of_the_report_figures_are_shown_and_files_of_the_repository_named(
    tmp_path, monkeypatch
):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "report.md").write_text(REPORT)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    at = {"Repository": "https://host/mine"}
    monkeypatch.setattr("lib.report.page.addresses", lambda: at)
    html = report_of(load_profile("families"))
    assert 'href="https://host/mine/blob/main/docs/running.md">how</a>' in html
    monkeypatch.setattr("lib.report.page.addresses", dict)
    html = report_of(load_profile("families"))
    assert "<p>the card, how, <a " in html
    assert 'href="https://host/a"' in html
    assert 'src="figures/map.png"' in html
    assert html.startswith("<h2")
    assert '<td align="right">2</td>' in html
    assert "<th></th>" not in html
    assert report_of(load_profile("demo")) == ""
