"""Find the answers and scores of a profile by part, and compute missing ones.

    parts = parts_of_profile(profile)
    parts["fillers"].stored()    # a DataFrame of the stored rows
    parts["fillers"].complete()  # a DataFrame of all rows; missing ones are computed
    answers(profile, "fillers")  # the same, but empty if the profile lacks the part

A part finds the rows that it wants by their keys (`reproduction.row_keys`), in its
folder of results/, in that of the whole profile if the run is a part of it, and among
those that the repository has in data/ (*shipped* rows). So
a smaller sample, fewer conditions or fewer models compute nothing, a larger sample
computes only what is new, and other settings compute rows beside the stored ones.
Stored rows load without torch.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd

from lib.prompts.conditions import Filler
from reproduction import paths
from reproduction.evaluation.rows import SCORE_FIELDS, frame, solution_table
from reproduction.evaluation.weighted_pass_rates import is_mixed, scored_draws
from reproduction.profiles import Profile
from reproduction.row_keys import (
    WantedOf,
    answers_wanted,
    draw_scores_wanted,
    found_rows,
    read_rows,
    scores_wanted,
)


class Part:
    """The answers of a part of a profile: their settings, and their rows.

    `name` is main, one of VARIATIONS, or draws (sampled answers that are weighted).
    `folder` is that of the run in results/.
    """

    stem = "completions"  # of the files in `folder`
    shipped = "answers/{}"  # the shipped files in the folders of data/, by part

    def __init__(self, profile: Profile, name: str) -> None:
        self.profile = profile
        self.name = name
        self.section = profile.parts[name]
        self.folder = self._folder_in(profile.results)

    def _folder_in(self, results: Path) -> Path:
        return results if self.name == "main" else results / self.name

    @property
    def other_files(self) -> list[Path]:
        """The files outside `folder` that may have rows of the part: those of the
        repository, and those of the profile of which the run is a part.
        """
        files = paths.DATA.glob(f"*/{self.shipped.format(self.name)}.jsonl.gz")
        whole = paths.RESULTS / (self.profile.part_of or self.profile.name)
        return sorted(files) + sorted(
            self._folder_in(whole).glob(f"{self.stem}*.jsonl")
        )

    def rows(self) -> list[dict]:
        """Return the stored rows that the part wants, in the order in which it wants
        them.
        """
        return self.wanted_among(read_rows(self.folder, self.stem, self.other_files))

    def wanted_among(self, rows: Mapping[str, dict]) -> list[dict]:
        """Return those of some rows, given by key, that the part wants."""
        return found_rows(self.section, self._wanted_of(), rows)

    def stored(self) -> pd.DataFrame:
        """Return the table of the stored rows."""
        return self._table(self.rows())

    def complete(self) -> pd.DataFrame:
        """Return the table of all rows; missing ones are computed and stored in
        results/, unless the profile has only stored ones.
        """
        return self.stored() if self.profile.stored_only else self._complete()

    @property
    def _settings(self) -> tuple[Any, Filler, int]:
        """The settings with which missing rows are computed."""
        return self.section, self.profile.filler, self.profile.seed

    def _wanted_of(self) -> WantedOf:
        return partial(answers_wanted, *self._settings)

    def _table(self, rows: Sequence[dict]) -> pd.DataFrame:
        return frame(rows, self.name)

    def _complete(self) -> pd.DataFrame:
        from reproduction.evaluation.answer_run import evaluate  # imports torch

        made = evaluate(*self._settings, self.folder, others=self.other_files)
        return made.assign(part=self.name)


class LikelihoodPart(Part):
    """The scores of a part, likelihood or ablations: log-likelihoods of reference
    solutions and gold answers, one row per scored text.
    """

    stem = "scores"
    shipped = "{}/*"

    def _wanted_of(self) -> WantedOf:
        return partial(scores_wanted, *self._settings)

    def _table(self, rows: Sequence[dict]) -> pd.DataFrame:
        return solution_table(rows, self.section)

    def _complete(self) -> pd.DataFrame:
        from reproduction.evaluation.scored_texts import score_solutions

        return score_solutions(*self._settings, self.folder, others=self.other_files)


class DrawScoresPart(Part):
    """The part `draw_scores`: the scores of the answers of the part `draws`.

    `stored` and `complete` return a row per answer, as
    `reproduction.evaluation.weighted_pass_rates.scored_draws`; answers that are not
    stored are sampled first.
    """

    stem = "scores"
    shipped = "draws/*"

    @cached_property
    def draws(self) -> Part:
        return Part(self.profile, "draws")

    def _wanted_of(self) -> WantedOf:
        drawn = self.draws.stored()
        mixed = drawn[is_mixed(drawn)].to_dict("records")
        temperature = self.section.temperature
        return partial(draw_scores_wanted, *self._settings, temperature, mixed)

    def _table(self, rows: Sequence[dict]) -> pd.DataFrame:
        return scored_draws(self.draws.stored(), rows)

    def _complete(self) -> pd.DataFrame:
        from reproduction.evaluation.scored_texts import score_draws

        return score_draws(
            *self._settings,
            self.section.temperature,
            self.draws.complete(),
            self.folder,
            self.other_files,
        )


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

    part: one of `profile.parts`; without it the table is empty.
    """
    if part not in profile.parts:
        return frame([], part)
    return Part(profile, part).complete()


def scores(profile: Profile, part: str = "likelihood") -> pd.DataFrame:
    """Return the log-likelihoods of a part, likelihood or ablations, in a row per text.
    Those that are not stored are computed first, which can take hours.

    The table is empty if the profile lacks the part.
    """
    if part not in profile.parts:
        return pd.DataFrame(columns=SCORE_FIELDS)
    return LikelihoodPart(profile, part).complete()


def stored_scores(profile: Profile, format: str) -> pd.DataFrame:
    """Return the stored log-likelihoods of the section likelihood in another format of
    the prompt, as `scores`, of the models that have the format. None is computed.

    Raises InputError if the profile lacks the section.
    """
    section = profile.require("likelihood").model_copy(update={"format": format})
    in_format = profile.model_copy(update={"likelihood": section})
    rows = LikelihoodPart(in_format, "likelihood").rows()
    # A model without a chat template reads another format instead.
    return solution_table([row for row in rows if row["format"] == format], section)


def draws(profile: Profile) -> pd.DataFrame | None:
    """Return the sampled answers with their log-likelihood under each condition
    (`reproduction.evaluation.weighted_pass_rates.scored_draws`). What is not stored is
    sampled and scored first, which can take hours.

    None if the profile has no section pass_rates.
    """
    if profile.pass_rates is None:
        return None
    return DrawScoresPart(profile, "draw_scores").complete()
