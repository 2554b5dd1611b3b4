"""Only the first layers are read, from disk and from a hub; what goes wrong is said in one line."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from hub_server import HubServer
from huggingface_hub import constants
from safetensors import safe_open
from transformers import (
    AutoModel,
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from lib.errors import InputError
from lib.models import hub, names, ranges
from lib.models.card import card
from lib.models.checkpoints import LocalFiles
from lib.models.failures import explain_hub_error
from lib.models.weights import load_weights, needed_tensors
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


@pytest.fixture
def server(models, tmp_path, monkeypatch):
    with HubServer(models) as server:
        point_at(server.url, monkeypatch)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setattr(ranges, "WAIT", 0.0)
        yield server


def point_at(url, monkeypatch):
    # HF_ENDPOINT is read when huggingface_hub is imported, which is long past.
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")


def needed_bytes(folder, layers=3):
    return sum(tensor.stop - tensor.start for tensor in needed_tensors(LocalFiles(folder), layers))


def state_after(model, layers):
    """Return what decoder layer `layers` puts out, before any final norm: (1, tokens, width)."""
    seen = []
    decoder = model.get_decoder()
    handle = decoder.layers[layers - 1].register_forward_hook(lambda module, inputs, output: seen.append(output))
    with torch.no_grad():
        model(input_ids=IDS)
    handle.remove()
    return seen[0][0] if isinstance(seen[0], tuple) else seen[0]


def save(model_class, config, folder, dtype=torch.float32, **options):
    torch.manual_seed(1)
    model_class(config).to(dtype).save_pretrained(folder, **options)
    # Read back, because `to` has rounded the rotary frequencies as well, which a loaded model keeps exact.
    return model_class.from_pretrained(folder).eval()


def test_first_layers_from_disk_give_the_hidden_state_of_the_whole_model(models):
    whole = Qwen2ForCausalLM.from_pretrained(models / REPO)
    part = load_weights(models / REPO, 3, "float32")
    assert len(part.layers) == 3
    assert torch.equal(state_after(part, 3), state_after(whole, 3))
    with torch.no_grad():
        assert torch.equal(state_after(part, 3), whole(IDS, output_hidden_states=True).hidden_states[3])


def test_first_layers_from_the_hub_give_the_hidden_state_of_the_whole_model(models, server):
    whole = Qwen2ForCausalLM.from_pretrained(models / REPO)
    folder = hub.first_layers(REPO, 3)
    assert folder.parts[-5:] == ("layers", *REPO.split("/"), server.commit(REPO), "layers-3")
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer_config.json",
    ]
    part, info = AutoModel.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert torch.equal(state_after(part, 3), state_after(whole, 3))
    assert torch.equal(state_after(load_weights(folder, 3, "float32"), 3), state_after(whole, 3))


def test_only_the_needed_bytes_are_sent(models, server):
    hub.first_layers(REPO, 3)
    assert server.sent <= 1.15 * needed_bytes(models / REPO)
    assert sum(1 for _, _, bytes_asked in server.requests if bytes_asked) <= 10
    server.reset()
    hub.first_layers(REPO, 3)
    assert server.sent < 10_000


MEASURE = """
import json, os, re, sys, torch
from pathlib import Path
from transformers import Qwen2Config, Qwen2Model
from lib.models.weights import load_weights

