"""What to run: a validated `Profile` read from a YAML file, what may override it, and where its results go."""

import itertools
import os
import re
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, NonNegativeInt, PositiveInt, model_validator

from lib import paths
from lib.arm.settings import Arm, parse_arm
from lib.errors import InputError, Settings, unknown, valid
from lib.models.names import Card, Dtype, card, known_models, resolve
from lib.prompts.conditions import ConditionText, Example, Filler, Format, parse_condition
from lib.prompts.problems import drawn_problem, load_problems

# What several settings mean, as the command line's help and the README say it.
MODELS = "names of data/models.yaml, hub ids, folders or .gguf files"
LIMIT = "a seeded sample of so many problems, stratified by level; all if null"
DTYPE = "of the weights: float32, bfloat16, float16, or auto, which goes by the device"
FORMAT = "of the prompt: plain, or chat where the model has a template"
CONDITIONS = "none, mless, mful, random, question, letters; mless:25, mless@end; arm, mless+arm, arm:c=0.1:p1=95"
PARTS = ("fillers", "sampling", "interventions", "arm_map")  # the fields of Accuracy that are a Variation
UNUSUAL = re.compile(r"[^\w.=+@-]+")  # in a file's name


class Panel(Settings):
    """One head of one layer of one model; both count from 1."""

    model: str
    layer: PositiveInt
    head: PositiveInt


class Panels(Settings):
    """The heads that a figure draws, from left to right; of a row that is left out, the first model's first heads."""

    fig09: list[Panel] = Field([])
    fig10: list[Panel] = Field([])
    fig11: list[Panel] = Field([])
    fig13: list[Panel] = Field([])
    fig18: list[Panel] = Field([])

    def named(self) -> Iterator[tuple[str, Panel]]:
        """Yield every panel with its figure's name."""
        yield from ((figure, panel) for figure, row in self for panel in row)


class Attention(Settings):
    """Which first layers to load, on which problems (limit None: all), and which heads to draw."""

    models: list[str] = Field(min_length=1, description=MODELS)
    layers: PositiveInt = Field(3, description="how many first layers are loaded")
    problems: str = Field("embedded", description="embedded, math500 or a JSONL file")
    limit: PositiveInt | None = Field(None, description=LIMIT)
    format: Format = Field("plain", description=FORMAT)
    map_problems: PositiveInt | None = Field(None, description="how many problems go through all layers; none if null")
    dtype: Dtype = Field("auto", description=DTYPE)
    example: str | None = Field(None, description="id of the problem that the figures draw; the sample's first if null")
    panels: Panels = Field(Panels(), description="model, layer and head of each drawn curve")

    @model_validator(mode="after")
    def _agrees(self):
        for figure, panel in self.panels.named():
            if panel.layer > self.layers or panel.model not in self.models:
                raise ValueError(f"panels.{figure}: layer {panel.layer} of {panel.model} is not loaded")
        return self


class Variation(Settings):
    """A second, smaller run that differs from `accuracy` in these settings."""

    limit: PositiveInt | None = None
    conditions: list[ConditionText]
    temperature: float = Field(0.0, ge=0)
    top_p: float = Field(1.0, gt=0, le=1)
    samples: int = Field(1, ge=1, le=10_000)


