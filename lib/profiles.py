"""What to run: a validated `Profile` read from data/profiles/NAME.yaml, and the numbers the paper reports."""

import difflib
import os
import reprlib
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
    create_model,
    model_validator,
)

from lib import paths
from lib.arm.settings import Arm, arm_text, parse_arm
from lib.errors import InputError
from lib.paths import settings_key
from lib.prompts.conditions import FORMATS, POSITIONS, Filler, parse_condition

FIGURES = ("fig09", "fig10", "fig11", "fig13", "fig18")  # each a row of panels, from left to right


class _Section(BaseModel):
    """Base of all parts: no unknown fields, no silent conversion ("8" for 8), no empty text, no mutation."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, str_min_length=1, allow_inf_nan=False)


def _known(condition: str) -> str:
    try:
        parse_condition(condition)
        parse_arm(arm_text(condition), Arm())
    except InputError as error:
        raise ValueError(str(error)) from error  # pydantic adds where it stands
    return condition


Condition = Annotated[str, AfterValidator(_known)]


class Panel(_Section):
    """One head of one layer of one model; both count from 1."""

    model: str
    layer: PositiveInt
    head: PositiveInt


ROWS = dict.fromkeys(FIGURES, (list[Panel], Field(min_length=1)))
Panels = create_model("Panels", __base__=_Section, **ROWS)
# The fields of lib.prompts.Filler with its defaults, so that the two cannot differ.
FILLER = {f.name: (PositiveInt if f.type is int else f.type, f.default) for f in fields(Filler)}
FILLER["position"] = (Literal[*POSITIONS], Filler.position)
Inserted = create_model("Inserted", __base__=_Section, **FILLER)
Activation = create_model("Activation", __base__=_Section, **{f.name: (f.type, f.default) for f in fields(Arm)})


class Attention(_Section):
    """Which first layers to load, on which problems (limit None: all), and which heads to draw."""

    models: list[str] = Field(min_length=1)
    layers: PositiveInt  # how many first layers are loaded
    problems: str
    limit: PositiveInt | None
    format: Literal[*FORMATS]
    map_problems: PositiveInt | None  # how many of them go through all layers; None: only the first layers
    example: int = Field(ge=0)  # index, from 0, of the problem that the figures draw
    panels: Panels

    @model_validator(mode="after")
    def _agrees(self):
        if self.limit is not None and self.example >= self.limit:
            raise ValueError(f"example {self.example} is not among {self.limit} problems, counted from 0")
        for figure, panel in ((figure, panel) for figure, row in self.panels for panel in row):
            if panel.layer > self.layers or panel.model not in self.models:
                raise ValueError(f"panels.{figure}: layer {panel.layer} of {panel.model} is not loaded")
        return self


class Variation(_Section):
    """A second, smaller run that differs from `accuracy` in these settings."""

    limit: PositiveInt | None
    conditions: list[Condition]
    temperature: float = Field(ge=0)
    top_p: float = Field(gt=0, le=1)
    samples: PositiveInt


class Accuracy(_Section):
    """Which models answer which problems (limit None: all) under which conditions, and how they decode."""

    models: list[str] = Field(min_length=1)
    problems: str
    limit: PositiveInt | None
    conditions: list[Condition]
    format: Literal[*FORMATS]
    max_new_tokens: PositiveInt
    elicit: bool
    elicit_tokens: PositiveInt
    temperature: float = Field(ge=0)  # 0: greedy
    top_p: float = Field(gt=0, le=1)
    samples: PositiveInt
    batch_size: PositiveInt
    engine: str = "transformers"
    engine_options: dict[str, PositiveInt] = {}  # such as vllm's tensor_parallel and data_parallel
    arm: Activation | None = None  # settings of ARM; None: the paper's for each model
    fillers: Variation | None = None  # lengths, places and kinds of filler: Fig. 8, Tables 4 and 5
    sampling: Variation | None = None  # several samples: pass@k, diversity, noise between seeds
    interventions: Variation | None = None  # ARM beside the tokens: Tables 2 and 3
    arm_map: Variation | None = None  # ARM under other settings, in other layers: Fig. 12

    @model_validator(mode="after")
    def _agrees(self):
        if self.conditions.count("none") != 1 or len(set(self.conditions)) != len(self.conditions):
            raise ValueError("conditions must hold 'none', the baseline of the others, and each only once")
        if self.samples > 1 and self.temperature == 0:
            raise ValueError(f"samples is {self.samples} at temperature 0, where every sample is the same")
        try:
            self.arm_settings()
        except InputError as error:
            raise ValueError(str(error)) from error
        return self

    def arm_settings(self) -> Arm | None:
        """Return ARM's settings as `arm` gives them."""
        return Arm(**self.arm.model_dump()) if self.arm else None


class Profile(_Section):
    """Everything a run needs to know."""

    name: str = Field(pattern=r"^\w[\w.-]*$")  # a folder's too
    description: str
    seed: int = Field(ge=0)
    filler: Inserted = Inserted()
    attention: Attention
    accuracy: Accuracy

    @property
    def results(self) -> Path:
        """The folder of what its runs keep: results/<name>."""
        return paths.RESULTS / self.name

    @property
    def figures(self) -> Path:
        """The folder of its figures: figures/<name>."""
        return paths.FIGURES / self.name


PARTS = ("fillers", "sampling", "interventions", "arm_map")


