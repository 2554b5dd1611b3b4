"""A hub with two small models, caches of the test's own, and a machine whose speed is
known.
"""

import json
import shutil

import pytest
from hub_server import HubServer, point_at
from huggingface_hub import constants

from lib import paths
from lib.plan import speed
from lib.profiles import load_profile

OPEN, GATED = "org/open", "org/gated"
PROBLEMS = 6
PROFILE = """
name: small
description: two small models from a hub
attention:
  models: [org/open]
  problems: mine.jsonl
  layers: 2
  limit: 4
accuracy:
  models: [org/open]
  problems: mine.jsonl
  format: plain
  conditions: [none, mless]
  limit: 3
  max_new_tokens: 4
likelihood:
  models: [org/gated]
  problems: mine.jsonl
  conditions: [none, mless, gap]
  at_once: [none]
pass_rates:
  models: [org/open]
  problems: mine.jsonl
  format: plain
  limit: 2
  max_new_tokens: 4
"""


@pytest.fixture
def repositories(tmp_path, tiny_llama):
    """A folder with both repositories, which a test may alter."""
    root = tmp_path / "repositories"
    for name in (OPEN, GATED):
        shutil.copytree(tiny_llama, root / name)
    return root


@pytest.fixture
def hub(repositories, tmp_path, monkeypatch):
    """A hub that serves both; all that is written goes into the test's own folders."""
    with HubServer(repositories) as server:
        point_at(server.url, monkeypatch)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
        monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
        monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
        monkeypatch.setattr(speed, "_timed", lambda device, dtype, rows: 100.0)
        yield server


@pytest.fixture
def profile_file(tmp_path):
    """The profile `small`, beside its problems."""
    rows = []
    for number in range(PROBLEMS):
        row = {
            "unique_id": str(number),
            "problem": f"What is ${number} + 1$?",
            "answer": str(number + 1),
            "solution": f"It is ${number + 1}$.",
        }
        rows.append(json.dumps(row))
    (tmp_path / "mine.jsonl").write_text("\n".join(rows))
    (tmp_path / "small.yaml").write_text(PROFILE)
    return tmp_path / "small.yaml"


@pytest.fixture
def small(profile_file):
    return load_profile(profile_file)