def status(field):
    return 1024 * int(re.search(field + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def read_so_far():
    return int(re.search(r"rchar: (\\d+)", Path("/proc/self/io").read_text())[1])

folder, warm_up = Path(sys.argv[1]), Path(sys.argv[2])
load_weights(warm_up, 1, "float32")  # imports and first-use buffers
before, resident = read_so_far(), status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
model = load_weights(folder, json.loads(sys.argv[3]), "float32")
print(json.dumps({"read": read_so_far() - before, "memory": status("VmHWM") - resident,
                  "size": sum(p.numel() * p.element_size() for p in model.parameters())}))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts bytes and memory through /proc")
@pytest.mark.parametrize(("dtype", "layers"), [("float32", 3), ("bfloat16", None)])
def test_reading_from_disk_takes_only_the_needed_bytes_and_memory(tmp_path, dtype, layers):
    config = Qwen2Config(
        vocab_size=2000,
        hidden_size=512,
        intermediate_size=1024,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=2,
        tie_word_embeddings=False,
    )
    save(Qwen2ForCausalLM, config, tmp_path / "big", getattr(torch, dtype), max_shard_size="20MB")
    save(Qwen2ForCausalLM, Qwen2Config(**TINY, num_hidden_layers=1), tmp_path / "warm")
    command = [sys.executable, "-c", MEASURE, tmp_path / "big", tmp_path / "warm", json.dumps(layers)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout.splitlines()[-1])
    needed = (
        needed_bytes(tmp_path / "big")
        if layers
        else sum(path.stat().st_size for path in (tmp_path / "big").glob("*.safetensors"))
    )
    assert seen["read"] <= 1.15 * needed
    assert seen["memory"] <= 1.15 * seen["size"]


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_fetch_that_was_given_up_goes_on_from_the_bytes_on_disk(models, server, monkeypatch, share):
    needed = needed_bytes(models / REPO)
    monkeypatch.setattr(ranges, "TRIES", 1)
    server.break_after = int(share * needed)
    with pytest.raises(InputError, match="what was fetched stays"):
        hub.first_layers(REPO, 3)
    assert not list(Path(os.environ["XDG_CACHE_HOME"]).rglob("layers-3"))
    first = server.sent_weights
    assert first >= int(share * needed)
    folder = hub.first_layers(REPO, 3)
    assert server.sent_weights <= 1.02 * needed
    assert not AutoModel.from_pretrained(folder, output_loading_info=True)[1]["missing_keys"]


def test_a_break_within_one_call_costs_no_byte_twice(models, server):
    server.break_after = needed_bytes(models / REPO) // 2
    folder = hub.first_layers(REPO, 3)
    assert server.break_after is None
    assert server.sent_weights <= 1.02 * needed_bytes(models / REPO)
    assert torch.equal(
        state_after(AutoModel.from_pretrained(folder), 3),
        state_after(load_weights(models / REPO, 3, "float32"), 3),
    )


def test_a_server_without_ranges_sends_whole_shards(models, server):
    server.ignore_range = True
    folder = hub.first_layers(REPO, 3)
    assert torch.equal(
        state_after(AutoModel.from_pretrained(folder), 3),
        state_after(load_weights(models / REPO, 3, "float32"), 3),
    )


def test_a_snapshot_holds_neither_pickles_nor_code_and_spares_the_network_later(server):
    folder = hub.snapshot(REPO)
    assert folder.name == server.commit(REPO)
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}
    server.reset()
    hub.first_layers(REPO, 2)
    assert server.sent_weights == 0


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
        ("Qwen/Missing", 3, None, "Qwen/Missing was not found"),
        ("not an id", 3, None, "is not a hub id"),
        (REPO, 29, None, "has 28 layers; asked for the first 29"),
        (REPO, 0, None, "at least 1"),
    ],
)
def test_what_does_not_exist_is_named(server, repo, layers, revision, message):
    with pytest.raises(InputError, match=message) as caught:
        hub.first_layers(repo, layers, revision)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("fetch", [hub.snapshot, lambda repo, commit: hub.first_layers(repo, 3, commit)])
def test_a_pinned_commit_that_the_hub_no_longer_has_says_how_to_take_another(server, fetch):
    pinned = names.resolve(REPO).revision
    server.lost.add(pinned)
    with pytest.raises(InputError, match=f"{REPO} has no revision '{pinned}'.*{REPO}@main takes the newest"):
        fetch(REPO, pinned)


@pytest.mark.parametrize("fetch", [hub.snapshot, lambda repo: hub.first_layers(repo, 3)])
def test_no_network_points_at_what_is_on_disk(server, monkeypatch, fetch):
    point_at("http://127.0.0.1:9", monkeypatch)
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9 does not answer.*local folder"):
        fetch(REPO)


