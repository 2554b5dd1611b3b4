"""The first layers compute what the whole model does; what cannot be loaded is refused in one line."""

import os

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel

from lib.errors import InputError
from lib.models import conversion, loading, names
from lib.models.loading import load

WEIGHTS = "model.safetensors"


def refusal(spec, **options):
    """The message with which loading is refused; it must be one line."""
    with pytest.raises(InputError) as caught:
        loading.load(str(spec), device="cpu", **options)
    message = str(caught.value)
    assert message and "\n" not in message
    return message


@pytest.mark.parametrize(
    "spec",
    ["", "nonsense", "a/b/c", "./none", "../no/ne", "/no/such", "~nobody-has-this-name/x", "org/", "x" * 300],
)
def test_an_unknown_spec_is_refused_and_the_known_ones_are_named(spec):
    message = refusal(spec)
    assert message.startswith(f"unknown model {spec!r}: give demo, ")
    assert all(name in message for name in names.known_models())


def test_a_folder_is_loaded_whole_with_its_tokenizer(tiny_checkpoint, demo):
    loaded = loading.load(str(tiny_checkpoint), device="cpu")
    assert (loaded.name, loaded.layers, loaded.heads, loaded.context) == ("tiny-llama", 3, 2, 512)
    assert (loaded.spec, loaded.device, loaded.dtype) == (str(tiny_checkpoint), "cpu", "float32")
    assert loaded.model.dtype == torch.float32 and not loaded.model.training
    assert loaded.tokenizer("One half.").input_ids == demo.tokenizer("One half.").input_ids


def test_dtype_is_taken_as_given(tiny_checkpoint):
    for layers in (None, 2):
        loaded = loading.load(str(tiny_checkpoint), layers=layers, device="cpu", dtype="bfloat16")
        assert loaded.model.dtype == torch.bfloat16


def test_revision_of_a_folder_changes_with_its_weights_only(tiny_checkpoint):
    before = loading.load(str(tiny_checkpoint), device="cpu").revision
    assert loading.load(str(tiny_checkpoint), layers=1, device="cpu").revision == before
    weights = load_file(tiny_checkpoint / WEIGHTS)
    weights["model.norm.weight"] += 1
    save_file(weights, tiny_checkpoint / WEIGHTS, metadata={"format": "pt"})
    assert loading.load(str(tiny_checkpoint), device="cpu").revision != before


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_only_the_layers_asked_for_are_there(tiny_checkpoint, layers):
    loaded = loading.load(str(tiny_checkpoint), layers=layers, device="cpu")
    assert loaded.layers == len(loaded.model.get_decoder().layers) == layers
    assert not any("lm_head" in name for name, _ in loaded.model.named_parameters())


def test_all_layers_without_output_head_are_those_of_the_whole_model(tiny_checkpoint):
    whole, bare = (loading.load(str(tiny_checkpoint), head=head) for head in (True, False))
    assert bare.card == whole.card and bare.model.get_output_embeddings() is None
    ids = torch.arange(1, 9)[None]
    with torch.inference_mode():
        expected, found = (one.model.get_decoder()(ids).last_hidden_state for one in (whole, bare))
    assert torch.equal(found, expected)


@pytest.mark.parametrize("layers", [0, -1, 4])
def test_layers_that_the_model_does_not_have_are_refused(tiny_checkpoint, layers):
    assert refusal(tiny_checkpoint, layers=layers).endswith(f"has 3 layers; asked for the first {layers}")


def test_first_layers_of_the_demo_compute_what_the_whole_model_does(demo):
    first = loading.load("demo", layers=3, device="cpu")
    ids = demo.tokenizer("What is one half of ten?", return_tensors="pt").input_ids
    decoder = demo.model.get_decoder()
    with torch.inference_mode():
        # The short model ends in the final norm; inside the whole one the third layer's output is not normed.
        whole = decoder.norm(decoder(ids, output_hidden_states=True).hidden_states[3])
        short = first.model(ids).last_hidden_state
    torch.testing.assert_close(short, whole, rtol=0, atol=1e-5)
    assert first.revision == demo.revision


