"""Compute the log-likelihood of given texts under a condition: log p(text | prompt) in
nats, summed over the text's tokens, each of which is predicted from the prompt and the
tokens before it (teacher forcing).

A text with its prompt is a `TextToScore`, and its log-likelihood a *score*.
"""

import contextlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from lib.arm.redistribution import installed
from lib.attention.custom_attention import hiding
from lib.errors import InputError
from lib.evaluation.planned_completions import arm_of, common_fields, key_parts
from lib.evaluation.records import SCORE_FIELDS
from lib.files.atomic import settings_key
from lib.generation.cache import prefill, raise_if_nan
from lib.generation.writer import processor_name
from lib.models.loading import Loaded
from lib.prompts.batches import in_batches
from lib.prompts.building import Prompt
from lib.prompts.conditions import Condition
from lib.prompts.problem import Problem

# So many problems are scored under all conditions before the next ones, so that an
# interrupted run is a complete, smaller sample. Texts are given in the order of their
# problems for this.
PROBLEMS_OF_A_CHUNK = 32
# Padded tokens per forward pass, by kind of device. With a vocabulary of 150,000, their
# logits take at most 1.2 GB on a CPU and 10 GB on a GPU, where fewer forward passes
# matter more than memory.
SCORED_TOKENS = {"cpu": 2048, "cuda": 16_384}


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


Texts = dict[str, TextToScore]  # by the keys of their scores, see `score_key`


def score_key(loaded: Loaded, text: TextToScore) -> str:
    """Return the key of a text's score, a digest of everything that the score depends
    on: model, prompt, condition and text.
    """
    parts = key_parts(loaded, text.problem, text.condition, text.prompt)
    parts["lead"] = text.lead
    parts["text"] = text.text
    if text.draw:
        parts["temperature"] = text.temperature
        parts["answer"] = text.draw["answer"]
    return settings_key(**parts)


def require_scorable(loaded: Loaded, text: TextToScore) -> None:
    """Raise InputError if a text does not fit into the context after its prompt, or if
    the model lacks a condition's layer.
    """
    if text.condition.deepest > loaded.layers:
        raise InputError(
            f"{text.condition}: {loaded.name} has layers 1 to {loaded.layers}"
        )
    inserted = text.prompt.spans["inserted"]
    if inserted.stop - inserted.start >= loaded.context:
        raise InputError(
            f"{text.condition}: {loaded.name} has room for {loaded.context} tokens:"
            " insert fewer"
        )
    length = len(text.ids)
    if length > loaded.context:
        raise InputError(
            f"problem {text.problem.id}: prompt and {text.target} are {length} tokens,"
            f" {loaded.name} has room for {loaded.context}: leave this problem out"
        )


def score_rows(
    loaded: Loaded, texts: Mapping[str, TextToScore]
) -> Generator[dict, None, None]:
    """Yield the row of scores.jsonl of each text.

    texts: by key; those with the same target and condition must have the same
    temperature, because they share forward passes. If they are in the order of their
    problems, rows come chunk by chunk (see PROBLEMS_OF_A_CHUNK) and condition by
    condition. Texts of similar length share a forward pass.
    """
    for keys in grouped_keys(texts, PROBLEMS_OF_A_CHUNK):
        lengths = [len(texts[key].ids) for key in keys]

        def score(indices: list[int], keys: list[str] = keys) -> list[float]:
            batch = {keys[index]: texts[keys[index]] for index in indices}
            return log_likelihoods(loaded, batch)

        limit = tokens_per_pass(loaded)
        for indices, values in in_batches(lengths, score, tokens=limit):
            for index, nats in zip(indices, values, strict=True):
                key = keys[index]
                yield score_row(loaded, key, texts[key], nats)


def tokens_per_pass(loaded: Loaded) -> int:
    """Return the maximum number of padded tokens per forward pass on its device."""
    return SCORED_TOKENS[loaded.device.partition(":")[0]]


def grouped_keys(
    texts: Mapping[str, TextToScore], problems_of_a_chunk: int
) -> Iterable[list[str]]:
    """Return lists of keys, each of the texts with the same target and condition in a
    chunk of problems, ordered by their first texts. Temperatures are not compared.
    """
    problems = dict.fromkeys(text.problem.id for text in texts.values())
    numbers = {name: number for number, name in enumerate(problems)}
    groups: dict[tuple, list[str]] = {}
    for key, text in texts.items():
        chunk = numbers[text.problem.id] // problems_of_a_chunk
        group = (chunk, text.target, text.condition)
        groups.setdefault(group, []).append(key)
    return groups.values()


def score_row(loaded: Loaded, key: str, text: TextToScore, nats: float) -> dict:
    """Return the row of scores.jsonl with a text's log-likelihood `nats`: SCORE_FIELDS,
    or DRAW_SCORE_FIELDS for a draw, in their order.
    """
    row = common_fields(loaded, text.problem, text.condition)
    row["processor"] = processor_name(loaded.device)
    row["key"] = key
    row["target"] = text.target
    row["prompt_tokens"] = len(text.prompt)
    row["tokens"] = len(text.text)
    row["nats"] = round(nats, 4)
    return {name: row[name] for name in SCORE_FIELDS} | text.draw


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
