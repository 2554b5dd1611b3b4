"""A model's heads and layers are known without its weights, and what cannot be read is named in one line."""

import json
import subprocess
import sys

import pytest
from hub_server import HubServer
from huggingface_hub import constants

from lib.errors import InputError
from lib.models.card import Card, card

GEMMA = {"model_type": "gemma3", "text_config": {"num_attention_heads": 8, "num_hidden_layers": 34}}


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
        "import sys; from lib.models.card import card; card('demo'); print({'torch', 'transformers'} & {*sys.modules})"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
