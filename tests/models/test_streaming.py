"""Forwards through a model of which one stage at a time is in memory, against the whole
model: every family, many forwards together, and what goes wrong.
"""

import functools
import shutil
from dataclasses import replace
from types import SimpleNamespace

import psutil
import pytest
import torch
from families import FAMILIES, gemma3_multimodal, of_type, spread
from safetensors.torch import load_file, save_file

from lib import paths
from lib.arm.activations import watched
from lib.arm.moving import installed
from lib.attention.check import check_attention
from lib.attention.function import attending, hiding
from lib.attention.received import received_attention
from lib.errors import InputError
from lib.evaluation.scoring import TextToScore, log_likelihoods
from lib.models import first_layers, loading
from lib.models import stages as stages_module
from lib.models.hub import snapshot
from lib.models.loading import Loaded, load
from lib.models.names import Source
from lib.models.stages import Stages
from lib.models.streaming import Stream
from lib.models.tensors import FolderTensors, HubTensors
from lib.models.weights import empty_model, load_weights
from lib.prompts.building import Prompt
from lib.prompts.conditions import parse_condition
from lib.prompts.problems import Problem

IDS = torch.tensor(
    [[5, 17, 3, 88, 41, 9, 60, 2, 33, 71], [9, 9, 4, 50, 3, 8, 8, 1, 2, 7]]
)
BEGINNING = torch.tensor([7, 12, 7])  # of all texts that are scored
SPAN = slice(2, 5)
PROBLEM = Problem.model_validate({"unique_id": "p", "problem": "?", "answer": "0"})
REPO = "Qwen/Qwen2.5-Math-7B"  # in four shards
# Families without one activation to watch.
WITH_EXPERTS = {"flex_olmo", "gpt_oss", "mixtral", "olmoe", "qwen2_moe", "qwen3_moe"}


class Watched(Stages):
    """Stages that keep count of what is read and of what is in memory."""

    def __init__(self, *args):
        self.read_stages = []
        super().__init__(*args)

    def put(self, stage):
        super().put(stage)
        self.read_stages.append(stage)
        expected = {stage}
        is_head = self.modules[stage] is self.head
        if is_head and self.head.weight is self.modules[0].weight:
            expected.add(0)
        present = {i for i, module in enumerate(self.modules) if is_present(module)}
        assert present == expected


def is_present(module):
    """Tell whether a module's weights are more than one number in their shape."""
    matrices = [weight for weight in module.parameters() if weight.numel() > 1]
    return all(any(weight.stride()) for weight in matrices)


