"""The published folder of the families' page: nothing is loaded from other sites, no
link is broken, and the page has the report.
"""

import base64
import gzip
import json
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from lib import paths
from lib.claims.verdict_files import stored_verdicts
from lib.models.name_resolution import resolve
from lib.profiles import load_profile
from lib.report.page import report_of, unbroken

# Attributes from which a browser loads something without a click.
LOADED = ("src", "srcset", "data", "poster")


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


def test_no_link_is_broken_and_nothing_is_loaded_from_another_site(pages):
    walked = 0
    for path, page in pages.items():
        loaded = [tag["href"] for tag in page.select("link[href]")]
        for name in LOADED:
            loaded += [tag[name] for tag in page.select(f"[{name}]")]
        assert {urlsplit(link).scheme for link in loaded} <= {"", "data"}
        for link in loaded + [tag["href"] for tag in page.select("a[href]")]:
            scheme, _, file, _, fragment = urlsplit(link)
            if scheme:
                continue
            walked += 1
            target = (path.parent / unquote(file)).resolve() if file else path
            assert target.is_file(), link
            assert not fragment or pages[target].find(id=unquote(fragment)), link
    assert walked > 80


def test_the_page_has_all_claims_figures_notebooks_and_the_report(
    published, pages, page
):
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


def test_the_page_has_a_prompt_with_55_tokens_of_each_model(page):
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


def test_numbers_are_not_broken_over_two_lines():
    text = "-0.5 [-0.6, -0.4] †, n = 119, p = 0.2, and 95 % of [two words, and more]"
    whole = "-0.5 [-0.6,~-0.4]~†, n~=~119, p~=~0.2, and 95~% of [two words, and more]"
    assert unbroken(text) == whole.replace("~", "\N{NO-BREAK SPACE}")


def test_the_report_on_the_page_shows_figures_and_links_files_of_the_repository(
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
