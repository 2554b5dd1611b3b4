"""What to run: a validated `Profile` read from a YAML file, what may override it, and
where its results go.
"""

import itertools
import os
import re
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    NonNegativeInt,
    PositiveInt,
    model_validator,
)

from lib import paths
from lib.arm.settings import Arm, parse_arm
from lib.errors import InputError, Settings, unknown, validated
from lib.models.card import card
from lib.models.names import Dtype, Source, known_models, resolve
from lib.prompts.conditions import (
    ConditionField,
    Example,
    Filler,
    Format,
    parse_condition,
)
from lib.prompts.problems import drawn_problem, load_problems

# What several settings mean, as the command line's help and the README say it.
LIMIT = "a seeded sample of so many problems, stratified by level; all if null"
DTYPE = "of the weights: float32, bfloat16, float16, or auto, which goes by the device"
FORMAT = "of the prompt: plain, or chat where the model has a template"
CONDITIONS = (
    "none, mless, mful, random, question, letters; mless:25, mless@end; arm, mless+arm,"
    " arm:c=0.1:p1=95"
)
PARTS = (
    "fillers",
    "sampling",
    "interventions",
    "arm_map",
)  # the fields of Accuracy that are a Variation
NAME = r"^\w[\w.-]{0,79}$"  # of a folder
UNUSUAL = re.compile(r"[^\w.=+@-]+")  # in a file's name
Figure = Literal["fig09", "fig10", "fig11", "fig13", "fig18"]  # those of single heads


def _placed(text: str, info) -> str:
    """Return a path that exists in the folder that is the validation's context as an
    absolute one, a name as it is.
    """
    if info.context is None or text in {"demo", "embedded", "math500", *known_models()}:
        return text
    path = os.path.join(info.context, os.path.expanduser(text))
    return os.path.abspath(path) if os.path.exists(path) else text


Place = Annotated[str, AfterValidator(_placed)]


class Panel(Settings):
    """One head of one layer of one model; both count from 1."""

    model: Place
    layer: PositiveInt
    head: PositiveInt


class Section(Settings):
    """What a profile's sections share: which models are put to which problems (limit
    None: all), and how.
    """

    models: list[Place] = Field(
        min_length=1,
        description="names of data/models.yaml, hub ids, folders or .gguf files",
    )
    problems: Place = Field("embedded", description="embedded, math500 or a JSONL file")
    limit: PositiveInt | None = Field(None, description=LIMIT)
    format: Format = Field("chat", description=FORMAT)
    dtype: Dtype = Field("auto", description=DTYPE)


class Attention(Section):
    """Which first layers are loaded and measured, and which heads are drawn."""

    layers: PositiveInt = Field(3, description="how many first layers are loaded")
    format: Format = Field("plain", description=FORMAT)
    map_problems: PositiveInt | None = Field(
        None, description="how many problems go through all layers; none if null"
    )
    example: str | None = Field(
        None,
        description=(
            "id of the problem that the figures draw; the sample's first if null"
        ),
    )
    panels: dict[Figure, list[Panel]] = Field(
        {}, description="model, layer and head of a curve; else the first heads"
    )

    @model_validator(mode="after")
    def _check_fields(self):
        for figure, panel in (
            (figure, panel) for figure, row in self.panels.items() for panel in row
        ):
            if panel.layer > self.layers or panel.model not in self.models:
                raise ValueError(
                    f"panels.{figure}: layer {panel.layer} of {panel.model} is not"
                    " loaded"
                )
        return self


class Variation(Settings):
    """A second, smaller run that differs from `accuracy` in these settings."""

    limit: PositiveInt | None = Field(None, description=LIMIT)
    conditions: list[ConditionField]
    temperature: float = Field(0.0, ge=0, description="0 is greedy")
    top_p: float = Field(
        1.0, gt=0, le=1, description="share of the probability to draw from"
    )
    samples: int = Field(
        1, ge=1, le=10_000, description="answers per problem and condition"
    )