def variation(accuracy: Accuracy, part: str) -> Accuracy:
    """Return what the run of `part`, one of PARTS, does; raises InputError when the profile has none."""
    changes = getattr(accuracy, part)
    if changes is None:
        raise InputError(f"this profile has no accuracy.{part}")
    return Accuracy.model_validate(accuracy.model_dump(exclude=set(PARTS)) | changes.model_dump())


SECTIONS = {
    "": Profile,
    "filler": Inserted,
    "attention": Attention,
    "panels": Panels,
    "accuracy": Accuracy,
    "arm": Activation,
    **dict.fromkeys(PARTS, Variation),
}


def profile_names() -> list[str]:
    """Return the names `load_profile` takes."""
    return sorted(path.stem for path in paths.PROFILES.glob("*.yaml"))


def load_profile(name_or_path: str | Path) -> Profile:
    """Return the profile of data/profiles/NAME.yaml, or of a YAML file; an InputError says what is wrong with it."""
    given = Path(name_or_path)
    if given.suffix in (".yaml", ".yml") and given.is_file():
        path = given.resolve()
    elif str(name_or_path) in profile_names():
        path = paths.PROFILES / f"{name_or_path}.yaml"
    else:
        known = ", ".join(profile_names())
        raise InputError(f"unknown profile {str(name_or_path)!r}: choose from {known}, or give a YAML file")
    origin = str(path).removeprefix(f"{paths.ROOT}/")
    profile = _validated(_read_yaml(path, origin), origin)
    # Figures and results go into a folder of this name: no file may write into another's.
    if path.parent == paths.PROFILES and profile.name != path.stem:
        raise InputError(f"{origin}: name: must be {path.stem!r} like the file, not {profile.name!r}")
    if path.parent != paths.PROFILES and profile.name in profile_names():
        raise InputError(f"{origin}: name: {profile.name!r} is a profile of data/profiles, choose another")
    return profile


def run_profile(
    name_or_path: str | Path,
    model: str | None = None,
    problems: str | Path | None = None,
    limit: int | None = None,
    name: str | None = None,
) -> Profile:
    """Return a profile with a notebook's or the command line's overrides, under a name and folders of its own.

    The name is the one given, else <profile>-<digest of the overrides>, so that what is committed stays as it is.
    """
    profile = load_profile(name_or_path)
    # From the current folder: a run starts in one, its notebooks are in another.
    if problems is not None and str(problems) not in ("embedded", "math500"):
        problems = os.path.abspath(problems)
    if model and os.path.isdir(model):
        model = os.path.abspath(model)
    overrides = {"model": model, "problems": problems, "limit": limit}
    if name is None and any(value is not None for value in overrides.values()):
        name = f"{profile.name}-{settings_key(**overrides)[:6]}"
    if name is None:
        return profile
    if name in profile_names():
        raise InputError(f"name {name!r} is a profile of data/profiles: give another for what differs from it")
    return override(profile, **overrides, name=name)


def override(profile: Profile, model=None, problems=None, limit=None, name=None) -> Profile:
    """Return a copy with this model everywhere, these problems (all, unless limited), this limit, this name."""
    if limit is not None and limit < 1:
        raise InputError(f"limit must be at least 1, not {limit}")
    content = profile.model_dump() | {"name": name or profile.name}
    change = {} if limit is None else {"limit": limit}
    if problems is not None:
        change = {"problems": str(problems), "limit": limit}
    if model is not None:
        change["models"] = [model]
        for panel in (panel for row in content["attention"]["panels"].values() for panel in row):
            panel["model"] = model
    for section in ("attention", "accuracy"):
        content[section].update(change)
    for part in (content["accuracy"][part] for part in PARTS):
        if part and limit is not None:
            part["limit"] = min(limit, part["limit"] or limit)
    return _validated(content, f"profile {profile.name}, overridden")


def paper_numbers() -> dict:
    """Return data/paper.yaml: figure or table -> {"source": text, "values": {model: {condition: %}}}."""
    return _read_yaml(paths.DATA / "paper.yaml", "data/paper.yaml")


def _read_yaml(path: Path, origin: str) -> object:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        reason = f"line {mark.line + 1}: {error.problem}" if mark else " ".join(str(error).split())
        raise InputError(f"{origin}: {reason}") from error


def _validated(content: object, origin: str) -> Profile:
    try:
        return Profile.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{origin}: {_summary(error.errors())}") from error


def _summary(errors: list[dict]) -> str:
    errors = sorted(errors, key=lambda error: error["type"] != "extra_forbidden")  # misspelt fields first
    first, place = errors[0], errors[0]["loc"]
    reason = f"{first['msg'][0].lower()}{first['msg'][1:]}, not {reprlib.repr(first['input'])}"
    if first["type"] == "extra_forbidden":
        section = SECTIONS.get(place[-2] if place[1:] else "", Panel)
        guess = difflib.get_close_matches(str(place[-1]), section.model_fields, n=1)
        reason = "unknown field" + (f" (did you mean {guess[0]}?)" if guess else "")
        # The field that was meant is reported as missing too: once is enough.
        errors = [error for error in errors if error["loc"] != (*place[:-1], *guess)]
    elif first["type"] == "missing":
        reason = "missing field"
    elif first["type"] == "value_error":
        reason = str(first["ctx"]["error"])
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{'.'.join(map(str, place)) or 'profile'}: {reason}{more}"
