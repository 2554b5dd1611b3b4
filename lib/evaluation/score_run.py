"""Score texts with each model of a section, and store each score as soon as it is
computed.

`lib.evaluation.reference_solution_scores` and `lib.evaluation.sampled_answer_scores`
list the texts; a score is the row of a text in scores.jsonl.
"""

import functools
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import product
from pathlib import Path

from lib import progress
from lib.errors import InputError
from lib.evaluation.log_likelihood import TextToScore, log_likelihoods, sizes_of
from lib.evaluation.recorded_settings import versions
from lib.evaluation.row_fields import SCORE_FIELDS, SCORES, common_fields
from lib.evaluation.row_keys import key_parts, prompt_of
from lib.files.row_store import open_store
from lib.files.run_json import require_same_settings, settings_key
from lib.generation.engine_interface import processor_name
from lib.models.loading import Loaded, load_without_weights, with_weights
from lib.profiles import Likelihood
from lib.prompts.batches import in_batches
from lib.prompts.building import Prompt
from lib.prompts.conditions import Condition
from lib.prompts.fillers import Filler
from lib.prompts.problem_schema import Problem

# A chunk of problems, at least so many, is scored under all conditions before the next
# one, so that an interrupted run is a complete, smaller sample. Texts are given in the
# order of their problems for this.
PROBLEMS_OF_A_CHUNK = 32
PROMPTS_WITH_A_BAR = 1000  # so many prompts are built in about a second
Texts = dict[str, TextToScore]  # by the keys of their scores, see `score_key`


def score_models(
    settings: Likelihood,
    folder: Path,
    shared: dict,
    wanted_of: Callable[[Loaded], Texts],
    rows_of: Callable[[Loaded, Texts, Texts], Generator[dict, None, None]],
    known: Sequence[dict] = (),
) -> list[dict]:
    """Score with each model the wanted texts that `folder` lacks, store each score as
    soon as it is computed, and return the rows of all wanted texts in their order.

    shared: the settings that all rows of the folder share. wanted_of(loaded): the texts
    to score with a model, which has no weights yet. rows_of(loaded, missing, wanted):
    yields the rows of the missing texts. Rows of `known` are copied if a wanted text
    has their key. Weights are read only if a score is missing, and a text that raises
    InputError leaves no new folder.
    """
    require_same_settings(folder, shared)
    rows: list[dict] = []
    for spec in settings.models:
        loaded = load_without_weights(spec, dtype=settings.dtype, fetch=False)
        wanted = wanted_of(loaded)
        with open_store(folder, shared, versions(), file=SCORES) as store:
            store.copy_missing(wanted, known)
            make = functools.partial(_rows_by_weights, loaded, wanted, rows_of)
            store.fill(wanted, make, loaded.name, "score")
            scored = store.rows_of_all_shards()
        rows += [scored[key] for key in wanted]
    return rows


def _rows_by_weights(
    unloaded: Loaded,
    wanted: Texts,
    rows_of: Callable[[Loaded, Texts, Texts], Generator[dict, None, None]],
    missing: Texts,
) -> Generator[dict, None, None]:
    """Read the weights of a model, and yield the rows of missing texts."""
    loaded = with_weights(unloaded, offload=True)
    yield from rows_of(loaded, missing, wanted)


def plain_rows(
    loaded: Loaded, missing: Texts, wanted: Texts
) -> Generator[dict, None, None]:
    """Yield the rows of missing texts with their log-likelihood, but without the
    entropy of `next_token_rows`.
    """
    yield from score_rows(loaded, missing)


def prompts_under(
    loaded: Loaded,
    format: str,
    filler: Filler,
    problems: Collection[Problem],
    conditions: Collection[Condition],
) -> Iterator[tuple[Problem, Condition, Prompt]]:
    """Yield each problem under each condition, with its prompt."""
    total = len(problems) * len(conditions)
    name = f"{loaded.name}, prompts"
    with progress.bar(name, total, least=PROMPTS_WITH_A_BAR) as bar:
        for problem, condition in product(problems, conditions):
            prompt = prompt_of(loaded, problem, condition, format, filler)
            bar.update()
            yield problem, condition, prompt


def texts_by_key(loaded: Loaded, texts: Iterable[TextToScore]) -> Texts:
    """Return texts by the keys of their scores; raise InputError for one that
    `require_scorable` refuses.
    """
    wanted = {}
    for text in texts:
        require_scorable(loaded, text)
        wanted[score_key(loaded, text)] = text
    return wanted


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
    sizes = sizes_of(loaded)
    for keys in grouped_keys(texts, _problems_of_a_chunk(texts, sizes.texts)):
        lengths = [len(texts[key].ids) for key in keys]

        def score(indices: list[int], keys: list[str] = keys) -> list[float]:
            batch = {keys[index]: texts[keys[index]] for index in indices}
            return log_likelihoods(loaded, batch)

        for indices, values in in_batches(lengths, score, tokens=sizes.tokens):
            for index, nats in zip(indices, values, strict=True):
                key = keys[index]
                yield score_row(loaded, key, texts[key], nats)


def _problems_of_a_chunk(texts: Mapping[str, TextToScore], filling: int) -> int:
    """Return the number of problems of a chunk: PROBLEMS_OF_A_CHUNK, or more if these
    have fewer than `filling` texts under a condition.
    """
    groups = {(text.problem.id, text.target, text.condition) for text in texts.values()}
    texts_of_a_problem = len(texts) / len(groups)  # over 1 for sampled answers
    return max(PROBLEMS_OF_A_CHUNK, round(filling / texts_of_a_problem))


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
