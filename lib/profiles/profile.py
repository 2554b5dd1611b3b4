"""A profile: all settings of a run, read from a YAML file and checked before any
weights are read.
"""

import os
import re
from collections.abc import Collection, Sequence
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

from pydantic import Field, NonNegativeInt, field_validator

from lib import paths
from lib.errors import InputError, Settings, unknown, validated
from lib.files.atomic import read_yaml
from lib.models.names import Source, require_available, resolve, source_with_config
from lib.profiles.sections import (
    Accuracy,
    Attention,
    Likelihood,
    Panel,
    PassRates,
)
from lib.prompts.conditions import Condition, Filler
from lib.prompts.problems import drawn_problem, load_problems, solved_problems
from lib.prompts.sampling import is_within

# A profile's name is also the name of a folder.
FOLDER_NAME = r"^\w[\w.-]{0,79}$"
UNUSUAL_CHARACTERS = re.compile(r"[^\w.=+@-]+")


class Profile(Settings):
    """All settings of a run, and the paths of its folders."""

    name: str = Field(
        pattern=FOLDER_NAME,
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
        None, description="which reference solutions are scored; none if null"
    )
    ablations: Likelihood | None = Field(
        None,
        description="as likelihood, under conditions that separate length, visible"
        " tokens and layers; next_token must be true; none if null",
    )
    pass_rates: PassRates | None = Field(
        None, description="which answers are drawn, scored and weighted; none if null"
    )

    larger: "Profile | None" = Field(
        None,
        description="the profile of which this run takes fewer problems or models, and"
        " whose results it uses; none if null",
    )

    @field_validator("ablations")
    @classmethod
    def _require_next_token(cls, ablations: Likelihood | None) -> Likelihood | None:
        if ablations and not ablations.next_token:
            raise ValueError("next_token must be true: claims on branching need it")
        return ablations

    @property
    def parts(self) -> dict[str, Any]:
        """The settings of each part that is answered or scored, by its name."""
        parts: dict[str, Any] = {"main": self.accuracy, **self.accuracy.variations}
        if self.likelihood:
            parts["likelihood"] = self.likelihood
        if self.ablations:
            parts["ablations"] = self.ablations
        if self.pass_rates:
            parts["draws"] = self.pass_rates.drawing_settings
            parts["draw_scores"] = self.pass_rates
        return parts

    def require(self, section: str) -> Any:
        """Return an optional section, such as ablations. Raises InputError if the
        profile has none.
        """
        if getattr(self, section) is None:
            raise InputError(
                f"profile {self.name} has no section `{section}`: add one, as in"
                " data/profiles/families.yaml"
            )
        return getattr(self, section)

    @property
    def models(self) -> list[str]:
        """The models that are measured, answered or scored, each once."""
        sections = [self.attention, *self.parts.values()]
        specs = [spec for section in sections for spec in section.models]
        return list(dict.fromkeys(specs))

    @property
    def results(self) -> Path:
        return paths.RESULTS / self.name

    @property
    def shipped_results(self) -> Path:
        """The folder in which the repository stores a shipped profile's results."""
        return paths.DATA / (self.larger or self).name

    @property
    def figures(self) -> Path:
        return paths.FIGURES / self.name

    @property
    def options(self) -> str:
        """The command-line options that select this profile.

        They give its name, or the file that records its run.
        """
        if self.name in profile_names():
            return f"--profile {self.name}"
        recorded = self.results / "profile.yaml"
        if recorded.is_file():
            return f"--profile {recorded}"
        return "with the same options"

    def measurements_folder(self, model: str) -> Path:
        """Return the folder of measurements made here on a model."""
        return self.results / "measured" / file_name(model)

    def shipped_measurements(self, model: str) -> Path:
        """Return the file in which the repository may store a model's measurements."""
        return self.shipped_results / f"{file_name(model)}.nc"

    def uses_shipped(self, model: str) -> bool:
        """Whether the repository has a model's measurements, and results/ has none."""
        if self.measurements_folder(model).is_dir() or not self.is_within_larger:
            return False
        return self.shipped_measurements(model).is_file()

    @property
    def is_within_larger(self) -> bool:
        """Whether the larger profile, if there is one, measures all of the problems."""
        larger = (self.larger or self).attention
        return is_within(self.attention.limit, larger.limit)

    @property
    def all_shipped(self) -> bool:
        """Whether the repository has the measurements of all of its models."""
        names = [resolve(spec).name for spec in self.attention.models]
        return all(self.uses_shipped(name) for name in names)


