"""Overrides from a notebook or the command line: a run that differs from its profile in
model, number of problems, dtype or engine; and the prompt of notebook 00.
"""

import ast
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, NonNegativeInt, PositiveInt, StringConstraints

from lib.errors import InputError, Settings, unknown, validated
from lib.files.whole import settings_key
from lib.models.names import Dtype, card, resolve
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
from lib.prompts.conditions import Position, parse_condition

# The first line of the cell that papermill inserts after a notebook's parameters.
INJECTED = "# Parameters\n"


class Overrides(Settings):
    """The profile, and the settings that a notebook or the command line replaces."""

    profile: str = Field(
        "demo", description="a file of data/profiles, or a path to one"
    )
    model: Place | None = Field(
        None,
        description="this model everywhere: one name, hub id, folder or .gguf file",
    )
    limit: PositiveInt | None = Field(None, description=LIMIT)
    name: str | None = Field(
        None,
        description="of the folders in results and figures, instead of one derived",
    )
    dtype: Dtype | None = Field(None, description=DTYPE)
    engine: Engine | None = Field(None, description=ENGINE)
    workers: NonNegativeInt | None = Field(None, description=WORKERS)


class TypedPrompt(Settings):
    """The parameters of notebook 00, which shows one prompt."""

    model: str
    problem: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    filler: str
    length: PositiveInt
    position: Position


def require_known_parameters(cells: Sequence[str]) -> None:
    """Raise InputError if papermill sets a name that the notebook's parameters lack.

    Papermill only warns, and the notebook would run with another profile or all
    problems.

    cells: the sources of the cells run so far (IPython's `In`). The last cell makes
    this call, directly after the parameters and the cell that papermill inserted after
    them.
    """
    # nbval keeps no history of the cells.
    *_, declared, injected, _ = ["", "", *cells]
    if injected.startswith(INJECTED):
        known = _assigned(declared)
        for name in _assigned(injected):
            if name not in known:
                raise unknown("parameter", name, known)


def _assigned(source: str) -> list[str]:
    """Return the names that a cell of parameters assigns."""
    statements = ast.parse(source).body
    assignments = [node for node in statements if isinstance(node, ast.Assign)]
    return [ast.unparse(target) for node in assignments for target in node.targets]


def require_prompt(**parameters: Any) -> None:
    """Raise InputError for parameters of notebook 00 that cannot be used, before its
    model is loaded.
    """
    typed = validated(TypedPrompt, parameters, "parameters")
    card(typed.model)


def run_profile(profile: str, model=None, limit=None, name=None, **how: Any) -> Profile:
    """Return a profile with the overrides of a notebook or the command line.

    It has another name and other folders, so that committed results stay unchanged. The
    name is the given one, or else <profile>-<digest of the overrides>. Paths are
    relative to the current folder. how: dtype, engine and workers; workers change no
    result, so they alone give no other name.
    """
    values = how | {
        "profile": profile,
        "model": model,
        "limit": limit,
        "name": name,
    }
    overrides = validated(Overrides, values, "parameters", context=Path.cwd())
    changes = overrides.model_dump(exclude_none=True, exclude={"profile"})
    base = load_profile(profile)
    content = base.model_dump()
    layers = inf
    if model := changes.get("model"):
        # For a model in data/models.yaml this needs no hub.
        layers = resolve(model).layers or card(model).layers or inf
    for part, section in (content | content["accuracy"]).items():
        if isinstance(section, dict):
            _override(part, section, changes, layers)

    changes.pop("workers", None)  # they change no result
    if changes:
        content["name"] = _name(base, **changes)
        content["larger"] = None
        takes_less = changes.keys() <= {"limit", "model", "name"}
        if takes_less and changes.get("model", base.models[0]) in base.models:
            content["larger"] = (base.larger or base).model_dump(exclude={"larger"})
    return validated(Profile, content, f"profile {profile}, overridden")


def _override(
    part: str, section: dict[str, Any], changes: dict[str, Any], layers: float
) -> None:
    """Put the changes into a section, as far as it has such fields.

    layers: the number of layers if the model is another one. The drawn heads are those
    that the profile names for it, or else its first ones.
    """
    model = changes.get("model")
    if model and "models" in section:
        section["models"] = [model]
    if model and "panels" in section:
        section["layers"] = min(section["layers"], layers)
        for figure, row in section["panels"].items():
            section["panels"][figure] = [head for head in row if head["model"] == model]
    if model and "conditions" in section:
        section["conditions"] = [
            text
            for text in section["conditions"]
            if parse_condition(text).deepest <= layers
        ]
    if "limit" in section and "limit" in changes:
        # A smaller run keeps at most the profile's number of problems.
        most = section["limit"] if part in PARTS else None
        section["limit"] = min(changes["limit"], most or changes["limit"])
    # Scores are always in float32, because hundredths of a nat matter.
    if part in ("attention", "accuracy"):
        for field in section.keys() & {"dtype", "engine", "workers"}:
            section[field] = changes.get(field, section[field])


def _name(base: Profile, name: str | None = None, **changes: Any) -> str:
    """Return the name of a run that differs from its profile; raise InputError for the
    name of a shipped profile.
    """
    name = name or f"{base.name}-{settings_key(**changes)[:6]}"
    if name in profile_names():
        raise InputError(
            f"name {name!r} is a profile of data/profiles: give another for what"
            " differs from it"
        )
    return name
