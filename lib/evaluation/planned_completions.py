"""Every completion of a run by its key, and the common parts of keys and rows of
answers and scores.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lib.arm.settings import Arm
from lib.files.atomic import settings_key
from lib.models.loading import Loaded
from lib.profiles import Accuracy
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Condition, Example, Filler
from lib.prompts.problem import Problem, posed
from lib.prompts.rendering import format_for


class WantedCompletion(NamedTuple):
    """One completion of a run."""

    problem: Problem
    condition: Condition
    sample: int
    prompt: Prompt
    arm: Arm | None


def completions_wanted(
    loaded: Loaded,
    accuracy: Accuracy,
    filler: Filler,
    seed: int,
    problems: list[Problem],
) -> dict[str, WantedCompletion]:
    """Return by key every completion of a run by one model.

    The prompt's ids represent problem, format and filler in the key, so that any change
    of these changes the key.
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


def key_parts(
    loaded: Loaded, problem: Problem, condition: Condition, prompt: Prompt
) -> dict[str, object]:
    """Return the properties of a model and a prompt that decide a row, for its key."""
    parts: dict[str, object] = {
        **model_identity(loaded),
        "problem": problem.id,
        "prompt": prompt.input_ids.tolist(),
        "condition": str(condition),
    }
    arm = arm_of(condition, loaded)
    if arm:
        parts["arm"] = arm.model_dump()
    return parts


def common_fields(loaded: Loaded, problem: Problem, condition: Condition) -> dict:
    """Return the fields of a row for its model, problem and condition."""
    row = problem.model_dump() | model_identity(loaded)
    row["condition"] = str(condition)
    row["problem_id"] = problem.id
    return row


def model_identity(loaded: Loaded) -> dict[str, str]:
    """Return the properties of a model that decide its numbers, as in rows and keys."""
    return {
        "model": loaded.name,
        "revision": loaded.revision,
        "dtype": loaded.dtype,
    }


def prompt_of(
    loaded: Loaded,
    problem: Problem,
    condition: Condition,
    format: str,
    filler: Filler,
    examples: Sequence[Example] = (),
) -> Prompt:
    """Return the prompt of a problem under a condition, in chat form if requested and
    the model has a template.
    """
    return build_prompt(
        loaded.tokenizer,
        posed(problem, condition),
        condition,
        format=format_for(loaded.tokenizer, format),
        filler=filler,
        examples=examples,
    )


def arm_of(condition: Condition, loaded: Loaded) -> Arm | None:
    """Return the ARM settings of a condition, based on the paper's for the model; None
    without ARM.

    Statistics are per sequence, as in the authors' code, whose tensor is a single
    prompt. So no batch influences them.
    """
    if not condition.arm:
        return None
    arm = condition.arm.over(loaded.source.arm)
    return arm.model_copy(update={"statistics": "sequence"})
