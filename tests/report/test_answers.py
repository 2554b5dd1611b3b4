"""Which answers the slashes turned, and in which order answers stand."""

import pandas as pd
import pytest
from report_folder import answer

from lib.profiles import load_profile
from lib.report.answers import GRADER_FIELDS, Stored, answers_by_problem, flipped

DEMO = load_profile("demo")


def stored(*records, part="main"):
    table = pd.DataFrame(records)
    return Stored({part: table}, [], None, None)


GAINED = [
    answer("test/a b.json", "none", False, level=3, correct_exact=False),
    answer("test/a b.json", "mless", True, correct_authors=False, correct_exact=None),
]
LOST = [
    answer("test/2.json", "none", True, correct_authors=False),
    answer("test/2.json", "mless", False, correct_authors=False),
]
SAME = [
    answer("test/3.json", "none", True, correct_authors=False),
    answer("test/3.json", "mless", True),
]


def on_math500(profile):
    accuracy = profile.accuracy.model_copy(update={"problems": "math500"})
    return profile.model_copy(update={"accuracy": accuracy})


def test_an_answer_is_turned_where_the_projects_grader_changes_its_mind():
    flips = flipped(DEMO, stored(*GAINED, *LOST, *SAME))
    told = [(flip["problem"], flip["gained"], flip["level"]) for flip in flips]
    assert told == [("test/a b.json", True, 3), ("test/2.json", False, 1)]


def test_a_turned_answer_has_what_each_grader_makes_of_both():
    (flip,) = flipped(DEMO, stored(*GAINED))
    graders = dict(zip(GRADER_FIELDS, flip["graders"], strict=True))
    assert graders == {
        "correct": (False, True),
        "correct_exact": None,  # one of both was not graded so
        "correct_authors_on_completion": None,
        "correct_authors": (False, False),
    }


def test_only_the_first_of_several_samples_is_turned():
    again = [record | {"sample": 1} for record in LOST]
    assert flipped(DEMO, stored(*again)) == []
    (flip,) = flipped(DEMO, stored(*GAINED, *(row | {"sample": 1} for row in GAINED)))
    assert flip["gained"]


def test_a_turned_answer_links_to_the_data_set_where_its_problem_is_from_there():
    (flip,) = flipped(on_math500(DEMO), stored(*GAINED))
    assert flip["link"].endswith("viewer/default/test?q=test%2Fa%20b.json")
    (flip,) = flipped(DEMO, stored(*GAINED))
    assert flip["link"] is None


def test_without_answers_of_the_main_part_none_is_turned():
    assert flipped(DEMO, stored(*GAINED, part="sampling")) == []
    empty = Stored({"main": pd.DataFrame(GAINED)[:0]}, [], None, None)
    assert empty.main is None


@pytest.mark.parametrize(
    "part, title",
    [("fillers", "fillers: lengths, places, kinds"), ("main", "accuracy")],
)
def test_samples_of_an_answer_stand_in_their_order_below_the_title_of_their_part(
    part, title
):
    later = answer("sum/1", "mless", True, sample=1, extracted="later")
    first = answer("sum/1", "mless", True, sample=0, extracted="first")
    none = answer("sum/1", "none", True, extracted="none")
    answers, *_ = answers_by_problem(DEMO, stored(later, first, none, part=part))
    (run,) = answers["runs"]
    assert run["part"] == title
    assert run["conditions"] == ["none", "mless"]
    cells = [[sample[2] for sample in cell] for cell in run["cells"][0]]
    assert cells == [["none"], ["first", "later"]]