def file_name(model: str) -> str:
    """Return a model's name in a form that every file system accepts."""
    return UNUSUAL_CHARACTERS.sub("-", model)


def profile_names() -> list[str]:
    """Return the names that `load_profile` accepts."""
    return sorted(path.stem for path in paths.PROFILES.glob("*.yaml"))


def load_profile(name_or_path: str | Path) -> Profile:
    """Return the profile of data/profiles/NAME.yaml, or of a YAML file.

    Paths in a file are relative to it. An InputError names the error.
    """
    name = str(name_or_path)
    shipped = profile_names()
    if name in shipped:
        path = paths.PROFILES / f"{name}.yaml"
    else:
        path = Path(os.path.expanduser(name)).resolve()
    if path.suffix not in (".yaml", ".yml") or not path.is_file():
        raise unknown("profile", name, shipped, "choose from {}, or give a YAML file")

    where = paths.relative_path(path)
    content = read_yaml(path)
    profile = validated(Profile, content, where, context=path.parent)

    # Figures and results are written into a folder of this name, which must not be that
    # of another profile.
    if path.parent == paths.PROFILES:
        if profile.name != path.stem:
            raise InputError(
                f"{where}: name: must be {path.stem!r} like the file, not"
                f" {profile.name!r}"
            )
    elif profile.name in shipped:
        raise InputError(
            f"{where}: name: {profile.name!r} is a profile of data/profiles, choose"
            " another"
        )
    return profile


def check(profile: Profile) -> None:
    """Raise InputError if the problems or the models' configs show that a profile
    cannot run.
    """
    if profile.all_shipped:
        # Nothing runs.
        return
    _require_distinct_names(profile.models)
    require_available(profile.models)
    _check_attention(profile.attention)
    for section in profile.parts.values():
        if isinstance(section, Accuracy):
            check_accuracy(section, profile.filler)
        else:
            _require_layers(section.conditions, section.models)
    for asked in (profile.likelihood, profile.ablations):
        if asked:
            solved_problems(asked.problems, asked.limit, profile.seed)


def _require_distinct_names(specs: Collection[str]) -> None:
    """Raise InputError for two models with the same name in rows and figures."""
    known: dict[str, str] = {}
    for spec in specs:
        name = resolve(spec).name
        if name in known:
            raise InputError(
                f"{known[name]} and {spec} are both called {name}: give each a profile"
                " of its own"
            )
        known[name] = spec


def _check_attention(attention: Attention) -> None:
    drawn_problem(attention.problems, attention.example)
    for spec in attention.models:
        deepest = Panel(model=spec, layer=attention.layers, head=1)
        _check_panel("attention.layers", deepest, source_with_config(spec))
    for figure, row in attention.panels.items():
        for panel in row:
            _check_panel(figure, panel, source_with_config(panel.model))


def _check_panel(figure: str, panel: Panel, known: Source) -> None:
    """Raise InputError if the model lacks a panel's layer or head."""
    asked = ("layers", panel.layer, known.layers), ("heads", panel.head, known.heads)
    for name, number, last in asked:
        if last and number > last:
            raise InputError(
                f"{figure}: {known.spec} has {name} 1 to {last}, not {number}"
            )


def check_accuracy(accuracy: Accuracy, filler: Filler) -> None:
    """Raise InputError for problems that cannot be read, a model or layer that does not
    exist, or a filler that is too long.
    """
    load_problems(accuracy.problems, levels=accuracy.levels)
    _require_layers(accuracy.conditions, accuracy.models)
    for known in [source_with_config(spec) for spec in accuracy.models]:
        for condition in accuracy.conditions:
            _check_condition(condition, known, accuracy, filler)


def _require_layers(conditions: Sequence[Condition], specs: Sequence[str]) -> None:
    """Raise InputError for a condition with a layer that a model lacks."""
    for condition, spec in product(conditions, specs):
        last = source_with_config(spec).layers
        if last and condition.deepest > last:
            raise InputError(f"{condition}: the model has layers 1 to {last}")


def _check_condition(
    condition: Condition, known: Source, accuracy: Accuracy, filler: Filler
) -> None:
    room = known.context or inf
    inserts = condition.inserted != "none"
    length = condition.filler(filler).length if inserts else 0
    if max(length, accuracy.max_new_tokens) >= room:
        tokens = f"{length} inserted and {accuracy.max_new_tokens} new tokens"
        raise InputError(
            f"{condition}: {known.name} has room for {room} tokens, not for {tokens}"
        )
    if condition.arm and accuracy.engine == "vllm":
        raise InputError(f"{condition}: engine vllm does not run ARM: use transformers")
