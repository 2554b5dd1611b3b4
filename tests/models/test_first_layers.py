"""Only the first layers are read from a hub and from disk; what goes wrong is said in one line."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from hub_server import HubServer, needed_bytes
from huggingface_hub import constants
from transformers import (
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from lib.errors import InputError
from lib.models import first_layers as hub
from lib.models import names
from lib.models.failures import explain_hub_error
from lib.models.loading import load_weights
from lib.paths import ROOT

REPO = "Qwen/Qwen2.5-Math-7B"
TINY = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
}
IDS = torch.tensor([[3, 14, 15, 9, 2, 6, 5]])

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder of repositories; the one under REPO has 28 layers in four shards, 60 MB."""
    root = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=600,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=28,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=False,
    )
    Qwen2ForCausalLM(config).save_pretrained(root / REPO, max_shard_size="19MB")
    assert len(list((root / REPO).glob("*.safetensors"))) == 4
    (root / REPO / "tokenizer_config.json").write_text("{}")
    (root / REPO / "modeling_custom.py").write_text("raise SystemExit")
    (root / REPO / "training.pt").write_bytes(b"pickle")
    return root


@pytest.fixture(scope="module")
def state(models):
    """What decoder layer 3 of the whole model under REPO puts out."""
    return state_after(Qwen2ForCausalLM.from_pretrained(models / REPO), 3)


@pytest.fixture
def server(models, tmp_path, monkeypatch):
    with HubServer(models) as server:
        point_at(server.url, monkeypatch)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setattr(hub, "WAIT", 0.0)
        yield server


def point_at(url, monkeypatch):
    # HF_ENDPOINT is read when huggingface_hub is imported, which is long past.
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")


def state_after(model, layers):
    """Return what decoder layer `layers` puts out, before any final norm: (1, tokens, width)."""
    seen = []
    handle = model.get_decoder().layers[layers - 1].register_forward_hook(lambda *given: seen.append(given[-1]))
    with torch.no_grad():
        model(input_ids=IDS)
    handle.remove()
    return seen[0][0] if isinstance(seen[0], tuple) else seen[0]


def save(model_class, config, folder, dtype=torch.float32, **options):
    torch.manual_seed(1)
    model_class(config).to(dtype).save_pretrained(folder, **options)
    # Read back, because `to` has rounded the rotary frequencies as well, which a loaded model keeps exact.
    return model_class.from_pretrained(folder).eval()


def test_first_layers_from_disk_give_the_hidden_state_of_the_whole_model(models, state):
    part = load_weights(models / REPO, 3, "float32")
    assert len(part.layers) == 3
    assert torch.equal(state_after(part, 3), state)


def test_from_the_hub_come_only_the_needed_bytes_and_they_give_the_same(models, server, state):
    folder = hub.first_layers(REPO, 3)
    assert folder.parts[-5:] == ("layers", *REPO.split("/"), server.commit(REPO), "layers-3")
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}
    assert torch.equal(state_after(load_weights(folder, 3, "float32"), 3), state)
    needed = needed_bytes(models / REPO, 3)
    assert needed <= server.sent <= 1.15 * needed
    assert sum(1 for _, _, bytes_asked in server.requests if bytes_asked) <= 10
    on_disk = sum(512 * path.stat().st_blocks for path in folder.iterdir())
    assert on_disk <= 1.1 * needed < 0.5 * sum(path.stat().st_size for path in folder.iterdir())
    server.reset()
    assert hub.first_layers(REPO, 3) == folder and server.sent < 10_000


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_fetch_that_was_given_up_goes_on_from_the_bytes_on_disk(models, server, monkeypatch, share, state):
    needed = needed_bytes(models / REPO, 3)
    monkeypatch.setattr(hub, "TRIES", 1)
    server.break_after = int(share * needed)
    with pytest.raises(InputError, match="what was fetched stays"):
        hub.first_layers(REPO, 3)
    assert not list(Path(os.environ["XDG_CACHE_HOME"]).rglob("layers-3"))
    assert server.sent_weights >= int(share * needed)
    folder = hub.first_layers(REPO, 3)
    assert server.sent_weights <= 1.02 * needed
    assert torch.equal(state_after(load_weights(folder, 3, "float32"), 3), state)


def test_a_break_within_one_call_costs_no_byte_twice(models, server, state):
    server.break_after = needed_bytes(models / REPO, 3) // 2
    folder = hub.first_layers(REPO, 3)
    assert server.break_after is None
    assert server.sent_weights <= 1.02 * needed_bytes(models / REPO, 3)
    assert torch.equal(state_after(load_weights(folder, 3, "float32"), 3), state)


def test_a_server_without_ranges_sends_whole_shards(server, state):
    server.ignore_range = True
    assert torch.equal(state_after(load_weights(hub.first_layers(REPO, 3), 3, "float32"), 3), state)


def test_a_snapshot_holds_neither_pickles_nor_code_and_spares_the_network_later(server, state):
    folder = hub.snapshot(REPO)
    assert folder.name == server.commit(REPO)
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}
    server.reset()
    first = hub.first_layers(REPO, 3)
    assert server.sent_weights == 0 and torch.equal(state_after(load_weights(first, 3, "float32"), 3), state)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("fetch", [hub.snapshot, lambda repo: hub.first_layers(repo, 3)])