def change(folder, how):
    """Change the tensors of a checkpoint of one shard."""
    tensors = load_file(folder / "model.safetensors")
    how(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def streamed(folder, dtype=torch.float32):
    """Return a checkpoint's model without weights, its stages and its stream."""
    model = empty_model(folder, str(dtype).removeprefix("torch."))
    stages = Watched(model, FolderTensors(folder), dtype, "cpu")
    return model, stages, Stream(stages)


def logits(model, ids):
    with torch.inference_mode(), attending(model.get_decoder()):
        return model(input_ids=ids[None], use_cache=False).logits


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A folder with a Llama of three layers in several shards, in bfloat16."""
    folder = tmp_path_factory.mktemp("streamed") / "llama"
    torch.manual_seed(1)
    model = spread(FAMILIES["llama"](), 0.15).bfloat16()
    model.save_pretrained(folder, max_shard_size="10KB")
    return folder


def hidden(model, layers):
    with hiding(model, [SPAN], hidden=layers):
        return logits(model, IDS[0])


def redistributed(model, seed):
    with installed(model, 2, c=1.0, seed=seed):
        return logits(model, IDS[0])


def activations(model):
    seen = []

    def see(layer, gate, activation):
        seen.append(activation.clone())

    with watched(model, [1, 3], see):
        logits(model, IDS[1])
    return torch.stack(seen)


def scores(loaded, condition, prompts=IDS):
    """log p of two texts, the second shorter, behind prompts with an insertion."""
    texts = {}
    for number, (ids, asked) in enumerate(zip(IDS, prompts, strict=True)):
        ids_of_prompt = torch.cat([BEGINNING, asked[:6]])
        spans = {"inserted": SPAN}
        prompt = Prompt(ids_of_prompt, spans, original=ids[:0], text="")
        text = ids[6 : len(ids) - number].tolist()
        texts[str(number)] = TextToScore(
            PROBLEM, parse_condition(condition), None, "solution", prompt, [], text
        )
    return torch.tensor(log_likelihoods(loaded, texts))


def loaded_of(model, stream=None):
    source = Source("tiny", "tiny")
    loaded = Loaded(model, None, "tiny", source, "none", "cpu", "float32", 3)
    return replace(loaded, stream=stream)


def calls_on(model, stream=None):
    """What is asked of a model, by name: whole, or streamed."""
    loaded = loaded_of(model, stream)
    calls = {}
    calls["first logits"] = functools.partial(logits, model, IDS[0])
    calls["second logits"] = functools.partial(logits, model, IDS[1])
    calls["attention"] = functools.partial(received_attention, model, IDS)
    calls["activations"] = functools.partial(activations, model)
    for condition in ("none", "hidden-from-layer-1", "dilution"):
        name = f"scores under {condition}"
        calls[name] = functools.partial(scores, loaded, condition)
    return calls


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_computes_the_same_and_each_stage_is_read_once(family, tmp_path):
    torch.manual_seed(1)
    spread(FAMILIES[family](), 0.15).save_pretrained(tmp_path, max_shard_size="30KB")
    whole = load_weights(tmp_path, None, "float32").eval()
    model, stages, stream = streamed(tmp_path)
    asked = calls_on(model, stream)
    expected = calls_on(whole)
    if family in WITH_EXPERTS:
        with pytest.raises(InputError, match="mixture of experts"):
            stream.sweep([asked.pop("activations")])
        expected.pop("activations")

    stages.read_stages.clear()
    found = dict(zip(asked, stream.sweep(list(asked.values())), strict=True))
    assert stages.read_stages == list(range(5))
    assert not any(is_present(module) for module in stages.modules)
    for name, call in expected.items():
        torch.testing.assert_close(
            found[name],
            call(),
            rtol=0,
            atol=1e-5 if name.startswith("scores") else 1e-6,
            equal_nan=True,
            msg=lambda text, name=name: f"{name}: {text}",
        )
    hides = [found[name] for name in found if name.startswith("scores")]
    assert len(set(map(tuple, torch.stack(hides).tolist()))) == len(hides)
    stream.sweep([functools.partial(check_attention, model)])


INSTRUMENTS = [
    functools.partial(hidden, layers=[]),
    functools.partial(hidden, layers=[1]),
    functools.partial(hidden, layers=[2, 3]),
    functools.partial(redistributed, seed=1),
    functools.partial(redistributed, seed=2),
    activations,
]


def test_forwards_that_go_together_keep_their_own_hooks(llama):
    whole = load_weights(llama, None, "float32").eval()
    expected = [instrument(whole) for instrument in INSTRUMENTS]
    model, _, stream = streamed(llama)
    together = stream.sweep([functools.partial(each, model) for each in INSTRUMENTS])
    for result, alone in zip(together, expected, strict=True):
        torch.testing.assert_close(result, alone, rtol=0, atol=1e-6)
    assert not torch.equal(together[0], together[1])
    assert not torch.equal(together[3], together[4])


def test_a_call_of_two_forwards_costs_two_sweeps(llama):
    model, stages, stream = streamed(llama)

    def twice():
        return logits(model, IDS[0]), logits(model, IDS[1])

    once = functools.partial(logits, model, IDS[1])
    (_, second), alone = stream.sweep([twice, once])
    assert torch.equal(second, alone)
    assert stages.read_stages == [*range(5), *range(5)]


def test_what_all_texts_of_a_batch_begin_with_is_computed_once(llama):
    model, stages, stream = streamed(llama)
    tokens = []

    def count(_, inputs):
        tokens.append(inputs[0].shape[0] * inputs[0].shape[1])

    for layer in model.model.layers:
        layer.register_forward_pre_hook(count)
    stream.sweep([calls_on(model, stream)["scores under dilution"]])
    longest = len(IDS[0])
    assert tokens == [len(BEGINNING), 2 * longest] * 3
    assert stages.read_stages == list(range(5))


@pytest.mark.parametrize("condition", ["none", "hidden-from-layer-1", "dilution"])
def test_what_is_hidden_is_hidden_in_what_all_texts_begin_with_too(llama, condition):
    whole = load_weights(llama, None, "float32").eval()
    same = [IDS[0], IDS[0]]
    model, _, stream = streamed(llama)
    (found,) = stream.sweep(
        [functools.partial(scores, loaded_of(model, stream), condition, same)]
    )
    expected = scores(loaded_of(whole), condition, same)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_what_is_hidden_around_a_sweep_is_hidden_in_its_calls(llama):
    whole = load_weights(llama, None, "float32").eval()
    model, _, stream = streamed(llama)
    with hiding(model, [SPAN], hidden=[1]):
        (result,) = stream.sweep([functools.partial(logits, model, IDS[0])])
    torch.testing.assert_close(result, hidden(whole, [1]), rtol=0, atol=1e-6)


def test_what_fails_a_layer_ahead_fails_the_call(llama):
    model, _, stream = streamed(llama)
    expected = stream.sweep([functools.partial(logits, model, IDS[0])])

    def fails():
        logits(model, IDS[1])
        raise ZeroDivisionError

    def goes_behind():
        with stream.behind(fails):
            return logits(model, IDS[0])

    with pytest.raises(ZeroDivisionError):
        stream.sweep([goes_behind])
    found = stream.sweep([functools.partial(logits, model, IDS[0])])
    assert torch.equal(*expected, *found)


def test_a_call_that_goes_on_catches_up_and_takes_nothing_from_the_others(llama):
    whole = load_weights(llama, None, "float32").eval()
    expected = hidden(whole, [2, 3])
    model, stages, stream = streamed(llama)

    def stops_after_layer_1():
        received_attention(model, IDS[:1], [1])
        return logits(model, IDS[1])

    # One ends early, and one goes on with what the others have behind them.
    early = functools.partial(received_attention, model, IDS[:1], [1])
    deep = functools.partial(hidden, model, [2, 3])
    *_, result = stream.sweep([early, stops_after_layer_1, deep])
    assert stages.read_stages == [0, 1, 0, 1, 2, 3, 4]
    assert result.is_inference()
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-6)


def test_an_embedding_that_is_the_head_too_leaves_memory_with_it(tmp_path):
    tied = spread(FAMILIES["llama"](), 0.15)
    tied.config.tie_word_embeddings = True
    tied.tie_weights()
    tied.save_pretrained(tmp_path)
    model, stages, stream = streamed(tmp_path)
    assert stages.is_tied
    (result,) = stream.sweep([functools.partial(logits, model, IDS[0])])
    torch.testing.assert_close(result, logits(tied, IDS[0]), rtol=0, atol=1e-6)
    assert not any(is_present(module) for module in stages.modules)


def test_the_next_stage_is_fetched_while_one_computes(llama, monkeypatch):
    expected = []

    def expect(tensors, files):
        expected.append(files)

    monkeypatch.setattr(FolderTensors, "expect", expect)
    model, stages, stream = streamed(llama)
    stream.sweep([functools.partial(logits, model, IDS[0])])
    assert expected == stages._files[1:]


def test_a_call_that_fails_leaves_no_hook_and_no_weights(llama):
    model, _, stream = streamed(llama)
    expected = stream.sweep([functools.partial(logits, model, IDS[0])])

    def fails():
        with watched(model, [2], lambda *_: 1 / 0):
            logits(model, IDS[0])

    others = [functools.partial(redistributed, model, seed) for seed in (1, 2)]
    with pytest.raises(ZeroDivisionError) as caught:
        stream.sweep([others[0], fails, others[1]])
    # Whoever looks at the error keeps the frames that it came through.
    assert caught.tb is not None
    assert not any(layer.mlp.act_fn._forward_hooks for layer in model.model.layers)
    assert torch.equal(
        *expected, *stream.sweep([functools.partial(logits, model, IDS[0])])
    )


def test_a_call_that_fails_in_the_embedding_takes_nothing_from_the_next(llama):
    model, _, stream = streamed(llama)
    call = functools.partial(logits, model, IDS[0])
    expected = stream.sweep([call])
    unknown_word = torch.tensor([10**6])
    with pytest.raises(IndexError):
        stream.sweep([functools.partial(logits, model, unknown_word)])
    assert torch.equal(*expected, *stream.sweep([call]))


def test_layer_10_is_not_taken_for_a_part_of_layer_1(tmp_path):
    torch.manual_seed(1)
    deep = spread(of_type("llama", num_hidden_layers=11), 0.15).eval()
    deep.save_pretrained(tmp_path)
    model, stages, stream = streamed(tmp_path)
    (result,) = stream.sweep([functools.partial(logits, model, IDS[0])])
    torch.testing.assert_close(result, logits(deep, IDS[0]), rtol=0, atol=1e-6)
    assert stages.read_stages == list(range(13))


def test_a_forward_outside_a_sweep_is_refused(llama):
    model, _, _ = streamed(llama)
    with pytest.raises(RuntimeError, match="in a sweep only"):
        logits(model, IDS[0])


def test_weights_in_bfloat16_are_widened_layer_by_layer(llama):
    model, stages, stream = streamed(llama)
    (widened,) = stream.sweep([functools.partial(logits, model, IDS[0])])
    assert widened.dtype == torch.float32
    stages.put(1)
    weight = model.model.layers[0].mlp.up_proj.weight
    assert weight.dtype == torch.float32
    assert torch.equal(weight, weight.bfloat16().float())


def test_the_head_stays_as_it_is_stored_and_is_multiplied_slice_by_slice(
    llama, monkeypatch
):
    whole = load_weights(llama, None, "float32").eval()
    model, stages, stream = streamed(llama)
    call = functools.partial(logits, model, IDS[0])
    widths = []
    for width in (stages_module.SLICE, 7):
        monkeypatch.setattr(stages_module, "SLICE", width)
        (scores,) = stream.sweep([call])
        torch.testing.assert_close(scores, logits(whole, IDS[0]), rtol=0, atol=1e-6)
        widths.append(scores.shape[-1])
    assert widths == [model.config.vocab_size] * 2
    stages.put(len(stages.modules) - 1)
    assert model.lm_head.weight.dtype == torch.bfloat16


def test_a_head_that_adds_something_is_computed_as_its_family_does(tmp_path):
    torch.manual_seed(1)
    spread(FAMILIES["phi"](), 0.15).save_pretrained(tmp_path)
    _, stages, _ = streamed(tmp_path)
    assert stages.head.bias is not None
    assert "forward" not in vars(stages.head)


def test_a_head_that_lacks_what_it_adds_is_refused(tmp_path, refused):
    torch.manual_seed(1)
    FAMILIES["phi"]().save_pretrained(tmp_path)
    change(tmp_path, lambda tensors: tensors.pop("lm_head.bias"))
    message = refused(streamed, tmp_path)
    assert message == "the checkpoint lacks 1 tensors, the first is lm_head.bias"


def test_what_else_a_checkpoint_says_of_its_head_changes_nothing(tiny_checkpoint):
    expected = load(str(tiny_checkpoint), device="cpu").model
    more = {"lm_head.note": torch.ones(2)}
    change(tiny_checkpoint, lambda tensors: tensors.update(more))
    loaded = load(str(tiny_checkpoint), device="cpu", streamed=True)
    (scores,) = loaded.sweep([functools.partial(logits, loaded.model, IDS[0])])
    torch.testing.assert_close(scores, logits(expected, IDS[0]), rtol=0, atol=1e-6)


def test_of_a_model_that_also_sees_the_final_norm_alone_stays_in_memory(tmp_path):
    gemma3_multimodal().save_pretrained(tmp_path)
    model, _, _ = streamed(tmp_path)
    stays = []
    for name, weight in model.named_parameters():
        assert not weight.is_meta
        if any(weight.stride()):
            stays.append(name)
    assert stays == ["model.language_model.norm.weight"]


def test_a_folder_is_streamed_as_it_is_loaded_whole(tiny_llama):
    whole = load(str(tiny_llama), device="cpu")
    loaded = load(str(tiny_llama), device="cpu", streamed=True)
    assert (loaded.name, loaded.revision) == (whole.name, whole.revision)
    assert (loaded.layers, loaded.label) == (whole.layers, whole.label)
    assert loaded.model.device == whole.model.device
    (scores,) = loaded.sweep([functools.partial(logits, loaded.model, IDS[0])])
    (expected,) = whole.sweep([functools.partial(logits, whole.model, IDS[0])])
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-6)


@pytest.fixture
def on_hub(server, models, tiny_llama):
    """A model on the hub, and how many bytes its weights have."""
    shutil.copytree(tiny_llama, models / "org" / "streamed", dirs_exist_ok=True)
    tensors = load_file(tiny_llama / "model.safetensors").values()
    return "org/streamed", sum(tensor.nbytes for tensor in tensors)


def test_of_a_model_on_a_hub_each_byte_comes_once_and_stays(server, on_hub, tiny_llama):
    spec, size = on_hub
    loaded = load(spec, device="cpu", streamed=True)
    assert loaded.revision == server.commit(spec)
    call = functools.partial(logits, loaded.model, IDS[0])
    (first,) = loaded.sweep([call])
    (second,) = loaded.sweep([call])
    assert size <= server.sent_weights <= 1.01 * size + 10_000

    again = load(spec, device="cpu", streamed=True)
    assert server.sent_weights <= 1.01 * size + 20_000  # the header once more
    (third,) = again.sweep([functools.partial(logits, again.model, IDS[0])])
    expected = logits(load(str(tiny_llama), device="cpu").model, IDS[0])
    for scores in (first, second, third):
        torch.testing.assert_close(scores, expected, rtol=0, atol=1e-6)


def test_where_the_disk_has_no_room_nothing_of_the_hubs_weights_stays(
    server, on_hub, monkeypatch
):
    spec, size = on_hub
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    loaded = load(spec, device="cpu", streamed=True)
    call = functools.partial(logits, loaded.model, IDS[0])
    loaded.sweep([call])
    before = server.sent_weights
    loaded.sweep([call])
    assert 0.99 * size <= server.sent_weights - before <= size
    assert not list(paths.CACHE.rglob("*.safetensors"))


def test_a_hub_that_breaks_off_is_named_and_what_was_fetched_stays(
    server, on_hub, monkeypatch, refused
):
    spec, size = on_hub
    monkeypatch.setattr(first_layers, "TRIES", 1)
    server.break_after = size // 2
    message = refused(load, spec, device="cpu", streamed=True)
    assert "what was fetched stays" in message
    load(spec, device="cpu", streamed=True)
    assert server.sent_weights <= 1.6 * size


def test_a_hub_without_byte_ranges_sends_the_whole_model(server, on_hub):
    spec, _ = on_hub
    server.ignore_range = True
    loaded = load(spec, device="cpu", streamed=True)
    loaded.sweep([functools.partial(logits, loaded.model, IDS[0])])


SAYS = (
    "takes 6.0 GB in bfloat16, more than half of the 11.9 GB that are free: its layers"
    " are read one at a time"
)


@pytest.mark.parametrize(
    "dtype, free, is_streamed",
    [
        ("float32", 23.9, True),
        ("bfloat16", 12.0, False),
        ("bfloat16", 11.9, True),
    ],
)
def test_a_model_that_takes_over_half_of_free_memory_is_streamed_and_says_so(
    tiny_llama, monkeypatch, capsys, dtype, free, is_streamed
):
    class Large(FolderTensors):
        """Tensors of three billion numbers in all."""

        def __init__(self, folder):
            super().__init__(folder)
            self.elements = 3 * 10**9

    memory = SimpleNamespace(available=free * 1e9)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(loading, "FolderTensors", Large)
    loaded = load(str(tiny_llama), device="cpu", dtype=dtype, streamed=None)
    assert (loaded.stream is not None) == is_streamed
    said = capsys.readouterr().err.splitlines()
    lines = [line for line in said if "are free" in line]
    assert len(lines) == is_streamed
    if dtype == "bfloat16" and is_streamed:
        assert lines == [f"{tiny_llama} {SAYS}"]


def test_all_shards_are_counted_and_read_on_the_hub_as_in_a_folder(server, models):
    of_folder = FolderTensors(models / REPO)
    of_hub = HubTensors(REPO, snapshot(REPO, weights=False))
    numbers = 0
    for shard in (models / REPO).glob("*.safetensors"):
        numbers += sum(tensor.numel() for tensor in load_file(shard).values())
    assert of_hub.elements == of_folder.elements == numbers
    assert of_hub.files == of_folder.files


def test_of_a_hub_the_next_stage_comes_before_it_is_read(server, on_hub):
    spec, _ = on_hub
    tensors = HubTensors(spec, snapshot(spec, weights=False))
    norm = {"model.norm.weight": tensors.files["model.norm.weight"]}
    tensors.expect(norm)
    (fetching,) = tensors._fetching.values()
    fetching.result()
    sent = server.sent_weights
    assert tensors.read(norm, None).keys() == norm.keys()
    assert server.sent_weights == sent


def test_weights_that_are_here_already_are_not_fetched_again(server, on_hub):
    spec, _ = on_hub
    snapshot(spec)
    sent = server.sent_weights
    load(spec, device="cpu", streamed=True)
    assert server.sent_weights == sent
    assert not (paths.CACHE / "stages").exists()


def test_a_revision_is_streamed_though_there_is_a_newer_one(server, on_hub):
    spec, _ = on_hub
    commit = server.commit(spec)
    server.lost.add("main")
    assert load(f"{spec}@{commit}", device="cpu", streamed=True).revision == commit


def test_the_weights_of_another_commit_are_others(server, models, tiny_llama):
    repo = "org/moved"
    folder = shutil.copytree(tiny_llama, models / repo)
    norm = {"model.norm.weight": "model.safetensors"}
    found = []
    for commit in ("first", "second"):
        change(folder, lambda tensors: tensors["model.norm.weight"].mul_(2))
        (folder / f"{commit}.json").write_text("{}")
        of_hub = HubTensors(repo, snapshot(repo, weights=False))
        found += of_hub.read(norm, None).values()
    first, second = found
    assert torch.equal(second, 2 * first)


# The embedding is half of the model, whose other half is still missing then.
@pytest.mark.parametrize("share, stays", [(0.6, True), (0.5, False)])
def test_a_stage_stays_where_the_disk_has_room_for_what_is_missing(
    server, on_hub, monkeypatch, share, stays
):
    spec, size = on_hub
    tensors = HubTensors(spec, snapshot(spec, weights=False))
    room = SimpleNamespace(free=share * size)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: room)
    name = "model.embed_tokens.weight"
    tensors.read({name: tensors.files[name]}, None)
    kept = list(tensors.folder.glob("*.safetensors"))
    assert len(kept) == stays


MISSING = [
    "model.layers.1.mlp.up_proj.weight",
    "model.norm.weight",
    "lm_head.weight",
]


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_tensor_is_named(tiny_checkpoint, refused, name):
    change(tiny_checkpoint, lambda tensors: tensors.pop(name))
    message = refused(load, str(tiny_checkpoint), device="cpu", streamed=True)
    assert f"lacks 1 tensors, the first is {name}" in message


def test_of_several_missing_tensors_the_first_is_named(tiny_checkpoint, refused):
    for part in ("down_proj", "up_proj"):
        name = f"model.layers.1.mlp.{part}.weight"
        change(tiny_checkpoint, lambda tensors, name=name: tensors.pop(name))
    _, stages, _ = streamed(tiny_checkpoint)
    assert refused(stages.put, 2) == (
        "the checkpoint lacks 2 tensors, the first is model.layers.1.mlp.up_proj.weight"
    )


@pytest.mark.parametrize("streamed", [False, True])
def test_an_attention_that_is_another_is_refused(
    tmp_path, tiny_llama, refused, streamed
):
    of_type("diffllama").save_pretrained(tmp_path)
    for file in tiny_llama.glob("token*"):
        shutil.copy(file, tmp_path)
    message = refused(load, str(tmp_path), device="cpu", streamed=streamed)
    assert "model type diffllama is not supported" in message


PARTS = [{"layers": 2}, {"head": False}, {"seed": 1}]


@pytest.mark.parametrize("part", PARTS)
def test_only_a_whole_model_is_streamed(tiny_llama, monkeypatch, refused, part):
    message = refused(load, str(tiny_llama), device="cpu", streamed=True, **part)
    assert message.endswith("only a whole model can be streamed")
    memory = SimpleNamespace(available=1)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    loaded = load(str(tiny_llama), device="cpu", streamed=None, **part)
    assert loaded.stream is None
    assert loaded.layers == part.get("layers", 3)
