"""The first layers compute what the whole model does; what cannot be loaded is refused
in one line.
"""

import os
import shutil

import pytest
import torch
from hub_server import point_at
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel

from lib import paths
from lib.models import loading, names
from lib.models.loading import load

WEIGHTS = "model.safetensors"
ASKED = [
    (None, "float32", True),
    (None, "bfloat16", False),
    (3, "float32", True),
    (1, "bfloat16", True),
]
SPECS = (
    "",
    "nonsense",
    "a/b/c",
    "./none",
    "../no/ne",
    "/no/such",
    "~nobody-has-this-name/x",
    "org/",
    "x" * 300,
)


def change_weights(folder, change):
    weights = load_file(folder / WEIGHTS)
    change(weights)
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


@pytest.mark.parametrize("spec", SPECS)
def test_an_unknown_spec_is_refused_and_the_known_ones_are_named(spec, refused):
    message = refused(load, spec, device="cpu")
    assert message.startswith(f"unknown model {spec!r}: give demo, ")
    assert all(name in message for name in names.known_models())


@pytest.mark.parametrize("layers, dtype, head", ASKED)
def test_a_folder_gives_the_layers_and_the_number_format_asked_for(
    tiny_llama, demo, layers, dtype, head
):
    loaded = load(str(tiny_llama), layers=layers, device="cpu", dtype=dtype, head=head)
    assert (loaded.name, loaded.heads, loaded.context) == ("tiny-llama", 2, 512)
    assert (loaded.spec, loaded.device, loaded.dtype) == (str(tiny_llama), "cpu", dtype)
    assert loaded.layers == len(loaded.model.get_decoder().layers) == (layers or 3)
    assert loaded.model.dtype == getattr(torch, dtype) and not loaded.model.training
    assert (loaded.model.get_output_embeddings() is not None) == (
        head and layers is None
    )
    assert (
        loaded.tokenizer("One half.").input_ids == demo.tokenizer("One half.").input_ids
    )


def test_the_revision_of_a_folder_changes_with_its_weights_only(tiny_checkpoint):
    before = load(str(tiny_checkpoint), device="cpu").revision
    assert load(str(tiny_checkpoint), layers=1, device="cpu").revision == before
    change_weights(
        tiny_checkpoint, lambda weights: weights["model.norm.weight"].add_(1)
    )
    assert load(str(tiny_checkpoint), device="cpu").revision != before


def test_a_model_of_a_hub_is_loaded_by_its_id_and_without_the_hub_later(
    server, models, tiny_llama, monkeypatch
):
    shutil.copytree(tiny_llama, models / "org" / "tiny")
    for layers in (2, None):
        loaded, expected = (
            load(spec, layers=layers, device="cpu")
            for spec in ("org/tiny", str(tiny_llama))
        )
        assert (loaded.name, loaded.spec, loaded.revision) == (
            "tiny",
            "org/tiny",
            server.commit("org/tiny"),
        )
        for name, values in expected.model.state_dict().items():
            assert torch.equal(loaded.model.state_dict()[name], values)
    point_at("http://127.0.0.1:9", monkeypatch)
    assert load("org/tiny", device="cpu", read=False).revision == server.commit(
        "org/tiny"
    )


def test_layers_that_are_not_there_and_a_cache_without_room_are_named(
    tmp_path, monkeypatch, tiny_llama, refused
):
    for layers in (0, 4):
        assert refused(load, str(tiny_llama), layers=layers).endswith(
            f"has 3 layers; asked for the first {layers}"
        )
    (tmp_path / "file").touch()
    monkeypatch.setattr(paths, "CACHE", tmp_path / "file")
    assert f"cannot write the cache folder {tmp_path}" in refused(
        load, "demo", device="cpu"
    )


def quantise(weights):
    weights |= {
        name: weights["model.norm.weight"].to(torch.int8)
        for name in ("lm_head.weight", "model.layers.1.x")
    }


NO_WEIGHTS, UNLOADABLE = (
    "no weights; a checkpoint needs *.safetensors",
    "model.safetensors: cannot be loaded: ",
)
PICKLE, QUANTISED = (
    "only pickle weights (pytorch_model.bin), which are refused",
    "is quantised to torch.int8, which is",
)
TENSOR = "model.layers.0.mlp.up_proj.weight"


@pytest.mark.parametrize("layers", [None, 2])
@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda folder: (folder / "config.json").unlink(), "no config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json"),
        (lambda folder: (folder / WEIGHTS).unlink(), NO_WEIGHTS),
        (
            lambda folder: (folder / WEIGHTS).rename(folder / "pytorch_model.bin"),
            PICKLE,
        ),
        (lambda folder: change_weights(folder, quantise), QUANTISED),
        *(
            (lambda folder, size=size: os.truncate(folder / WEIGHTS, size), UNLOADABLE)
            for size in (100, 9000)
        ),
        (
            lambda folder: change_weights(folder, lambda weights: weights.pop(TENSOR)),
            TENSOR.removeprefix("model."),
        ),
        (
            lambda folder: [file.unlink() for file in folder.glob("*token*")],
            "cannot be loaded",
        ),
    ],
)
def test_an_unusable_folder_is_refused(
    tiny_checkpoint, damage, message, layers, refused
):
    damage(tiny_checkpoint)
    found = refused(load, str(tiny_checkpoint), layers=layers, device="cpu")
    assert found.startswith(str(tiny_checkpoint)) and message in found


def test_code_in_a_checkpoint_is_not_run(tiny_checkpoint):
    (tiny_checkpoint / "modeling_custom.py").write_text("raise SystemExit")
    config = tiny_checkpoint / "config.json"
    config.write_text(
        config.read_text().replace(
            "{", '{"auto_map": {"AutoConfig": "modeling_custom.C"},', 1
        )
    )
    load(str(tiny_checkpoint), device="cpu")


def test_a_seed_draws_what_transformers_draws_and_reads_no_weights(
    tiny_llama, monkeypatch
):
    monkeypatch.setattr(
        loading, "_read_weights", lambda *_: pytest.fail("weights were read")
    )
    state = torch.random.get_rng_state()
    found, other = (
        load(str(tiny_llama), layers=2, device="cpu", seed=seed) for seed in (5, 6)
    )
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(5)
    config = AutoConfig.from_pretrained(tiny_llama, num_hidden_layers=2)
    for name, expected in AutoModel.from_config(config).state_dict().items():
        torch.testing.assert_close(found.model.state_dict()[name], expected)
    assert not torch.equal(
        other.model.embed_tokens.weight, found.model.embed_tokens.weight
    )
    assert other.revision != found.revision and other.name == "tiny-llama untrained 6"
