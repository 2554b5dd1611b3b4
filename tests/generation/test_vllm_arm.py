"""What changes activations in vLLM's workers, on a stand-in for their model and batch."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lib.arm.moving import redistribute
from lib.arm.settings import Arm
from lib.generation.vllm_arm import ArmExtension, Changed, change_for

TEXT, CODE = Arm(c=2, layer=2), Arm(c=0.5, p1=90, mode="code", layer=2)


class SiluAndMul(torch.nn.Module):
    def forward(self, fused):
        gate, up = fused.chunk(2, dim=-1)
        return torch.nn.functional.silu(gate) * up


@pytest.fixture
def changed():
    """The changed activation of layer 2."""
    return Changed(SiluAndMul(), None, 2)


def run(changed, fused, *rows):
    """Return what one forward gives whose batch holds rows of (key, extra_args, tokens
    computed before, tokens now).
    """
    keys, asked, done, now = zip(*rows, strict=True)
    states = [
        SimpleNamespace(sampling_params=SimpleNamespace(extra_args=extra))
        for extra in asked
    ]
    changed.runner = SimpleNamespace(
        requests=dict(zip(keys, states, strict=True)),
        input_batch=SimpleNamespace(
            req_ids=list(keys), num_computed_tokens_cpu=np.array(done)
        ),
        query_start_loc=SimpleNamespace(np=np.cumsum([0, *now])),
    )
    return changed(fused)


def moved(fused, arm, noise):
    """Return what `redistribute` makes of one group of tokens, times the up projection."""
    gate, up = fused.chunk(2, dim=-1)
    options = {"mode": arm.mode, "statistics": "sequence", "generators": [noise]}
    return redistribute(torch.nn.functional.silu(gate), arm.c, arm.p1, **options) * up


def test_each_request_of_a_batch_is_changed_as_it_asks(changed):
    fused, plain, noise = (
        torch.randn(14, 32),
        SiluAndMul(),
        torch.Generator().manual_seed(8),
    )
    text, code, elsewhere = (
        change_for(TEXT, 7, 4),
        change_for(CODE, 8, 3),
        change_for(Arm(layer=1), 9, 2),
    )
    rows = [
        ("plain", None, 0, 3),
        ("text", text, 0, 5),
        ("code", code, 0, 4),
        ("elsewhere", elsewhere, 0, 2),
    ]
    parts = [
        plain(fused[:3]),
        moved(fused[3:7], TEXT, torch.Generator().manual_seed(7)),
        plain(fused[7:8]),
    ]
    parts += [
        moved(fused[8:11], CODE, noise),
        moved(fused[11:12], CODE, noise),
        plain(fused[12:]),
    ]
    assert torch.equal(run(changed, fused, *rows), torch.cat(parts))
    # A forward that runs none of the batch, of a rank that idles along with others.
    assert run(changed, fused[:1], *rows).shape == (1, 16)


@pytest.mark.parametrize("arm", [TEXT, CODE])
def test_what_is_computed_once_more_is_changed_as_before(changed, arm):
    fused, extra = torch.randn(6, 32), change_for(arm, 7, 4)
    steps = [(0, 4), (4, 1), (5, 1)]
    one_by_one = [
        run(changed, fused[step[0] : sum(step)], ("r", extra, *step)) for step in steps
    ]
    assert torch.equal(run(changed, fused, ("r", extra, 0, 6)), torch.cat(one_by_one))
    run(changed, fused[:4], ("another", extra, 0, 4))
    assert list(changed.noise) == [
        "another"
    ]  # draws of finished requests are forgotten


def test_a_prompt_whose_first_chunk_is_not_the_whole_of_it_ends_the_run(changed):
    with pytest.raises(RuntimeError, match="vLLM cut the prompt of r"):
        run(changed, torch.randn(8, 32), ("r", change_for(TEXT, 7, 9), 0, 8))


def test_a_shared_activation_is_changed_in_the_layers_asked_for_and_an_unknown_one_is_named():
    one, fused = ArmExtension(), SiluAndMul()
    mlps = [
        torch.nn.ModuleDict({"act_fn": act_fn})
        for act_fn in (fused, fused, torch.nn.SiLU())
    ]
    model = torch.nn.ModuleDict(
        {
            "layers": torch.nn.ModuleList(
                torch.nn.ModuleDict({"mlp": mlp}) for mlp in mlps
            )
        }
    )
    one.model_runner = SimpleNamespace(get_model=lambda: model)
    assert one.install_arm([2]) == "" and [type(mlp.act_fn) for mlp in mlps[:2]] == [
        SiluAndMul,
        Changed,
    ]
    assert (
        "layer 3 of ModuleDict activates by SiLU, not by SiluAndMul or GeluAndMul"
        in one.install_arm([1, 3])
    )
    assert "layer 4 of ModuleDict activates by no MLP" in one.install_arm([4])
