"""What a run asks for: every completion with its prompt, its settings and the key that stands for both."""

from typing import NamedTuple

from lib.arm.settings import Arm
from lib.models.loading import Loaded
from lib.models.names import arm_for
from lib.paths import settings_key
from lib.profiles import Accuracy
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Filler, parse_condition
from lib.prompts.problems import Problem


class Asked(NamedTuple):
    """One completion that a run asks for; `arm` None: the model as it is."""

    problem: Problem
    condition: str
    sample: int
    prompt: Prompt
    arm: Arm | None


def wanted(loaded: Loaded, accuracy: Accuracy, filler: Filler, seed: int, problems: list[Problem]) -> dict[str, Asked]:
    """Return by key every completion that this run asks for."""
    found, given = {}, {"format": accuracy.format, "filler": filler, "examples": accuracy.examples}
    made_by = {"model": loaded.name, "revision": loaded.revision, "dtype": loaded.dtype, "seed": seed}
    for condition in accuracy.conditions:
        arm = parse_condition(condition).arm
        if arm:
            # Statistics are always a sequence's own: the authors generate one prompt at a time, where the whole tensor
            # is that sequence, and a completion must not depend on what it is batched with.
            arm = arm.over(arm_for(loaded.spec, accuracy.arm)).model_copy(update={"statistics": "sequence"})
        for problem in problems:
            prompt = build_prompt(loaded.tokenizer, problem.problem, condition, **given)
            for sample in range(accuracy.samples):
                # The prompt's ids stand for problem, format and filler: whatever changes them changes the key.
                parts = {"problem": problem.id, "prompt": prompt.input_ids.tolist(), "sample": sample}
                parts |= {"condition": condition} | ({"arm": arm.model_dump()} if arm else {})
                found[settings_key(**made_by, **parts)] = Asked(problem, condition, sample, prompt, arm)
    return found
