"""Score texts under every condition: the reference solution, or the gold answer without
reasoning.

The same text is scored under two conditions, so the difference has no sampling noise,
and a few hundred problems are as precise as thousands of answers are for accuracy.
`lib.evaluation.sampled_answer_scores` scores sampled answers.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pandas as pd

from lib.evaluation.log_likelihood import TextToScore
from lib.evaluation.next_token_entropy import next_token_rows
from lib.evaluation.recorded_settings import shared_settings
from lib.evaluation.row_fields import score_fields
from lib.evaluation.score_run import (
    Texts,
    plain_rows,
    prompts_under,
    score_models,
    texts_by_key,
)
from lib.models.loading import Loaded
from lib.profiles import Likelihood
from lib.prompts.conditions import Condition
from lib.prompts.fillers import Filler
from lib.prompts.problem_schema import Problem
from lib.prompts.problem_sets import solved_problems
from lib.prompts.rendering import format_for, is_chat

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
    if not is_chat(format_for(loaded.tokenizer, settings.format)):
        # A chat template ends the question itself.
        end_of_question = _tokens(loaded, "\n")

    conditions = dict.fromkeys([*settings.conditions, *settings.at_once])
    solutions = {problem.id: _ids(loaded, problem.solution) for problem in problems}
    texts = []
    for prompt in prompts_under(loaded, settings.format, filler, problems, conditions):
        problem, condition, _ = prompt
        solution = solutions[problem.id]
        lead = [*end_of_question, *_thought(loaded, condition, solution)]
        if condition in settings.conditions:
            texts.append(TextToScore(*prompt, "solution", lead, solution))
        if condition in settings.at_once:
            before = [*lead, *_ids(loaded, BEFORE_ANSWER)]
            answer = _ids(loaded, problem.answer + "}")
            texts.append(TextToScore(*prompt, "answer", before, answer))
    return texts_by_key(loaded, texts)


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
