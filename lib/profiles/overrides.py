"""A run that differs from its profile: in problems, model, how many, dtype, engine."""

import ast
import sys
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

from pydantic import Field, NonNegativeInt, PositiveInt

from lib import paths
from lib.errors import InputError, Settings, unknown, validated
from lib.models.card import card
from lib.models.names import Dtype, resolve
from lib.profiles.profile import Profile, load_profile, profile_names
from lib.profiles.sections import (
    DTYPE,
    ENGINE,
    LIMIT,
    PARTS,
    WORKERS,
    Engine,
    Place,
)
from lib.prompts.conditions import parse_condition
from lib.prompts.problems import load_problems

# How the cell begins that papermill puts into a notebook.
INJECTED = "# Parameters\n"


class Overrides(Settings):
    """Which profile, and what a notebook or the command line puts in its place."""

    profile: str = Field(
        "demo", description="a file of data/profiles, or a path to one"
    )
    model: Place | None = Field(
        None,
        description="this model everywhere: one name, hub id, folder or .gguf file",
    )
    problems: Place | None = Field(
        None, description="embedded, math500 or a JSONL file, instead of the profile's"
    )
    limit: PositiveInt | None = Field(None, description=LIMIT)
    name: str | None = Field(
        None,
        description="of the folders in results and figures, instead of one derived",
    )
    dtype: Dtype | None = Field(None, description=DTYPE)
    engine: Engine | None = Field(None, description=ENGINE)
    workers: NonNegativeInt | None = Field(None, description=WORKERS)


def run_profile(
    profile: str, model=None, problems=None, limit=None, name=None, **how: Any
) -> Profile:
    """Return a profile with a notebook's or the command line's overrides.

    It has a name and folders of its own, so that what is committed stays as it is: the
    name is the one given, else <profile>-<digest of the overrides>. Paths are relative
    to the current folder. how: dtype, engine and workers; the last change no result, so
    that alone they give no other name.
    """
    values = how | {
        "profile": profile,
        "model": model,
        "problems": problems,
        "limit": limit,
        "name": name,
    }
    _refuse_unknown_parameters()
    overrides = validated(Overrides, values, "parameters", context=Path.cwd())
    base = load_profile(profile)
    changes = overrides.model_dump(exclude_none=True, exclude={"profile"})
    content = base.model_dump()
    changes.pop("workers", None)  # which change no result
    if changes:
        content["name"] = _name(base, **changes)
        if changes.keys() <= {"limit", "name"}:
            content["stored_as"] = base.stored_as or base.name
    if overrides.problems is not None and not _have_solutions(overrides.problems):
        content["likelihood"] = None
    layers = _layers_of(overrides.model) if overrides.model is not None else inf
    for name, section in _sections(content):
        _override(name, section, overrides, layers)
    return validated(Profile, content, f"profile {profile}, overridden")


def _sections(content: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the sections of a profile's content, and the smaller runs of its answers,
    each with its name.
    """
    for name in ("attention", "accuracy", "likelihood", "pass_rates"):
        if content[name] is not None:
            yield name, content[name]
    for name in PARTS:
        if content["accuracy"][name] is not None:
            yield name, content["accuracy"][name]


def _override(
    name: str, section: dict[str, Any], overrides: Overrides, layers: float
) -> None:
    """Put what differs into a section.

    layers: how many the model has, where it is another one.
    """
    if overrides.problems is not None and "problems" in section:
        # The drawn problem, the levels and the limit belong to others.
        section |= dict.fromkeys(section.keys() & {"example", "levels", "limit"})
        section["problems"] = overrides.problems
    if overrides.model is not None:
        _fit(section, overrides.model, layers)
    if overrides.limit is not None:
        # No smaller run gets more than the profile's.
        most = section["limit"] if name in PARTS else None
        section["limit"] = min(overrides.limit, most or overrides.limit)
    if overrides.dtype is not None and name in ("attention", "accuracy"):
        # That of scores is float32 everywhere: a hundredth of a nat counts.
        section["dtype"] = overrides.dtype
    if name == "accuracy":
        how = overrides.model_dump(include={"engine", "workers"}, exclude_none=True)
        section |= how


def _fit(section: dict[str, Any], model: str, layers: float) -> None:
    """Let a section ask this model alone, for layers that it has.

    Drawn are the heads that the profile names of it, else its first ones.
    """
    if "models" in section:
        section["models"] = [model]
    if "layers" in section:
        section["layers"] = min(section["layers"], layers)
        for figure, row in section["panels"].items():
            section["panels"][figure] = [head for head in row if head["model"] == model]
    if "conditions" in section:
        section["conditions"] = [
            condition
            for condition in section["conditions"]
            if _layer_of_arm(condition) <= layers
        ]


def _layers_of(model: str) -> float:
    """Return how many layers a model has, where it says so; of one in data/models.yaml
    this asks no hub.
    """
    return resolve(model).layers or card(model).layers or inf


def _layer_of_arm(condition: str) -> int:
    arm = parse_condition(condition).arm
    return arm.layer if arm else 1


def _refuse_unknown_parameters() -> None:
    """Raise InputError in a notebook that papermill gave a name that it does not have.

    Papermill puts a cell of its own behind the cell of parameters, and lets it set
    whatever was typed.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    cells = shell.user_ns.get("In", []) if shell else []
    for place, cell in enumerate(cells):
        if place > 0 and cell.startswith(INJECTED):
            declared = _assigned(cells[place - 1])
            for name in _assigned(cell):
                if name not in declared:
                    raise unknown("parameter", name, declared)


def _assigned(cell: str) -> list[str]:
    """Return the names that a cell of parameters sets."""
    statements = ast.parse(cell).body
    assignments = [node for node in statements if isinstance(node, ast.Assign)]
    targets = [target for node in assignments for target in node.targets]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _name(base: Profile, name: str | None = None, **changes: Any) -> str:
    name = name or f"{base.name}-{paths.settings_key(**changes)[:6]}"
    if name in profile_names():
        raise InputError(
            f"name {name!r} is a profile of data/profiles: give another for what"
            " differs from it"
        )
    return name


def _have_solutions(problems: str) -> bool:
    """Say whether each of these problems has a worked solution."""
    if problems == "math500":  # which may have to be fetched
        return True
    try:
        loaded = load_problems(problems)
    except InputError:  # as whoever uses them will say
        return False
    return all(problem.solution.strip() for problem in loaded)
