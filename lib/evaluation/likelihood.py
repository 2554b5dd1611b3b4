"""How likely a model finds the gold solution, or the gold answer at once, under every
condition: nats per problem.

The same problem under two conditions differs by what the condition does to the model,
so a few hundred problems say what thousands of answers say about accuracy.
"""

import sys
from pathlib import Path
from typing import Any, cast

import pandas as pd

from lib.errors import InputError
from lib.evaluation.plan import arm_of
from lib.evaluation.rows import SCORE_FIELDS
from lib.evaluation.scoring import (
    Texts,
    TextToScore,
    require_room,
    score_key,
    score_models,
)
from lib.evaluation.settings import score_settings
from lib.models.loading import Loaded
from lib.profiles import Likelihood
from lib.prompts.building import build_prompt, format_for
from lib.prompts.conditions import Condition, Filler
from lib.prompts.problems import Problem, load_problems, posed, sampling_order

# What the gold answer follows where no reasoning is given.
BEFORE_ANSWER = "The final answer is $\\boxed{"


def likelihoods(
    settings: Likelihood, filler: Filler, seed: int, folder: Path
) -> pd.DataFrame:
    """Score what `folder` lacks, each kept at once, then return the run's rows, in the
    order of a growing sample.

    Raises InputError for a problem without a solution, a text without room in the
    context, and other settings there.
    """
    problems = sampling_order(load_problems(settings.problems), seed)[: settings.limit]
    for problem in problems:
        if not problem.solution.strip():
            raise InputError(
                f"{settings.problems}: problem {problem.id} has no solution, which"
                " likelihoods need of each"
            )
    shared = score_settings(settings, filler, seed)

    def wanted_of(loaded: Loaded) -> Texts:
        short = _with_short_solutions(loaded, settings, problems)
        return texts_wanted(loaded, settings, filler, short)

    rows = score_models(settings, folder, shared, wanted_of)
    return pd.DataFrame(rows, columns=SCORE_FIELDS)


def _with_short_solutions(
    loaded: Loaded, settings: Likelihood, problems: list[Problem]
) -> list[Problem]:
    """Return the problems whose solutions are not too long, and say how many are."""
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
    """Return by key every text that a run asks for, problem by problem; raises
    InputError where one does not fit.
    """
    tokenizer = cast(Any, loaded.tokenizer)
    style = format_for(tokenizer, settings.format)
    end_of_question = []
    if style == "plain":  # where nothing else ends it
        end_of_question = tokenizer("\n", add_special_tokens=False)["input_ids"]
    before_answer = _ids(loaded, BEFORE_ANSWER)

    wanted = {}
    for problem in problems:
        solution = _ids(loaded, problem.solution)
        answer = _ids(loaded, problem.answer + "}")
        for target, condition in _targets(settings):
            prompt = build_prompt(
                loaded.tokenizer,
                posed(problem, condition),
                condition,
                format=style,
                filler=filler,
            )
            arm = arm_of(condition, loaded)
            lead = [*end_of_question, *_thought(loaded, condition, solution)]
            scored = solution
            if target == "answer":
                lead += before_answer
                scored = answer
            text = TextToScore(problem, condition, arm, target, prompt, lead, scored)
            require_room(loaded, text, "leave this problem out")
            wanted[score_key(loaded, text)] = text
    return wanted


def _targets(settings: Likelihood) -> list[tuple[str, Condition]]:
    """Return what is scored under which conditions."""
    solutions = [("solution", condition) for condition in settings.conditions]
    answers = [("answer", condition) for condition in settings.at_once]
    return solutions + answers


def _thought(loaded: Loaded, condition: Condition, solution: list[int]) -> list[int]:
    """Return the tokens that a condition puts between the question and the answer."""
    if condition.thought == "solution":
        return solution
    if condition.thought == "dots":
        return _ids(loaded, ".") * len(solution)
    return []


def _ids(loaded: Loaded, text: str) -> list[int]:
    tokenizer = cast(Any, loaded.tokenizer)
    return tokenizer(text.strip(), add_special_tokens=False)["input_ids"]
