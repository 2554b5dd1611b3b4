"""Read a profile, which has all settings of a run, and find the folders of the run."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, NonNegativeInt

from lib.errors import InputError, Settings, unknown, validated
from lib.files.text_files import read_yaml
from lib.models.sources import resolve
from lib.paths import relative_path
from lib.prompts.conditions import Filler
from reproduction import paths
from reproduction.profiles.sections import Accuracy, Attention, Likelihood, PassRates

# A profile's name is also the name of a folder.
FOLDER_NAME = r"^\w[\w.-]{0,79}$"
UNUSUAL_CHARACTERS = re.compile(r"[^\w.=+@-]+")


class Profile(Settings):
    """All settings of a run, and the paths of its folders."""

    name: str = Field(
        pattern=FOLDER_NAME,
        description="name of the profile and of its folders in results and figures",
    )
    description: str = Field(description="the purpose of the profile, in one line")
    seed: NonNegativeInt = Field(
        0, description="random draws repeat with the same seed"
    )
    filler: Filler = Filler()
    attention: Attention
    accuracy: Accuracy
    likelihood: Likelihood | None = Field(
        None, description="the scoring of reference solutions; none if null"
    )
    ablations: Likelihood | None = Field(
        None,
        description="a second section with the fields of likelihood, under conditions"
        " that separate length, visible tokens and layers;"
        " none if null",
    )
    pass_rates: PassRates | None = Field(
        None,
        description="the sampling of answers for importance weighting; none if null",
    )

    stored_only: bool = Field(
        False,
        description="whether answers and scores that are not stored stay missing; an"
        " override that asks for more than the profile computes them",
    )
    part_of: str | None = Field(
        None,
        description="name of the profile whose stored measurements this run uses,"
        " because it has only a part of its problems or models; set by overrides",
    )

    @property
    def parts(self) -> dict[str, Any]:
        """The settings of each part of the run that generates answers or scores texts,
        by the part's name: main, VARIATIONS, likelihood, ablations, draws and
        draw_scores, as far as the profile has them.
        """
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
        """The models of all sections, as the profile writes them, each once."""
        sections = [self.attention, *self.parts.values()]
        specs = [spec for section in sections for spec in section.models]
        return list(dict.fromkeys(specs))

    @property
    def results(self) -> Path:
        """The folder into which a run of the profile writes its results."""
        return paths.RESULTS / self.name

    @property
    def figures(self) -> Path:
        return paths.FIGURES / self.name


def file_name(model: str) -> str:
    """Return a model's name as a file name that every file system accepts."""
    return UNUSUAL_CHARACTERS.sub("-", model)


def profile_names() -> list[str]:
    """Return the names of the profiles in data/profiles."""
    return sorted(path.stem for path in paths.PROFILES.glob("*.yaml"))


def load_profile(name_or_path: str | Path) -> Profile:
    """Return the profile data/profiles/NAME.yaml, or that of another YAML file.

    Paths in a profile are relative to its file. Raises InputError for a file that does
    not exist, for invalid fields, for a name that another profile has, and for unknown
    models or two of the same name.
    """
    name = str(name_or_path)
    shipped = profile_names()
    if name in shipped:
        path = paths.PROFILES / f"{name}.yaml"
    else:
        path = Path(os.path.expanduser(name)).resolve()
    if path.suffix not in (".yaml", ".yml") or not path.is_file():
        advice = f"choose from {{}}, or give a YAML file by its path from {Path.cwd()}"
        raise unknown("profile", name, shipped, advice)

    file = relative_path(path)
    content = read_yaml(path)
    profile = validated(Profile, content, file, context=path.parent)
    _require_distinct_names(file, profile.models)

    # Results and figures are written into folders of this name, so no two profiles may
    # have the same one.
    if path.parent == paths.PROFILES:
        if profile.name != path.stem:
            raise InputError(
                f"{file}: name: must be {path.stem!r} like the file, not"
                f" {profile.name!r}"
            )
    elif profile.name in shipped:
        raise InputError(
            f"{file}: name: {profile.name!r} is a profile of data/profiles, choose"
            " another"
        )
    return profile


def _require_distinct_names(file: str, specs: Sequence[str]) -> None:
    """Raise InputError for two models whose results would have the same name."""
    known: dict[str, str] = {}
    for spec in specs:
        name = file_name(resolve(spec).name)
        if name in known:
            raise InputError(
                f"{file}: {known[name]} and {spec} are both called {name} in results:"
                " use a separate profile for each"
            )
        known[name] = spec
