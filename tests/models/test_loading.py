"""The first layers compute what the whole model does; what cannot be loaded is refused
in one line.
"""

import json
import os
import re
import shutil

import pytest
import torch
from families import FAMILIES, gemma3_multimodal, of_type, save
from hub_server import point_at
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, ByT5Tokenizer, Gemma3TextConfig

from lib import paths
from lib.models import checkpoint, memory, weights
from lib.models.loading import cut_config, load, load_without_weights, with_weights
from lib.models.names import known_models

SHARD = "model.safetensors"
UP_PROJECTION = "model.layers.0.mlp.up_proj.weight"


def change_weights(folder, change):
    tensors = load_file(folder / SHARD)
    change(tensors)
    save_file(tensors, folder / SHARD, metadata={"format": "pt"})


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "nonsense",
        "a/b/c",
        "./none",
        "../no/ne",
        "/no/such",
        "~nobody-has-this-name/x",
        "org/",
        "x" * 300,
    ],
)
def test_an_unknown_spec_is_refused_and_the_known_ones_are_named(spec, refused):
    message = refused(load, spec, device="cpu")
    assert message.startswith(f"unknown model {spec!r}: give demo, ")
    for name in known_models():
        assert name in message


@pytest.mark.parametrize(
    "layers, dtype",
    [(None, "float32"), (None, "bfloat16"), (3, "float32"), (1, "bfloat16")],
)
def test_a_folder_gives_the_layers_and_the_number_format_asked_for(
    tiny_llama, layers, dtype
):
    loaded = load(str(tiny_llama), layers=layers, device="cpu", dtype=dtype)
    assert (loaded.name, loaded.spec) == ("tiny-llama", str(tiny_llama))
    assert (loaded.heads, loaded.context) == (2, 512)
    assert (loaded.device, loaded.dtype) == ("cpu", dtype)

    model = loaded.model
    assert loaded.layers == len(model.get_decoder().layers) == (layers or 3)
    assert model.dtype == getattr(torch, dtype)
    assert not model.training
    has_head = model.get_output_embeddings() is not None
    assert has_head == (layers is None)


def test_the_revision_of_a_folder_changes_with_its_weights_only(tiny_checkpoint):
    def revision(**options):
        return load(str(tiny_checkpoint), device="cpu", **options).revision

    before = revision()
    assert revision(layers=1) == before
    change_weights(
        tiny_checkpoint, lambda tensors: tensors["model.norm.weight"].add_(1)
    )
    assert revision() != before


@pytest.mark.parametrize("layers", [2, None])
def test_a_model_of_a_hub_is_loaded_by_its_id(server, models, tiny_llama, layers):
    shutil.copytree(tiny_llama, models / "org" / "tiny", dirs_exist_ok=True)
    loaded = load("org/tiny", layers=layers, device="cpu")
    assert (loaded.name, loaded.spec) == ("tiny", "org/tiny")
    assert loaded.revision == server.commit("org/tiny")

    of_folder = load(str(tiny_llama), layers=layers, device="cpu").model.state_dict()
    of_hub = loaded.model.state_dict()
    assert of_hub.keys() == of_folder.keys()
    for name, tensor in of_folder.items():
        assert torch.equal(of_hub[name], tensor)


def test_a_model_of_a_hub_needs_no_hub_later(server, models, tiny_llama, monkeypatch):
    shutil.copytree(tiny_llama, models / "org" / "tiny", dirs_exist_ok=True)
    commit = load("org/tiny", device="cpu").revision
    point_at("http://127.0.0.1:9", monkeypatch)
    assert load_without_weights("org/tiny", device="cpu").revision == commit


@pytest.mark.parametrize("layers", [2, None])
def test_a_revision_is_loaded_though_there_is_a_newer_one(
    server, models, tiny_llama, layers
):
    shutil.copytree(tiny_llama, models / "org" / "tiny", dirs_exist_ok=True)
    commit = server.commit("org/tiny")
    server.lost.add("main")
    loaded = load(f"org/tiny@{commit}", layers=layers, device="cpu")
    assert loaded.revision == commit


