"""The folder of the families' page as it is published: nothing is asked of another
place, no link breaks, and its sentences can be read aloud.
"""

import re
import shutil
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from lib import paths
from lib.errors import InputError
from lib.profiles import load_profile
from lib.report.page import write_report

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
        kept = paths.DATA / "families" / "claims.json"
        shutil.copy(kept, profile.results / "claims.json")
        try:
            return write_report(profile).parent
        except InputError as error:
            pytest.fail(str(error))


@pytest.fixture(scope="module")
def pages(published):
    return {
        path.relative_to(published).as_posix(): path.read_text(encoding="utf-8")
        for path in published.rglob("*.html")
    }


def test_every_notebook_is_beside_the_page(pages):
    names = {path.stem for path in paths.NOTEBOOKS.glob("0*.ipynb")}
    assert {f"notebooks/{name}.html" for name in names} <= set(pages)


def test_the_report_of_two_pages_is_beside_the_page_with_its_figures(pages):
    report = pages["report.html"]
    assert 'href="report.html"' in pages["index.html"]
    assert report.count('src="figures/') >= 5
    assert "<table>" in report
    assert "<!--" not in report


def test_no_link_breaks_within_the_folder(published, pages):
    known = {name: Links(text) for name, text in pages.items()}
    broken = []
    walked = 0
    for page, found in known.items():
        for link in [*found.links, *found.asked]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            walked += 1
            target = (published / page).parent / unquote(parts.path)
            if not parts.path:
                target = published / page
            if not target.is_file():
                broken.append((page, link))
                continue
            # An address within a page; those with a slash are the page's code's.
            fragment = unquote(parts.fragment)
            name = target.resolve().relative_to(published.resolve()).as_posix()
            within = fragment and "/" not in fragment and name in known
            if within and fragment not in known[name].names:
                broken.append((page, link))
    assert not broken
    assert walked > 100


def test_no_page_asks_another_place_for_anything(pages):
    outside = [
        (page, asked[:80])
        for page, text in pages.items()
        for asked in Links(text).asked
        if not asked.startswith("data:") and urlsplit(asked).netloc
    ]
    assert not outside
    assert "<script" not in pages["notebooks/02_meaningless_effect.html"]


def test_the_page_is_light_and_says_what_it_is(published, pages):
    assert (published / "index.html").stat().st_size < 3e6
    head = pages["index.html"].partition("<style>")[0]
    assert "<title>Do 55 slashes help?" in head
    for name in ('name="description"', 'property="og:image"'):
        assert re.search(rf'{name} content="[^"]{{30,}}"', head), name
    assert (published / "figures" / "overview.png").is_file()


def test_ten_questions_stand_in_order(pages):
    questions = re.findall(
        r'<span class="number">(\d+)</span> ([^<]+)', pages["index.html"]
    )
    assert [int(number) for number, _ in questions] == list(range(2, 11))
    assert all(question.endswith("?") for _, question in questions)


# A model's name holds numbers that are none of the sentence's.
MODEL = re.compile(r"\S*\d+[BMbm]\b\S*|MATH-500")


def test_sentences_are_short_and_hold_few_numbers(pages):
    found = re.findall(r'<p class="finding[^>]*>(.*?)</p>', pages["index.html"])
    texts = [unescape(re.sub(r"<[^>]+>", "", text)) for text in found]
    sentences = [
        sentence
        for text in texts
        for sentence in re.split(r"(?<=[.!?:;]) ", text)
        if sentence
    ]
    assert len(sentences) > 20
    long = [one for one in sentences if len(one.split()) > 25]
    assert not long
    crowded = [
        one
        for one in sentences
        if len(re.findall(r"\d[\d,.]*", MODEL.sub("", one))) > 3
    ]
    assert not crowded


def test_a_prompt_is_stored_of_each_model_with_the_papers_55_tokens(pages):
    for name in ("Qwen2.5-Coder-1.5B", "Qwen2.5-Coder-0.5B", "gemma-3-270m", "SmolLM2"):
        assert re.search(
            rf'"model":"{name}[^"]*","revision":"[^"]+","problem":"embedded',
            pages["index.html"],
        ), name