class Accuracy(Settings):
    """Which models answer which problems (limit None: all) under which conditions, and how they decode."""

    models: list[str] = Field(min_length=1, description=MODELS)
    problems: str = Field("embedded", description="embedded, math500 or a JSONL file")
    limit: PositiveInt | None = Field(None, description=LIMIT)
    levels: list[NonNegativeInt] | None = Field(None, description="only problems of these levels; of all if null")
    examples: list[Example] = Field([], description="worked problems that are shown first, in chat form")
    conditions: list[ConditionText] = Field(["none", "mless", "mful"], description=CONDITIONS)
    format: Format = Field("chat", description=FORMAT)
    max_new_tokens: PositiveInt = Field(1024, description="an answer is cut after so many tokens")
    elicit: bool = Field(False, description="ask for a boxed answer in a second step")
    elicit_tokens: PositiveInt = Field(12, description="tokens of that second step")
    temperature: float = Field(0.0, ge=0, description="0 is greedy")
    top_p: float = Field(1.0, gt=0, le=1, description="share of the probability to draw from")
    samples: int = Field(1, ge=1, le=10_000, description="answers per problem and condition")
    batch_size: PositiveInt = Field(64, description="prompts that are answered at once")
    dtype: Dtype = Field("auto", description=DTYPE)
    engine: str = Field("transformers", description="what generates: transformers or vllm")
    engine_options: dict[str, PositiveInt] = Field(
        {}, description="numbers for the engine, such as vllm's tensor_parallel=2"
    )
    workers: NonNegativeInt = Field(0, description="Ray processes with an engine each (CLUSTER.md); 0: none")
    gpus_per_worker: NonNegativeInt | None = Field(None, description="of each worker; 1 where there is a GPU if null")
    arm: Annotated[Arm | None, BeforeValidator(lambda arm: parse_arm(arm) if isinstance(arm, str) else arm)] = Field(
        None, description="settings of ARM, such as c=0.13:p1=99.5:layer=1; the paper's for each model if null"
    )
    fillers: Variation | None = Field(None, description="lengths, places and kinds of filler: Fig. 8, Tables 4 and 5")
    sampling: Variation | None = Field(None, description="several samples: pass@k, diversity, noise between seeds")
    interventions: Variation | None = Field(None, description="ARM beside the tokens: Tables 2 and 3")
    arm_map: Variation | None = Field(None, description="ARM under other settings, in other layers: Fig. 12")

    @model_validator(mode="after")
    def _agrees(self):
        if self.conditions.count("none") != 1 or len(set(self.conditions)) != len(self.conditions):
            raise ValueError("conditions must hold 'none', the baseline of the others, and each only once")
        if self.samples > 1 and self.temperature == 0:
            raise ValueError(f"samples is {self.samples} at temperature 0, where every sample is the same")
        if self.examples and self.format != "chat":
            raise ValueError("examples are turns of a chat: format must be chat")
        if scored := [c for c in self.conditions if parse_condition(c).for_likelihood]:
            raise ValueError(f"{', '.join(scored)}: only likelihoods are measured under it, no answers")
        return self


class Likelihood(Settings):
    """Which models score which gold solutions (limit None: all) under which conditions."""

    models: list[str] = Field(min_length=1, description=MODELS)
    problems: str = Field("embedded", description="embedded, math500 or a JSONL file, each with a worked solution")
    limit: PositiveInt | None = Field(None, description=LIMIT)
    conditions: list[ConditionText] = Field(
        ["none", "gap", "dilution", "mless"], description=CONDITIONS + "; gap, dilution, layer-1-only, example, bare"
    )
    at_once: list[ConditionText] = Field(
        [], description="conditions under which the gold answer is scored without its solution"
    )
    format: Format = Field("chat", description=FORMAT)
    max_solution_tokens: PositiveInt = Field(512, description="a problem with a longer solution is left out")
    dtype: Dtype = Field("float32", description=DTYPE)

    @model_validator(mode="after")
    def _agrees(self):
        for condition in (*self.conditions, *self.at_once):
            asked = parse_condition(condition)
            if asked.arm and asked.arm.mode != "text":
                raise ValueError(f"{condition}: likelihoods take ARM in mode text, which leaves the scored text alone")
        return self