def test_no_network_is_said_before_anything_is_tried_again(server, monkeypatch):
    point_at("http://127.0.0.1:9", monkeypatch)
    started = time.monotonic()
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9 does not answer"):
        card("org/name")
    assert time.monotonic() - started < 5


def test_what_is_cached_needs_no_network(server, monkeypatch):
    folder = hub.first_layers(REPO, 3)
    point_at("http://127.0.0.1:9", monkeypatch)
    assert hub.first_layers(REPO, 3) == folder


@pytest.mark.parametrize("fetch", [hub.snapshot, lambda repo: hub.first_layers(repo, 1)])
def test_pickled_weights_are_refused(models, server, fetch):
    config = LlamaConfig(**TINY, num_hidden_layers=2)
    config.save_pretrained(models / "old/pickled")
    (models / "old/pickled/pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(InputError, match=r"old/pickled: only pickle weights \(pytorch_model.bin\)"):
        fetch("old/pickled")


def cut_short(shard):
    shard.write_bytes(shard.read_bytes()[:-100])


def scramble(shard):
    shard.write_bytes(b"<html>error</html>" * 100)


@pytest.mark.parametrize(
    "damage, message",
    [
        (cut_short, "cut short or damaged"),
        (scramble, "damaged"),
        (Path.unlink, "names model-00001-of-.*, which is missing"),
    ],
)
def test_damaged_checkpoints_are_named(models, server, damage, message):
    folder = models / "broken" / damage.__name__
    save(LlamaForCausalLM, LlamaConfig(**TINY, num_hidden_layers=4), folder, max_shard_size="60KB")
    damage(min(folder.glob("*.safetensors")))
    for read in (
        lambda: load_weights(folder, 4, "float32"),
        lambda: hub.first_layers(f"broken/{damage.__name__}", 4),
        lambda: hub.snapshot(f"broken/{damage.__name__}"),
    ):
        with pytest.raises(InputError, match=message):
            read()


def test_a_full_disk_says_that_nothing_is_lost():
    error = OSError(28, "No space left on device")
    assert "disk full" in explain_hub_error(REPO, None, error)


def test_errors_that_are_not_the_hubs_stay_as_they_are():
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
    whole = save(Gemma3ForConditionalGeneration, config, models / "google/gemma-3-4b-it", torch.bfloat16)
    folder = hub.first_layers("google/gemma-3-4b-it", 3)
    part, info = AutoModel.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert type(part).__name__ == "Gemma3TextModel" and part.dtype == torch.bfloat16
    assert torch.equal(state_after(part, 3), state_after(whole, 3))
    local = load_weights(models / "google/gemma-3-4b-it", 3, "bfloat16")
    assert torch.equal(state_after(local, 3), state_after(whole, 3))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_llama_with_scaled_rope_and_tied_embeddings(models, server, dtype):
    rope = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "original_max_position_embeddings": 16}
    rope |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    config = LlamaConfig(**TINY, num_hidden_layers=4, tie_word_embeddings=True, rope_parameters=rope)
    whole = save(LlamaForCausalLM, config, models / "meta" / dtype, getattr(torch, dtype))
    folder = hub.first_layers(f"meta/{dtype}", 2)
    part, info = AutoModel.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert part.dtype == getattr(torch, dtype)
    assert torch.equal(state_after(part, 2), state_after(whole, 2))
    with safe_open(folder / "model.safetensors", "pt") as stored:
        assert all("layers.2." not in name and "lm_head" not in name for name in stored.keys())  # noqa: SIM118


def test_the_endpoint_and_caches_come_from_the_environment(server, tmp_path):
    environment = os.environ | {"HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path / "home")}
    code = f"from lib.models import hub; print(hub.first_layers({REPO!r}, 1))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert (Path(done.stdout.strip()) / "model.safetensors").is_file()
    assert server.sent_weights > 0
