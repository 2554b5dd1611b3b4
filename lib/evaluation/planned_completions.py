"""List every completion of a run by its key."""

from typing import NamedTuple

from lib.arm.settings import Arm
from lib.evaluation.row_keys import arm_of, key_parts, prompt_of
from lib.files.run_json import settings_key
from lib.models.loading import Loaded
from lib.profiles import Accuracy
from lib.prompts.building import Prompt
from lib.prompts.conditions import Condition
from lib.prompts.fillers import Filler
from lib.prompts.problem_schema import Problem


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
    for condition in accuracy.conditions:
        arm = arm_of(condition, loaded)
        for problem in problems:
            prompt = prompt_of(
                loaded, problem, condition, accuracy.format, filler, accuracy.examples
            )
            parts = key_parts(loaded, problem, condition, prompt)
            for sample in range(accuracy.samples):
                key = settings_key(**parts, seed=seed, sample=sample)
                wanted[key] = WantedCompletion(problem, condition, sample, prompt, arm)
    return wanted
