"""What the page's code draws, and which code the page lets run."""

import base64
import hashlib
import re
from html import unescape

import pandas as pd
import pytest
from report_folder import claim, made_profile, verdict_of

from lib.figures.looks import look_of_model
from lib.report import page
from lib.report.answers import Stored

profile = made_profile


@pytest.fixture
def html(profile):
    return page.write_report(profile).read_text(encoding="utf-8")


def hash_of(text):
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def test_nothing_runs_but_the_pages_own_scripts_and_style(html):
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', html)
    rules = dict(rule.split(maxsplit=1) for rule in unescape(policy).split("; "))
    assert rules["default-src"] == "'none'"
    scripts = re.findall(r"<script>(.*?)</script>", html, re.S)
    assert rules["script-src"].split() == [hash_of(script) for script in scripts]
    assert len(scripts) == len(page.SCRIPTS)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.S)
    assert rules["style-src"] == hash_of(style)


def test_what_is_missing_is_told_in_its_section_which_has_nothing_to_draw(profile):
    (profile.results / "tiny.nc").unlink()
    (profile.results / "completions.jsonl").write_text('{"key": "a"}\n')
    html = page.write_report(profile).read_text(encoding="utf-8")
    heads = html.index("No heads of this profile yet")
    answers = html.index("completions.jsonl: model: missing field")
    assert html.index('id="any"') < heads < html.index('id="layers"') < answers
    assert 'id="columns-says"' not in html
    assert re.search(r'id="answers-data"></script>', html)


def test_heads_stand_in_the_order_of_the_verdicts_and_strangers_last():
    heads = [{"name": name} for name in ("stranger", "a", "b")]
    heads.sort(key=page._place_among(["b", "a"]))
    assert [head["name"] for head in heads] == ["b", "a", "stranger"]


def test_every_model_looks_as_it_does_in_the_figures():
    looks = page._looks([verdict_of(claim(model="a"))], [{"name": "gemma-3-270m"}])
    gemma = look_of_model("gemma-3-270m")
    assert list(looks) == ["a", "gemma-3-270m"]
    assert looks["gemma-3-270m"] == [gemma.colour, gemma.marker]


def test_clouds_are_of_all_that_is_stored(profile, monkeypatch):
    given = []
    monkeypatch.setattr(page, "by_model", lambda *about, **known: given.append(known))
    monkeypatch.setattr(page.forest_plots, "clouds", lambda evidence, panels: panels)
    stored = Stored({}, [], pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}))
    assert page._clouds(profile, stored, [{"title": "one"}]) == [{"title": "one"}]
    (known,) = given
    assert known["answers"] == []
    assert known["scores"] is stored.scores
    assert known["draws"] is stored.draws


GRADED = pd.DataFrame(
    [
        ("none", 40.26, None, None, None),
        ("mless", 42.0, 1.754, -0.5, 4.0),
        ("mful", 45.0, 5.0, 1.0, 9.0),
        ("mless", 42.0, 2.0, None, None),
    ],
    columns=["condition", "accuracy", "effect", "effect_low", "effect_high"],
).assign(model="m", grader="ours")


def test_graders_have_shares_without_slashes_and_what_the_slashes_change():
    about = {"model": "m", "label": "ours"}
    ends = {"x": 1.75, "low": -0.5, "high": 4.0}
    change = about | ends | {"text": "+1.8 [-0.5, +4.0] points"}
    assert page._graders(GRADED) == {
        "right": [about | {"x": 40.3, "text": "40.3 %"}],
        "changes": [change],
    }
    assert page._graders(None) == {"right": [], "changes": []}
