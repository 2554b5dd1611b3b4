"""ARM inside vLLM's processes: what its workers inherit, what changes activations.

vLLM runs the tokens of many requests at once, one request after the other, with gate
and up projection fused. Each request says in its `extra_args` whether ARM changes it,
and how. So plain requests and several settings may share a batch, and a request's draws
come from its own seed.
"""

from collections.abc import Sequence
from typing import Any

import torch

from lib.arm.moving import redistribute
from lib.arm.settings import Arm

# vLLM's modules that give act(gate) * up of [gate, up].
FUSED = ("SiluAndMul", "GeluAndMul")


def change_for(arm: Arm, seed: int, prompt_tokens: int) -> dict:
    """Return the `extra_args` of a request under ARM.

    Only its first `prompt_tokens` are a prompt. The second step of an elicited answer
    begins with the first, of which just that much was one.
    """
    settings = arm.model_dump()
    return {"arm": settings | {"seed": seed, "prompt_tokens": prompt_tokens}}


class ArmExtension:
    """Added to vLLM's worker class, none of whose names it may have.

    Its method is called by name.
    """

    model_runner: Any  # the worker's

    def install_arm(self, layers: Sequence[int]) -> str:
        """Let requests ask for ARM in these layers, counted from 1.

        Returns why they cannot, or an empty text.
        """
        decoder = self.model_runner.get_model()
        if hasattr(decoder, "get_language_model"):
            decoder = decoder.get_language_model()
        for layer in layers:
            ending = f"layers.{layer - 1}.mlp"
            mlps = [
                module
                for name, module in decoder.named_modules()
                if name.endswith(ending)
            ]
            kind = "no MLP"
            if len(mlps) == 1:
                kind = type(getattr(mlps[0], "act_fn", None)).__name__
            if kind not in FUSED:
                return (
                    f"layer {layer} of {type(decoder).__name__} activates by {kind},"
                    f" not by {' or '.join(FUSED)}"
                )
            mlps[0].act_fn = Changed(mlps[0].act_fn, self.model_runner, layer)
        return ""


class Changed(torch.nn.Module):
    """The activation of one layer as requests want it.

    The model runner's batch says which tokens are of which request. This takes the
    place of a module that all layers may share, as Gemma's do, so a hook there would
    see every layer. In text mode decoding is plain: vLLM may replay it as graphs that
    know nothing of this.
    """

    def __init__(self, act_fn: torch.nn.Module, runner, layer: int):
        super().__init__()
        self.act_fn = act_fn
        self.runner = runner
        self.layer = layer
        self.noise: dict[str, torch.Generator] = {}

    def forward(self, fused: torch.Tensor) -> torch.Tensor:
        """Return act(gate) * up (tokens, F) of [gate, up] (tokens, 2F).

        It is changed where requests ask for it.
        """
        output = self.act_fn(fused)
        requests = self.runner.requests
        batch = self.runner.input_batch
        starts = self.runner.query_start_loc.np
        self._forget_finished(requests)
        for row, key in enumerate(batch.req_ids):
            change = (requests[key].sampling_params.extra_args or {}).get("arm")
            if not change or change["layer"] != self.layer:
                continue
            done = int(batch.num_computed_tokens_cpu[row])
            begin = starts[row]
            end = starts[row + 1]
            if done == 0:
                self._begin(key, change, end - begin, output.device)

            # How many of this row's tokens are its prompt's.
            prompt = max(change["prompt_tokens"] - done, 0)
            end = min(end, len(fused))  # fewer where a rank idles along with others
            if change["mode"] == "text":
                end = min(begin + prompt, end)
            if end > begin:
                output[begin:end] = self._changed(fused[begin:end], key, change, prompt)
        return output

    def _forget_finished(self, requests) -> None:
        """Keep the generators of those requests alone that vLLM still knows."""
        self.noise = {
            key: generator for key, generator in self.noise.items() if key in requests
        }

    def _begin(self, key: str, change: dict, tokens: int, device: torch.device) -> None:
        """Start a request's draws anew.

        That is also after its blocks were taken away, when all is computed once more.
        """
        if tokens < change["prompt_tokens"]:
            raise RuntimeError(
                f"vLLM cut the prompt of {key}, whose statistics ARM takes of all of it"
            )
        self.noise[key] = torch.Generator(device).manual_seed(change["seed"])

    def _changed(
        self, fused: torch.Tensor, key: str, change: dict, prompt: int
    ) -> torch.Tensor:
        """Return act(gate) * up of one request's tokens, with the activation moved.

        Its first `prompt` tokens share their statistics; each later one has its own.
        """
        gate, up = fused.chunk(2, dim=-1)
        activation = self.act_fn(torch.cat((gate, torch.ones_like(gate)), dim=-1))
        settings = {name: change[name] for name in ("c", "p1", "mode", "fraction")}
        settings["statistics"] = "sequence"
        draws = self.noise[key]
        first = redistribute(activation[:prompt], **settings, generators=[draws])
        later = activation[prompt:, None]
        later = redistribute(later, **settings, generators=[draws] * len(later))[:, 0]
        return torch.cat((first, later)) * up
