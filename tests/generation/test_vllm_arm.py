"""What changes activations in vLLM's workers, on a stand-in for model and batch."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lib.arm.moving import redistribute
from lib.arm.settings import Arm
from lib.generation.vllm_arm import ArmExtension, Changed, change_for

TEXT = Arm(c=2, layer=2)
CODE = Arm(c=0.5, p1=90, mode="code", layer=2)
WIDTH = 16


class SiluAndMul(torch.nn.Module):
    def forward(self, fused):
        gate, up = fused.chunk(2, dim=-1)
        return torch.nn.functional.silu(gate) * up


@pytest.fixture
def changed():
    """The changed activation of layer 2."""
    return Changed(SiluAndMul(), None, 2)


def random_fused(tokens):
    return torch.randn(tokens, 2 * WIDTH)


def run(changed, fused, *rows):
    """Return what one forward gives, whose batch holds these rows.

    A row: key, extra_args, tokens computed before, tokens now.
    """
    requests = {}
    for key, extra, _, _ in rows:
        parameters = SimpleNamespace(extra_args=extra)
        requests[key] = SimpleNamespace(sampling_params=parameters)
    batch = SimpleNamespace(
        req_ids=[key for key, *_ in rows],
        num_computed_tokens_cpu=np.array([done for *_, done, _ in rows]),
    )
    starts = np.cumsum([0, *(now for *_, now in rows)])
    changed.runner = SimpleNamespace(
        requests=requests,
        input_batch=batch,
        query_start_loc=SimpleNamespace(np=starts),
    )
    return changed(fused)


def moved(fused, arm, noise):
    """Return what `redistribute` makes of a group of tokens, times up."""
    gate, up = fused.chunk(2, dim=-1)
    activation = torch.nn.functional.silu(gate)
    settings = {"mode": arm.mode, "statistics": "sequence", "generators": [noise]}
    return redistribute(activation, arm.c, arm.p1, **settings) * up


def test_each_request_of_a_batch_is_changed_as_it_asks(changed):
    fused = random_fused(14)
    plain = SiluAndMul()
    rows = [
        ("plain", None, 0, 3),
        ("text", change_for(TEXT, 7, 4), 0, 5),
        ("code", change_for(CODE, 8, 3), 0, 4),
        ("elsewhere", change_for(Arm(layer=1), 9, 2), 0, 2),
    ]
    text_noise = torch.Generator().manual_seed(7)
    code_noise = torch.Generator().manual_seed(8)
    parts = [
        plain(fused[:3]),
        moved(fused[3:7], TEXT, text_noise),
        plain(fused[7:8]),
        moved(fused[8:11], CODE, code_noise),
        moved(fused[11:12], CODE, code_noise),
        plain(fused[12:]),
    ]
    assert torch.equal(run(changed, fused, *rows), torch.cat(parts))
    # A forward that runs none of the batch, of a rank that idles along with others.
    assert run(changed, fused[:1], *rows).shape == (1, WIDTH)


@pytest.mark.parametrize("arm", [TEXT, CODE])
def test_what_is_computed_once_more_is_changed_as_before(changed, arm):
    fused = random_fused(6)
    extra = change_for(arm, 7, 4)
    steps = []
    for done, now in [(0, 4), (4, 1), (5, 1)]:
        part = fused[done : done + now]
        steps.append(run(changed, part, ("r", extra, done, now)))
    at_once = run(changed, fused, ("r", extra, 0, 6))
    assert torch.equal(at_once, torch.cat(steps))
    # Draws of finished requests are forgotten.
    run(changed, fused[:4], ("another", extra, 0, 4))
    assert list(changed.noise) == ["another"]


def test_a_prompt_whose_first_chunk_is_not_the_whole_of_it_ends_the_run(changed):
    row = ("r", change_for(TEXT, 7, 9), 0, 8)
    with pytest.raises(RuntimeError, match="vLLM cut the prompt of r"):
        run(changed, random_fused(8), row)


@pytest.fixture
def extension():
    """A worker of a model whose first two layers share an activation module."""
    shared = SiluAndMul()
    layers = torch.nn.ModuleList()
    for activation in (shared, shared, torch.nn.SiLU()):
        mlp = torch.nn.ModuleDict({"act_fn": activation})
        layers.append(torch.nn.ModuleDict({"mlp": mlp}))
    worker = ArmExtension()
    model = torch.nn.ModuleDict({"layers": layers})
    worker.model_runner = SimpleNamespace(get_model=lambda: model)
    worker.layers = layers
    return worker


def test_a_shared_activation_is_changed_in_the_layers_asked_for(extension):
    assert extension.install_arm([2]) == ""
    kinds = [type(layer["mlp"].act_fn) for layer in extension.layers[:2]]
    assert kinds == [SiluAndMul, Changed]


@pytest.mark.parametrize(
    "layers, refusal",
    [
        (
            [1, 3],
            "layer 3 of ModuleDict activates by SiLU, not by SiluAndMul or GeluAndMul",
        ),
        ([4], "layer 4 of ModuleDict activates by no MLP"),
    ],
)
def test_an_activation_that_is_unknown_in_vllm_is_named(extension, layers, refusal):
    assert refusal in extension.install_arm(layers)
