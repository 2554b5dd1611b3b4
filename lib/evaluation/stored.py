"""What is stored of a profile's answers and scores, part by part; nothing runs.

    rows = stored_rows(profile, "fillers")

One rule says where the rows of a part come from, whoever asks (`_origin`): a whole run
in results/, else what the repository has, else what results/ has so far. Rows that were
made with other settings than the profile's are refused.
"""

import json
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from lib import paths
from lib.errors import InputError
from lib.evaluation.pass_rates import scored_draws
from lib.evaluation.rows import DRAW_SCORE_FIELDS, SCORE_FIELDS, frame
from lib.evaluation.settings import (
    answer_settings,
    draw_score_settings,
    first_difference,
    require_same,
    score_settings,
)
from lib.evaluation.store import SUMMARY, read
from lib.models.names import resolve
from lib.profiles import Profile
from lib.prompts.problems import drawn_ids

# What the repository's rows of each part were made with, beside them.
RECORDED = "settings.json"
# Settings for which the keys of rows stand: in results/ rows of several may lie side by
# side.
IN_KEYS = {"format", "dtype", "levels", "arm"}
# Parts whose rows are scores and no answers: what a row says, and the repository's
# folder.
SCORED = {
    "likelihood": (SCORE_FIELDS, "likelihood"),
    "draw_scores": (DRAW_SCORE_FIELDS, "draws"),
}


class Origin(NamedTuple):
    """The files in which the rows of a part lie."""

    files: list[Path]
    of_repository: bool  # to which nothing is added


def stored_rows(profile: Profile, part: str = "main") -> pd.DataFrame:
    """Return the rows of a part as far as they are stored, those of the profile's
    models in its order; none where the profile lacks the part.

    Completions are those under the conditions that are asked for, as `frame` has them.
    """
    section = profile.parts.get(part)
    rows = []
    if section is not None:
        rows = _rows_of_problems(profile, part, section.limit)
        names = [resolve(spec).name for spec in section.models]
        rows = [row for row in rows if row["model"] in names]
        rows.sort(key=lambda row: names.index(row["model"]))
    if part in SCORED:
        fields, _ = SCORED[part]
        return pd.DataFrame(rows, columns=fields)
    if section is not None:
        conditions = [str(condition) for condition in section.conditions]
        rows = [row for row in rows if row["condition"] in conditions]
    return frame(rows, part)


def stored_draws(profile: Profile) -> pd.DataFrame | None:
    """Return the answers that are weighted, with log p under each condition, as
    `scored_draws` has them, as far as they are stored; None where nothing is.
    """
    drawn = stored_rows(profile, "draws")
    scores = stored_rows(profile, "draw_scores")
    if drawn.empty or scores.empty:
        return None
    return scored_draws(drawn, scores)


def same_texts(profile: Profile, answers: pd.DataFrame) -> tuple[int, int]:
    """Return how many answers have the same text as the repository's, and how many
    could be compared.
    """
    stored = frame(read(*_files_of_repository(profile, "main")))
    both = answers.merge(
        stored,
        on=["model", "condition", "problem_id", "sample"],
        suffixes=("", "_stored"),
    )
    same = both["response"] == both["response_stored"]
    return int(same.sum()), len(both)


def is_stored(profile: Profile, part: str = "main") -> bool:
    """Say whether the repository has a part of a profile: then nothing runs for it."""
    return _origin(profile, part).of_repository


def folder_of_run(profile: Profile, part: str) -> Path:
    """Return the folder of a part's rows in results/."""
    return profile.results if part == "main" else profile.results / part


def recorded_settings(profile: Profile, part: str) -> dict:
    """Return what the repository records of a part that is made under a profile."""
    section = profile.parts[part]
    settings = _shared_settings(profile, part)
    settings |= section.model_dump(include=IN_KEYS, exclude_none=True)
    del settings["problems"]  # a name, for which the digest stands
    return settings


def _rows_of_problems(profile: Profile, part: str, limit: int | None) -> list[dict]:
    """Return the stored rows of a part; of a run that is a part of what the repository
    keeps, those of so many problems.
    """
    origin = _origin(profile, part)
    rows = read(*origin.files)
    if profile.stored_as and origin.of_repository:
        kept = drawn_ids((row["problem_id"] for row in rows), limit, profile.seed)
        rows = [row for row in rows if row["problem_id"] in kept]
    return rows


def _origin(profile: Profile, part: str) -> Origin:
    """Return where the rows of a part lie: in results/ if a run is whole there, else in
    the repository, else in results/ as far as it has any.

    Raises InputError for a place that was made with other settings.
    """
    folder = folder_of_run(profile, part)
    kept = _files_of_repository(profile, part)
    if kept and not (folder / SUMMARY).is_file():
        _require_recorded(profile, part)
        return Origin(kept, of_repository=True)
    require_same(folder, _shared_settings(profile, part))
    stem = "scores" if part in SCORED else "completions"
    return Origin(sorted(folder.glob(f"{stem}*.jsonl")), of_repository=False)


def _files_of_repository(profile: Profile, part: str) -> list[Path]:
    """Return the files in which the repository has the rows of a part."""
    name = f"answers/{part}"
    if part in SCORED:
        _, folder = SCORED[part]
        name = f"{folder}/*"
    return sorted(profile.kept.glob(f"{name}.jsonl.gz"))


def _shared_settings(profile: Profile, part: str) -> dict:
    """Return what all rows of a part share, as run.json has it."""
    filler, seed = profile.filler, profile.seed
    section = profile.parts[part]
    if part == "likelihood":
        return score_settings(section, filler, seed)
    if part == "draw_scores":
        drawn_with = {"seed": seed} | section.model_dump()
        return draw_score_settings(section.problems, filler, drawn_with)
    return answer_settings(section, filler, seed)


def _require_recorded(profile: Profile, part: str) -> None:
    """Raise InputError where the repository's rows were made with other settings."""
    path = profile.kept / RECORDED
    recorded = json.loads(paths.read_text(path)).get(part, {})
    difference = first_difference(recorded, recorded_settings(profile, part))
    if difference:
        kept = paths.relative_path(profile.kept)
        raise InputError(
            f"{kept} was made with {part}: {difference}: give the profile another name,"
            " under which it is computed anew"
        )
