"""Read the stored answers and scores of a profile by part, and compute missing ones.

    parts = parts_of_profile(profile)
    parts["fillers"].stored()    # a DataFrame of the stored rows
    parts["fillers"].complete()  # a DataFrame of all rows; missing ones are computed
    answers(profile, "fillers")  # the same, but empty if the profile lacks the part

Answers come from a complete run in results/, else from the repository's folder in
data/ (*shipped* rows), else from an incomplete run in results/. Scores are the shipped
ones if there are any, else those in results/. Shipped rows suffice for a smaller
sample, fewer conditions or fewer models. Rows that were made with other settings raise
InputError. Stored rows load without torch.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from lib.errors import InputError
from lib.files.row_store import first_difference, require_same_settings
from lib.files.text_files import read, read_text
from lib.models.sources import resolve
from lib.prompts.problems import is_within, sample_ids
from reproduction import paths
from reproduction.evaluation.rows import (
    DRAW_SCORE_FIELDS,
    SCORE_FIELDS,
    SUMMARY,
    frame,
    resolve_engine,
    shared_settings,
)
from reproduction.evaluation.weighted_pass_rates import scored_draws
from reproduction.profiles import Accuracy, Profile

# The repository's file with the settings, by part, under which its rows were made.
RECORDED_SETTINGS = "settings.json"
# Settings that are recorded there in addition to those of run.json. In results/ the
# keys of the rows contain them, so that one file may have rows of several models,
# conditions and so on.
KEY_SETTINGS = {"models", "limit", "conditions", "format", "dtype", "levels"}


class Part:
    """The answers of a part of a profile: their settings, and the files of their rows.

    `name` is main, one of VARIATIONS, or draws (sampled answers that are weighted).
    `folder` is that of the run in results/, and `shipped_results` the folder in data/
    of the profile, or of the profile that this run is a part of.
    """

    stem = "completions"  # of the files in `folder`
    file_pattern = "answers/{}"  # of the shipped files, with the part's name

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
        self.shipped_results = profile.shipped_results
        self.is_overridden = profile.part_of is not None

    def uses_shipped(self) -> bool:
        """Return whether the shipped rows are used, so that nothing is computed."""
        if (self.folder / SUMMARY).is_file() or not self._shipped_files():
            return False
        # If the shipped rows do not suffice, a run that overrides a profile is
        # computed, while a shipped profile raises InputError in `rows`.
        return not (self.is_overridden and self._unmet_setting())

    def rows(self) -> list[dict]:
        """Return the stored rows of the part's models, in the order of the models.

        Raises InputError if they were made with other settings.
        """
        if self.uses_shipped():
            rows = self._shipped_rows()
        else:
            require_same_settings(self.folder, self.settings)
            rows = read(*sorted(self.folder.glob(f"{self.stem}*.jsonl")))
        rows = [row for row in rows if row["model"] in self.models]
        return sorted(rows, key=lambda row: self.models.index(row["model"]))

    def stored(self) -> pd.DataFrame:
        """Return the table of the stored rows."""
        return self.table(self.rows())

    def table(self, rows: Sequence[dict]) -> pd.DataFrame:
        """Return the table of those rows that are under the part's conditions, as
        `frame` does.
        """
        conditions = [str(condition) for condition in self.section.conditions]
        return frame([row for row in rows if row["condition"] in conditions], self.name)

    def complete(self) -> pd.DataFrame:
        """Return the table of all rows; missing ones are computed and stored in
        results/.
        """
        if self.uses_shipped():
            return self.stored()
        return self._compute_missing()

    def settings_to_record(self) -> dict:
        """Return the settings that RECORDED_SETTINGS has of this part."""
        in_keys = self.section.model_dump(include=KEY_SETTINGS, exclude_none=True)
        settings = self.settings | in_keys
        del settings["problems"]  # only a name; problems_sha256 identifies them
        return settings

    def _compute_missing(self) -> pd.DataFrame:
        from reproduction.evaluation.answer_run import evaluate

        made = evaluate(self.section, self.filler, self.seed, self.folder)
        return made.assign(part=self.name)

    def _shipped_files(self) -> list[Path]:
        """Return the shipped files with the rows of this part."""
        pattern = self.file_pattern.format(self.name)
        return sorted(self.shipped_results.glob(f"{pattern}.jsonl.gz"))

    def _shipped_settings(self) -> dict:
        """Return the settings under which the shipped rows were made."""
        by_part = json.loads(read_text(self.shipped_results / RECORDED_SETTINGS))
        return by_part.get(self.name, {})

    def _unmet_setting(self) -> str:
        """Return the first setting for which the shipped rows do not suffice, as
        `name = old, not new`; "" if they suffice.
        """
        was, now = self._shipped_settings(), self.settings_to_record()
        for name in ("models", "conditions"):
            if set(now[name]) <= set(was.get(name, ())):
                was[name] = now[name]
        if is_within(now.get("limit"), was.get("limit")):
            was["limit"] = now.get("limit")
            now["limit"] = now.get("limit")
        return first_difference(was, now)

    def _shipped_rows(self) -> list[dict]:
        """Return the shipped rows of the problems in the part's sample."""
        if difference := self._unmet_setting():
            folder = paths.relative_path(self.shipped_results)
            raise InputError(
                f"{folder} was made with {self.name}: {difference}: give the profile"
                " another name, under which it is computed again"
            )
        rows = read(*self._shipped_files())
        limit = self.section.limit
        if limit is None or limit == self._shipped_settings().get("limit"):
            return rows
        levels = self.section.levels if isinstance(self.section, Accuracy) else None
        sample = sample_ids(self.section.problems, limit, self.seed, levels)
        return [row for row in rows if row["problem_id"] in sample]


