"""The page as a file: what it says, what it says is missing, and what cannot get out of
its place in it.
"""

import base64
import hashlib
import re
from html import unescape

import pytest
from report_folder import (
    ANSWERED,
    MODELS,
    PIXEL,
    answer,
    made_profile,
    make_evil,
    verdict,
    write_answers,
)

from lib import paths
from lib.claims.verdict import write_verdicts
from lib.errors import InputError
from lib.report.page import write_report
from lib.statistics.intervals import ENOUGH

profile = made_profile


def page(profile, *verdicts) -> str:
    """Return the page of a profile, with other verdicts if some are given."""
    if verdicts:
        write_verdicts(profile, verdicts)
    return write_report(profile).read_text(encoding="utf-8")


def text(html: str, pattern: str) -> list[str]:
    """Return the texts of the elements that match, with single spaces."""
    found = re.findall(pattern, html, re.DOTALL)
    return [" ".join(unescape(re.sub("<[^>]+>", " ", one)).split()) for one in found]


GAIN = {"effect": 4, "low": 1, "high": 7}
LOSS = {"effect": -4, "low": -7, "high": -1}
OPEN = {"effect": 2, "low": -1, "high": 5, "verdict": "undecided", "survives": False}
TOO_FEW = {"n": ENOUGH - 1}
NOT_HOLM = {"survives": False}
A, B = "accuracy-mless", "likelihood-gain"
ANSWERS = [
    (
        [verdict(A, "x", **OPEN), verdict("points-slashes", "y", **OPEN)],
        "right answers become certainly more frequent in 0 of 2 models.",
    ),
    ([verdict(A, "x", **GAIN), verdict("points-slashes", "x", **OPEN)], "in 1 of 1 "),
    ([verdict(A, "x", **GAIN | NOT_HOLM)], "in 0 of 1 "),
    (
        [verdict(A, "x", **LOSS)],
        "in 0 of 1 model and certainly rarer in 1.",
    ),
    (
        [verdict(A, **OPEN), verdict(B, "x", **LOSS), verdict(B, "y", **GAIN)],
        "model; a worked solution becomes certainly likelier in 1 of 2 models and"
        " certainly less likely in 1.",
    ),
    (
        [verdict(A, **GAIN | TOO_FEW)],
        f"cannot be told yet: that takes {ENOUGH} problems",
    ),
]


@pytest.mark.parametrize("verdicts, said", ANSWERS)
def test_the_page_opens_with_what_is_certain(profile, verdicts, said):
    (lead,) = text(page(profile, *verdicts), '<p class="lead">(.*?)</p>')
    assert said in lead


def test_a_claim_has_an_anchor_and_its_numbers_model_by_model(profile):
    html = page(
        profile,
        verdict(),
        verdict(model="b", verdict="contradicted", effect=1.3, low=1.2, high=1.4),
        verdict("arm", "b", survives=False, equivalence=2.0),
        verdict("few", "b", n=3),
        verdict("unasked", n=0),
        verdict("unasked", "b", n=0),
    )
    rows = dict(re.findall(r'<tr id="claim-([^"]+)">(.*?)</tr>', html, re.DOTALL))
    assert text(rows["dilution"], "<td.*?</td>") == [
        "supported , n = 40 0.80 [0.70, 0.90]",
        "contradicted , n = 40 1.30 [1.20, 1.40]",
    ]
    assert "literal reading · in λ · rule written after" in rows["dilution"]
    assert text(rows["arm"], "<td.*?</td>") == [
        "– not tested",
        "supported, small † , n = 40 0.80 [0.70, 0.90]",
    ]
    assert '<b class="too few">too few</b>, n = 3' in rows["few"]
    assert html.count('<li id="claim-unasked">') == 1


