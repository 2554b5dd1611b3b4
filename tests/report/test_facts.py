"""What was run is named with its revisions, problems and time."""

import os
import time

import pytest
from report_folder import claim, made_profile, verdict_of

from lib.report import facts as told
from lib.report.facts import facts

profile = made_profile
DEMO = "SmolLM2-135M-Instruct"


def verdict(model, n):
    return verdict_of(claim(model=model, n=n))


def changed(profile, part, **fields):
    section = getattr(profile, part).model_copy(update=fields)
    return profile.model_copy(update={part: section})


def test_a_model_has_its_revision_its_weights_and_the_problems_of_its_claims(profile):
    rows = [verdict(DEMO, 96), verdict(DEMO, 24), verdict("other", 7)]
    rows.append(verdict("third", 0))
    named = facts(profile, rows, {DEMO: "abc"})
    assert named["Models, weights, problems of a claim"] == [
        f"{DEMO} @ abc, Q4_1, dequantised; n = 24 to 96",
        "other; n = 7 to 7",
        "third; nothing was measured",
    ]


def test_weights_that_are_not_on_this_machine_are_not_told(profile):
    away = changed(profile, "attention", models=("/not/here",))
    named = facts(away, [verdict(DEMO, 24)], {})
    assert named["Models, weights, problems of a claim"] == [f"{DEMO}; n = 24 to 24"]


def test_problems_have_their_number_and_their_prompt(profile):
    profile = changed(profile, "attention", limit=40, layers=3, format="plain")
    profile = changed(profile, "accuracy", limit=None, format="chat")
    named = facts(profile, [], {})
    assert named["Problems of attention"] == [
        "embedded set, 40 problems, plain prompt, 3 first layers"
    ]
    assert named["Problems to answer"] == [
        "embedded set, all problems, chat prompt, greedy"
    ]


def test_sampling_has_its_temperature_and_a_file_that_is_gone_its_name(profile):
    profile = changed(
        profile, "accuracy", temperature=0.6, problems="/gone/mine.jsonl", limit=20
    )
    (text,) = facts(profile, [], {})["Problems to answer"]
    assert text.startswith("mine.jsonl, 20 problems, ")
    assert text.endswith(", temperature 0.6")


@pytest.fixture
def in_tokyo():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_tokyo")
def test_the_time_is_that_of_the_claims_in_utc(profile):
    claims = profile.results / "claims.json"
    os.utime(claims, (0, 86_400 + 3_600))
    assert facts(profile, [], {})["Claims judged"] == ["1970-01-02 01:00 UTC"]


@pytest.mark.parametrize("git", [True, False])
def test_the_code_is_a_commit_or_unknown(profile, monkeypatch, tmp_path, git):
    if not git:
        monkeypatch.setattr(told.paths, "ROOT", tmp_path)
    (text,) = facts(profile, [], {})["Code"]
    assert text == "commit unknown" or (git and len(text) == len("commit ") + 12)
