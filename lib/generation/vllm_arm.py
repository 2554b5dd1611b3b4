"""ARM inside vLLM's processes: what its workers inherit, and what changes an activation
there.

vLLM runs the tokens of many requests at once, one request after the other, with gate
and up projection fused. Each request says in its `extra_args` whether ARM changes it,
and how; so plain requests and several settings may share a batch, and a request's draws
come from its own seed.
"""

from collections.abc import Sequence
from typing import Any

import torch

from lib.arm.moving import redistribute
from lib.arm.settings import Arm

FUSED = ("SiluAndMul", "GeluAndMul")  # of vLLM: act(gate) * up of [gate, up]


def change_for(arm: Arm, seed: int, prompt_tokens: int) -> dict:
    """Return the `extra_args` of a request under ARM; only the first `prompt_tokens`
    are its prompt.

    The second step of an elicited answer begins with the first, of which just that much
    was a prompt.
    """
    return {"arm": arm.model_dump() | {"seed": seed, "prompt_tokens": prompt_tokens}}


class ArmExtension:
    """Added to vLLM's worker class, none of whose names it may have; its method is
    called by name.
    """

    model_runner: Any  # the worker's

    def install_arm(self, layers: Sequence[int]) -> str:
        """Let requests ask for ARM in these layers, counted from 1; return why they
        cannot, or an empty text.
        """
        model = self.model_runner.get_model()
        decoder = (
            model.get_language_model()
            if hasattr(model, "get_language_model")
            else model
        )
        for layer in layers:
            found = [
                mlp
                for name, mlp in decoder.named_modules()
                if name.endswith(f"layers.{layer - 1}.mlp")
            ]
            kind = (
                type(getattr(found[0], "act_fn", None)).__name__
                if len(found) == 1
                else "no MLP"
            )
            if kind not in FUSED:
                return (
                    f"layer {layer} of {type(decoder).__name__} activates by {kind},"
                    f" not by {' or '.join(FUSED)}"
                )
            found[0].act_fn = Changed(found[0].act_fn, self.model_runner, layer)
        return ""


class Changed(torch.nn.Module):
    """The activation of one layer as requests want it; which tokens are whose stands in
    the model runner's batch.

    It stands in the place of a module that all layers may share, as Gemma's do, so a
    hook there would see every layer. In text mode decoding is plain: vLLM may replay it
    as graphs that know nothing of this.
    """

    def __init__(self, act_fn: torch.nn.Module, runner, layer: int):
        super().__init__()
        self.act_fn, self.runner, self.layer = act_fn, runner, layer
        self.noise: dict[str, torch.Generator] = {}

    def forward(self, fused: torch.Tensor) -> torch.Tensor:
        """Return act(gate) * up (tokens, F) of `fused` (tokens, 2F), changed where
        requests ask for it.
        """
        output = self.act_fn(fused)
        requests, batch = self.runner.requests, self.runner.input_batch
        self.noise = {
            key: noise for key, noise in self.noise.items() if key in requests
        }
        starts = self.runner.query_start_loc.np
        for row, key in enumerate(batch.req_ids):
            asked = (requests[key].sampling_params.extra_args or {}).get("arm")
            if not asked or asked["layer"] != self.layer:
                continue
            done = int(batch.num_computed_tokens_cpu[row])
            if done == 0 and starts[row + 1] - starts[row] < asked["prompt_tokens"]:
                raise RuntimeError(
                    f"vLLM cut the prompt of {key}, whose statistics ARM takes of all"
                    " of it"
                )
            if (
                done == 0
                # also after its blocks were taken away, which computes everything once more
            ):
                self.noise[key] = torch.Generator(output.device).manual_seed(
                    asked["seed"]
                )
            prompt = max(asked["prompt_tokens"] - done, 0)
            begin, end = (
                starts[row],
                min(starts[row + 1], len(fused)),
            )  # fewer where a rank idles along with others
            if asked["mode"] == "text":
                end = min(begin + prompt, end)
            if end > begin:
                gate, up = fused[begin:end].chunk(2, dim=-1)
                activation = self.act_fn(
                    torch.cat((gate, torch.ones_like(gate)), dim=-1)
                )
                options = {
                    name: asked[name] for name in ("c", "p1", "mode", "fraction")
                } | {"statistics": "sequence"}
                first, later = (
                    activation[:prompt],
                    activation[prompt:, None],
                )  # the prompt as one, then each token
                first = redistribute(first, **options, generators=[self.noise[key]])
                later = redistribute(
                    later, **options, generators=[self.noise[key]] * len(later)
                )[:, 0]
                output[begin:end] = torch.cat((first, later)) * up
        return output
