"""The folder of the families' page as it is published: nothing is asked of another
place, no link breaks, and the report stands on the page.
"""

import base64
import gzip
import json
import re
import shutil
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from lib import paths
from lib.claims.verdict import stored_verdicts
from lib.models.names import resolve
from lib.profiles import load_profile
from lib.report.page import report_of, write_report

# Attributes through which a page asks for something without anybody's click.
ASKING = ("src", "srcset", "data", "poster")


class Links(HTMLParser):
    """What a page links to, asks for, and has names for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.asked: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.names.add(given["id"])
        if tag == "link":
            self.asked.append(given.get("href", ""))
        elif "href" in given:
            self.links.append(given["href"])
        self.asked += [given[name] for name in ASKING if given.get(name)]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The folder that the workflow publishes, from the verdicts of the repository."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "RESULTS", folder)
        profile = load_profile("families")
        profile.results.mkdir()
        shutil.copy(paths.DATA / "families" / "claims.json", profile.results)
        return write_report(profile).parent


@pytest.fixture(scope="module")
def pages(published):
    return {
        path.relative_to(published).as_posix(): path.read_text(encoding="utf-8")
        for path in published.rglob("*.html")
    }


def test_no_link_breaks_and_nothing_is_asked_of_another_place(published, pages):
    known = {name: Links(text) for name, text in pages.items()}
    broken = []
    walked = 0
    for page, found in known.items():
        for link in [*found.links, *found.asked]:
            parts = urlsplit(link)
            outside = parts.scheme or parts.netloc
            if outside and link in found.asked and parts.scheme != "data":
                broken.append((page, link))
            if outside:
                continue
            walked += 1
            target = (published / page).parent / unquote(parts.path)
            if not parts.path:
                target = published / page
            # Only of pages it is known what an address may point at.
            name = target.resolve().relative_to(published.resolve()).as_posix()
            fragment = unquote(parts.fragment)
            if not target.is_file() or fragment not in {
                "",
                *(known[name].names if name in known else [fragment]),
            }:
                broken.append((page, link))
    assert not broken
    assert walked > 80


def test_every_notebook_is_beside_the_page_without_a_script(pages):
    names = {path.stem for path in paths.NOTEBOOKS.glob("0*.ipynb")}
    assert {f"notebooks/{name}.html" for name in names} == set(pages) - {"index.html"}
    assert "<script" not in pages["notebooks/02_meaningless_effect.html"]


def test_the_page_is_below_a_megabyte_and_no_style_is_within_its_tags(pages):
    page = pages["index.html"]
    assert len(page.encode()) < 1e6
    assert 'style="' not in page


def test_every_claim_has_an_anchor_and_every_figure_is_shown(published, pages):
    found = Links(pages["index.html"])
    claims = {f"claim-{verdict.id}" for verdict in stored_verdicts("families")}
    assert claims <= found.names
    figures = {f"figures/{path.name}" for path in published.glob("figures/*.png")}
    assert set(found.asked) == figures


def test_the_report_of_the_families_stands_below_the_pages_heading(pages):
    page = pages["index.html"]
    report = re.search('<section id="report">(.*?)</section>', page, re.DOTALL)[1]
    assert len(re.findall("<h1", page)) == 1
    assert '<table tabindex="0">' in report
    assert "](" not in report
    assert "../" not in report


def test_a_prompt_is_there_of_each_model_with_the_papers_55_tokens(pages):
    packed = re.findall(r'id="packed-\d">(.*?)</script>', pages["index.html"])
    prompts = [json.loads(gzip.decompress(base64.b64decode(one))) for one in packed]
    specs = load_profile("families").attention.models
    assert [one["model"] for one in prompts] == [resolve(spec).name for spec in specs]
    assert all(55 in one["lengths"] for one in prompts)


REPORT = """# A title
[the card](../data/families/README.md), [how](running.md), [paper](https://host/a)

|a||
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
