"""The stored prompt: what a byte keeps, and that λ beside it is what the bytes say."""

import base64
import gzip
import json

import numpy as np
import pytest

from lib import paths
from lib.models.names import resolve
from lib.profiles import load_profile
from lib.prompts.problems import load_problems
from lib.report.prompt import MOST, OCTAVES, coded, read_prompts

FILES = sorted((paths.DATA / "families" / "prompt").glob("*.json.gz"))


def decoded(text):
    """Return what `coded` was given, flat, as the page reads it."""
    places = np.frombuffer(base64.b64decode(text), "uint8").astype(float)
    octaves = OCTAVES * (places - 1) / (MOST - 1)
    received = 2.0 ** (octaves - OCTAVES)
    return np.where(places == 0, np.nan, received)


def test_a_byte_keeps_what_a_token_receives_to_a_few_per_cent():
    received = np.array([1, 0.3, 0.01, 2e-4, np.nan])
    assert decoded(coded(received)) == pytest.approx(received, rel=0.03, nan_ok=True)


def test_what_is_too_small_is_the_smallest_and_not_nothing():
    assert decoded(coded(np.array([0.0, 1e-9]))) == pytest.approx([0, 0], abs=2**-15)


def read(path):
    return json.loads(gzip.decompress(path.read_bytes()))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_stored_lambda_is_what_the_stored_bytes_say(path):
    prompt = read(path)
    heads = prompt["heads"]
    plain = decoded(prompt["plain"]).reshape(heads, -1)
    before = plain[:, 1:-1].mean(1)
    assert len(prompt["tokens"]) == plain.shape[1]
    step = prompt["lengths"].index(55) - 1
    for filler in prompt["fillers"].values():
        received = decoded(filler["received"][step]).reshape(heads, -1)
        place = prompt["place"]
        original = np.delete(received, np.s_[place : place + 55], axis=1)
        ratios = original[:, 1:-1].mean(1) / before
        assert ratios == pytest.approx(filler["lambda"][step], rel=0.06)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_its_words_are_of_the_projects_own_problem(path):
    prompt = read(path)
    problems = {problem.id: problem.problem for problem in load_problems("embedded")}
    text = "".join(prompt["tokens"]).replace(" ", "")
    assert text.endswith(problems[prompt["problem"]].replace(" ", ""))


@pytest.mark.parametrize("name", ["families", "demo"])
def test_a_profile_has_the_prompts_of_its_own_models_in_their_order(name):
    profile = load_profile(name)
    models = [resolve(spec).name for spec in profile.attention.models]
    assert [prompt["model"] for prompt in read_prompts(profile)] == models