def test_a_gated_repository_says_how_to_get_access(server, status, fetch):
    server.gated[REPO] = status
    with pytest.raises(InputError, match=f"{REPO} is gated: request access on .*hf auth login.*HF_TOKEN"):
        fetch(REPO)


@pytest.mark.parametrize(
    "repo, layers, revision, message",
    [
        (REPO, 3, "v9", "has no revision 'v9'"),
        (REPO, 3, "f" * 40, f"{REPO} has no revision 'f+'.*{REPO}@main takes the newest"),
        ("Qwen/Missing", 3, None, "Qwen/Missing was not found"),
        ("not an id", 3, None, "is not a hub id"),
        (REPO, 29, None, "has 28 layers; asked for the first 29"),
        (REPO, 0, None, "has 28 layers; asked for the first 0"),
    ],
)
def test_what_does_not_exist_is_named(server, repo, layers, revision, message):
    server.lost.add("f" * 40)
    with pytest.raises(InputError, match=message) as caught:
        hub.first_layers(repo, layers, revision)
    assert "\n" not in str(caught.value)


def test_no_network_is_said_before_anything_is_tried_again_and_points_at_what_is_on_disk(server, monkeypatch):
    point_at("http://127.0.0.1:9", monkeypatch)
    started = time.monotonic()
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9 does not answer"):
        names.card("org/name")
    assert time.monotonic() - started < 5
    for fetch in (hub.snapshot, lambda repo: hub.first_layers(repo, 3)):
        with pytest.raises(InputError, match=r"127\.0\.0\.1:9 does not answer.*local folder"):
            fetch(REPO)


def test_what_is_cached_needs_no_network(server, monkeypatch):
    folder = hub.first_layers(REPO, 3)
    point_at("http://127.0.0.1:9", monkeypatch)
    assert hub.first_layers(REPO, 3) == folder


@pytest.mark.parametrize("fetch", [hub.snapshot, lambda repo: hub.first_layers(repo, 1)])
def test_pickled_weights_are_refused(models, server, fetch):
    LlamaConfig(**TINY, num_hidden_layers=2).save_pretrained(models / "old/pickled")
    (models / "old/pickled/pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(InputError, match=r"old/pickled: only pickle weights \(pytorch_model.bin\)"):
        fetch("old/pickled")


def cut_short(shard):
    shard.write_bytes(shard.read_bytes()[:-100])


def scramble(shard):
    shard.write_bytes(b"<html>error</html>" * 100)


@pytest.mark.parametrize(
    "damage, message",
    [(cut_short, "00001-of-.*cannot be loaded"), (scramble, "00001-of-.*"), (Path.unlink, "00001-of-")],
)
def test_damaged_checkpoints_are_named(models, server, damage, message):
    repo = f"broken/{damage.__name__}"
    save(LlamaForCausalLM, LlamaConfig(**TINY, num_hidden_layers=4), models / repo, max_shard_size="60KB")
    damage(min((models / repo).glob("*.safetensors")))
    for read in (
        lambda: load_weights(models / repo, 4, "float32"),
        lambda: load_weights(hub.first_layers(repo, 4), 4, "float32"),
        lambda: load_weights(hub.snapshot(repo), None, "float32"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            read()
        assert "\n" not in str(caught.value)


def test_a_full_disk_names_the_places_and_what_is_not_the_hubs_stays_as_it_is(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/some/cache")
    said = explain_hub_error(REPO, None, OSError(28, "No space left on device"))
    assert re.match("disk full: free space in /some/cache/.* and .*hub", said)
    assert explain_hub_error(REPO, None, TypeError("a bug")) is None


def test_only_the_text_model_is_taken_from_gemma3_multimodal(models, server):
    vision = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 16,
        "patch_size": 8,
    }
    config = Gemma3Config(
        text_config={**TINY, "num_hidden_layers": 7, "sliding_window": 4},
        vision_config=vision,
        mm_tokens_per_image=4,
        image_token_index=60,
        boi_token_index=61,
        eoi_token_index=62,
    )
    repo = "google/gemma-3-4b-it"
    whole = save(Gemma3ForConditionalGeneration, config, models / repo, torch.bfloat16)
    for folder in (hub.first_layers(repo, 3), models / repo):
        part = load_weights(folder, 3, "bfloat16")
        assert type(part).__name__ == "Gemma3TextModel" and part.dtype == torch.bfloat16
        assert torch.equal(state_after(part, 3), state_after(whole, 3))
    assert not any(hub.needed(f"model.{part}.layers.0.mlp.fc1.weight", 3) for part in ("vision_tower", "lm_head"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_llama_with_scaled_rope_and_tied_embeddings(models, server, dtype):
    rope = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "original_max_position_embeddings": 16}
    rope |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    config = LlamaConfig(**TINY, num_hidden_layers=4, tie_word_embeddings=True, rope_parameters=rope)
    whole = save(LlamaForCausalLM, config, models / "meta" / dtype, getattr(torch, dtype))
    part = load_weights(hub.first_layers(f"meta/{dtype}", 2), 2, dtype)
    assert part.dtype == getattr(torch, dtype)
    assert torch.equal(state_after(part, 2), state_after(whole, 2))


def test_the_endpoint_and_caches_come_from_the_environment(server, tmp_path):
    environment = os.environ | {"HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path / "home")}
    code = f"from lib.models.first_layers import first_layers; print(first_layers({REPO!r}, 1))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert list(Path(done.stdout.strip()).glob("*.safetensors"))
    assert server.sent_weights > 0
