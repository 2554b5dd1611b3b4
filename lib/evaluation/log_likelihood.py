"""Compute the log-likelihood of given texts under a condition, teacher-forced: log
p(text | prompt) in nats, summed over the text's tokens.
"""

import contextlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from lib.arm.redistribution import installed
from lib.attention.function import hiding
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

# Problems that are scored under all conditions before the next ones, so that an
# interrupted run is still a sample.
PROBLEMS_OF_A_CHUNK = 32
# Padded tokens at once on a kind of device: their logits, of a vocabulary of 150,000,
# take at most 1.2 GB on a CPU and 10 GB on a GPU, where few forwards count more.
SCORED_TOKENS = {"cpu": 2048, "cuda": 16_384}


@dataclass(frozen=True)
class TextToScore:
    """A text to score, and the tokens before it."""

    problem: Problem
    condition: Condition
    prompt: Prompt
    target: str  # solution, answer or draw
    lead: list[int]  # tokens between prompt and text, which are not scored
    text: list[int]
    # For a sampled answer: the fields of its row in addition to SCORE_FIELDS.
    draw: dict = field(default_factory=dict)

    @property
    def ids(self) -> list[int]:
        return [*self.prompt.input_ids.tolist(), *self.lead, *self.text]

    @property
    def temperature(self) -> float:
        """The sampling temperature; 1 for a text that was not sampled."""
        return self.draw.get("temperature", 1.0)


Texts = dict[str, TextToScore]  # by key


def score_key(loaded: Loaded, text: TextToScore) -> str:
    """Return the key of a text's score, which contains everything that the score
    depends on.
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
    """Yield a line of scores.jsonl for each text, chunk by chunk and condition by
    condition, with texts of similar length in one forward pass.
    """
    for keys in grouped_keys(texts, PROBLEMS_OF_A_CHUNK):
        lengths = [len(texts[key].ids) for key in keys]

        def score(places: list[int], keys: list[str] = keys) -> list[float]:
            batch = {keys[place]: texts[keys[place]] for place in places}
            return log_likelihoods(loaded, batch)

        at_once = tokens_per_pass(loaded)
        for places, values in in_batches(lengths, score, tokens=at_once):
            for place, nats in zip(places, values, strict=True):
                key = keys[place]
                yield score_row(loaded, key, texts[key], nats)


def tokens_per_pass(loaded: Loaded) -> int:
    """Return the number of padded tokens per forward pass."""
    return SCORED_TOKENS[loaded.device.partition(":")[0]]


def grouped_keys(
    texts: Mapping[str, TextToScore], problems_of_a_chunk: int
) -> Iterable[list[str]]:
    """Return the keys of each chunk of problems, target and condition."""
    problems = dict.fromkeys(text.problem.id for text in texts.values())
    places = {name: place for place, name in enumerate(problems)}
    groups: dict[tuple, list[str]] = {}
    for key, text in texts.items():
        chunk = places[text.problem.id] // problems_of_a_chunk
        group = (chunk, text.target, text.condition)
        groups.setdefault(group, []).append(key)
    return groups.values()


def score_row(loaded: Loaded, key: str, text: TextToScore, nats: float) -> dict:
    """Return a line of scores.jsonl: SCORE_FIELDS, or DRAW_SCORE_FIELDS for a sampled
    answer, in their order.
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
    """Return log p, in nats, of each text of a batch of one condition and
    temperature.

    Raises InputError for NaN.
    """
    return [nats for nats, _ in score_batch(loaded, batch)]


@torch.inference_mode()
def score_batch(
    loaded: Loaded, batch: Mapping[str, TextToScore]
) -> list[tuple[float, torch.Tensor]]:
    """Return the log p in nats and the logits (tokens, vocabulary) of each text of a
    batch of one condition and temperature.

    The rows' common prefix is computed once. ARM changes only the activations of
    prompts, as in generation; the keys seed its draws. Raises InputError for NaN.
    """
    texts = list(batch.values())
    model = loaded.model
    arm = arm_of(texts[0].condition, loaded)

    # The logits before a text's first token to those before its last one.
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
    """Return the context in which layers hide inserted tokens, as the condition of the
    texts requires.
    """
    view = texts[0].condition.view
    spans = [text.prompt.spans["inserted"] for text in texts]
    hidden = view.hidden(loaded.layers)
    silenced = view.silenced(loaded.layers)
    visible = texts[0].condition.visible
    shown = [visible.within(span) for span in spans] if visible else None
    return hiding(loaded.model, spans, hidden, silenced, shown)


def _generator(device: str, key: str) -> torch.Generator:
    """Return the generator from which ARM draws for the text of a key."""
    return torch.Generator(device).manual_seed(int(key, 16) % 2**63)
