"""The prompt that the page shows: what a byte keeps, that it is what the attention of a
model gives, and where it is kept.
"""

import base64
import gzip
import json

import numpy as np
import pytest
from transformers import AutoModelForCausalLM

from lib import paths, prompts
from lib.measurement import page_prompt
from lib.measurement.page_prompt import (
    MOST,
    OCTAVES,
    coded,
    measure_prompts,
    prompt_file,
)
from lib.models import load
from lib.profiles import load_profile
from lib.prompts.problems import load_problems

STORED = sorted(paths.DATA.glob("*/prompt/*.json.gz"))


def decoded(text):
    """Return what `coded` was given, flat, as the page reads it."""
    places = np.frombuffer(base64.b64decode(text), "uint8").astype(float)
    octaves = OCTAVES * (places - 1) / (MOST - 1)
    return np.where(places == 0, np.nan, 2.0 ** (octaves - OCTAVES))


def read(path):
    return json.loads(gzip.decompress(path.read_bytes()))


def test_a_byte_keeps_what_a_token_receives_to_a_few_per_cent():
    received = np.array([1, 0.3, 0.01, 2e-4, np.nan])
    assert decoded(coded(received)) == pytest.approx(received, rel=0.03, nan_ok=True)


def test_what_is_too_small_is_the_smallest_and_not_nothing():
    assert decoded(coded(np.array([0.0, 1e-9]))) == pytest.approx([0, 0], abs=2**-15)


@pytest.mark.parametrize(
    "path", STORED, ids=lambda path: f"{path.parts[-3]} {path.stem}"
)
def test_a_stored_lambda_is_what_the_stored_bytes_say(path):
    prompt = read(path)
    heads = prompt["heads"]
    plain = decoded(prompt["plain"]).reshape(heads, -1)
    assert len(prompt["tokens"]) == plain.shape[1]
    step = prompt["lengths"].index(55) - 1
    for filler in prompt["fillers"].values():
        received = decoded(filler["received"][step]).reshape(heads, -1)
        inserted = np.s_[prompt["place"] : prompt["place"] + 55]
        original = np.delete(received, inserted, axis=1)
        ratios = original[:, 1:-1].mean(1) / plain[:, 1:-1].mean(1)
        assert ratios == pytest.approx(filler["lambda"][step], rel=0.06)


@pytest.mark.parametrize(
    "path", STORED, ids=lambda path: f"{path.parts[-3]} {path.stem}"
)
def test_its_words_are_of_the_projects_own_problem(path):
    problems = {problem.id: problem.problem for problem in load_problems("embedded")}
    text = "".join(read(path)["tokens"]).replace(" ", "")
    assert text.endswith(problems[page_prompt.PROBLEM].replace(" ", ""))


def test_the_demos_file_is_what_the_demo_model_gives_today():
    demo = load_profile("demo")
    stored = read(prompt_file(demo, "SmolLM2-135M-Instruct"))
    measured = page_prompt.measured_prompt(demo, "demo")
    assert measured["revision"] == stored["revision"]
    assert measured["tokens"] == stored["tokens"]
    for name, filler in stored["fillers"].items():
        now = measured["fillers"][name]
        assert now["inserted"] == filler["inserted"]
        assert np.array(now["lambda"]) == pytest.approx(
            np.array(filler["lambda"]), abs=1e-3
        )


@pytest.fixture
def own(tiny_llama, tmp_path, monkeypatch):
    """A profile of a model that the repository knows nothing of."""
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    demo = load_profile("demo")
    attention = demo.attention.model_copy(update={"models": [str(tiny_llama)]})
    return demo.model_copy(update={"name": "own", "attention": attention})


def test_a_model_of_ones_own_is_measured_into_results_once(own, tiny_llama):
    assert prompt_file(own, tiny_llama.name) is None
    measure_prompts(own)
    file = prompt_file(own, tiny_llama.name)
    assert file == own.results / "prompt" / f"{tiny_llama.name}.json.gz"
    file.write_bytes(b"kept")
    measure_prompts(own)
    assert file.read_bytes() == b"kept"


def eager(model, prompt):
    """Return what tokens receive in layer 1 by transformers' own attention."""
    first = model(prompt.input_ids[None], output_attentions=True).attentions[0]
    weights = first[0].detach().numpy()  # (heads, queries, keys)
    received = np.full(weights.shape[:2], np.nan)
    for key in range(len(prompt) - 1):
        received[:, key] = weights[:, key + 1 :, key].mean(1)
    return received


def test_what_is_measured_is_what_eager_attention_gives(own, tiny_llama):
    measured = page_prompt.measured_prompt(own, str(tiny_llama))
    slashes = measured["fillers"]["slashes"]
    step = measured["lengths"].index(55) - 1
    problems = {problem.id: problem.problem for problem in load_problems("embedded")}
    model = AutoModelForCausalLM.from_pretrained(
        tiny_llama, attn_implementation="eager"
    )
    tokenizer = load(str(tiny_llama), layers=1).tokenizer
    plain, filled = (
        prompts.build_prompt(tokenizer, problems[page_prompt.PROBLEM], condition)
        for condition in ("none", "mless")
    )
    before, after = eager(model, plain), eager(model, filled)

    shown = decoded(measured["plain"]).reshape(before.shape)
    assert shown == pytest.approx(before, rel=0.03, nan_ok=True)
    shown = decoded(slashes["received"][step]).reshape(after.shape)
    assert shown == pytest.approx(after, rel=0.03, nan_ok=True)
    original = after[:, filled.original.numpy()[1:-1]]
    ratios = original.mean(1) / before[:, 1:-1].mean(1)
    assert slashes["lambda"][step] == pytest.approx(ratios, abs=1e-3)
    assert slashes["inserted"][step] == [" /"] * 55
    assert measured["place"] == filled.spans["inserted"].start


def test_the_repositorys_file_counts_unless_all_is_measured_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    asked = []

    def measured_prompt(profile, spec):
        asked.append(spec)
        return {"fillers": {"slashes": {}}}

    monkeypatch.setattr(page_prompt, "measured_prompt", measured_prompt)
    profile = load_profile("families")
    measure_prompts(profile)
    assert asked == []
    measure_prompts(profile, stored=False)
    assert asked == profile.attention.models
    assert prompt_file(profile, "gemma-3-270m").parent.parent == profile.results