class Profile(Settings):
    """Everything a run needs to know, and the only way to its folders."""

    name: str = Field(
        pattern=r"^\w[\w.-]{0,79}$", description="of the profile and of its folders in results and figures"
    )
    description: str = Field(description="one line that says what the profile is for")
    seed: NonNegativeInt = Field(0, description="random draws repeat with the same seed")
    filler: Filler = Filler()
    attention: Attention
    accuracy: Accuracy
    likelihood: Likelihood | None = Field(None, description="which gold solutions are scored; none if null")

    @property
    def results(self) -> Path:
        return paths.RESULTS / self.name

    @property
    def figures(self) -> Path:
        return paths.FIGURES / self.name

    @property
    def options(self) -> str:
        """How a command asks for this profile: by its name, the file that records its run, or as it was asked for."""
        if self.name in profile_names():
            return f"--profile {self.name}"
        recorded = self.results / "profile.yaml"
        return f"--profile {recorded}" if recorded.is_file() else "with the same options"

    def measured_in(self, folder: Path, model: str) -> Path:
        """Return the file of a model's measurements in one of the folders where they may lie."""
        return folder / f"{UNUSUAL.sub('-', model)}.nc"

    def measured_file(self, model: str) -> Path | None:
        """Return what was measured on a model: here, else what the repository has; None where neither is."""
        files = [self.measured_in(folder, model) for folder in (self.results, paths.DATA / self.name)]
        return next(filter(Path.is_file, files), None)

    @property
    def stored(self) -> bool:
        """Whether the repository has the measurements of all of its models, and none was begun anew."""
        files = [self.measured_file(resolve(spec).name) for spec in self.attention.models]
        return all(file is not None and file.parent != self.results for file in files)


class Overrides(Settings):
    """What a notebook's parameters or the command line may put in place of a profile's."""

    model: str | None = Field(None, description="this model everywhere: one name, hub id, folder or .gguf file")
    problems: str | None = Field(None, description="embedded, math500 or a JSONL file, instead of the profile's")
    limit: PositiveInt | None = Field(None, description=LIMIT)
    name: str | None = Field(None, description="of the folders in results and figures, instead of one derived")
    dtype: Dtype | None = Field(None, description=DTYPE)


def variation(accuracy: Accuracy, part: str) -> Accuracy:
    """Return what the run of `part`, one of PARTS, does; raises InputError when the profile has none."""
    changes = getattr(accuracy, part)
    if changes is None:
        raise InputError(f"this profile has no accuracy.{part}")
    return Accuracy.model_validate(accuracy.model_dump(exclude=set(PARTS)) | changes.model_dump())


def profile_names() -> list[str]:
    """Return the names `load_profile` takes."""
    return sorted(path.stem for path in paths.PROFILES.glob("*.yaml"))


def load_profile(name_or_path: str | Path) -> Profile:
    """Return the profile of data/profiles/NAME.yaml, or of a YAML file, to which its paths are relative.

    An InputError says what is wrong with it.
    """
    given, path = str(name_or_path), paths.PROFILES / f"{name_or_path}.yaml"
    if given not in profile_names():
        path = Path(given).expanduser().resolve()
        if path.suffix not in (".yaml", ".yml") or not path.is_file():
            raise unknown("profile", given, profile_names(), "choose from {}, or give a YAML file")
    profile, shipped = valid(Profile, paths.read_yaml(path), paths.shown(path)), path.parent == paths.PROFILES
    # Figures and results go into a folder of this name: no file may write into another's.
    if shipped and profile.name != path.stem:
        raise InputError(f"{paths.shown(path)}: name: must be {path.stem!r} like the file, not {profile.name!r}")
    if not shipped and profile.name in profile_names():
        raise InputError(f"{paths.shown(path)}: name: {profile.name!r} is a profile of data/profiles, choose another")
    content = profile.model_dump()
    for section in filter(None, (content["attention"], content["accuracy"], content["likelihood"])):
        section["models"] = [_from(path.parent, spec) for spec in section["models"]]
        section["problems"] = _from(path.parent, section["problems"])
    for panel in (panel for row in content["attention"]["panels"].values() for panel in row):
        panel["model"] = _from(path.parent, panel["model"])
    return Profile.model_validate(content)


def _from(folder: Path, text: str) -> str:
    """Return a path in `folder` as an absolute one, and a name as it is."""
    names = {"demo", "embedded", "math500", *known_models()}
    path = os.path.join(folder, os.path.expanduser(text))
    return os.path.abspath(path) if text not in names and os.path.exists(path) else text


