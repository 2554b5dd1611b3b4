"""Score texts under every condition: the reference solution, or the gold answer without
reasoning.

The same text is scored under two conditions, so the difference has no sampling noise,
and a few hundred problems are as precise as thousands of answers are for accuracy.
`lib.evaluation.sample_scores` scores sampled answers.
"""

import functools
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, cast

import pandas as pd

from lib.evaluation.log_likelihood import (
    Texts,
    TextToScore,
    require_scorable,
    score_key,
    score_rows,
)
from lib.evaluation.next_token_entropy import next_token_rows
from lib.evaluation.planned_completions import prompt_of
from lib.evaluation.records import (
    SCORES,
    score_fields,
    shared_settings,
    versions,
)
from lib.files.store import open_store, require_same_settings
from lib.models.loading import Loaded, load_without_weights, with_weights
from lib.profiles import Likelihood
from lib.prompts.building import Prompt
from lib.prompts.conditions import Condition, Filler
from lib.prompts.problem import Problem
from lib.prompts.problems import solved_problems
from lib.prompts.rendering import format_for

# The text that precedes the gold answer; it is not scored itself.
BEFORE_ANSWER = "The final answer is $\\boxed{"


def score_solutions(
    settings: Likelihood,
    filler: Filler,
    seed: int,
    folder: Path,
    known: Sequence[dict] = (),
) -> pd.DataFrame:
    """Score the reference solutions and gold answers that `folder` lacks, store each
    score as soon as it is computed, and return the table of all scores, a row per text.

    Problems come in sampling order, of which a smaller run has the first ones. Scores
    of `known` are copied if the run needs their keys. Raises InputError for a problem
    without a solution, a text that exceeds the model's context, and a folder with other
    settings.
    """
    problems = solved_problems(settings.problems, settings.limit, seed)

    def wanted_of(loaded: Loaded) -> Texts:
        scorable = _with_short_solutions(loaded, settings, problems)
        return texts_wanted(loaded, settings, filler, scorable)

    shared = shared_settings(settings, filler, seed)
    make = next_token_rows if settings.next_token else plain_rows
    rows = score_models(settings, folder, shared, wanted_of, make, known)
    return pd.DataFrame(rows, columns=score_fields(settings))


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


def _with_short_solutions(
    loaded: Loaded, settings: Likelihood, problems: list[Problem]
) -> list[Problem]:
    """Return the problems whose solutions have at most max_solution_tokens tokens, and
    print how many have more.
    """
    short = [
        problem
        for problem in problems
        if len(_ids(loaded, problem.solution)) <= settings.max_solution_tokens
    ]
    left_out = len(problems) - len(short)
    if left_out:
        print(
            f"{left_out} problems have solutions of over"
            f" {settings.max_solution_tokens} tokens",
            file=sys.stderr,
        )
    return short


def texts_wanted(
    loaded: Loaded, settings: Likelihood, filler: Filler, problems: list[Problem]
) -> Texts:
    """Return every reference solution and gold answer that a run scores, by key and
    problem by problem; raise InputError if one exceeds the model's context.

    Solutions are scored under settings.conditions, answers under settings.at_once.
    """
    end_of_question = []
    if format_for(loaded.tokenizer, settings.format) == "plain":
        # A chat template ends the question itself.
        end_of_question = _tokens(loaded, "\n")

    conditions = dict.fromkeys([*settings.conditions, *settings.at_once])
    texts = []
    for prompt in prompts_under(loaded, settings.format, filler, problems, conditions):
        problem, condition, _ = prompt
        solution = _ids(loaded, problem.solution)
        lead = [*end_of_question, *_thought(loaded, condition, solution)]
        if condition in settings.conditions:
            texts.append(TextToScore(*prompt, "solution", lead, solution))
        if condition in settings.at_once:
            before = [*lead, *_ids(loaded, BEFORE_ANSWER)]
            answer = _ids(loaded, problem.answer + "}")
            texts.append(TextToScore(*prompt, "answer", before, answer))
    return texts_by_key(loaded, texts)


def prompts_under(
    loaded: Loaded,
    format: str,
    filler: Filler,
    problems: Iterable[Problem],
    conditions: Iterable[Condition],
) -> Iterator[tuple[Problem, Condition, Prompt]]:
    """Yield each problem under each condition, with its prompt."""
    for problem, condition in product(problems, conditions):
        yield problem, condition, prompt_of(loaded, problem, condition, format, filler)


def texts_by_key(loaded: Loaded, texts: Iterable[TextToScore]) -> Texts:
    """Return texts by the keys of their scores; raise InputError for one that
    `require_scorable` refuses.
    """
    wanted = {}
    for text in texts:
        require_scorable(loaded, text)
        wanted[score_key(loaded, text)] = text
    return wanted


def _thought(loaded: Loaded, condition: Condition, solution: list[int]) -> list[int]:
    """Return the tokens that a condition inserts between the question and the scored
    text, instead of reasoning: none, the solution, or as many dots.
    """
    if condition.thought == "solution":
        return solution
    if condition.thought == "dots":
        return _ids(loaded, ".") * len(solution)
    return []


def _ids(loaded: Loaded, text: str) -> list[int]:
    """Return the tokens of a text without the spaces at its ends."""
    return _tokens(loaded, text.strip())


def _tokens(loaded: Loaded, text: str) -> list[int]:
    tokenizer = cast(Any, loaded.tokenizer)
    return tokenizer(text, add_special_tokens=False)["input_ids"]
