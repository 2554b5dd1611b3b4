"""The answers and scores of a profile, part by part: read the stored rows, and compute
the missing ones.

    parts = parts_of_profile(profile)
    parts["fillers"].stored()    # a DataFrame of the stored rows
    parts["fillers"].complete()  # a DataFrame of all rows; missing ones are made now
    answers(profile, "fillers")  # the same, for a profile that may lack the part

A part's rows come from a complete run in results/, else from the repository, else from
an incomplete run in results/. The repository's rows suffice for a smaller sample, fewer
conditions or fewer models. A run computes no row that the repository or the profile's
larger run has under its key. Rows that were made with other settings than the profile's
are refused. Stored rows are read without the libraries that run a network.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from lib import paths
from lib.errors import InputError
from lib.evaluation.engine_choice import resolve_engine
from lib.evaluation.records import (
    DRAW_SCORE_FIELDS,
    SCORE_FIELDS,
    SUMMARY,
    frame,
    score_fields,
    shared_settings,
)
from lib.evaluation.weighted_pass_rates import scored_draws
from lib.files.atomic import read_text
from lib.files.store import (
    RUN,
    first_difference,
    read,
    read_settings,
    require_same_settings,
)
from lib.models.names import resolve
from lib.profiles import Accuracy, Profile
from lib.prompts.problems import sample_ids
from lib.prompts.sampling import is_within

# The file with the settings of the repository's rows, by part.
RECORDED_SETTINGS = "settings.json"
# Settings that are recorded with them as well. In results/ the keys of the rows contain
# them, so that rows of several such settings may be in one file.
KEY_SETTINGS = {"models", "limit", "conditions", "format", "dtype", "levels"}


class Part:
    """A part of a profile: its section, its settings, and where its rows lie.

    `name` is main, one of VARIATIONS, or draws, the answers that are weighted.
    """

    stem = "completions"
    file_pattern = "answers/{}"  # of the folder that the repository keeps of a profile

    def __init__(self, profile: Profile, name: str) -> None:
        self.name = name
        self.section = profile.parts[name]
        self.seed = profile.seed
        self.filler = profile.filler
        self.folder = profile.results if name == "main" else profile.results / name
        section = self.section
        if isinstance(section, Accuracy):
            section, _ = resolve_engine(section, self.folder)
        self.settings = shared_settings(section, self.filler, self.seed)
        self.models = [resolve(spec).name for spec in self.section.models]
        self.repository = profile.shipped_results
        larger = profile.larger
        self.larger = type(self)(larger, name) if larger else None

    def uses_repository(self) -> bool:
        """Return whether the part is the repository's: then nothing runs for it."""
        if (self.folder / SUMMARY).is_file() or not self._repository_files():
            return False
        # A smaller run is computed if the repository's rows do not suffice; a profile
        # of the repository is refused.
        return not (self.larger and self._unmet_setting())

    def rows(self) -> list[dict]:
        """Return the stored rows of the part's models, in their order.

        Raises InputError if they were made with other settings.
        """
        if self.uses_repository():
            rows = self._repository_rows()
        else:
            require_same_settings(self.folder, self.settings)
            rows = self.run_rows()
        rows = [row for row in rows if row["model"] in self.models]
        return sorted(rows, key=lambda row: self.models.index(row["model"]))

    def reusable_rows(self) -> list[dict]:
        """Return the rows of the repository and of the profile's larger run that were
        made with the same settings. A run copies those whose keys it needs.
        """
        rows = []
        if self._repository_files():
            in_keys = KEY_SETTINGS - self.settings.keys()
            made_with = {"problems": self.settings["problems"]}
            made_with |= self._repository_settings()
            made_with = {n: made_with[n] for n in made_with if n not in in_keys}
            if made_with == self.settings:
                rows += read(*self._repository_files())
        larger = self.larger
        is_begun = larger is not None and (larger.folder / RUN).is_file()
        if larger and is_begun and read_settings(larger.folder) == self.settings:
            rows += larger.run_rows()
        return rows

    def run_rows(self) -> list[dict]:
        """Return the rows that the run in results/ has, of all its shards."""
        return read(*sorted(self.folder.glob(f"{self.stem}*.jsonl")))

    def stored(self) -> pd.DataFrame:
        """Return the table of the stored rows."""
        return self.table(self.rows())

    def stored_or_reusable(self) -> pd.DataFrame:
        """Return the table of the stored rows and of those that a run may copy."""
        rows = {row["key"]: row for row in [*self.rows(), *self.reusable_rows()]}
        return self.table(list(rows.values()))

    def table(self, rows: Sequence[dict]) -> pd.DataFrame:
        """Return the rows under the part's conditions, as `frame` does."""
        conditions = [str(condition) for condition in self.section.conditions]
        return frame([row for row in rows if row["condition"] in conditions], self.name)

    def complete(self) -> pd.DataFrame:
        """Return all rows of the part; missing ones are computed, in results/."""
        if self.uses_repository():
            return self.stored()
        return self._compute_missing()

    def settings_to_record(self) -> dict:
        """Return the settings that the repository records of this part."""
        asked = self.section.model_dump(include=KEY_SETTINGS, exclude_none=True)
        settings = self.settings | asked
        del settings["problems"]  # a name; the digest identifies them
        return settings

    def _compute_missing(self) -> pd.DataFrame:
        from lib.evaluation.run import evaluate

        made = evaluate(
            self.section,
            self.filler,
            self.seed,
            self.folder,
            known=self.reusable_rows(),
        )
        return made.assign(part=self.name)

    def _repository_files(self) -> list[Path]:
        """Return the files in which the repository has the rows."""
        pattern = self.file_pattern.format(self.name)
        return sorted(self.repository.glob(f"{pattern}.jsonl.gz"))

    def _repository_settings(self) -> dict:
        every_part = json.loads(read_text(self.repository / RECORDED_SETTINGS))
        return every_part.get(self.name, {})

    def _unmet_setting(self) -> str:
        """Return the first setting for which the repository's rows do not suffice."""
        was, now = self._repository_settings(), self.settings_to_record()
        for name in ("models", "conditions"):
            if set(now[name]) <= set(was.get(name, ())):
                was[name] = now[name]
        if is_within(now.get("limit"), was.get("limit")):
            was["limit"] = now.get("limit")
            now["limit"] = now.get("limit")
        return first_difference(was, now)

    def _repository_rows(self) -> list[dict]:
        """Return the repository's rows, of the problems that the part samples."""
        if difference := self._unmet_setting():
            kept = paths.relative_path(self.repository)
            raise InputError(
                f"{kept} was made with {self.name}: {difference}: give the profile"
                " another name, under which it is computed again"
            )
        rows = read(*self._repository_files())
        limit = self.section.limit
        if limit is None or limit == self._repository_settings().get("limit"):
            return rows
        levels = self.section.levels if isinstance(self.section, Accuracy) else None
        sample = sample_ids(self.section.problems, limit, self.seed, levels)
        return [row for row in rows if row["problem_id"] in sample]


