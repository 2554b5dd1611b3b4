"""What a model weighs is known before it is fetched, and why it cannot be had."""

import re

import pytest
from hub_server import point_at

from lib.models.first_layers import first_layers
from lib.models.hub import config_folder, snapshot
from lib.models.names import known_models
from lib.plan.weights import weights_of

OPEN, GATED = "org/open", "org/gated"
NOWHERE = "http://127.0.0.1:9"
# Bytes of the published safetensors, as their index files give them.
PUBLISHED = {
    "Qwen2.5-Math-1.5B": 3_087_428_608,
    "Qwen2.5-Math-7B": 15_231_233_024,
    "Llama-3.1-8B-Instruct": 16_060_522_496,
    "Qwen2.5-0.5B-Instruct": 988_065_536,
}


def test_the_shapes_of_known_models_give_the_bytes_that_are_published(hub, monkeypatch):
    point_at(NOWHERE, monkeypatch)
    for spec, size in PUBLISHED.items():
        assert weights_of(spec).size == pytest.approx(size, rel=1e-4)
    assert all("model_type" in entry["config"] for entry in known_models().values())


def test_of_a_model_on_the_hub_the_size_is_told_and_no_weights_are_sent(
    hub, repositories
):
    weights = weights_of(OPEN)
    stored = (repositories / OPEN / "model.safetensors").stat().st_size
    assert (weights.to_fetch(None), weights.here, weights.refusal) == (stored, 0, "")
    assert weights.shape.layers == 3
    assert hub.sent_weights == 0


def test_what_is_fetched_is_here_and_the_hub_is_not_asked_for_it_again(hub):
    first_layers(OPEN, 2)
    cut = weights_of(OPEN)
    assert cut.to_fetch(2) == 0 < cut.to_fetch(None)
    snapshot(OPEN)
    sent = hub.sent
    whole = weights_of(OPEN)
    assert (whole.to_fetch(2), whole.to_fetch(None)) == (0, 0)
    assert whole.here == whole.size > 0
    assert hub.sent == sent


def test_with_a_cached_config_alone_the_size_is_known_and_why_it_is_not_here(
    hub, monkeypatch
):
    whole = weights_of(OPEN)
    config_folder(OPEN)
    point_at(NOWHERE, monkeypatch)
    weights = weights_of(OPEN)
    assert weights.shape == whole.shape
    # The test's checkpoint is in float32, those of the hub mostly in bfloat16.
    assert weights.size == pytest.approx(whole.size / 2, rel=0.1)
    assert "does not answer" in weights.refusal


def test_without_a_hub_only_models_with_a_name_have_a_size(hub, monkeypatch):
    point_at(NOWHERE, monkeypatch)
    assert weights_of("Qwen2.5-Math-7B").to_fetch(3) == pytest.approx(2.5e9, rel=0.02)
    unknown = weights_of(OPEN)
    assert unknown.shape is None and unknown.refusal


def test_a_gated_model_says_how_to_get_access(hub):
    hub.gated[GATED] = 403
    assert re.search(f"{GATED} is gated: request access", weights_of(GATED).refusal)


def test_a_gated_model_is_called_so_also_once_it_is_here(hub, monkeypatch):
    snapshot(GATED)
    known = {"gated": {"gated": True}}
    monkeypatch.setattr("lib.plan.weights.known_models", lambda: known)
    weights = weights_of(GATED)
    assert weights.gated and weights.to_fetch(None) == 0


def test_pickles_are_refused_on_the_hub_and_in_a_folder(hub, repositories):
    folder = repositories / OPEN
    assert not weights_of(str(folder)).refusal
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    for spec in (OPEN, str(folder)):
        assert "safetensors" in weights_of(spec).refusal


def test_a_tokenizer_without_a_chat_template_is_noticed(hub, repositories):
    assert weights_of(OPEN).templated
    folder = repositories / GATED
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    (folder / "tokenizer_config.json").write_text("{}")
    assert not weights_of(GATED).templated
    assert not weights_of(str(folder)).templated