class Accuracy(Variation, Section):
    """Under which conditions answers are asked for, and how models decode them."""

    levels: list[NonNegativeInt] | None = Field(
        None, description="only problems of these levels; of all if null"
    )
    examples: list[Example] = Field(
        [], description="worked problems that are shown first, in chat form"
    )
    conditions: list[ConditionField] = Field(
        ["none", "mless", "mful"], validate_default=True, description=CONDITIONS
    )
    max_new_tokens: PositiveInt = Field(
        1024, description="an answer is cut after so many tokens"
    )
    elicit: bool = Field(False, description="ask for a boxed answer in a second step")
    elicit_tokens: PositiveInt = Field(12, description="tokens of that second step")
    batch_size: PositiveInt = Field(64, description="prompts that are answered at once")
    engine: Literal["transformers", "vllm"] = Field(
        "transformers", description="what generates: transformers or vllm"
    )
    engine_options: dict[str, PositiveInt] = Field(
        {}, description="of the engine, such as vllm's tensor_parallel=2"
    )
    workers: NonNegativeInt = Field(
        0, description="Ray processes with an engine each (CLUSTER.md); 0: none"
    )
    gpus_per_worker: NonNegativeInt | None = Field(
        None, description="of each worker; 1 where there is a GPU if null"
    )
    arm: Annotated[
        Arm | None,
        BeforeValidator(lambda arm: parse_arm(arm) if isinstance(arm, str) else arm),
    ] = Field(
        None,
        description=(
            "settings of ARM, such as c=0.13:p1=99.5:layer=1; the paper's for each"
            " model if null"
        ),
    )
    fillers: Variation | None = Field(
        None, description="lengths, places and kinds of filler: Fig. 8, Tables 4 and 5"
    )
    sampling: Variation | None = Field(
        None, description="several samples: pass@k, diversity, noise between seeds"
    )
    interventions: Variation | None = Field(
        None, description="ARM beside the tokens: Tables 2 and 3"
    )
    arm_map: Variation | None = Field(
        None, description="ARM under other settings, in other layers: Fig. 12"
    )

    @model_validator(mode="after")
    def _check_fields(self):
        names = [str(condition) for condition in self.conditions]
        if names.count("none") != 1 or len(set(names)) != len(names):
            raise ValueError(
                "conditions must hold 'none', the baseline of the others, and each only"
                " once"
            )
        if self.samples > 1 and self.temperature == 0:
            raise ValueError(
                f"samples is {self.samples} at temperature 0, where every sample is the"
                " same"
            )
        if self.examples and self.format != "chat":
            raise ValueError("examples are turns of a chat: format must be chat")
        scored = [str(c) for c in self.conditions if c.for_likelihood]
        if scored:
            raise ValueError(
                f"{', '.join(scored)}: only likelihoods are measured under it, no"
                " answers"
            )
        return self


class Likelihood(Section):
    """Under which conditions gold solutions are scored."""

    problems: Place = Field(
        "embedded",
        description="embedded, math500 or a JSONL file, each with a worked solution",
    )
    conditions: list[ConditionField] = Field(
        ["none", "gap", "dilution", "mless"],
        validate_default=True,
        description=CONDITIONS + "; gap, dilution, layer-1-only, example, bare",
    )
    at_once: list[ConditionField] = Field(
        [], description="where the gold answer is scored without its solution"
    )
    max_solution_tokens: PositiveInt = Field(
        512, description="a problem with a longer solution is left out"
    )
    dtype: Dtype = Field("float32", description=DTYPE)

    @model_validator(mode="after")
    def _check_fields(self):
        for condition in (*self.conditions, *self.at_once):
            if condition.arm and condition.arm.mode != "text":
                raise ValueError(
                    f"{condition}: likelihoods take ARM in mode text, which leaves the"
                    " scored text alone"
                )
        return self