class LikelihoodPart(Part):
    """The part likelihood or ablations: the scores of gold solutions and answers."""

    stem = "scores"
    file_pattern = "{}/*"

    def table(self, rows: Sequence[dict]) -> pd.DataFrame:
        """Return a row per text that was scored."""
        return pd.DataFrame(rows, columns=score_fields(self.section))

    def _compute_missing(self) -> pd.DataFrame:
        from lib.evaluation.solution_scores import score_solutions

        return score_solutions(
            self.section,
            self.filler,
            self.seed,
            self.folder,
            known=self.reusable_rows(),
        )


class DrawScoresPart(LikelihoodPart):
    """The part `draw_scores`: scores of the answers of the part `draws`.

    Complete, its table is that of `lib.evaluation.weighted_pass_rates.scored_draws`.
    """

    file_pattern = "draws/*"

    def __init__(self, profile: Profile, name: str) -> None:
        super().__init__(profile, name)
        self.draws = Part(profile, "draws")

    def table(self, rows: Sequence[dict]) -> pd.DataFrame:
        """Return a row per answer and condition."""
        return pd.DataFrame(rows, columns=DRAW_SCORE_FIELDS)

    def complete(self) -> pd.DataFrame:
        """Return all answers with their scores, which are drawn and scored as far as
        they are not stored.
        """
        drawn = self.draws.complete()
        if self.draws.uses_repository() and self.uses_repository():
            return scored_draws(drawn, self.stored())
        from lib.evaluation.sample_scores import score_draws

        scoring = self.section.scoring_settings
        return score_draws(
            scoring, self.draws.folder, self.folder, self.reusable_rows()
        )


KINDS = {
    "likelihood": LikelihoodPart,
    "ablations": LikelihoodPart,
    "draw_scores": DrawScoresPart,
}


def parts_of_profile(profile: Profile) -> dict[str, Part]:
    """Return the parts of a profile that are answered or scored, by name."""
    return {name: KINDS.get(name, Part)(profile, name) for name in profile.parts}


def answers(profile: Profile, part: str = "main") -> pd.DataFrame:
    """Return the completions of a part, as `frame` has them, stored or answered now;
    none if the profile lacks it.

    Raises InputError for rows that were made with other settings.
    """
    if part not in profile.parts:
        return frame([], part)
    return Part(profile, part).complete()


def scores(profile: Profile, part: str = "likelihood") -> pd.DataFrame:
    """Return the scores of a part, likelihood or ablations: a row per text, stored or
    scored now; none if the profile lacks it.
    """
    if part not in profile.parts:
        return pd.DataFrame(columns=SCORE_FIELDS)
    return LikelihoodPart(profile, part).complete()


def draws(profile: Profile) -> pd.DataFrame | None:
    """Return the answers that are weighted, with log p under each condition, as
    `lib.evaluation.weighted_pass_rates.scored_draws` has them.

    None if the profile asks for none.
    """
    if profile.pass_rates is None:
        return None
    return DrawScoresPart(profile, "draw_scores").complete()