def test_the_demo_is_read_from_the_cache_once_converted(demo, monkeypatch):
    monkeypatch.setattr(conversion, "_fill", lambda *_: pytest.fail("converted again"))
    assert (loading.load("demo", layers=1, device="cpu").revision, demo.layers) == (demo.revision, 30)


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert f"cannot write the cache folder {tmp_path}" in refusal("demo")


def lose_config(folder):
    (folder / "config.json").unlink()


def garble_config(folder):
    (folder / "config.json").write_text("{")


def lose_weights(folder):
    (folder / WEIGHTS).unlink()


def keep_pickles_only(folder):
    (folder / WEIGHTS).rename(folder / "pytorch_model.bin")


def truncate(folder):
    os.truncate(folder / WEIGHTS, (folder / WEIGHTS).stat().st_size - 100)


def truncate_header(folder):
    os.truncate(folder / WEIGHTS, 100)


def empty(folder):
    os.truncate(folder / WEIGHTS, 0)


def lose_a_tensor(folder):
    weights = load_file(folder / WEIGHTS)
    del weights["model.layers.0.mlp.up_proj.weight"]
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


def quantise(folder):
    weights = load_file(folder / WEIGHTS)
    weights["lm_head.weight"] = weights["model.norm.weight"].to(torch.int8)
    weights["model.layers.1.x"] = weights["lm_head.weight"].clone()
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


def lose_tokenizer(folder):
    for file in folder.glob("*token*"):
        file.unlink()


@pytest.mark.parametrize("layers", [None, 2])
@pytest.mark.parametrize(
    "damage, message",
    [
        (lose_config, "no config.json"),
        (garble_config, "config.json"),
        (lose_weights, "no weights; a checkpoint needs *.safetensors"),
        (keep_pickles_only, "only pickle weights (pytorch_model.bin), which are refused"),
        (quantise, "is quantised to torch.int8, which is not supported"),
        (truncate, "model.safetensors: cannot be loaded: "),
        (truncate_header, "model.safetensors: cannot be loaded: "),
        (empty, "model.safetensors: cannot be loaded: "),
        (lose_a_tensor, "layers.0.mlp.up_proj.weight"),
        (lose_tokenizer, "cannot be loaded"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_unusable_folder_is_refused(tiny_checkpoint, damage, message, layers):
    damage(tiny_checkpoint)
    found = refusal(tiny_checkpoint, layers=layers)
    assert found.startswith(str(tiny_checkpoint)) and message in found


def test_code_in_a_checkpoint_is_not_run(tiny_checkpoint):
    ran = tiny_checkpoint / "ran"
    (tiny_checkpoint / "modeling_custom.py").write_text(f"open({str(ran)!r}, 'w')")
    config = tiny_checkpoint / "config.json"
    config.write_text(config.read_text().replace("{", '{"auto_map": {"AutoConfig": "modeling_custom.C"},', 1))
    loading.load(str(tiny_checkpoint), device="cpu")
    assert not ran.exists()


@pytest.mark.parametrize("layers", [None, 2])
def test_a_hub_id_without_network_is_refused(tmp_path, monkeypatch, layers):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    message = refusal("org/name@v1", layers=layers)
    assert message.startswith("org/name: cannot be fetched, HF_HUB_OFFLINE is set")


def test_a_seed_draws_what_transformers_draws_and_reads_no_weights(tiny_checkpoint, monkeypatch):
    monkeypatch.setattr(loading, "_read_weights", lambda *_: pytest.fail("weights were read"))
    state = torch.random.get_rng_state()
    found = load(str(tiny_checkpoint), layers=2, device="cpu", seed=5)
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(5)
    config = AutoConfig.from_pretrained(tiny_checkpoint, num_hidden_layers=2)
    for name, expected in AutoModel.from_config(config).state_dict().items():
        torch.testing.assert_close(found.model.state_dict()[name], expected)


def test_seeds_differ_and_are_named(tiny_checkpoint):
    one, other = (load(str(tiny_checkpoint), layers=1, device="cpu", seed=seed) for seed in (0, 1))
    assert not torch.equal(one.model.embed_tokens.weight, other.model.embed_tokens.weight)
    assert one.revision != other.revision and one.name == "tiny-llama untrained 0"