class Profile(Settings):
    """Everything a run needs to know, and the only way to its folders."""

    name: str = Field(
        pattern=NAME,
        description="of the profile and of its folders in results and figures",
    )
    description: str = Field(description="one line that says what the profile is for")
    seed: NonNegativeInt = Field(
        0, description="random draws repeat with the same seed"
    )
    filler: Filler = Filler()
    attention: Attention
    accuracy: Accuracy
    likelihood: Likelihood | None = Field(
        None, description="which gold solutions are scored; none if null"
    )

    @property
    def results(self) -> Path:
        return paths.RESULTS / self.name

    @property
    def figures(self) -> Path:
        return paths.FIGURES / self.name

    @property
    def options(self) -> str:
        """How a command asks for this profile: by its name, the file that records its
        run, or as it was asked for.
        """
        if self.name in profile_names():
            return f"--profile {self.name}"
        recorded = self.results / "profile.yaml"
        return (
            f"--profile {recorded}" if recorded.is_file() else "with the same options"
        )

    def measured_file(self, model: str) -> Path | None:
        """Return what was measured on a model: here, else what the repository has; None
        where neither is.
        """
        files = [
            self.measured_in(folder, model)
            for folder in (self.results, paths.DATA / self.name)
        ]
        return next(filter(Path.is_file, files), None)

    def measured_in(self, folder: Path, model: str) -> Path:
        """Return the file of a model's measurements in one of the folders where they
        may lie.
        """
        return folder / f"{UNUSUAL.sub('-', model)}.nc"

    @property
    def stored(self) -> bool:
        """Whether the repository has the measurements of all of its models, and none
        was begun anew.
        """
        files = [
            self.measured_file(resolve(spec).name) for spec in self.attention.models
        ]
        return all(file is not None and file.parent != self.results for file in files)


class Overrides(Settings):
    """Which profile, and what a notebook's parameters or the command line put in place
    of its own.
    """

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


def variation(accuracy: Accuracy, part: str) -> Accuracy:
    """Return what the run of `part`, one of PARTS, does; raises InputError when the
    profile has none.
    """
    changes = getattr(accuracy, part)
    if changes is None:
        raise InputError(f"this profile has no accuracy.{part}")
    return Accuracy.model_validate(
        accuracy.model_dump(exclude=set(PARTS)) | changes.model_dump()
    )


def profile_names() -> list[str]:
    """Return the names `load_profile` takes."""
    return sorted(path.stem for path in paths.PROFILES.glob("*.yaml"))


def load_profile(name_or_path: str | Path) -> Profile:
    """Return the profile of data/profiles/NAME.yaml, or of a YAML file, to which its
    paths are relative.

    An InputError says what is wrong with it.
    """
    given, names = str(name_or_path), profile_names()
    path = (
        paths.PROFILES / f"{given}.yaml"
        if given in names
        else Path(os.path.expanduser(given)).resolve()
    )
    if path.suffix not in (".yaml", ".yml") or not path.is_file():
        raise unknown("profile", given, names, "choose from {}, or give a YAML file")
    profile = validated(
        Profile, paths.read_yaml(path), paths.relative_path(path), context=path.parent
    )
    # Figures and results go into a folder of this name: no file may write into
    # another's.
    if path.parent == paths.PROFILES and profile.name != path.stem:
        raise InputError(
            f"{paths.relative_path(path)}: name: must be {path.stem!r} like the file, not"
            f" {profile.name!r}"
        )
    if path.parent != paths.PROFILES and profile.name in names:
        raise InputError(
            f"{paths.relative_path(path)}: name: {profile.name!r} is a profile of"
            " data/profiles, choose another"
        )
    return profile