class LikelihoodPart(Part):
    """The scores of a part, likelihood or ablations: log-likelihoods of reference
    solutions and gold answers.
    """

    stem = "scores"
    file_pattern = "{}/*"

    def table(self, rows: Sequence[dict]) -> pd.DataFrame:
        """Return the table of the rows, one per scored text."""
        return pd.DataFrame(rows, columns=SCORE_FIELDS)

    def _compute_missing(self) -> pd.DataFrame:
        from reproduction.evaluation.scored_texts import score_solutions

        return score_solutions(self.section, self.filler, self.seed, self.folder)


class DrawScoresPart(LikelihoodPart):
    """The part `draw_scores`: the scores of the answers of the part `draws`.

    `stored` has a row per score. `complete` has a row per answer, as
    `reproduction.evaluation.weighted_pass_rates.scored_draws`.
    """

    file_pattern = "draws/*"

    def __init__(self, profile: Profile, name: str) -> None:
        super().__init__(profile, name)
        self.draws = Part(profile, "draws")

    def table(self, rows: Sequence[dict]) -> pd.DataFrame:
        """Return the table of the rows, one per answer and condition."""
        return pd.DataFrame(rows, columns=DRAW_SCORE_FIELDS)

    def complete(self) -> pd.DataFrame:
        """Return all answers with their scores; those that are not stored are sampled
        and scored now.
        """
        drawn = self.draws.complete()
        if self.draws.uses_shipped() and self.uses_shipped():
            return scored_draws(drawn, self.stored())
        from reproduction.evaluation.scored_texts import score_draws

        scoring = self.section.scoring_settings
        return score_draws(scoring, self.draws.folder, self.folder)


# The class of a part by its name; Part for the others.
KINDS = {
    "likelihood": LikelihoodPart,
    "ablations": LikelihoodPart,
    "draw_scores": DrawScoresPart,
}


def parts_of_profile(profile: Profile) -> dict[str, Part]:
    """Return the parts of a profile that have answers or scores, by name."""
    return {name: KINDS.get(name, Part)(profile, name) for name in profile.parts}


def answers(profile: Profile, part: str = "main") -> pd.DataFrame:
    """Return the answers of a part, as a table of `reproduction.evaluation.rows.frame`.
    Answers that are not stored are generated first, which can take hours.

    part: one of `profile.parts`; without it the table is empty. Raises InputError for
    rows that were made with other settings.
    """
    if part not in profile.parts:
        return frame([], part)
    return Part(profile, part).complete()


def scores(profile: Profile, part: str = "likelihood") -> pd.DataFrame:
    """Return the log-likelihoods of a part, likelihood or ablations, in a row per text.
    Those that are not stored are computed first, which can take hours.

    The table is empty if the profile lacks the part. Raises InputError for rows that
    were made with other settings.
    """
    if part not in profile.parts:
        return pd.DataFrame(columns=SCORE_FIELDS)
    return LikelihoodPart(profile, part).complete()


def draws(profile: Profile) -> pd.DataFrame | None:
    """Return the sampled answers with their log-likelihood under each condition
    (`reproduction.evaluation.weighted_pass_rates.scored_draws`). What is not stored is
    sampled and scored first, which can take hours.

    None if the profile has no section pass_rates.
    """
    if profile.pass_rates is None:
        return None
    return DrawScoresPart(profile, "draw_scores").complete()