def test_where_nothing_may_be_fetched_the_weights_stay_on_the_hub(
    server, models, tiny_llama
):
    shutil.copytree(tiny_llama, models / "org" / "tiny", dirs_exist_ok=True)
    loaded = load_without_weights("org/tiny", device="cpu", fetch=False)
    assert loaded.layers == 3
    assert server.sent_weights == 0


def test_what_is_wrong_with_a_model_of_a_hub_is_said_of_its_id(
    server, models, tiny_llama, refused
):
    folder = shutil.copytree(tiny_llama, models / "org" / "lacking")
    without_a_tensor(folder)
    assert refused(load, "org/lacking", device="cpu") == (
        f"org/lacking: the checkpoint lacks 1 tensors, the first is {UP_PROJECTION}"
    )


def test_a_gpu_that_is_not_here_is_refused_before_weights_are_read(
    tiny_llama, monkeypatch, refused
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(weights, "require_weights", None)
    empty = load_without_weights(str(tiny_llama), device="cuda:1")
    for message in (
        refused(with_weights, empty),
        refused(load, str(tiny_llama), device="cuda:1"),
    ):
        assert message.startswith("device cuda:1 was asked for, but torch ")


def test_without_weights_everything_else_is_known(tiny_llama):
    loaded = load(str(tiny_llama), device="cpu")
    empty = load_without_weights(str(tiny_llama), device="cuda", dtype="float32")
    assert (empty.device, empty.dtype) == ("cuda", "float32")
    assert (empty.name, empty.spec) == (loaded.name, loaded.spec)
    assert empty.revision == loaded.revision
    assert (empty.layers, empty.context) == (loaded.layers, loaded.context)
    assert {tensor.device.type for tensor in empty.model.parameters()} == {"meta"}
    assert empty.model.name_or_path == str(tiny_llama)


@pytest.mark.parametrize("layers", [0, 4])
def test_layers_that_are_not_there_are_named(tiny_llama, refused, layers):
    message = refused(load, str(tiny_llama), layers=layers)
    assert message.endswith(f"has 3 layers; asked for the first {layers}")


def test_a_cache_without_room_is_named(tmp_path, monkeypatch, refused):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(paths, "CACHE", file)
    message = refused(load, "demo", device="cpu")
    assert f"cannot write the cache folder {tmp_path}" in message


def without_config(folder):
    (folder / "config.json").unlink()


def with_broken_config(folder):
    (folder / "config.json").write_text("{")


def without_weights(folder):
    (folder / SHARD).unlink()


def pickled(folder):
    (folder / SHARD).rename(folder / "pytorch_model.bin")


def quantised(folder):
    def quantise(tensors):
        name = "model.norm.weight"
        tensors[name] = tensors[name].to(torch.int8)

    change_weights(folder, quantise)


def without_header(folder):
    os.truncate(folder / SHARD, 100)


def with_short_shard(folder):
    os.truncate(folder / SHARD, 9000)


def without_a_tensor(folder):
    change_weights(folder, lambda tensors: tensors.pop(UP_PROJECTION))


def without_tokenizer(folder):
    for file in folder.glob("*token*"):
        file.unlink()


@pytest.mark.parametrize("layers", [None, 2])
@pytest.mark.parametrize(
    "damage, message",
    [
        (without_config, "no config.json"),
        (with_broken_config, "config.json"),
        (without_weights, "no weights; a checkpoint needs *.safetensors"),
        (pickled, "a checkpoint needs *.safetensors, pickles are refused"),
        (quantised, "is quantised to I8, which is"),
        (without_header, f"{SHARD}: cannot be loaded: "),
        (with_short_shard, f"{SHARD}: cannot be loaded: "),
        (without_a_tensor, UP_PROJECTION.removeprefix("model.")),
        (without_tokenizer, "no tokenizer.json"),
    ],
)
def test_an_unusable_folder_is_refused(
    tiny_checkpoint, damage, message, layers, refused
):
    damage(tiny_checkpoint)
    refusal = refused(load, str(tiny_checkpoint), layers=layers, device="cpu")
    assert refusal.startswith(str(tiny_checkpoint))
    assert message in refusal


def of_a_wider_model(folder):
    edit_config(folder, hidden_size=12)


def quantised_elsewhere(folder):
    edit_config(folder, quantization_config={"quant_method": "gptq", "bits": 4})


def beside_an_adapter(folder):
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA"}')


def adapter(folder):
    (folder / "config.json").unlink()
    beside_an_adapter(folder)


def edit_config(folder, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize("layers", [None, 2])
@pytest.mark.parametrize(
    "change, message",
    [
        (
            of_a_wider_model,
            r"in the shape \[49152, 8\], but config.json asks for \[49152, 12\]",
        ),
        (quantised_elsewhere, r"config.json says .* quantised \(gptq\)"),
        (adapter, "adapter_config.json: merge the adapter into its model"),
        (beside_an_adapter, "adapter_config.json: merge the adapter into its model"),
    ],
)
def test_parts_that_do_not_fit_each_other_are_named_together(
    tiny_checkpoint, change, message, layers, refused
):
    change(tiny_checkpoint)
    refusal = refused(load, str(tiny_checkpoint), layers=layers, device="cpu")
    assert refusal.startswith(f"{tiny_checkpoint}: ")
    assert re.search(message, refusal)


def test_a_head_of_other_words_is_refused(tiny_checkpoint, refused):
    def shorten(tensors):
        tensors["lm_head.weight"] = tensors["lm_head.weight"][:100].clone()

    change_weights(tiny_checkpoint, shorten)
    message = refused(load, str(tiny_checkpoint), device="cpu")
    assert "lm_head.weight in the shape [100, 8], but config.json asks for" in message


def test_first_layers_that_are_stored_together_with_the_others_are_refused(
    tmp_path, refused
):
    save(FAMILIES["gemma4_text"](), tmp_path)
    message = refused(load, str(tmp_path), layers=2, device="cpu")
    assert re.search(r"in the shape \[.*\], but config.json asks for \[.*\]", message)
    assert message.endswith("of the first 2 layers: load the whole model")


@pytest.fixture
def head_of_its_own(tiny_checkpoint):
    """A checkpoint whose config ties the head to the embedding, which differ."""
    edit_config(tiny_checkpoint, tie_word_embeddings=True)
    return tiny_checkpoint


@pytest.fixture
def head_alone(tiny_checkpoint):
    """A checkpoint of which the embedding is stored as the head alone."""

    def rename(tensors):
        tensors["lm_head.weight"] = tensors.pop("model.embed_tokens.weight")

    edit_config(tiny_checkpoint, tie_word_embeddings=True)
    change_weights(tiny_checkpoint, rename)
    return tiny_checkpoint


IDS = torch.tensor([[3, 1, 4, 1, 5]])


def logits(model):
    with torch.inference_mode():
        return model(input_ids=IDS).logits


def test_a_head_that_differs_from_its_embedding_counts_wherever_weights_lie(
    tiny_llama, head_of_its_own, monkeypatch
):
    expected = logits(load(str(tiny_llama), device="cpu").model)
    assert torch.equal(logits(load(str(head_of_its_own), device="cpu").model), expected)
    weights = (head_of_its_own / SHARD).stat().st_size
    for free in (0, weights, 10 * weights):
        monkeypatch.setattr(memory, "free_memory", lambda free=free: free)
        loaded = load(str(head_of_its_own), device="cpu", offload=True)
        torch.testing.assert_close(logits(loaded.model), expected, rtol=0, atol=1e-6)


def test_an_embedding_that_is_stored_as_the_head_is_found(tiny_llama, head_alone):
    embedding = load_file(tiny_llama / SHARD)["model.embed_tokens.weight"]
    whole = load(str(head_alone), device="cpu").model
    assert torch.equal(whole.get_input_embeddings().weight, embedding)


def test_without_its_head_there_is_no_embedding_then(head_alone, refused):
    message = refused(load, str(head_alone), layers=1, device="cpu")
    assert message.endswith("lacks 1 tensors, the first is embed_tokens.weight")


def test_of_a_model_that_also_sees_the_text_models_numbers_are_known(tmp_path):
    save(gemma3_multimodal(), tmp_path)
    loaded = load_without_weights(str(tmp_path))
    assert (loaded.heads, loaded.layers, loaded.context) == (4, 3, 512)


def test_a_model_without_a_list_of_layers_is_refused(tmp_path, refused):
    save(of_type("gpt2"), tmp_path)
    assert refused(load, str(tmp_path), device="cpu") == (
        "model type gpt2 is not supported: it has no list of decoder layers"
    )


def test_an_attention_that_is_another_is_refused(tmp_path, refused):
    save(of_type("diffllama"), tmp_path)
    message = refused(load, str(tmp_path), device="cpu")
    assert "model type diffllama is not supported" in message


def test_a_tokenizer_without_offsets_is_refused(tiny_checkpoint, refused):
    without_tokenizer(tiny_checkpoint)
    ByT5Tokenizer().save_pretrained(tiny_checkpoint)
    message = refused(load_without_weights, str(tiny_checkpoint))
    assert "its tokenizer gives no character offsets" in message


def test_code_in_a_checkpoint_is_not_run(tiny_checkpoint):
    (tiny_checkpoint / "modeling_custom.py").write_text("raise SystemExit")
    config = tiny_checkpoint / "config.json"
    with_code = '{"auto_map": {"AutoConfig": "modeling_custom.C"},'
    config.write_text(config.read_text().replace("{", with_code, 1))
    load(str(tiny_checkpoint), device="cpu")


def test_first_layers_keep_their_kinds(tmp_path):
    kinds = ["sliding_attention"] * 2 + ["full_attention"] * 2
    config = Gemma3TextConfig(num_hidden_layers=4, layer_types=kinds)
    assert cut_config(config, 3, tmp_path).layer_types == kinds[:3]


def test_a_seed_draws_what_transformers_draws_and_reads_no_weights(
    tiny_llama, tiny_checkpoint
):
    (tiny_checkpoint / SHARD).write_bytes(b"unreadable")
    state = torch.random.get_rng_state()
    drawn = load(str(tiny_checkpoint), layers=2, device="cpu", seed=5)
    assert torch.equal(torch.random.get_rng_state(), state)

    torch.manual_seed(5)
    config = AutoConfig.from_pretrained(tiny_llama, num_hidden_layers=2)
    expected = AutoModel.from_config(config).state_dict()
    for name, tensor in drawn.model.state_dict().items():
        torch.testing.assert_close(tensor, expected.pop(name))
    assert not expected


def test_another_seed_draws_another_network_of_another_name(tiny_llama):
    first = load(str(tiny_llama), layers=2, device="cpu", seed=5)
    second = load(str(tiny_llama), layers=2, device="cpu", seed=6)
    first_embedding = first.model.embed_tokens.weight
    assert not torch.equal(second.model.embed_tokens.weight, first_embedding)
    assert second.revision != first.revision
    assert second.name == "tiny-llama untrained 6"
    assert not second.model.training


def test_a_model_filled_later_ends_its_answers_as_its_checkpoint_says(tiny_checkpoint):
    file = tiny_checkpoint / "generation_config.json"
    file.write_text('{"eos_token_id": [5, 7]}')
    empty = load_without_weights(str(tiny_checkpoint), device="cpu")
    for loaded in (empty, with_weights(empty)):
        assert loaded.model.generation_config.eos_token_id == [5, 7]


# A file, what it holds then, and whether the digest is another one.
DIGESTED = [
    ("config.json", "other", True),
    ("model.safetensors", "?b..cd", True),
    ("model.safetensors", "ab..c?", True),
    ("model.safetensors", "ab...cd", True),
    ("other.safetensors", "ab..cd", True),
    # Gigabytes between both ends are not read.
    ("model.safetensors", "ab!!cd", False),
]


@pytest.mark.parametrize("name, content, is_another", DIGESTED)
def test_a_digest_changes_with_config_names_sizes_and_both_ends(
    tmp_path, monkeypatch, name, content, is_another
):
    monkeypatch.setattr(checkpoint, "DIGESTED_BYTES", 2)
    (tmp_path / "config.json").write_text("{}")
    shard = tmp_path / SHARD
    shard.write_text("ab..cd")
    before = checkpoint.weights_digest(tmp_path)
    if name.startswith("other"):
        shard.unlink()
    (tmp_path / name).write_text(content)
    assert (checkpoint.weights_digest(tmp_path) != before) == is_another
