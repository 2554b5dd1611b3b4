"""Build the keys of answers and scores: the model's identity, the prompt of a problem
under a condition, and the settings of ARM; and list every completion of a run by its
key.
"""

import sys
from collections.abc import Sequence
from typing import NamedTuple

from lib.arm.settings import Arm
from lib.files.row_store import settings_key
from lib.models.loading import Loaded
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Condition, Example, Filler
from lib.prompts.problems import Problem, posed
from lib.prompts.rendering import format_for
from reproduction.evaluation.rows import model_identity
from reproduction.profiles import Accuracy


def key_parts(
    loaded: Loaded, problem: Problem, condition: Condition, prompt: Prompt
) -> dict[str, object]:
    """Return the properties of model and prompt that enter the key of a row."""
    parts: dict[str, object] = {
        **model_identity(loaded),
        "problem": problem.id,
        "prompt": prompt.input_ids.tolist(),
        "condition": str(condition),
    }
    arm = arm_of(condition, loaded)
    if arm:
        parts["arm"] = recorded_arm(arm)
    return parts


def recorded_arm(arm: Arm) -> dict[str, object]:
    """Return ARM's settings as keys and rows have them: with the statistics, which once
    were a setting.
    """
    return {**arm.model_dump(), "statistics": "sequence"}


def format_of(loaded: Loaded, format: str) -> str:
    """Return the format of a model's prompts; a line says if it is not the requested
    one, because the model has no chat template.
    """
    used = format_for(loaded.tokenizer, format)
    if used != format:
        print(
            f"{loaded.name} has no chat template, so its prompts are {used}, not"
            f" {format}",
            file=sys.stderr,
        )
    return used


def prompt_of(
    loaded: Loaded,
    problem: Problem,
    condition: Condition,
    format: str,
    filler: Filler,
    examples: Sequence[Example] = (),
) -> Prompt:
    """Return the prompt of a problem under a condition; `format` as of `format_of`."""
    return build_prompt(
        loaded.tokenizer,
        posed(problem, condition),
        condition.model_copy(update={"posed": None}),
        format=format,
        filler=filler,
        examples=examples,
    )


def arm_of(condition: Condition, loaded: Loaded) -> Arm | None:
    """Return the ARM settings of a condition; None if it is without ARM.

    Settings that the condition does not give are the paper's for the model.
    """
    return condition.arm.over(loaded.source.arm) if condition.arm else None


class WantedCompletion(NamedTuple):
    """One completion that a run has to have: a sample of a problem's answer under a
    condition.
    """

    problem: Problem
    condition: Condition
    sample: int  # counted from 0
    prompt: Prompt
    arm: Arm | None  # None: the condition is without ARM


def completions_wanted(
    loaded: Loaded,
    accuracy: Accuracy,
    filler: Filler,
    seed: int,
    problems: list[Problem],
) -> dict[str, WantedCompletion]:
    """Return every completion of a run by one model, by its key.

    A key is a digest of everything that decides the completion. The prompt's ids
    represent problem, format and filler in it, so that any change of these changes the
    key.
    """
    wanted = {}
    format = format_of(loaded, accuracy.format)
    for condition in accuracy.conditions:
        arm = arm_of(condition, loaded)
        for problem in problems:
            prompt = prompt_of(
                loaded, problem, condition, format, filler, accuracy.examples
            )
            parts = key_parts(loaded, problem, condition, prompt)
            for sample in range(accuracy.samples):
                key = settings_key(**parts, seed=seed, sample=sample)
                wanted[key] = WantedCompletion(problem, condition, sample, prompt, arm)
    return wanted
