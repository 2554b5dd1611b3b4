"""Compute the log-likelihood of texts after prompts: log p(text | prompt) in nats,
summed over the text's tokens, each of which is predicted from the prompt and the tokens
before it (teacher forcing).

    prompt = build_prompt(loaded.tokenizer, "What is $3 + 4$?", "mless")
    log_likelihood(loaded, prompt, " It is 7.")
    # with the slashes hidden from layer 1
    log_likelihood(loaded, prompt, " It is 7.", "hidden-from-layer-1")

`log_likelihoods` computes those of a batch.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lib.arm.redistribution import installed
from lib.attention.custom_attention import hiding
from lib.errors import InputError
from lib.generation.key_value_caches import prefill, raise_if_nan
from lib.models.loading import Loaded
from lib.prompts.building import Prompt
from lib.prompts.conditions import Condition, parse_condition


@dataclass(frozen=True, kw_only=True)
class TextAfterPrompt:
    """A text whose log-likelihood is computed, as tokens, and its prompt."""

    prompt: Prompt
    text: Sequence[int]  # the tokens whose log-likelihood is computed
    lead: Sequence[int] = ()  # tokens between prompt and text, which are not scored
    seed: int = 0  # of ARM's random draws

    @property
    def ids(self) -> list[int]:
        """The tokens of the prompt, the lead and the text."""
        return [*self.prompt.input_ids.tolist(), *self.lead, *self.text]


def log_likelihood(
    loaded: Loaded, prompt: Prompt, text: str, condition: str = "none"
) -> float:
    """Return log p(text | prompt) in nats, summed over the tokens of the text.

    condition: as in `log_likelihoods`. Raises InputError for an empty text, an unknown
    condition, and a model that produces NaN.
    """
    ids = loaded.tokenizer(text, add_special_tokens=False).input_ids
    if not ids:
        raise InputError("the text is empty, so that it has no log-likelihood")
    one = TextAfterPrompt(prompt=prompt, text=ids)
    (nats,) = log_likelihoods(loaded, [one], parse_condition(condition))
    return nats


@torch.inference_mode()
def log_likelihoods(
    loaded: Loaded,
    texts: Sequence[TextAfterPrompt],
    condition: Condition,
    temperature: float = 1.0,
) -> list[float]:
    """Return the log-likelihood of each text in nats.

    condition: hides the tokens that the prompts insert from the layers that it names,
    and may have ARM, which changes only the activations of prompts, as in generation;
    its other changes belong to the prompts. temperature: divides the logits. The rows'
    common prefix is computed once. Raises InputError if the model produces NaN.
    """
    # The logits at a position predict the next token, so those of a text begin one
    # position before it and end one position before its end.
    rows = [text.ids for text in texts]
    sizes = [len(text.text) for text in texts]
    before = [
        range(len(ids) - size - 1, len(ids) - 1)
        for ids, size in zip(rows, sizes, strict=True)
    ]
    arm = condition.arm_over(loaded.source.arm)
    with contextlib.ExitStack() as stack:
        prompts = [text.prompt for text in texts]
        stack.enter_context(_hiding_inserted(loaded, condition, prompts))
        hook = None
        if arm:
            hook = stack.enter_context(installed(loaded.model, arm))
            hook.generators = [
                torch.Generator(loaded.device).manual_seed(text.seed) for text in texts
            ]
            hook.lengths = list(map(len, prompts))
        _, logits = prefill(loaded.model, rows, before, hook)

    logits /= temperature
    tokens = [token for text in texts for token in text.text]
    ids = torch.tensor(tokens, device=loaded.device)[:, None]
    nats = logits.gather(1, ids)[:, 0] - logits.logsumexp(-1)
    raise_if_nan(nats)
    return [float(part.sum()) for part in nats.double().cpu().split(sizes)]


def _hiding_inserted(
    loaded: Loaded, condition: Condition, prompts: Sequence[Prompt]
) -> contextlib.AbstractContextManager[None]:
    """Return a context manager within which the layers that a condition names hide the
    inserted tokens of these prompts, the rows of each forward pass.
    """
    spans = [prompt.spans["inserted"] for prompt in prompts]
    view = condition.view
    hidden = view.hidden(loaded.layers)
    silenced = view.shown(loaded.layers) if view.silent else ()
    visible = condition.visible
    shown = [visible.within(span) for span in spans] if visible else None
    return hiding(loaded.model, spans, hidden, silenced, shown)
