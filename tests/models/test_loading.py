"""The first layers compute the same as in the complete model; models that cannot be
loaded are refused in one line.
"""

import json
import os
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from families import FAMILIES, of_type, offloaded, on_cpu, save, spread
from hub_server import point_at
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    BloomConfig,
    ByT5Tokenizer,
    Gemma3TextConfig,
)

from lib.attention.received import received_attention
from lib.generation.key_value_caches import prefill
from lib.models import checkpoint, loading
from lib.models.loading import cut_config, load, load_without_weights, with_weights
from lib.models.sources import known_models

SHARD = "model.safetensors"
UP_PROJECTION = "model.layers.0.mlp.up_proj.weight"
IDS = torch.tensor([[3, 1, 4, 1, 5]])


def change_weights(folder, change):
    tensors = load_file(folder / SHARD)
    change(tensors)
    save_file(tensors, folder / SHARD, metadata={"format": "pt"})


def edit_config(folder, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def logits(model):
    with torch.inference_mode():
        return model(input_ids=IDS).logits


UNKNOWN = ["", "nonsense", "a/b/c", "./none", "../no/ne", "/no/such", "~nobody/no/such"]


@pytest.mark.parametrize("spec", [*UNKNOWN, "org/", "org/x.gguf", "x" * 300])
def test_an_unknown_model_is_refused_and_the_known_ones_are_named(spec, refused):
    message = refused(on_cpu, spec)
    assert message.startswith(f"unknown model {spec!r}: give demo, ")
    assert all(name in message for name in known_models())


@pytest.mark.parametrize(
    "layers, dtype",
    [(None, "float32"), (None, "bfloat16"), (3, "float32"), (1, "bfloat16")],
)
def test_a_folder_gives_the_requested_layers_and_dtype(tiny_llama, layers, dtype):
    loaded = load(tiny_llama, device="cpu", layers=layers, dtype=dtype)
    assert (loaded.name, loaded.spec) == ("tiny-llama", str(tiny_llama))
    assert (loaded.heads, loaded.context) == (2, 512)
    assert (loaded.device, loaded.dtype) == ("cpu", dtype)
    assert loaded.revision == checkpoint.weights_digest(tiny_llama)

    model = loaded.model
    assert loaded.layers == len(model.get_decoder().layers) == (layers or 3)
    assert model.dtype == getattr(torch, dtype)
    assert not model.training
    has_head = model.get_output_embeddings() is not None
    assert has_head == (layers is None)


@pytest.fixture
def on_hub(server, models, tiny_llama):
    """The id of a copy of tiny_llama on a hub."""
    shutil.copytree(tiny_llama, models / "org" / "tiny", dirs_exist_ok=True)
    return "org/tiny"


@pytest.mark.parametrize("layers", [2, None])
def test_a_model_from_a_hub_is_loaded_at_its_commit_even_if_there_is_a_newer_one(
    server, on_hub, tiny_llama, layers
):
    commit = server.commit(on_hub)
    server.lost.add("main")
    loaded = on_cpu(f"{on_hub}@{commit}", layers=layers)
    assert (loaded.name, loaded.spec) == ("tiny", f"org/tiny@{commit}")
    assert loaded.revision == commit

    of_folder = on_cpu(tiny_llama, layers=layers).model.state_dict()
    of_hub = loaded.model.state_dict()
    assert of_hub.keys() == of_folder.keys()
    for name, tensor in of_folder.items():
        assert torch.equal(of_hub[name], tensor)


def test_the_description_of_a_hub_model_needs_no_weights_and_later_no_hub(
    server, on_hub, monkeypatch
):
    known = load_without_weights(on_hub, device="cpu", fetch=False)
    assert known.layers == 3
    assert not server.sent_weights
    server.lost.add("main")  # main no longer leads to this commit
    assert with_weights(known).revision == known.revision == server.commit(on_hub)
    point_at("http://127.0.0.1:9", monkeypatch)
    again = load_without_weights(on_hub)
    assert again.revision == known.revision


def test_a_model_for_a_gpu_is_loaded_in_bfloat16_with_attention_without_cudnn(
    tiny_llama, monkeypatch
):
    read = loading.checkpoint_model

    def to_cpu(folder, config, has_head, device, *others):
        return read(folder, config, has_head, "cpu", *others)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    switched = []
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", switched.append)
    monkeypatch.setattr(loading, "checkpoint_model", to_cpu)
    assert load(str(tiny_llama), device="cuda").dtype == "bfloat16"
    # It would plan anew for each shape.
    assert switched == [False]


def test_a_missing_gpu_is_refused_before_weights_are_read(
    tiny_llama, monkeypatch, refused
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(loading, "require_weights", None)
    empty = load_without_weights(str(tiny_llama), device="cuda:1")
    for message in (
        refused(with_weights, empty),
        refused(load, str(tiny_llama), device="cuda:1"),
    ):
        assert message.startswith("device cuda:1 was requested, but torch ")


@pytest.mark.parametrize("device", ["mps", "gpu", "cuda:a", ""])
def test_an_unknown_device_is_refused(tiny_llama, refused, device):
    for function in (load, load_without_weights):
        message = refused(function, str(tiny_llama), device=device)
        assert message == f"device {device!r} is not supported: give auto, cpu or cuda"


LONGROPE = {"long_factor": [2.0], "short_factor": [1.0]}


@pytest.mark.parametrize(
    "kind, factors", [("longrope", LONGROPE), ("dynamic", {"factor": 2.0})]
)
def test_a_context_ends_where_positions_would_depend_on_the_batch(
    tiny_checkpoint, kind, factors, refused
):
    config = json.loads((tiny_checkpoint / "config.json").read_text())
    width = config["hidden_size"] // config["num_attention_heads"] // 2
    rope = {
        name: value * width if isinstance(value, list) else value
        for name, value in factors.items()
    }
    rope |= {"rope_type": kind, "original_max_position_embeddings": 64}
    edit_config(tiny_checkpoint, rope_parameters=config["rope_parameters"] | rope)
    loaded = on_cpu(tiny_checkpoint)
    assert loaded.context == 64
    message = refused(received_attention, loaded.model, torch.arange(65))
    assert message == "a prompt of 65 tokens is longer than the model's context of 64"


def test_a_config_without_a_maximum_context_is_named(tiny_llama, refused):
    # Bloom encodes positions by distance, so its config names no maximum.
    model = SimpleNamespace(config=BloomConfig())
    loaded = replace(on_cpu(tiny_llama), model=model)
    assert "config.json names no longest context" in refused(lambda: loaded.context)


@pytest.mark.parametrize("layers", [0, 4])
def test_layers_that_a_model_lacks_are_refused(tiny_llama, refused, layers):
    message = refused(on_cpu, tiny_llama, layers=layers)
    assert message.endswith(f"has 3 layers; the first {layers} were requested")


# Functions that return a function which damages a folder.
def removed(pattern):
    return lambda folder: [file.unlink() for file in folder.glob(pattern)]


def written(name, content):
    return lambda folder: (folder / name).write_text(content)


def cut(size):
    return lambda folder: os.truncate(folder / SHARD, size)


def configured(**changes):
    return lambda folder: edit_config(folder, **changes)


def pickled(folder):
    (folder / SHARD).rename(folder / "pytorch_model.bin")


def without_a_tensor(folder):
    change_weights(folder, lambda tensors: tensors.pop(UP_PROJECTION))


def quantised(folder):
    def quantise(tensors):
        name = "model.norm.weight"
        tensors[name] = tensors[name].to(torch.int8)

    change_weights(folder, quantise)


def of_bytes(folder):
    removed("*token*")(folder)
    ByT5Tokenizer().save_pretrained(folder)


beside_an_adapter = written("adapter_config.json", '{"peft_type": "LORA"}')


def adapter(folder):
    removed("config.json")(folder)
    beside_an_adapter(folder)


OF_IMAGES = {"rope_type": "mrope", "rope_theta": 1e4, "mrope_section": [2, 1, 1]}
GPTQ = {"quant_method": "gptq", "bits": 4}
# A function that makes a folder unusable, and the error message.
UNUSABLE = [
    (removed("config.json"), "no config.json"),
    (written("config.json", "{"), "config.json"),
    (removed(SHARD), r"no weights; a checkpoint needs \*.safetensors"),
    (pickled, r"a checkpoint needs \*.safetensors, pickles are refused"),
    (quantised, "is quantised to I8, which is"),
    (cut(100), f"{SHARD}: cannot be loaded: "),
    (cut(9000), f"{SHARD}: cannot be loaded: "),
    (without_a_tensor, "lacks 1 tensors, the first is .*mlp.up_proj.weight"),
    (removed("*token*"), "backend tokenizer"),
    (of_bytes, "its tokenizer gives no character offsets"),
    (
        configured(hidden_size=12),
        r"in the shape \[49152, 8\], but config.json requires \[49152, 12\]",
    ),
    (configured(num_attention_heads=3), r"hidden size \(8\) is not a multiple of"),
    (configured(rope_parameters=OF_IMAGES), "'mrope' is missing, or transformers does"),
    (configured(quantization_config=GPTQ), r"config.json says .* quantised \(gptq\)"),
    (adapter, "adapter_config.json: merge the adapter into its model"),
    (beside_an_adapter, "adapter_config.json: merge the adapter into its model"),
]


@pytest.mark.parametrize("layers", [None, 2])
@pytest.mark.parametrize("damage, message", UNUSABLE)
def test_an_unusable_folder_is_refused(
    tiny_checkpoint, damage, message, layers, refused
):
    damage(tiny_checkpoint)
    refusal = refused(on_cpu, tiny_checkpoint, layers=layers)
    assert refusal.startswith(str(tiny_checkpoint))
    assert re.search(message, refusal)
    # The advice to load the complete model only makes sense for first layers.
    assert layers or "of the first" not in refusal


def test_first_layers_stored_together_with_the_others_are_refused(tmp_path, refused):
    save(FAMILIES["gemma4_text"](), tmp_path)
    message = refused(on_cpu, tmp_path, layers=2)
    assert re.search(r"in the shape \[.*\], but config.json requires \[.*\]", message)
    assert message.endswith("of the first 2 layers: load the complete model")


def test_an_output_head_that_differs_from_the_embedding_is_used_on_any_device(
    tiny_llama, tiny_checkpoint, monkeypatch
):
    edit_config(tiny_checkpoint, tie_word_embeddings=True)
    expected = logits(on_cpu(tiny_llama).model)
    assert torch.equal(logits(on_cpu(tiny_checkpoint).model), expected)
    size = (tiny_checkpoint / SHARD).stat().st_size
    for free in (0, size, 10 * size):
        monkeypatch.setattr(loading, "free_memory", lambda *_, free=free: free)
        loaded = offloaded(tiny_checkpoint)
        torch.testing.assert_close(logits(loaded.model), expected, rtol=0, atol=1e-6)


def test_an_embedding_stored_as_the_output_head_is_found_if_the_head_is_loaded(
    tiny_checkpoint, refused
):
    embedding = load_file(tiny_checkpoint / SHARD)["model.embed_tokens.weight"]

    def rename(tensors):
        tensors["lm_head.weight"] = tensors.pop("model.embed_tokens.weight")

    edit_config(tiny_checkpoint, tie_word_embeddings=True)
    change_weights(tiny_checkpoint, rename)
    whole = on_cpu(tiny_checkpoint).model
    assert torch.equal(whole.get_input_embeddings().weight, embedding)
    message = refused(on_cpu, tiny_checkpoint, layers=1)
    assert message.endswith("lacks 1 tensors, the first is embed_tokens.weight")


def test_attention_scores_are_capped_if_the_family_caps_them(tmp_path):
    """transformers' own choice for Gemma 2 is sdpa, which ignores the cap."""
    save(spread(of_type("gemma2", attn_logit_softcapping=0.5)), tmp_path)
    options = {"attn_implementation": "eager"}
    expected = AutoModelForCausalLM.from_pretrained(tmp_path, **options)
    loaded = on_cpu(tmp_path)
    torch.testing.assert_close(logits(loaded.model), logits(expected))
    # First layers and random weights load, too.
    on_cpu(tmp_path, layers=1, seed=1)
    _, prefilled = prefill(loaded.model, IDS.tolist(), [range(5)])
    torch.testing.assert_close(prefilled, logits(expected)[0])


@pytest.mark.parametrize("name", ["flash_attention_2", "org/kernel", "none", ""])
def test_an_attention_implementation_in_a_config_is_not_used(
    tiny_llama, tiny_checkpoint, name
):
    edit_config(tiny_checkpoint, attn_implementation=name)
    loaded = on_cpu(tiny_checkpoint)
    assert loaded.model.config._attn_implementation == "sdpa"
    assert torch.equal(logits(loaded.model), logits(on_cpu(tiny_llama).model))


def test_options_of_a_config_for_outputs_are_not_used(tiny_llama, tiny_checkpoint):
    outputs = {"output_attentions": True, "output_hidden_states": True}
    edit_config(tiny_checkpoint, return_dict=False, **outputs)
    loaded = on_cpu(tiny_checkpoint)
    assert torch.equal(logits(loaded.model), logits(on_cpu(tiny_llama).model))


def test_a_model_without_a_list_of_layers_is_refused(tmp_path, refused):
    save(of_type("gpt2"), tmp_path)
    assert refused(on_cpu, tmp_path) == (
        "model type gpt2 is not supported: it has no list of decoder layers"
    )


def test_code_in_a_checkpoint_is_not_run(tiny_checkpoint):
    (tiny_checkpoint / "modeling_custom.py").write_text("raise SystemExit")
    edit_config(tiny_checkpoint, auto_map={"AutoConfig": "modeling_custom.C"})
    on_cpu(tiny_checkpoint)


def test_first_layers_keep_their_layer_types(tmp_path):
    kinds = ["sliding_attention"] * 2 + ["full_attention"] * 2
    config = Gemma3TextConfig(num_hidden_layers=4, layer_types=kinds)
    assert cut_config(config, 3, tmp_path).layer_types == kinds[:3]


def test_random_weights_equal_those_of_transformers_and_no_weights_are_read(
    tiny_llama, tiny_checkpoint
):
    (tiny_checkpoint / SHARD).write_bytes(b"unreadable")
    config = AutoConfig.from_pretrained(tiny_llama, num_hidden_layers=2)
    for seed in (5, 6):
        state = torch.random.get_rng_state()
        drawn = on_cpu(tiny_checkpoint, layers=2, seed=seed)
        assert torch.equal(torch.random.get_rng_state(), state)
        assert drawn.name == f"tiny-llama untrained {seed}"
        assert drawn.revision.endswith(f" untrained {seed}")
        assert not drawn.model.training

        torch.manual_seed(seed)
        expected = AutoModel.from_config(config).state_dict()
        for name, tensor in drawn.model.state_dict().items():
            torch.testing.assert_close(tensor, expected.pop(name))
        assert not expected


def test_a_model_that_gets_its_weights_later_has_the_stop_tokens_of_its_checkpoint(
    tiny_checkpoint,
):
    file = tiny_checkpoint / "generation_config.json"
    file.write_text('{"eos_token_id": [5, 7]}')
    empty = load_without_weights(str(tiny_checkpoint))
    for loaded in (empty, with_weights(empty)):
        assert loaded.model.generation_config.eos_token_id == [5, 7]


# A file, its new content, and whether the digest changes.
DIGESTED = [
    ("config.json", "other", True),
    ("generation_config.json", "{}", True),
    ("tokenizer.json", "{}", True),
    ("vocab.json", "{}", True),
    ("merges.txt", "a b", True),
    ("spiece.model", "a", True),
    ("chat_template.jinja", "{}", True),
    ("chat_template.json", "{}", True),
    ("notes.txt", "{}", False),
    ("model.safetensors", "?b..cd", True),
    ("model.safetensors", "ab.?cd", True),
    ("model.safetensors", "ab..c?", True),
    ("model.safetensors", "ab...cd", True),
    ("other.safetensors", "ab..cd", True),
    # The bytes between the sampled blocks, which may be gigabytes, are not read.
    ("model.safetensors", "ab!.!d", False),
]


@pytest.mark.parametrize("name, content, is_another", DIGESTED)
def test_a_digest_covers_configs_and_the_names_sizes_and_samples_of_shards(
    tmp_path, monkeypatch, name, content, is_another
):
    monkeypatch.setattr(checkpoint, "DIGESTED_BYTES", 1)
    monkeypatch.setattr(checkpoint, "DIGESTED_BLOCKS", 2)
    (tmp_path / "config.json").write_text("{}")
    shard = tmp_path / SHARD
    shard.write_text("ab..cd")
    before = checkpoint.weights_digest(tmp_path)
    if name.startswith("other"):
        shard.unlink()
    (tmp_path / name).write_text(content)
    assert (checkpoint.weights_digest(tmp_path) != before) == is_another


def test_a_chat_template_may_be_in_a_file_of_its_own(tiny_checkpoint):
    template = tiny_checkpoint / "chat_template.jinja"
    expected = template.read_text()
    content = json.dumps({"chat_template": expected})
    (tiny_checkpoint / "chat_template.json").write_text(content)
    template.unlink()
    assert on_cpu(tiny_checkpoint).tokenizer.chat_template == expected


@pytest.mark.parametrize("content", ["{", "{}", "[1]"])
def test_a_file_without_the_chat_template_it_should_have_is_named(
    tiny_checkpoint, content, refused
):
    (tiny_checkpoint / "chat_template.jinja").unlink()
    (tiny_checkpoint / "chat_template.json").write_text(content)
    message = refused(on_cpu, tiny_checkpoint)
    assert message.startswith(f"{tiny_checkpoint}/chat_template.json has no chat_temp")
