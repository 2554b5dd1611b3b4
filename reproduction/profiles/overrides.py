"""Override a profile from a notebook or the command line, and validate notebooks'
parameters.

A run may differ from its profile in the model, the number of problems, the dtype, the
engine, the number of workers and the name.
"""

import ast
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    Field,
    NonNegativeInt,
    PositiveInt,
    StringConstraints,
    field_validator,
)

from lib.errors import InputError, Settings, unknown, validated
from lib.files.row_store import settings_key
from lib.models.sources import Dtype, resolve, source_with_config
from lib.prompts.conditions import Format, Position, parse_condition
from lib.prompts.problems import is_within
from reproduction.profiles.profile import Profile, load_profile, profile_names
from reproduction.profiles.sections import (
    DTYPE,
    ENGINE,
    LIMIT,
    VARIATIONS,
    WORKERS,
    Engine,
    NameOrPath,
)

# The first line of the cell that papermill inserts after a notebook's parameters.
INJECTED = "# Parameters\n"


class Overrides(Settings):
    """A profile's name, and the settings that override it; None: not overridden."""

    profile: str = Field(
        "demo", description="name of a file of data/profiles, or the path to a profile"
    )
    model: NameOrPath | None = Field(
        None,
        description="only this model in all sections: a name, hub id, folder or .gguf"
        " file",
    )
    limit: PositiveInt | None = Field(None, description=LIMIT)
    name: str | None = Field(
        None,
        description="name of the folders in results and figures, instead of one that"
        " is derived from the changes",
    )
    dtype: Dtype | None = Field(None, description=DTYPE)
    engine: Engine | None = Field(None, description=ENGINE)
    workers: NonNegativeInt | None = Field(None, description=WORKERS)


class PromptParameters(Settings):
    """The parameters of notebook 00, which measures one prompt; `filler` is the text
    that is inserted.
    """

    model: str
    problem: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    filler: str
    length: PositiveInt
    position: Position
    format: Format

    @field_validator("model", "problem", "filler", mode="before")
    @classmethod
    def _no_number(cls, value):
        # Papermill's option -p reads 7 as a number, and 007 as 7.
        if isinstance(value, int | float):
            raise ValueError(
                f"must be a text, not {value}: pass it with papermill's -r"
            )
        return value


def require_known_parameters() -> None:
    """Raise InputError if papermill sets a parameter that the notebook does not have.

    Papermill only warns about a misspelt name, and the notebook would then run with
    its default settings.

    Of the cells that have run, the last one that papermill inserted is compared with
    the cell before it, which holds the notebook's parameters. A notebook that was
    exported to plain Python has none.
    """
    from IPython import get_ipython  # commands need none

    shell = get_ipython()
    cells = shell.user_ns["In"] if shell else []
    for declared, injected in reversed(list(pairwise(cells))):
        if injected.startswith(INJECTED):
            known = _assigned(declared)
            for name in _assigned(injected):
                if name not in known:
                    raise unknown("parameter", name, known)
            return


def _assigned(source: str) -> list[str]:
    """Return the names of the variables that a cell assigns."""
    statements = ast.parse(source).body
    assignments = [node for node in statements if isinstance(node, ast.Assign)]
    return [ast.unparse(target) for node in assignments for target in node.targets]


def validate_prompt_parameters(**parameters: Any) -> None:
    """Raise InputError for an invalid parameter of notebook 00, before the model is
    loaded.

    parameters: the fields of PromptParameters.
    """
    prompt = validated(PromptParameters, parameters, "parameters")
    source_with_config(prompt.model)  # raises InputError for a model that is not found


def profile_with_overrides(
    profile: str, model=None, limit=None, name=None, **execution: Any
) -> Profile:
    """Return a profile with the overrides of a notebook or the command line.

    profile, model, limit, name: as in `Overrides`. execution: dtype, engine and
    workers. An override changes the profile's name, and with it the folders of results
    and figures, so that committed results stay unchanged. The new name is `name`, or
    else <profile>-<digest of the overrides>. The number of workers changes no result,
    so it does not change the name either. Paths are relative to the current folder.
    Raises InputError for an unknown profile or model, and for an invalid value.
    """
    values = execution | {
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
        # The hub need not be reached for models whose layers data/models.yaml has.
        layers = resolve(model).layers or source_with_config(model).layers or inf
    for part, section in (content | content["accuracy"]).items():
        if isinstance(section, dict):
            _override_section(part, section, changes, layers)

    changes.pop("workers", None)
    if changes:
        content["name"] = _run_name(base, **changes)
        # A run of fewer problems or models uses the profile's stored measurements.
        is_subset = changes.keys() <= {"limit", "model", "name"}
        is_subset &= changes.get("model", base.models[0]) in base.models
        content["part_of"] = (base.part_of or base.name) if is_subset else None
        is_subset &= is_within(changes.get("limit", 1), base.attention.limit)
        content["stored_only"] = base.stored_only and is_subset
    return validated(Profile, content, f"profile {profile}, overridden")


def _override_section(
    part: str, section: dict[str, Any], changes: dict[str, Any], layers: float
) -> None:
    """Replace the fields of one section of a profile (`part` is its name) that are
    overridden.

    layers: the number of layers of the overriding model; inf without one. Conditions
    that name a deeper layer are dropped, and no deeper layer is measured. Figures keep
    only the heads that the profile names for this model.
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
        # A smaller run keeps its limit if that is lower than the override.
        maximum = section["limit"] if part in VARIATIONS else None
        section["limit"] = min(changes["limit"], maximum or changes["limit"])
    # The dtype of log-likelihoods cannot be overridden, because hundredths of a nat
    # matter.
    if part in ("attention", "accuracy"):
        for field in section.keys() & {"dtype", "engine", "workers"}:
            section[field] = changes.get(field, section[field])


def _run_name(base: Profile, name: str | None = None, **changes: Any) -> str:
    """Return the name of an overridden profile: `name`, or one that is derived from the
    changes.

    Raises InputError for the name of a profile in data/profiles.
    """
    name = name or f"{base.name}-{settings_key(**changes)[:6]}"
    if name in profile_names():
        raise InputError(
            f"name {name!r} is a profile of data/profiles: give the changed run another"
            " name"
        )
    return name
