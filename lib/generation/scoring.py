"""Compute the log-likelihood of one text after a prompt.

    prompt = build_prompt(loaded.tokenizer, "What is $3 + 4$?", "mless")
    log_likelihood(loaded, prompt, " It is 7.")
    # with the slashes hidden from layer 1
    log_likelihood(loaded, prompt, " It is 7.", "hidden-from-layer-1")

`python -m reproduction likelihood` scores many texts, in batches.
"""

import contextlib
from collections.abc import Sequence

import torch

from lib.attention.custom_attention import hiding
from lib.errors import InputError
from lib.generation.key_value_caches import prefill, raise_if_nan
from lib.models.loading import Loaded
from lib.prompts.building import Prompt
from lib.prompts.conditions import Condition, parse_condition


@torch.inference_mode()
def log_likelihood(
    loaded: Loaded, prompt: Prompt, text: str, condition: str = "none"
) -> float:
    """Return log p(text | prompt) in nats, summed over the tokens of the text.

    condition: hides the tokens that the prompt inserts from the layers that it names;
    its other changes belong to the prompt, and it is without ARM. Raises InputError for
    an empty text, an unknown condition, one with ARM, and a model that produces NaN.
    """
    parsed = parse_condition(condition)
    ids = loaded.tokenizer(text, add_special_tokens=False).input_ids
    if not ids or parsed.arm:
        raise InputError("log_likelihood needs a text, and a condition without ARM")
    row = [*prompt.input_ids.tolist(), *ids]
    with hiding_inserted(loaded, parsed, [prompt]):
        _, logits = prefill(loaded.model, [row], [range(len(prompt) - 1, len(row) - 1)])
    tokens = torch.tensor(ids, device=logits.device)[:, None]
    nats = logits.log_softmax(-1).gather(1, tokens)
    raise_if_nan(nats)
    return float(nats.double().sum())


def hiding_inserted(
    loaded: Loaded, condition: Condition, prompts: Sequence[Prompt]
) -> contextlib.AbstractContextManager[None]:
    """Return a context manager within which the layers that a condition names hide the
    inserted tokens of these prompts, the rows of each forward pass.
    """
    spans = [prompt.spans["inserted"] for prompt in prompts]
    hidden = condition.view.hidden(loaded.layers)
    silenced = condition.view.silenced(loaded.layers)
    visible = condition.visible
    shown = [visible.within(span) for span in spans] if visible else None
    return hiding(loaded.model, spans, hidden, silenced, shown)
