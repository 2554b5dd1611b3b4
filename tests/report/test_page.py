"""The page as a file: its statements, its notes on missing results, and the escaping of
texts of models.
"""

import base64
import hashlib
import re

import pytest
from bs4 import BeautifulSoup
from report_folder import EVIL, answer, make_evil, verdict, write_answers

from lib import paths
from lib.claims.verdict_files import write_verdicts
from lib.measurement.animated_prompt import AnimatedPromptPart
from lib.report.page import write_report
from lib.statistics.intervals import ENOUGH


def page(profile, *verdicts):
    """Return the page of a profile, with other verdicts if some are given."""
    if verdicts:
        write_verdicts(profile, verdicts)
    html = write_report(profile).read_text(encoding="utf-8")
    return BeautifulSoup(html, "html.parser")


def texts(page, selector: str) -> list[str]:
    """Return the texts of the elements that match, with single spaces."""
    return [" ".join(one.get_text(" ").split()) for one in page.select(selector)]


GAIN = {"effect": 4, "low": 1, "high": 7}
LOSS = {"effect": -4, "low": -7, "high": -1}
OPEN = {"effect": 2, "low": -1, "high": 5, "verdict": "undecided"}
A, B = "accuracy-mless", "likelihood-gain"
ANSWERS = [
    (
        [verdict(A, "x", **OPEN), verdict("points-slashes", "y", **OPEN)],
        "accuracy rises significantly in 0 of 2 models.",
    ),
    ([verdict(A, "x", **GAIN), verdict("points-slashes", "x", **OPEN)], "in 1 of 1 "),
    ([verdict(A, "x", **GAIN, survives=False)], "in 0 of 1 "),
    (
        [verdict(A, "x", **LOSS)],
        "in 0 of 1 model and falls significantly in 1.",
    ),
    (
        [verdict(A, **OPEN), verdict(B, "x", **LOSS), verdict(B, "y", **GAIN)],
        "model. The reference solution becomes significantly more likely in 1 of 2"
        " models and less likely in 1.",
    ),
    (
        [verdict(A, **GAIN, n=ENOUGH - 1)],
        f"whether 55 slashes help: a model needs {ENOUGH} problems.",
    ),
]


@pytest.mark.parametrize("verdicts, said", ANSWERS)
def test_the_page_opens_with_the_significant_changes(profile, verdicts, said):
    (lead,) = texts(page(profile, *verdicts), ".lead")
    assert said in lead


def test_a_claim_has_an_anchor_and_its_numbers_by_model(profile):
    html = page(
        profile,
        verdict(),
        verdict(model="b", verdict="contradicted", effect=1.3, low=1.2, high=1.4),
        verdict("arm", "b", survives=False),
        verdict("few", "b", n=3),
        verdict("unasked", n=0),
        verdict("unasked", "b", n=0),
    )
    assert texts(html, "#claim-dilution td") == [
        "supported , n = 40 0.80 [0.70, 0.90]",
        "contradicted , n = 40 1.30 [1.20, 1.40]",
    ]
    (name,) = texts(html, "#claim-dilution th")
    assert name.endswith(
        "literal reading · in λ · rule written after data of this kind were seen"
    )
    assert texts(html, "#claim-arm td") == [
        "– not tested",
        "supported † , n = 40 0.80 [0.70, 0.90]",
    ]
    assert texts(html, "#claim-few b.too.few") == ["too few"]
    assert len(html.select("li#claim-unasked")) == 1


def test_the_shortest_pair_of_answers_whose_grades_differ_is_shown(profile):
    write_answers(
        profile,
        answer("longer", "none", True),
        answer("longer", "mless", False),
        answer("<b>", "none", False),
        answer("<b>", "mless", True),
        # The slashes change the grade of none of these pairs.
        answer("a", "none", True),
        answer("a", "none", False, sample=1),
        answer("a", "mless", True),
        answer("b", "none", True),
        answer("b", "mful", False),
    )
    assert texts(page(profile), ".pair div") == [
        "Without slashes: wrong <b> under none",
        "With 55 slashes: right <b> under mless",
    ]


def test_no_pair_is_shown_if_the_slashes_change_no_grade(profile):
    write_answers(profile, answer("a", "none", True), answer("a", "mless", True))
    assert not page(profile).select(".pair")


