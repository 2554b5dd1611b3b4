"""What other settings of the slashes give stands in their order, under its name."""

import pandas as pd
import pytest

from lib.profiles import load_profile
from lib.report import courses
from lib.report.answers import Stored

FAMILIES = load_profile("families")
OTHER_FILLER = FAMILIES.filler.model_copy(update={"length": 40})
PROFILE = FAMILIES.model_copy(update={"filler": OTHER_FILLER})
COLUMNS = ["panel", "curve", "x", "effect", "low", "high"]
HIDDEN = "hidden from layers 1 to k"
SHOWN = "shown to layers 1 to k alone"
NATS = pd.DataFrame(
    [
        ("pairs", "slashes, all in all", "mless − none", 9, 8, 10),
        ("length", "slashes", 110, 0.5, -0.25, 1.25),
        ("length", "slashes", 10, -1.5, -2, -1),
        ("place", "slashes", "end", 1, 0, 2),
        ("place", "slashes", "before", 2, 1, 3),
        ("depth", SHOWN, 2, 3, 2, 4),
        ("depth", HIDDEN, 12, 4, 3, 5),
        ("depth", HIDDEN, 3, 5, 4, 6),
    ],
    columns=COLUMNS,
).assign(model="m", n=40, band=0.1)
NOTHING = Stored({}, [], None, None)
FILLERS = pd.DataFrame(
    {
        "model": "m",
        "condition": ["none", "mless:10", "mful"],
        "n": 50,
        "effect": [None, 2.0, -4.0],
        "effect_low": [None, -1.0, -6.0],
        "effect_high": [None, 5.0, -2.0],
    }
)


@pytest.fixture
def made(monkeypatch):
    """The courses of these likelihoods and answers, by title."""
    asked = []

    def differences(*given):
        asked.append(given)
        return NATS

    monkeypatch.setattr(courses, "differences", differences)
    monkeypatch.setattr(courses, "summarise", lambda answers: answers)
    stored = Stored({"fillers": FILLERS}, [], pd.DataFrame({"nats": [1.0]}), None)
    made = courses.courses_of(PROFILE, stored)
    ((scores, target, filler),) = asked
    assert scores is stored.scores
    assert (target, filler) == ("solution", PROFILE.filler)
    return {course["title"].partition(":")[0]: course["rows"] for course in made}


def labels(rows):
    return [row["label"] for row in rows]


def test_each_course_has_its_settings_numbers_in_their_order(made):
    assert {title: labels(rows) for title, rows in made.items()} == {
        "How many slashes": ["10 slashes", "110 slashes"],
        "Where the slashes stand": ["end", "before"],
        "Which layers see them": [
            "hidden from layers 1 to 3",
            "hidden from layers 1 to 12",
            "shown to layers 1 to 2 alone",
        ],
        "Other fillers, lengths and places": ["mless:10", "mful"],
    }


def test_a_setting_has_its_effect_with_both_ends_and_its_problems(made):
    _, row = made["How many slashes"]
    about = {"label": "110 slashes", "model": "m", "n": 40}
    drawn = {"x": 0.5, "low": -0.25, "high": 1.25}
    assert row == about | drawn | {"text": "+0.50 [-0.25, +1.25]"}


def test_fillers_are_answers_in_points(made):
    row, _ = made["Other fillers, lengths and places"]
    assert (row["x"], row["low"], row["high"], row["n"]) == (2, -1, 5, 50)


def test_without_likelihoods_and_fillers_there_is_no_course():
    assert courses.courses_of(PROFILE, NOTHING) == []


def test_of_what_nothing_is_known_there_is_no_course(monkeypatch):
    monkeypatch.setattr(courses, "differences", lambda *given: NATS[:1])
    monkeypatch.setattr(courses, "summarise", lambda answers: answers)
    only_none = Stored({"fillers": FILLERS[:1]}, [], NATS, None)
    assert courses.courses_of(PROFILE, only_none) == []
