"""The transformers engine against transformers' own greedy `generate`."""

import contextlib
import itertools
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from families import FAMILIES, spread

from lib.arm.moving import installed
from lib.arm.settings import Arm
from lib.errors import InputError
from lib.generation import Request, Sampling, engine_class, transformers
from lib.generation.drawing import choose
from lib.generation.step import DecodeSteps
from lib.models.loading import Loaded


@pytest.fixture(params=["llama", "gemma3-local-and-global"])
def tiny(request, demo):
    torch.manual_seed(2)
    model = spread(FAMILIES[request.param](), 0.2)
    model.generation_config.eos_token_id = demo.tokenizer.eos_token_id
    return Loaded(model, demo.tokenizer, "tiny", "tiny", "none", "cpu", "float32", 3)


def requests(lengths):
    generator = torch.Generator().manual_seed(3)
    draw = [torch.randint(10, 97, (n,), generator=generator).tolist() for n in lengths]
    return [Request(str(i), [7, 8, 9, *ids]) for i, ids in enumerate(draw)]


def complete(loaded, asked, batch_size, arm=None, **settings):
    engine, asked = (
        engine_class("transformers")(loaded, batch_size),
        [replace(request, arm=arm) for request in asked],
    )
    return {
        completion.key: completion
        for completion in engine.complete(asked, Sampling(**settings))
    }


@pytest.mark.parametrize(
    "arm", [None, Arm(c=1.0), Arm(c=1.0, mode="code", statistics="sequence")], ids=str
)
@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_greedy_equals_generate_whatever_the_batch(tiny, batch_size, arm):
    asked = [
        replace(request, seed=i)
        for i, request in enumerate(requests([1, 9, 4, 20, 12, 5, 2]))
    ]
    stops = tiny.model.generation_config.eos_token_id = [
        27,
        43,
        62,
        83,
        87,
        95,
    ]  # rows leave one by one
    plain, found = (
        complete(tiny, asked, batch_size, changed, max_new_tokens=10)
        for changed in (None, arm)
    )
    for request in asked:
        ids = torch.tensor([request.input_ids])
        with (
            installed(tiny.model, seed=request.seed, **arm.model_dump())
            if arm
            else contextlib.nullcontext()
        ):
            expected = tiny.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=10,
                do_sample=False,
            )
        written = itertools.takewhile(
            lambda token: token not in stops, expected[0, ids.shape[1] :].tolist()
        )
        assert found[request.key].text == tiny.tokenizer.decode(
            [*written], skip_special_tokens=True
        )
    assert len({completion.completion_tokens for completion in found.values()}) > 2
    assert (found == plain) == (arm is None)
    assert (
        complete(tiny, asked, batch_size, max_new_tokens=10) == plain
    )  # ARM has left the model


def test_an_answer_that_was_cut_goes_on_as_if_it_had_not_been(tiny):
    asked = requests([9, 4, 12])
    ids = torch.tensor([asked[1].input_ids])
    first = tiny.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=5, do_sample=False
    )
    begun = tuple(first[0, ids.shape[1] :].tolist())
    for some in (asked, asked[1:2]):
        cut = [
            replace(request, resumed_tokens=begun) if request is asked[1] else request
            for request in some
        ]
        assert complete(tiny, cut, 4, max_new_tokens=12) == complete(
            tiny, some, 4, max_new_tokens=12
        )


def test_prompts_that_have_no_room_beside_the_slots_go_on_with_fewer_slots(
    tiny, monkeypatch, capsys
):
    asked, begun, steps = (
        requests([3, 8, 5, 2]),
        transformers.prefill,
        Mock(wraps=DecodeSteps),
    )
    expected = complete(tiny, asked, 4, max_new_tokens=6)

    def prefill(*given):
        if steps.call_args.args[1] > 1:
            raise torch.OutOfMemoryError("out of memory")
        return begun(*given)

    monkeypatch.setattr(transformers, "DecodeSteps", steps)
    monkeypatch.setattr(transformers, "prefill", prefill)
    assert complete(tiny, asked, 4, max_new_tokens=6) == expected
    assert [call.args[1] for call in steps.call_args_list] == [4, 2, 1]
    assert (
        capsys.readouterr().err.splitlines()[-1]
        == "out of memory: going on with 1 prompts at once"
    )


def test_the_batch_keeps_within_the_memory_there_is(tiny, monkeypatch):
    engine = engine_class("transformers")(tiny, 64)
    monkeypatch.setattr(
        "psutil.virtual_memory",
        lambda: SimpleNamespace(available=2 * 5 * 2 * 3 * 2 * 8 * 4 * 100),
    )
    assert (
        engine._room(100) == 5
        # half of it: five rows of 2 (keys, values) x 3 layers x 2 heads x 8 wide x 4 bytes
    )


def test_tokens_are_drawn_as_often_as_their_probabilities_say():
    probabilities = torch.tensor([0.1, 0.55, 0.05, 0.3])
    draws = [torch.Generator().manual_seed(0)] * 4000
    drawn = choose(
        (2 * probabilities.log()).expand(4000, 4), Sampling(1, temperature=2.0), draws
    )
    shares = torch.bincount(torch.tensor(drawn), minlength=4) / 4000
    torch.testing.assert_close(shares, probabilities, rtol=0, atol=0.025)


def test_arm_that_cannot_work_is_refused_before_anything_is_generated(tiny):
    for arm, message in (
        (Arm(layer=4), "the model has layers 1 to 3"),
        (Arm(mode="code"), "statistics='sequence'"),
    ):
        with pytest.raises(InputError, match=message):
            engine_class("transformers")(tiny, 4).complete(
                [Request("a", [1, 2], arm=arm)], Sampling(6)
            )
