"""A run that an earlier version began is continued: the rows of its folders are found
by their keys, and only the missing ones are computed.

tests/support/begun_before.json has the settings and keys that commit 1e5d09b gave to
BEGUN; what its rows say is made up.
"""

import json
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import xarray as xr
from hand_written import keep, record

from lib import evaluation, paths
from lib.evaluation import answer_run, score_run
from lib.files.atomic import write_json
from lib.generation.engine_interface import Completion
from lib.measurement import networks
from lib.measurement.dataset import DIMENSIONS, row_of
from lib.measurement.measurement_run import measure
from lib.profiles import load_profile

BEGUN = """
name: begun-before
description: a run that an earlier version began
attention:
  models: [demo]
  layers: 1
  limit: 1
accuracy:
  models: [demo]
  dtype: float32
  format: plain
  conditions: [none, mless]
  limit: 1
  max_new_tokens: 4
likelihood:
  models: [demo]
  conditions: [none, gap]
  at_once: [none]
  limit: 1
pass_rates:
  models: [demo]
  limit: 1
  max_new_tokens: 4
"""
WRITTEN = json.loads(
    (Path(__file__).parent / "support" / "begun_before.json").read_text()
)
ROW = WRITTEN["row"]


# One variable of each measure, whose values are made up.
VARIABLE = {
    "tokens": "received",
    "attention": "mass",
    "affine": "line",
    "activations": "shape",
}
LABELS = {"problem": ROW["problem_id"], "condition": "mless", "layer": 1, "head": 1}


def step(network, measure):
    """Return the measurement of one number by a step, with its labels."""
    name = VARIABLE[measure]
    labels = {"network": network, "token": 0} | LABELS
    coords = {dim: [labels[dim]] for dim in DIMENSIONS[name]}
    return xr.Dataset({name: (list(coords), np.full([1] * len(coords), 0.5))}, coords)


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """The profile, with results that the earlier version stored: all but the last of
    the answers of main.
    """
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    (tmp_path / "begun.yaml").write_text(BEGUN)
    profile = load_profile(tmp_path / "begun.yaml")
    for name, part in WRITTEN["parts"].items():
        folder = profile.results if name == "main" else profile.results / name
        settings = WRITTEN["settings"] | part["settings"]
        write_json(folder / "run.json", {"settings": settings, "environment": {}})
        rows = [ROW | row for row in part["rows"]]
        if name in ("main", "draws"):
            kept = rows[:-1] if name == "main" else rows
            made_up = record("", "", False, response="made up", token_ids=[1])
            keep(folder / "completions.jsonl", [made_up | row for row in kept])
        else:
            keep(folder / "scores.jsonl", rows)

    measured = WRITTEN["measured"]
    folder = profile.measurements_folder(ROW["model"])
    rows = [row_of(key, step(*labels)) for key, *labels in measured["keys"]]
    keep(folder / "steps.jsonl", rows)
    write_json(folder / "run.json", {"settings": measured["settings"]})
    return profile


def test_a_missing_answer_is_generated_and_the_others_are_found(begun, monkeypatch):
    generated = []

    def completed(loaded, accuracy, missing):
        generated.extend(missing)
        for key in missing:
            yield Completion(key, "It is 4.", "stop", 9, 4)

    monkeypatch.setattr(answer_run, "_completed", completed)
    answers = evaluation.answers(begun)
    stored = WRITTEN["parts"]["main"]["rows"]
    assert generated == [stored[-1]["key"]]
    assert answers.key.tolist() == [row["key"] for row in stored]
    assert answers.response.tolist() == ["made up", "It is 4."]


def test_scores_draws_and_measurements_are_found_and_nothing_is_computed(
    begun, monkeypatch
):
    for module, name in (
        (answer_run, "_completed"),
        (score_run, "_rows_by_weights"),
        (networks, "run_step"),
    ):
        monkeypatch.setattr(module, name, Mock(side_effect=AssertionError))
    assert evaluation.scores(begun).nats.tolist() == [-1, -2, -3]
    # All of these answers are wrong, so none needs a score.
    assert len(evaluation.draws(begun)) == 4
    (measured,) = measure(begun).values()
    assert measured.revision == ROW["revision"]
    numbers = [int((measured[name] == 0.5).sum()) for name in VARIABLE.values()]
    assert numbers == [1, 5, 4, 4]
