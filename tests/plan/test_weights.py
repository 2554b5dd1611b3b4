"""What a model weighs is known before it is fetched, and why it cannot be had."""

import re
from dataclasses import replace

import pytest
from families import of_type
from hub_server import point_at

from lib import paths
from lib.models.first_layers import first_layers
from lib.models.gguf_files import conversions_of
from lib.models.hub import config_folder, snapshot
from lib.models.names import known_models, resolve
from lib.plan.weights import ModelWeights, Shape, shape_of, weights_of

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


SHAPE = Shape(embedding=50, layer=10, layers=5, head=50, tied=True)


def test_of_first_layers_as_much_is_fetched_as_is_not_here_in_just_this_number():
    weights = ModelWeights("m", "m", SHAPE, size=200, here=20, cut=(2,))
    missing = [weights.to_fetch(layers) for layers in (None, 1, 2, 3)]
    # Two bytes of each parameter of the embedding and of the layers.
    assert missing == [180, 2 * 60, 0, 2 * 80]
    whole = replace(weights, here=200)
    assert [whole.to_fetch(layers) for layers in (None, 1)] == [0, 0]


def test_of_a_revision_is_told_what_is_fetched_of_it(hub, repositories):
    commit = hub.commit(OPEN)
    hub.lost.add("main")
    (paths.CACHE / "first-layers" / OPEN / commit / "layers-2").mkdir(parents=True)
    weights = weights_of(f"{OPEN}@{commit}")
    stored = (repositories / OPEN / "model.safetensors").stat().st_size
    assert (weights.size, weights.refusal, weights.cut) == (stored, "", (2,))
    snapshot(OPEN, commit)
    sent = hub.sent
    assert weights_of(f"{OPEN}@{commit}").here == stored
    assert hub.sent == sent


def test_the_same_weights_in_other_formats_are_not_counted(hub, repositories):
    folder = repositories / OPEN
    size = weights_of(OPEN).size
    (folder / "original").mkdir()
    for name in ("consolidated.safetensors", "original/model.safetensors"):
        (folder / name).write_bytes(b"x" * 1000)
    assert weights_of(OPEN).size == size


def test_a_gguf_file_is_here_and_its_size_stands_for_its_shape(hub, tmp_path):
    file = tmp_path / "own.gguf"
    file.write_bytes(b"GGUF" + b"x" * 596)
    # A conversion that was not finished is none.
    partial = conversions_of(resolve(str(file))) / ".float32.partial"
    partial.mkdir(parents=True)
    (partial / "config.json").write_text("{")
    weights = weights_of(str(file))
    assert (weights.size, weights.to_fetch(None), weights.refusal) == (600, 0, "")
    assert weights.shape.parameters() == 1000
    assert weights_of("demo").shape.layers == 30


@pytest.mark.parametrize("name", ["tokenizer.model", "vocab.json", "vocab.txt"])
def test_a_tokenizer_may_be_made_of_other_files(hub, repositories, name):
    folder = repositories / OPEN
    (folder / "tokenizer.json").rename(folder / name)
    assert weights_of(str(folder)).refusal == ""


def test_a_cache_has_keys_and_values_of_every_layer_as_wide_as_heads_are(tmp_path):
    of_type("llama", head_dim=16).config.save_pretrained(tmp_path)
    # Of three layers, each with two heads for keys.
    assert shape_of(tmp_path).cache == 2 * 3 * 2 * 16


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
    # Where nothing is known of a template, that it is not here is no other refusal.
    assert unknown.templated
    named = weights_of("Qwen2.5-Math-7B")
    assert weights_of("Qwen2.5-Math-7B@main").shape == named.shape


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
