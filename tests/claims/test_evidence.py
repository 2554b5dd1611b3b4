"""What a profile knows of each model, from the tables at hand."""

import pandas as pd
import pytest
from evidence import answers, right, verdict_on

from lib.claims import gathering as module
from lib.claims.evidence import by_model
from lib.profiles import PARTS, load_profile


@pytest.fixture
def table():
    return answers("fillers", mless_end=right(2))["answers"].drop(columns="plain")


@pytest.mark.parametrize(
    ("changes", "unaided"),
    [
        ({"format": "plain", "elicit": False}, True),
        ({"format": "plain", "elicit": True}, False),
        ({"format": "chat", "elicit": False}, False),
    ],
)
def test_answers_are_unaided_where_the_model_writes_them_itself(
    table, changes, unaided
):
    profile = load_profile("demo")
    accuracy = profile.accuracy.model_copy(update=changes)
    profile = profile.model_copy(update={"accuracy": accuracy})
    evidence = by_model(profile, answers=[table])
    assert evidence["m"]["answers"].plain.all() == unaided
    judged = verdict_on("position-end", evidence["m"])
    assert judged.n == (60 if unaided else 0)


def test_each_model_has_what_is_at_hand_of_it(table):
    profile = load_profile("demo")
    scores = pd.DataFrame({"model": ["m", "b"], "nats": [-1.0, -2.0]})
    measured = {"a": "arrays", "m": "others"}
    evidence = by_model(profile, measured=measured, answers=[table], scores=scores)
    assert list(evidence) == ["a", "m", "b"]  # measured models come first
    assert set(evidence["m"]) == {"measured", "answers", "scores"}
    assert set(evidence["a"]) == {"measured"}
    assert evidence["b"]["scores"].nats.tolist() == [-2.0]


def test_what_is_gathered_is_every_part_and_the_main_answers_of_a_folder(monkeypatch):
    profile = load_profile("demo")
    asked = []

    def answers(profile, part, folder=None):
        asked.append((part, folder))
        return pd.DataFrame({"model": ["m"], "part": [part]})

    monkeypatch.setattr(module.of_profile, "answers", answers)
    monkeypatch.setattr(module, "measure", lambda profile, *parts: {"m": parts})
    known = module.gather(profile, "folder")["m"]
    assert asked == [("main", "folder"), *((part, None) for part in PARTS)]
    assert known["answers"].part.tolist() == ["main", *PARTS]
    assert known["measured"] == ("attention", "activations", "controls")
