"""A run that differs from its profile: in problems, model, how many, dtype, engine."""

import ast
import sys
from collections.abc import Callable
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
    WORKERS,
    Accuracy,
    Engine,
    Place,
    Section,
    Variation,
)
from lib.prompts.conditions import Condition
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
    if overrides.workers is not None:
        base = _with_answers_by(base, workers=overrides.workers)
    changes = overrides.model_dump(exclude_none=True, exclude={"profile", "workers"})
    if not changes:
        return base

    run = base.model_copy(update={"name": _name(base, **changes)})
    if set(changes) <= {"limit", "name"}:
        run = run.model_copy(update={"stored_as": base.stored_as or base.name})
    if overrides.problems is not None:
        run = _with_problems(run, overrides.problems)
    if overrides.model is not None:
        run = _with_model(run, overrides.model)
    if overrides.limit is not None:
        run = _with_fewer_problems(run, overrides.limit)
    if overrides.dtype is not None:
        run = _with_dtype(run, overrides.dtype)
    if overrides.engine is not None:
        run = _with_answers_by(run, engine=overrides.engine)
    return validated(Profile, run.model_dump(), f"profile {profile}, overridden")


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


def _with_problems(run: Profile, problems: str) -> Profile:
    """Return a run on all of these problems.

    The drawn problem and the levels belong to others. Likelihoods need solutions: where
    these lack some, none are scored.
    """
    attention = {"problems": problems, "limit": None, "example": None}
    accuracy = {"problems": problems, "limit": None, "levels": None}
    likelihood = None
    if run.likelihood is not None and _have_solutions(problems):
        likelihood = _changed(run.likelihood, problems=problems, limit=None)
    return run.model_copy(
        update={
            "attention": run.attention.model_copy(update=attention),
            "accuracy": run.accuracy.model_copy(update=accuracy),
            "likelihood": likelihood,
            "pass_rates": _changed(run.pass_rates, problems=problems, limit=None),
        }
    )


def _have_solutions(problems: str) -> bool:
    """Say whether each of these problems has a worked solution."""
    if problems == "math500":  # which may have to be fetched
        return True
    try:
        loaded = load_problems(problems)
    except InputError:  # as whoever uses them will say
        return False
    return all(problem.solution.strip() for problem in loaded)


def _with_model(run: Profile, model: str) -> Profile:
    """Return a run of this model alone.

    Drawn are the heads that the profile names of it, else its first ones; no layer is
    asked for that it does not have. Of a model in data/models.yaml this asks no hub.
    """
    layers = resolve(model).layers or card(model).layers or inf
    panels = {
        figure: [panel for panel in row if panel.model == model]
        for figure, row in run.attention.panels.items()
    }
    attention = {
        "models": [model],
        "layers": min(run.attention.layers, layers),
        "panels": panels,
    }

    def fitting(variation: Variation) -> dict[str, list[Condition]]:
        conditions = variation.conditions
        return {"conditions": [c for c in conditions if _layer_of_arm(c) <= layers]}

    accuracy = _with_variations(run.accuracy, fitting)
    accuracy = accuracy.model_copy(update={"models": [model]} | fitting(accuracy))
    return run.model_copy(
        update={
            "attention": run.attention.model_copy(update=attention),
            "accuracy": accuracy,
            "likelihood": _changed(run.likelihood, models=[model]),
            "pass_rates": _changed(run.pass_rates, models=[model]),
        }
    )


def _changed(section: Section | None, **changes: Any) -> Section | None:
    """Return a section with other values; None where the profile lacks it."""
    return section and section.model_copy(update=changes)


def _layer_of_arm(condition: Condition) -> int:
    return condition.arm.layer if condition.arm else 1


def _with_fewer_problems(run: Profile, limit: int) -> Profile:
    """Return a run on so many problems; no part of it gets more than the profile's."""

    def fewer(variation: Variation) -> dict[str, int]:
        return {"limit": min(limit, variation.limit or limit)}

    accuracy = _with_variations(run.accuracy, fewer)
    return run.model_copy(
        update={
            "attention": _changed(run.attention, limit=limit),
            "accuracy": _changed(accuracy, limit=limit),
            "likelihood": _changed(run.likelihood, limit=limit),
            "pass_rates": _changed(run.pass_rates, limit=limit),
        }
    )


def _with_dtype(run: Profile, dtype: Dtype) -> Profile:
    """Return a run with other weights, but for likelihoods and pass rates.

    Theirs is float32 everywhere, so that differences of a hundredth of a nat count.
    """
    return run.model_copy(
        update={
            "attention": run.attention.model_copy(update={"dtype": dtype}),
            "accuracy": run.accuracy.model_copy(update={"dtype": dtype}),
        }
    )


def _with_answers_by(run: Profile, **how: Any) -> Profile:
    """Return a run whose answers another engine gives, or so many workers."""
    return run.model_copy(update={"accuracy": run.accuracy.model_copy(update=how)})


def _with_variations(
    accuracy: Accuracy, changes: Callable[[Variation], dict[str, Any]]
) -> Accuracy:
    """Return the accuracy with what `changes` makes of each of its smaller runs."""
    return accuracy.model_copy(
        update={
            part: variation.model_copy(update=changes(variation))
            for part, variation in accuracy.variations.items()
        }
    )
