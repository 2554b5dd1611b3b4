"""The prompt that the page shows: its encoding in bytes, its agreement with a model's
attention, and its files.
"""

import base64
import gzip
import json

import numpy as np
import pytest
import torch
from eager import matrices, received
from transformers import LlamaConfig, LlamaForCausalLM

from lib import paths
from lib.measurement import animated_prompt
from lib.measurement.animated_prompt import (
    LARGEST_BYTE,
    OCTAVES,
    PROBLEM,
    AnimatedPromptPart,
    coded,
    measure_prompt,
)
from lib.models.loading import load
from lib.profiles import load_profile, profile_with_overrides
from lib.prompts.building import build_prompt
from lib.prompts.problem_sets import load_problems

ANOTHER_PROBLEM = "embedded/sum/001"
STORED = sorted(paths.DATA.glob("*/prompt/*.json.gz"))
(WORDS,) = (one.problem for one in load_problems("embedded") if one.id == PROBLEM)


def decoded(text):
    """Return the flat array that `coded` encoded, as the page decodes it."""
    levels = np.frombuffer(base64.b64decode(text), "uint8").astype(float)
    octaves = OCTAVES * (levels - 1) / (LARGEST_BYTE - 1)
    return np.where(levels == 0, np.nan, 2.0 ** (octaves - OCTAVES))


def read(path):
    return json.loads(gzip.decompress(path.read_bytes()))


def test_a_byte_encodes_received_attention_within_three_percent():
    known = np.array([1, 0.3, 0.01, 2e-4, np.nan])
    assert decoded(coded(known)) == pytest.approx(known, rel=0.03, nan_ok=True)
    # Values below the range get its smallest value, not NaN.
    assert decoded(coded(np.array([0, 1e-9]))).tolist() == [2**-OCTAVES] * 2


@pytest.mark.parametrize(
    "path", STORED, ids=lambda path: f"{path.parts[-3]} {path.stem}"
)
def test_stored_lambdas_follow_from_the_stored_bytes_of_the_project_problem(path):
    prompt = read(path)
    assert "".join(prompt["tokens"]).replace(" ", "").endswith(WORDS.replace(" ", ""))
    heads = prompt["heads"]
    plain = decoded(prompt["plain"]).reshape(heads, len(prompt["tokens"]))
    step = prompt["lengths"].index(55) - 1
    for filler in prompt["fillers"].values():
        filled = decoded(filler["received"][step]).reshape(heads, -1)
        inserted = np.s_[prompt["place"] : prompt["place"] + 55]
        original = np.delete(filled, inserted, axis=1)
        ratios = original[:, 1:-1].mean(1) / plain[:, 1:-1].mean(1)
        assert ratios == pytest.approx(filler["lambda"][step], rel=0.06)


def test_the_demo_model_reproduces_its_stored_prompt():
    demo = load_profile("demo")
    stored = read(AnimatedPromptPart(demo).files()["SmolLM2-135M-Instruct"])
    measured = measure_prompt(demo.attention, "demo")
    for name in ("revision", "tokens"):
        assert measured[name] == stored[name]
    plain = decoded(stored["plain"])
    np.testing.assert_allclose(decoded(measured["plain"]), plain, rtol=0.05)
    for name, filler in stored["fillers"].items():
        now = measured["fillers"][name]
        assert now["inserted"] == filler["inserted"]
        np.testing.assert_allclose(now["lambda"], filler["lambda"], atol=1e-3)


@pytest.fixture
def own(tiny_llama, tmp_path, monkeypatch):
    """A profile of a model of which the repository has no measurements."""
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    return profile_with_overrides("demo", model=str(tiny_llama), name="own")


def test_a_users_model_is_measured_into_results_once(own, tiny_llama):
    part = AnimatedPromptPart(own)
    assert not part.files()
    part.complete()
    (file,) = (own.results / "prompt").iterdir()
    assert part.files() == {tiny_llama.name: file}
    file.write_bytes(b"kept")
    part.complete()
    assert file.read_bytes() == b"kept"


def test_other_weights_settings_fillers_or_problems_are_measured_again(
    tiny_checkpoint, tmp_path, monkeypatch
):
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(animated_prompt, "measure_prompt", lambda *_: {"fillers": 1})
    own = profile_with_overrides("demo", model=str(tiny_checkpoint), name="own")
    part = AnimatedPromptPart(own)
    part.complete()
    assert part.files()

    for setting in ({"format": "chat"}, {"dtype": "bfloat16"}):
        attention = own.attention.model_copy(update=setting)
        changed = AnimatedPromptPart(own.model_copy(update={"attention": attention}))
        assert not changed.files()
    constants = {"FILLERS": {"dots": "."}, "LENGTHS": [5], "PROBLEM": ANOTHER_PROBLEM}
    for name, value in constants.items():
        with monkeypatch.context() as changed:
            changed.setattr(animated_prompt, name, value)
            assert not part.files()

    config = LlamaConfig.from_pretrained(tiny_checkpoint)
    torch.manual_seed(1)
    LlamaForCausalLM(config).save_pretrained(tiny_checkpoint)
    assert not part.files()
    part.complete()
    assert part.files()


def test_the_measured_prompt_equals_eager_attention(own, tiny_llama):
    measured = measure_prompt(own.attention, str(tiny_llama))
    slashes = measured["fillers"]["slashes"]
    step = measured["lengths"].index(55) - 1
    loaded = load(str(tiny_llama), layers=1)
    plain, filled = (
        build_prompt(loaded.tokenizer, WORDS, condition)
        for condition in ("none", "mless")
    )
    before, after = (
        received(matrices(loaded.model, prompt.input_ids)[0]).numpy()
        for prompt in (plain, filled)
    )
    shown = decoded(measured["plain"]).reshape(before.shape)
    assert shown == pytest.approx(before, rel=0.03, nan_ok=True)
    shown = decoded(slashes["received"][step]).reshape(after.shape)
    assert shown == pytest.approx(after, rel=0.03, nan_ok=True)
    ratios = after[:, filled.original[1:-1]].mean(1) / before[:, 1:-1].mean(1)
    assert slashes["lambda"][step] == pytest.approx(ratios, abs=1e-3)
    assert slashes["inserted"][step] == [" /"] * 55
    assert measured["place"] == filled.spans["inserted"].start


@pytest.mark.parametrize("stored", [True, False])
def test_the_repositorys_prompt_is_used_unless_everything_is_measured_again(
    tmp_path, monkeypatch, stored
):
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    monkeypatch.setattr(
        animated_prompt, "measure_prompt", lambda *_: {"fillers": "some"}
    )
    profile = load_profile("families")
    part = AnimatedPromptPart(profile, stored)
    part.complete()
    folder = paths.DATA / profile.name if stored else profile.results
    assert part.files()["gemma-3-270m"].parent == folder / "prompt"
