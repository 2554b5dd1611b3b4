"""The answers and likelihoods of a profile: as they are stored, else computed now.

    answers = of_profile.answers(profile, "fillers")

One rule says where the rows of a part come from, whoever asks (`_origin`): a whole run
in results/, else what the repository has, else what results/ has so far. Rows that were
made with other settings than the profile's are refused.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

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
from lib.profiles import Accuracy, Profile, variation
from lib.prompts.problems import drawn_ids

# Parts whose rows are scores and no answers.
SCORED = ("likelihood", "draw_scores")
# What the repository's rows of each part were made with, beside them.
RECORDED = "settings.json"


class Origin(NamedTuple):
    """The files in which the rows of a part lie."""

    files: list[Path]
    of_repository: bool  # to which nothing is added


def answers(
    profile: Profile, part: str = "main", folder: str | Path | None = None
) -> pd.DataFrame:
    """Return the completions of a part, as `frame` has them; none where the profile
    lacks it.

    A part is main, one of PARTS, or draws, the answers that are weighted. What is not
    stored is generated, in `folder` or in results/. Raises InputError for what is
    stored with other settings, and for a folder that is not there.
    """
    accuracy = _accuracy_of(profile, part)
    if accuracy is None:
        return frame([], part)
    if folder is None and is_stored(profile, part):
        return stored_answers(profile, part)
    if folder is not None and not Path(folder).is_dir():
        raise InputError(
            f"completions {str(folder)!r} is no folder: give that of a run, or none"
        )
    # With the libraries that run a network, which stored answers do without.
    from lib.evaluation.run import evaluate

    if folder is None:
        folder = _results(profile, part)
    made = evaluate(accuracy, profile.filler, profile.seed, Path(folder))
    return made.assign(part=part)


def stored_answers(profile: Profile, part: str = "main") -> pd.DataFrame:
    """Return a part's completions as far as they are stored: nothing runs. They are
    those of the profile's models under the conditions that it asks for.
    """
    accuracy = _accuracy_of(profile, part)
    if accuracy is None:
        return frame([], part)
    conditions = [str(condition) for condition in accuracy.conditions]
    rows = _rows_of(profile, part, accuracy.limit)
    rows = [row for row in rows if row["condition"] in conditions]
    return frame(_rows_of_models(accuracy.models, rows), part)


def scores(profile: Profile) -> pd.DataFrame:
    """Return the likelihoods of a profile, a row per text, stored or scored if needed;
    none if it asks for none.
    """
    if profile.likelihood is None or is_stored(profile, "likelihood"):
        return stored_scores(profile)
    from lib.evaluation.likelihood import likelihoods

    folder = _results(profile, "likelihood")
    return likelihoods(profile.likelihood, profile.filler, profile.seed, folder)


def stored_scores(profile: Profile) -> pd.DataFrame:
    """Return the likelihoods of a profile as far as they are stored: nothing runs."""
    rows = []
    if profile.likelihood is not None:
        stored = _rows_of(profile, "likelihood", profile.likelihood.limit)
        rows = _rows_of_models(profile.likelihood.models, stored)
    return pd.DataFrame(rows, columns=SCORE_FIELDS)


def draws(profile: Profile) -> pd.DataFrame | None:
    """Return the answers that are weighted, with log p under each condition.

    None if the profile asks for none; else as `lib.evaluation.pass_rates.scored_draws`
    has them. They are drawn and scored as far as they are not stored.
    """
    if profile.pass_rates is None:
        return None
    if is_stored(profile, "draws") and is_stored(profile, "draw_scores"):
        return stored_draws(profile)
    from lib.evaluation.likelihood import score_draws

    answers(profile, "draws")
    folder = _results(profile, "draws")
    scored_in = _results(profile, "draw_scores")
    return score_draws(profile.pass_rates.scoring, folder, scored_in)


def stored_draws(profile: Profile) -> pd.DataFrame | None:
    """Return what `draws` does as far as it is stored, None where nothing is."""
    drawn = stored_answers(profile, "draws")
    draw_scores = stored_draw_scores(profile)
    if drawn.empty or draw_scores.empty:
        return None
    return scored_draws(drawn, draw_scores)


def stored_draw_scores(profile: Profile) -> pd.DataFrame:
    """Return how likely drawn answers are under each condition, a row per answer and
    condition, as far as they are stored.
    """
    rows = []
    if profile.pass_rates is not None:
        rows = read(*_origin(profile, "draw_scores").files)
    return pd.DataFrame(rows, columns=DRAW_SCORE_FIELDS)


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


def _origin(profile: Profile, part: str) -> Origin:
    """Return where the rows of a part lie: in results/ if a run is whole there, else in
    the repository, else in results/ as far as it has any.

    Raises InputError for a place that was made with other settings.
    """
    shared = _shared_settings(profile, part)
    results = _results(profile, part)
    stem = "scores" if part in SCORED else "completions"
    is_whole = (results / SUMMARY).is_file()
    if not is_whole:
        files = _files_of_repository(profile, part)
        if files:
            _require_recorded(profile, part)
            return Origin(files, of_repository=True)
    require_same(results, shared)
    return Origin(sorted(results.glob(f"{stem}*.jsonl")), of_repository=False)


def _rows_of(profile: Profile, part: str, limit: int | None) -> list[dict]:
    """Return the stored rows of a part; of a run that is a part of what the repository
    keeps, those of so many problems.
    """
    origin = _origin(profile, part)
    rows = list(read(*origin.files))
    if profile.stored_as and origin.of_repository:
        kept = drawn_ids((row["problem_id"] for row in rows), limit, profile.seed)
        rows = [row for row in rows if row["problem_id"] in kept]
    return rows


def _shared_settings(profile: Profile, part: str) -> dict:
    """Return what all rows of a part share, as run.json has it."""
    filler, seed = profile.filler, profile.seed
    section = _section(profile, part)
    if part == "likelihood":
        return score_settings(section, filler, seed)
    if part == "draw_scores":
        drawn_with = {"seed": seed} | section.model_dump()
        return draw_score_settings(section.problems, filler, drawn_with)
    return answer_settings(section, filler, seed)


def _settings_of_rows(profile: Profile, part: str) -> dict:
    """Return the settings of a part that decide its numbers and for which the keys of
    its rows stand: in results/ rows of several may lie side by side.
    """
    section = _section(profile, part)
    names = ("format", "dtype", "levels", "arm")
    return section.model_dump(include=set(names), exclude_none=True)


def recorded_settings(profile: Profile, part: str) -> dict:
    """Return what the repository records of a part that is made under a profile."""
    settings = _shared_settings(profile, part) | _settings_of_rows(profile, part)
    del settings["problems"]  # a name, for which the digest stands
    return settings


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


def _files_of_repository(profile: Profile, part: str) -> list[Path]:
    """Return the files in which the repository has the rows of a part."""
    folder = profile.kept
    if part == "likelihood":
        return sorted((folder / "likelihood").glob("*.jsonl.gz"))
    if part == "draw_scores":
        return sorted((folder / "draws").glob("*.jsonl.gz"))
    return sorted((folder / "answers").glob(f"{part}.jsonl.gz"))


def _section(profile: Profile, part: str) -> Any:
    """Return the settings of a part that a profile has."""
    sections = {"likelihood": profile.likelihood, "draw_scores": profile.pass_rates}
    return sections[part] if part in SCORED else _accuracy_of(profile, part)


def _accuracy_of(profile: Profile, part: str) -> Accuracy | None:
    """Return how a part of a profile is answered, None where it lacks it."""
    if part == "main":
        return profile.accuracy
    if part == "draws":
        return profile.pass_rates.drawing if profile.pass_rates else None
    has_part = part in profile.accuracy.variations
    return variation(profile.accuracy, part) if has_part else None


def _results(profile: Profile, part: str) -> Path:
    """Return the folder of a part's rows in results/."""
    return profile.results if part == "main" else profile.results / part


def _rows_of_models(models: list[str], rows: list[dict]) -> list[dict]:
    """Return the rows of these models, in their order."""
    in_order = []
    for name in dict.fromkeys(resolve(spec).name for spec in models):
        in_order += [row for row in rows if row["model"] == name]
    return in_order