def run_profile(name_or_path: str | Path, model=None, problems=None, limit=None, name=None, dtype=None) -> Profile:
    """Return a profile with a notebook's or the command line's overrides, under a name and folders of its own.

    The name is the one given, else <profile>-<digest of the overrides>: what is committed stays as it is. Paths are
    relative to the current folder. Other problems are all asked for, unless limited, and not for likelihoods, which
    need solutions. Of another model the heads that the profile names of it are drawn, else its first ones.
    """
    given = {"model": model, "problems": problems, "limit": limit, "name": name, "dtype": dtype}
    given = valid(Overrides, given, "parameters").model_dump(exclude={"name"}, exclude_none=True)
    profile = load_profile(name_or_path)
    given = {field: _from(Path.cwd(), value) if isinstance(value, str) else value for field, value in given.items()}
    if not given and name is None:
        return profile
    name = name or f"{profile.name}-{paths.settings_key(**given)[:6]}"
    if name in profile_names():
        raise InputError(f"name {name!r} is a profile of data/profiles: give another for what differs from it")
    content = profile.model_dump() | {"name": name}
    if problems is not None:
        content["likelihood"] = None
    attention, accuracy, likelihood = content["attention"], content["accuracy"], content["likelihood"]
    parts = [accuracy[part] for part in PARTS if accuracy[part]]
    changes = {field: given[field] for field in ("problems", "limit", "dtype") if field in given}
    changes |= {"models": [given["model"]]} if model else {}
    for section in (attention, accuracy):
        section |= ({"limit": None} if problems else {}) | changes
    if problems is not None:
        accuracy["levels"] = attention["example"] = None  # the drawn problem is not among these
    if likelihood:  # whose dtype is its own: float32 everywhere, so that differences of a hundredth of a nat count
        likelihood |= {field: changes[field] for field in ("limit", "models") if field in changes}
    for part in parts:
        part["limit"] = min(filter(None, (limit, part["limit"])), default=None)
    if model is not None:
        layers = card(given["model"]).layers or inf
        attention["layers"] = min(attention["layers"], layers)
        for figure, row in attention["panels"].items():
            attention["panels"][figure] = [panel for panel in row if panel["model"] == given["model"]]
        for part in (accuracy, *parts):
            part["conditions"] = [c for c in part["conditions"] if (parse_condition(c).arm or Arm()).layer <= layers]
    return valid(Profile, content, f"profile {profile.name}, overridden")


def check(profile: Profile) -> None:
    """Raise InputError for what the problems and the models' configs say cannot run; no weights are read."""
    if profile.stored:  # nothing runs
        return
    attention, accuracy = profile.attention, profile.accuracy
    drawn_problem(attention.problems, attention.example)
    deepest = [("attention.layers", Panel(model=spec, layer=attention.layers, head=1)) for spec in attention.models]
    for place, panel in (*deepest, *attention.panels.named()):
        check_panel(place, panel, card(panel.model))
    for part in (accuracy, *(variation(accuracy, part) for part in PARTS if getattr(accuracy, part))):
        check_accuracy(part, profile.filler)


def check_panel(figure: str, panel: Panel, known: Card) -> None:
    """Raise InputError when the model lacks a panel's layer or head."""
    for name, number, last in (("layers", panel.layer, known.layers), ("heads", panel.head, known.heads)):
        if last and number > last:
            raise InputError(f"{figure}: {known.spec} has {name} 1 to {last}, not {number}")


def check_accuracy(accuracy: Accuracy, filler: Filler) -> None:
    """Raise InputError for problems that cannot be read, a model or layer that does not exist, a filler too long."""
    load_problems(accuracy.problems, levels=accuracy.levels)
    for known, condition in itertools.product(map(card, accuracy.models), accuracy.conditions):
        asked, room = parse_condition(condition), known.context or 2**17
        length = 0 if asked.name == "none" else asked.filler(filler).length
        if max(length, accuracy.max_new_tokens) >= room:
            tokens = f"{length} inserted and {accuracy.max_new_tokens} new tokens"
            raise InputError(f"{condition}: {known.name} has room for {room} tokens, not for {tokens}")
        if asked.arm and known.layers and asked.arm.layer > known.layers:
            raise InputError(f"{condition}: the model has layers 1 to {known.layers}")