def test_answers_that_only_restate_a_sum_are_wrong_in_the_pair_as_in_the_tables(
    profile,
):
    restated = {"evaluated": False}
    write_answers(
        profile,
        answer("embedded/sum/1", "none", True, **restated),
        answer("embedded/sum/1", "mless", False),
        answer("embedded/sum/12", "none", True, **restated),
        answer("embedded/sum/12", "mless", True, evaluated=True),
    )
    assert texts(page(profile), ".pair h3") == [
        "Without slashes: wrong",
        "With 55 slashes: right",
    ]


def test_the_page_has_the_prompt_of_each_model_that_has_one(profile):
    files = AnimatedPromptPart(profile).files()
    stored = files.pop("gemma-3-270m")
    for other in files.values():
        other.unlink()
    (packed,) = texts(page(profile), "[id^=packed]")
    assert base64.b64decode(packed) == stored.read_bytes()
    stored.unlink()
    assert "python -m lib reproduce" in page(profile).text


def test_a_figure_that_cannot_be_written_is_named_in_one_line(profile, refused):
    figure = profile.results / "report" / "figures" / "slashes.png"
    figure.mkdir(parents=True)
    (profile.figures / figure.name).touch()
    assert refused(write_report, profile).startswith(f"cannot write {figure}: Is a")


def test_figures_are_shown_in_order_without_files_of_others(profile):
    for name in ("a_holiday", "slashes"):
        (profile.figures / f"{name}.png").touch()
    shown = [image["src"] for image in page(profile).select("img")]
    drawn = ("slashes", "fig09", "fig13")
    assert shown == [f"figures/{name}.png" for name in drawn]
    assert (profile.results / "report" / shown[1]).is_file()


def test_a_notebook_is_beside_the_page_and_an_executed_copy_replaces_it(profile):
    (link,) = page(profile).select("#notebooks a")
    path = profile.results / "report" / link["href"]
    assert "One prompt" in path.read_text()
    executed = profile.results / f"{path.stem}.ipynb"
    kept = (paths.NOTEBOOKS / executed.name).read_text()
    executed.write_text(kept.replace("One prompt", "As it ran"))
    page(profile)
    html = path.read_text()
    assert "As it ran" in html
    assert 'href="../index.html"' in html
    assert "<script" not in html


@pytest.mark.parametrize("content", [b"", b'{"cells": [{"cell_type": "ma'])
def test_an_executed_copy_that_was_written_in_part_is_named(profile, refused, content):
    executed = profile.results / "01_attention_maps.ipynb"
    executed.write_bytes(content)
    message = refused(write_report, profile)
    assert message.startswith(f"{executed} is no complete notebook: delete it, or run")


PROJECT = """
[project.urls]
Repository = "https://github.com/{0}"
Page = "https://host/page"
"""


@pytest.mark.parametrize(
    "name, is_set", [("OWNER/NAME", False), ("some-one/my.copy", True)]
)
def test_links_to_the_repository_begin_with_its_address(
    profile, tmp_path, monkeypatch, name, is_set
):
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(name))
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    html = page(profile)
    assert bool(html.select(f"a[href='https://github.com/{name}']")) == is_set
    assert "OWNER" not in str(html)


@pytest.mark.parametrize(
    "content, said",
    [(b"", "has no valid claims"), (b"[" * 5000, "has no valid claims"), (b"[1]", "0")],
)
def test_damaged_claims_give_one_line(profile, refused, content, said):
    (profile.results / "claims.json").write_bytes(content)
    assert said in refused(write_report, profile)


def test_a_models_text_is_escaped_everywhere(profile):
    make_evil(profile)
    html = page(profile)
    assert len(html.select("script")) == 3
    assert not html.select("img[src=x]")
    # A lone surrogate, which UTF-8 cannot encode, becomes a question mark.
    assert [answer.text for answer in html.select("pre")] == [f"{EVIL}?"] * 2


def test_the_content_security_policy_allows_only_the_pages_style_and_script(profile):
    html = page(profile)
    hashes = []
    for element in ("style", "script"):
        (embedded,) = html.select(f"{element}:not([type])")
        digest = hashlib.sha256(embedded.string.encode()).digest()
        hashes.append(f"'sha256-{base64.b64encode(digest).decode()}'")
    style, script = hashes
    assert html.select_one("[http-equiv=Content-Security-Policy]")["content"] == (
        f"default-src 'none'; img-src 'self'; style-src {style}; script-src {script};"
        " base-uri 'none'; form-action 'none'"
    )
    assert not re.findall(r'\s(style|on\w+)="', str(html))
