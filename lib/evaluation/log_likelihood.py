"""Compute the log-likelihood of given texts under a condition: log p(text | prompt) in
nats, summed over the text's tokens, each of which is predicted from the prompt and the
tokens before it (teacher forcing).

A text with its prompt is a `TextToScore`, and its log-likelihood a *score*.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from lib.arm.forward_hook import installed
from lib.attention.custom_attention import hiding
from lib.evaluation.row_keys import arm_of
from lib.generation.key_value_caches import prefill, raise_if_nan
from lib.models.loading import Loaded
from lib.prompts.building import Prompt
from lib.prompts.conditions import Condition
from lib.prompts.problem_schema import Problem


class Sizes(NamedTuple):
    """How much is scored together on a kind of device."""

    tokens: int  # of a forward pass, with padding
    texts: int  # under a condition, which share forward passes with similar lengths
    baselines: int  # problems whose distributions under `none` are in memory


# On a GPU, a small model takes as long for 2,000 tokens as for 8,000, so that full
# forward passes matter more than memory. With a vocabulary of 262,000, in float32, the
# logits of a forward pass take at most 2.1 GB on a CPU and 17 GB on a GPU, and the 64
# distributions of each baseline 0.5 GB and 4.3 GB together.
SIZES = {"cpu": Sizes(2048, 32, 8), "cuda": Sizes(16_384, 256, 64)}


@dataclass(frozen=True)
class TextToScore:
    """A text to score, its prompt, and the condition that made the prompt."""

    problem: Problem
    condition: Condition
    prompt: Prompt
    # Kind of text: solution, answer (the gold answer) or draw (a sampled answer).
    target: str
    lead: list[int]  # tokens between prompt and text, which are not scored
    text: list[int]  # the tokens whose log-likelihood is computed
    # Of a draw: the fields of its row in addition to SCORE_FIELDS, of which `answer` is
    # the key of the sampled completion.
    draw: dict = field(default_factory=dict)

    @property
    def ids(self) -> list[int]:
        """The tokens of the prompt, the lead and the text."""
        return [*self.prompt.input_ids.tolist(), *self.lead, *self.text]

    @property
    def temperature(self) -> float:
        """The temperature at which a draw was sampled; 1 for other texts."""
        return self.draw.get("temperature", 1.0)


def sizes_of(loaded: Loaded) -> Sizes:
    """Return how much is scored together on a model's device."""
    return SIZES[loaded.device.partition(":")[0]]


@torch.inference_mode()
def log_likelihoods(loaded: Loaded, batch: Mapping[str, TextToScore]) -> list[float]:
    """Return the log-likelihood of each text in nats.

    batch: texts by key, all with the same condition and temperature. Raises InputError
    if the model produces NaN.
    """
    return [nats for nats, _ in score_batch(loaded, batch)]


@torch.inference_mode()
def score_batch(
    loaded: Loaded, batch: Mapping[str, TextToScore]
) -> list[tuple[float, torch.Tensor]]:
    """Return the log-likelihood of each text in nats, with the logits (tokens,
    vocabulary) that predict its tokens, divided by the temperature.

    batch: texts by key, all with the same condition and temperature. The rows' common
    prefix is computed once. ARM changes only the activations of prompts, as in
    generation, and the keys seed its draws. Raises InputError if the model produces
    NaN.
    """
    texts = list(batch.values())
    model = loaded.model
    arm = arm_of(texts[0].condition, loaded)

    # The logits at a position predict the next token, so those of a text begin one
    # position before it and end one position before its end.
    rows = [text.ids for text in texts]
    sizes = [len(text.text) for text in texts]
    before = [
        range(len(ids) - size - 1, len(ids) - 1)
        for ids, size in zip(rows, sizes, strict=True)
    ]
    with contextlib.ExitStack() as stack:
        stack.enter_context(_hiding_inserted(loaded, texts))
        changed = None
        if arm:
            hook = stack.enter_context(installed(model, **arm.model_dump()))
            hook.generators = [_generator(loaded.device, key) for key in batch]
            changed = [len(text.prompt) for text in texts]
        _, logits = prefill(model, rows, before, changed)

    logits /= texts[0].temperature
    tokens = [token for text in texts for token in text.text]
    ids = torch.tensor(tokens, device=loaded.device)[:, None]
    nats = logits.gather(1, ids)[:, 0] - logits.logsumexp(-1)
    raise_if_nan(nats)
    sums = [float(part.sum()) for part in nats.double().cpu().split(sizes)]
    return list(zip(sums, logits.split(sizes), strict=True))


def _hiding_inserted(
    loaded: Loaded, texts: Sequence[TextToScore]
) -> contextlib.AbstractContextManager[None]:
    """Return a context manager within which the layers that the texts' condition names
    hide the inserted tokens.
    """
    view = texts[0].condition.view
    spans = [text.prompt.spans["inserted"] for text in texts]
    hidden = view.hidden(loaded.layers)
    silenced = view.silenced(loaded.layers)
    visible = texts[0].condition.visible
    shown = [visible.within(span) for span in spans] if visible else None
    return hiding(loaded.model, spans, hidden, silenced, shown)


def _generator(device: str, key: str) -> torch.Generator:
    """Return the random generator from which ARM draws for the text with a key."""
    return torch.Generator(device).manual_seed(int(key, 16) % 2**63)
