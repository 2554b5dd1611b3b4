"""A model whose weights stay on disk computes the same as in memory."""

import pytest
import torch
from families import FAMILIES, KINDS, offloaded, on_cpu, save, spread

from lib.arm.redistribution import installed
from lib.arm.settings import Arm
from lib.attention.custom_attention import attending, hiding
from lib.attention.received import received_attention
from lib.models import loading
from lib.prompts.batches import batch_tokens

IDS = torch.tensor([5, 17, 3, 88, 41, 9, 60, 2, 33, 71])
SPAN = slice(2, 5)
# A family without one activation that ARM could change.
WITH_EXPERTS = "gpt_oss"


def logits(model):
    with torch.inference_mode(), attending(model.get_decoder()):
        return model(input_ids=IDS[None], use_cache=False).logits


def hidden(model):
    with hiding(model, [SPAN], hidden=[2, 3], silent=[1]):
        return logits(model)


def redistributed(model):
    with installed(model, Arm(c=1.0, layer=2), seed=1):
        return logits(model)


@pytest.fixture
def on_disk(monkeypatch):
    """A function that loads a folder with so much free memory, half of it for
    weights.
    """

    def load_with(folder, free):
        with monkeypatch.context() as patch:
            patch.setattr(loading, "free_memory", lambda *_: free)
            return offloaded(folder)

    return load_with


@pytest.mark.parametrize("family", KINDS)
def test_a_family_computes_the_same_from_disk_as_in_memory(family, tmp_path, on_disk):
    # The weights are stored in bfloat16 and converted to float32 while loading.
    model = spread(FAMILIES[family](), 0.15).bfloat16()
    save(model, tmp_path, max_shard_size="30KB")
    whole = on_cpu(tmp_path)
    loaded = on_disk(tmp_path, free=0)
    assert set(loaded.model.hf_device_map.values()) == {"disk"}
    assert (loaded.revision, loaded.device) == (whole.revision, "cpu")

    functions = [logits, hidden, lambda model: received_attention(model, IDS)]
    if family != WITH_EXPERTS:
        functions.append(redistributed)
    for function in functions:
        torch.testing.assert_close(
            function(loaded.model),
            function(whole.model),
            rtol=0,
            atol=1e-6,
            equal_nan=True,
        )
    assert loaded.model.get_input_embeddings().weight.is_meta
    assert loaded.model.get_output_embeddings().weight.is_meta


@pytest.mark.parametrize("family", ["gemma3_text", "mixtral"])
def test_part_of_the_weights_can_be_in_memory(family, tmp_path, on_disk, capsys):
    save(spread(FAMILIES[family](), 0.15), tmp_path)
    whole = on_cpu(tmp_path)
    weights = sum(weight.nbytes for weight in whole.model.parameters())
    loaded = on_disk(tmp_path, free=weights)
    here = [weight.nbytes for weight in loaded.model.parameters() if not weight.is_meta]
    assert 0 < sum(here) <= weights / 2
    assert "some of them stay on disk" in capsys.readouterr().err
    torch.testing.assert_close(
        logits(loaded.model), logits(whole.model), rtol=0, atol=1e-6
    )


def test_the_free_memory_of_a_second_gpu_is_that_gpus(monkeypatch):
    free = {"cuda:1": 10, "cpu": 30}
    monkeypatch.setattr(loading, "free_memory", free.get)
    assert loading._memory_for_weights("cuda:1") == {1: 5, "cpu": 15}
    assert batch_tokens("cuda:1") == batch_tokens("cuda") > batch_tokens("cpu")


def test_weights_that_fit_into_half_of_free_memory_are_all_in_memory(
    tiny_llama, on_disk, capsys
):
    loaded = on_disk(tiny_llama, free=10**9)
    assert {weight.device.type for weight in loaded.model.parameters()} == {"cpu"}
    assert not capsys.readouterr().err
