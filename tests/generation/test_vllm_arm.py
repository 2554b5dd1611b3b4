"""What changes activations in vLLM's workers, on a stand-in for their model and batch."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lib.arm.moving import redistribute
from lib.arm.settings import Arm
from lib.generation.vllm_arm import ArmExtension, Changed, change_for

TEXT, CODE = Arm(layer=2), Arm(c=0.5, p1=90, mode="code", layer=2)


class SiluAndMul(torch.nn.Module):
    def forward(self, fused):
        gate, up = fused.chunk(2, dim=-1)
        return torch.nn.functional.silu(gate) * up


class MulAndSilu(SiluAndMul):
    pass


def batch(*rows):
    """Return a model runner whose batch holds rows of (key, extra_args, tokens computed before, tokens now)."""
    keys, asked, done, now = zip(*rows, strict=True)
    states = [SimpleNamespace(sampling_params=SimpleNamespace(extra_args=extra)) for extra in asked]
    return SimpleNamespace(
        requests=dict(zip(keys, states, strict=True)),
        input_batch=SimpleNamespace(req_ids=list(keys), num_computed_tokens_cpu=np.array(done)),
        query_start_loc=SimpleNamespace(np=np.cumsum([0, *now])),
    )


def run(changed, runner, fused):
    """Return what one forward gives."""
    changed.runner = runner
    return changed(fused)


def moved(fused, arm, noise):
    """Return what `redistribute` makes of one group of tokens, times the up projection."""
    gate, up = fused.chunk(2, dim=-1)
    options = {"mode": arm.mode, "statistics": "sequence", "generators": [noise]}
    return redistribute(torch.nn.functional.silu(gate), arm.c, arm.p1, **options) * up


def test_each_request_of_a_batch_is_changed_as_it_asks():
    fused, plain = torch.randn(14, 32), SiluAndMul()
    text, code, elsewhere = change_for(TEXT, 7, 4), change_for(CODE, 8, 3), change_for(Arm(layer=1), 9, 2)
    rows = [("plain", None, 0, 3), ("text", text, 0, 5), ("code", code, 0, 4), ("elsewhere", elsewhere, 0, 2)]
    found = run(Changed(SiluAndMul(), None, 2), batch(*rows), fused)
    noise = torch.Generator().manual_seed(8)
    parts = [plain(fused[:3]), moved(fused[3:7], TEXT, torch.Generator().manual_seed(7)), plain(fused[7:8])]
    parts += [moved(fused[8:11], CODE, noise), moved(fused[11:12], CODE, noise), plain(fused[12:])]
    assert torch.equal(found, torch.cat(parts))


@pytest.mark.parametrize("arm", [TEXT, CODE])
def test_what_is_computed_once_more_is_changed_as_before(arm):
    fused, changed, extra = torch.randn(6, 32), Changed(SiluAndMul(), None, 2), change_for(arm, 7, 4)
    steps = [(0, 4), (4, 1), (5, 1)]
    one_by_one = [run(changed, batch(("r", extra, *step)), fused[step[0] : sum(step)]) for step in steps]
    assert torch.equal(run(changed, batch(("r", extra, 0, 6)), fused), torch.cat(one_by_one))


def test_a_forward_that_runs_none_of_the_batch_is_taken():
    changed = Changed(SiluAndMul(), None, 2)
    runner = batch(("a", change_for(CODE, 7, 4), 0, 4), ("b", change_for(TEXT, 8, 4), 0, 4))
    assert run(changed, runner, torch.randn(8, 32)).shape == (8, 16)
    assert run(changed, runner, torch.randn(1, 32)).shape == (1, 16)


def test_a_prompt_whose_first_chunk_is_not_the_whole_of_it_ends_the_run():
    with pytest.raises(RuntimeError, match="vLLM cut the prompt of r"):
        run(Changed(SiluAndMul(), None, 2), batch(("r", change_for(TEXT, 7, 9), 0, 8)), torch.randn(8, 32))


def test_draws_of_finished_requests_are_forgotten():
    changed, extra = Changed(SiluAndMul(), None, 2), change_for(CODE, 7, 4)
    for key in "abc":
        run(changed, batch((key, extra, 0, 4)), torch.randn(4, 32))
    assert list(changed.noise) == ["c"]


def worker(*activations):
    """Return a worker of a model with one layer for each activation."""
    layers = [torch.nn.ModuleDict({"mlp": torch.nn.Module()}) for _ in activations]
    for layer, act_fn in zip(layers, activations, strict=True):
        layer["mlp"].act_fn = act_fn
    worker, model = ArmExtension(), torch.nn.ModuleDict({"layers": torch.nn.ModuleList(layers)})
    worker.model_runner = SimpleNamespace(get_model=lambda: model)
    return worker, layers


def test_an_activation_that_layers_share_is_changed_in_those_asked_for():
    one, layers = worker(*[SiluAndMul()] * 3)
    assert one.install_arm([2]) == ""
    assert [type(layer["mlp"].act_fn) for layer in layers] == [SiluAndMul, Changed, SiluAndMul]


def test_unknown_activation_module_is_named():
    one, _ = worker(SiluAndMul(), MulAndSilu())
    assert "layer 2 of ModuleDict activates by MulAndSilu, not by SiluAndMul or GeluAndMul" in one.install_arm([1, 2])
    assert "layer 3 of ModuleDict activates by no MLP" in one.install_arm([3])
