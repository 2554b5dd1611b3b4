"""Compute the log-likelihood of given texts under a condition with
`lib.generation.log_likelihoods`, and store each as soon as it is computed.

A text with its prompt is a `TextToScore`, and its log-likelihood a *score*, a row of
scores.jsonl. `reproduction.evaluation.scored_texts` lists the texts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lib import progress
from lib.errors import InputError
from lib.files.row_store import open_store
from lib.generation.engine_interface import processor_name
from lib.generation.log_likelihoods import TextAfterPrompt, log_likelihoods
from lib.models.loading import Loaded, load_without_weights, with_weights
from lib.prompts.batches import in_batches
from lib.prompts.conditions import Condition
from lib.prompts.problems import Problem
from reproduction.evaluation.rows import SCORES, versions
from reproduction.profiles.sections import Section
from reproduction.row_keys import (
    WantedOf,
    WantedScore,
    read_rows,
    say_if_none_is_found,
    say_if_plain,
    stored_among,
    wanted_rows,
)


class Sizes(NamedTuple):
    """How much is scored together on a kind of device."""

    tokens: int  # of a forward pass, with padding
    # A chunk of so many problems is scored under all conditions before the next one, so
    # that an interrupted run is a complete, smaller sample. Texts are given in the
    # order of their problems for this. Under a condition, the texts of a chunk share
    # forward passes with similar lengths.
    problems: int


# On a GPU, a small model takes as long for 2,000 tokens as for 8,000, so that full
# forward passes matter more than memory. With a vocabulary of 262,000, in float32, the
# logits of a forward pass take at most 2.1 GB on a CPU and 17 GB on a GPU.
SIZES = {"cpu": Sizes(2048, 32), "cuda": Sizes(16_384, 256)}


@dataclass(frozen=True, kw_only=True)
class TextToScore(TextAfterPrompt):
    """A text to score with its prompt, the problem, and the condition of the prompt."""

    problem: Problem
    condition: Condition
    # Kind of text: solution, answer (the gold answer) or draw (a sampled answer).
    target: str
    # Of a draw: the fields of its row in addition to SCORE_FIELDS, of which `answer` is
    # the key of the sampled completion.
    draw: dict = field(default_factory=dict)


class ScoreRun:
    """A run that scores what a folder lacks of the scores that a section wants.

    run = ScoreRun(section, wanted_of, folder, settings)
    for loaded, format, missing in run.incomplete_models():
        run.score(loaded, texts)  # the texts of the missing scores, by key
    run.rows()  # of all scores

    wanted_of: returns the wanted scores of a model. settings: recorded in run.json.
    others: further files in which scores may be stored.
    """

    def __init__(
        self,
        section: Section,
        wanted_of: WantedOf,
        folder: Path,
        settings: dict,
        others: Sequence[Path] = (),
    ) -> None:
        self.section = section
        self.folder = folder
        self.settings = settings
        self.stored = read_rows(folder, "scores", others)
        self.wanted = [
            wanted_rows(spec, section, wanted_of, self.stored)
            for spec in section.models
        ]
        say_if_none_is_found(self.wanted, read_rows(folder, "scores"), folder)

    def incomplete_models(self) -> Iterator[tuple[Loaded, str, dict[str, WantedScore]]]:
        """Yield each model of which scores are missing, without its weights, with the
        format of its prompts and the missing scores by key.
        """
        for model, by_key in self.wanted:
            missing = {k: one for k, one in by_key.items() if k not in self.stored}
            if missing:
                say_if_plain(model, self.section.format)
                spec = model.source.spec
                loaded = load_without_weights(spec, dtype=model.dtype, fetch=False)
                yield loaded, model.format, missing

    def score(self, unloaded: Loaded, texts: Mapping[str, TextToScore]) -> None:
        """Score texts, by key, with a model whose weights are not read yet, and store
        each score as soon as it is computed.

        A text that raises InputError leaves no new folder.
        """
        for text in texts.values():
            require_scorable(unloaded, text)
        if not texts:
            return
        with open_store(self.folder, self.settings, versions(), file=SCORES) as store:
            # Another run may have scored some of them before this one opened the file.
            left = store.missing(texts)
            if left:
                loaded = with_weights(unloaded, offload=True)
                with progress.bar(loaded.name, len(left), "score") as bar:
                    for row in score_rows(loaded, left):
                        store.append(row)
                        bar.update()
            self.stored |= store.rows_of_all_shards()

    def rows(self) -> list[dict]:
        """Return the stored rows of all wanted scores, in their order."""
        return stored_among(self.wanted, self.stored)


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


def score_rows(loaded: Loaded, texts: Mapping[str, TextToScore]) -> Iterator[dict]:
    """Yield the row of scores.jsonl of each text.

    texts: by key; those with the same target and condition must have the same
    temperature, because they share forward passes. If they are in the order of their
    problems, rows come chunk by chunk (see Sizes) and condition by condition. Texts of
    similar length share a forward pass.
    """
    sizes = SIZES[loaded.device.partition(":")[0]]
    for keys in grouped_keys(texts, sizes.problems):
        lengths = [len(texts[key].ids) for key in keys]

        def score(indices: list[int], keys: list[str] = keys) -> list[float]:
            batch = [texts[keys[index]] for index in indices]
            first = batch[0]
            # That at which a draw was sampled; 1 for other texts.
            temperature = first.draw.get("temperature", 1.0)
            return log_likelihoods(loaded, batch, first.condition, temperature)

        for indices, values in in_batches(lengths, score, tokens=sizes.tokens):
            for index, nats in zip(indices, values, strict=True):
                key = keys[index]
                yield score_row(loaded, key, texts[key], nats)


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
    row = {
        "key": key,
        "model": loaded.name,
        "revision": loaded.revision,
        "condition": str(text.condition),
        "format": text.prompt.format,
        "target": text.target,
        "problem_id": text.problem.id,
        "level": text.problem.level,
        "subject": text.problem.subject,
        "prompt_tokens": len(text.prompt),
        "tokens": len(text.text),
        "nats": round(nats, 4),
        "dtype": loaded.dtype,
        "processor": processor_name(loaded.device),
    }
    return row | text.draw