def test_the_shortest_pair_of_answers_that_the_slashes_turned_is_shown(profile):
    write_answers(
        profile,
        answer("long", "none", True, response="a long answer"),
        answer("long", "mless", False, response="another long answer"),
        answer("short", "none", False, response="<b>four"),
        answer("short", "mless", True, response="five"),
        answer("short", "none", True, response="", sample=1, key="sampled"),
        answer("alike", "none", True, response=""),
        answer("alike", "mless", True, response=""),
        answer("alone", "none", True, response=""),
    )
    html = page(profile)
    assert text(html, "<pre>(.*?)</pre>") == ["<b>four", "five"]
    assert text(html, "<h3>(.*?)</h3>")[:2] == [
        "Without slashes: wrong",
        "With 55 slashes: right",
    ]


@pytest.mark.parametrize("other", ["mless", "mful"])
def test_without_a_turned_answer_there_is_no_pair(profile, other):
    write_answers(profile, answer("a", "none", True), answer("a", other, True))
    assert "A pair of answers" not in page(profile)


def test_the_prompt_is_there_of_each_model_that_has_it(profile):
    (profile.results / "prompt" / f"{ANSWERED}.json.gz").unlink()
    html = page(profile)
    (packed,) = re.findall(r'id="packed-\d">(.*?)</script>', html)
    stored = profile.results / "prompt" / f"{MODELS[1]}.json.gz"
    assert base64.b64decode(packed) == stored.read_bytes()
    stored.unlink()
    assert "python -m lib reproduce" in page(profile)


def test_the_answer_stands_first_and_once_and_a_strangers_figure_nowhere(profile):
    for name in ("a_holiday", "does_it_help"):
        (profile.figures / f"{name}.png").write_bytes(PIXEL)
    shown = re.findall(r'src="figures/([^"]+)\.png"', page(profile))
    assert shown == ["does_it_help", "fig09", "fig13"]
    assert (profile.results / "report" / "figures" / "fig09.png").is_file()


def test_a_notebook_lies_beside_the_page_and_an_executed_copy_replaces_it(profile):
    place = profile.results / "report" / "notebooks" / "01_attention_maps.html"
    assert f'href="notebooks/{place.name}"' in page(profile)
    assert "One prompt" in place.read_text()
    executed = profile.results / "01_attention_maps.ipynb"
    kept = (paths.NOTEBOOKS / executed.name).read_text()
    executed.write_text(kept.replace("One prompt", "As it ran"))
    page(profile)
    html = place.read_text()
    assert "As it ran" in html
    assert 'href="../index.html"' in html
    assert "<script" not in html


PROJECT = """
[project.urls]
Repository = "https://github.com/{0}"
Page = "https://host/page"
"""


@pytest.mark.parametrize("name", ["OWNER/NAME", "some-one/my.copy"])
def test_links_to_the_repository_begin_with_its_address(
    profile, tmp_path, monkeypatch, name
):
    (tmp_path / "pyproject.toml").write_text(PROJECT.format(name))
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    html = page(profile)
    is_set = name == "some-one/my.copy"
    assert (f'href="https://github.com/{name}"' in html) == is_set
    assert "OWNER" not in html


BROKEN = {b"": "holds no claims", b"[" * 5000: "holds no claims", b"[1]": "0"}


@pytest.mark.parametrize("content", BROKEN)
def test_damaged_claims_give_one_line(profile, content):
    (profile.results / "claims.json").write_bytes(content)
    with pytest.raises(InputError, match=BROKEN[content]) as error:
        write_report(profile)
    assert "\n" not in str(error.value)


def test_nothing_that_a_model_wrote_leaves_its_place(profile):
    make_evil(profile)
    html = page(profile)
    assert "window.pwned" in html
    assert "<script>window.pwned" not in html
    assert "<img src=x" not in html
    assert html.count("</script>") == 3
    assert "\u2028?</pre>" in html  # a lone surrogate, which UTF-8 cannot say


def test_the_policy_names_the_style_and_the_script_and_allows_nothing_else(profile):
    html = page(profile)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)[1]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for element in ("style", "script"):
        (content,) = re.findall(f"<{element}>(.*?)</{element}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in unescape(policy)
    assert not re.findall(r'\s(style|on\w+)="', html)