def run_profile(
    profile: str, model=None, problems=None, limit=None, name=None, dtype=None
) -> Profile:
    """Return a profile with a notebook's or the command line's overrides, under a name
    and folders of its own.

    The name is the one given, else <profile>-<digest of the overrides>: what is
    committed stays as it is. Paths are relative to the current folder. Other problems
    are all asked for, unless limited, and not for likelihoods, which need solutions. Of
    another model the heads that the profile names of it are drawn, else its first ones.
    """
    given = {
        "model": model,
        "problems": problems,
        "limit": limit,
        "name": name,
        "dtype": dtype,
        "profile": profile,
    }
    overrides = validated(Overrides, given, "parameters", context=Path.cwd())
    found, asked = (
        load_profile(profile),
        overrides.model_dump(exclude_none=True, exclude={"profile"}),
    )
    if not asked:
        return found
    name = asked.pop("name", None) or f"{found.name}-{paths.settings_key(**asked)[:6]}"
    if name in profile_names():
        raise InputError(
            f"name {name!r} is a profile of data/profiles: give another for what"
            " differs from it"
        )
    content = found.model_dump() | {"name": name}
    attention, accuracy, likelihood = (
        content["attention"],
        content["accuracy"],
        content["likelihood"] or {},
    )
    parts = [accuracy[part] for part in PARTS if accuracy[part]]
    if "problems" in asked:
        asked = {
            "limit": None,
            "levels": None,
            "example": None,
        } | asked  # the drawn problem is not among these
        content["likelihood"] = None
    if "model" in asked:
        asked["models"] = [asked["model"]]
        layers = card(str(asked["model"])).layers or inf
        attention["layers"] = min(attention["layers"], layers)
        for figure, row in attention["panels"].items():
            attention["panels"][figure] = [
                panel for panel in row if panel["model"] == asked["model"]
            ]
        for part in (accuracy, *parts):
            part["conditions"] = [
                c
                for c in part["conditions"]
                if (parse_condition(c).arm or Arm()).layer <= layers
            ]
    for section in (attention, accuracy):
        section |= {field: asked[field] for field in asked if field in section}
    # The likelihoods' dtype is their own: float32 everywhere, so that differences of a
    # hundredth of a nat count.
    likelihood |= {
        field: asked[field] for field in ("models", "limit") if field in asked
    }
    for part in parts:
        part["limit"] = min(filter(None, (limit, part["limit"])), default=None)
    return validated(Profile, content, f"profile {profile}, overridden")


def check(profile: Profile) -> None:
    """Raise InputError for what the problems and the models' configs say cannot run; no
    weights are read.
    """
    if profile.stored:  # nothing runs
        return
    attention, accuracy = profile.attention, profile.accuracy
    drawn_problem(attention.problems, attention.example)
    deepest = [
        Panel(model=spec, layer=attention.layers, head=1) for spec in attention.models
    ]
    for place, row in {"attention.layers": deepest, **attention.panels}.items():
        for panel in row:
            check_panel(place, panel, card(panel.model))
    for part in (
        accuracy,
        *(variation(accuracy, part) for part in PARTS if getattr(accuracy, part)),
    ):
        check_accuracy(part, profile.filler)


def check_panel(figure: str, panel: Panel, known: Source | Any) -> None:
    """Raise InputError when the model lacks a panel's layer or head."""
    for name, number, last in (
        ("layers", panel.layer, known.layers),
        ("heads", panel.head, known.heads),
    ):
        if last and number > last:
            raise InputError(
                f"{figure}: {known.spec} has {name} 1 to {last}, not {number}"
            )


def check_accuracy(accuracy: Accuracy, filler: Filler) -> None:
    """Raise InputError for problems that cannot be read, a model or layer that does not
    exist, a filler too long.
    """
    load_problems(accuracy.problems, levels=accuracy.levels)
    for known, condition in itertools.product(
        map(card, accuracy.models), accuracy.conditions
    ):
        room = known.context or 2**17
        inserts = condition.inserted != "none"
        length = condition.filler(filler).length if inserts else 0
        if max(length, accuracy.max_new_tokens) >= room:
            tokens = f"{length} inserted and {accuracy.max_new_tokens} new tokens"
            raise InputError(
                f"{condition}: {known.name} has room for {room} tokens, not for"
                f" {tokens}"
            )
        if condition.arm and known.layers and condition.arm.layer > known.layers:
            raise InputError(f"{condition}: the model has layers 1 to {known.layers}")
