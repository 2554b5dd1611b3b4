"""The answers and likelihoods of a profile, part by part: as they are stored, else
computed now.

    answers = of_profile.answers(profile, "fillers")

One rule says where the rows of a part come from, whoever asks: a whole run in results/,
else what the repository has, else what results/ has so far. Rows that were made with
other settings than the profile's are refused. What is stored is read without the
libraries that run a network.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from lib import paths
from lib.errors import InputError
from lib.evaluation.pass_rates import scored_draws
from lib.evaluation.records import (
    DRAW_SCORE_FIELDS,
    NEXT_TOKEN_FIELDS,
    SCORE_FIELDS,
    SUMMARY,
    frame,
    shared_settings,
)
from lib.files.store import first_difference, read, require_same
from lib.files.whole import read_text
from lib.models.names import resolve
from lib.profiles import Profile

# What the repository's rows of each part were made with, beside them.
RECORDED = "settings.json"
# Settings for which the keys of rows stand: in results/ rows of several may lie side by
# side.
IN_KEYS = {"format", "dtype", "levels"}
# What is asked for: of a profile whose rows the repository keeps, as it was then.
ASKED = {"models", "limit", "conditions"}
# Parts whose rows are scores and no answers: what a row says, and the repository's
# folder.
SCORED = {
    "likelihood": (SCORE_FIELDS, "likelihood"),
    "ablations": (NEXT_TOKEN_FIELDS, "ablations"),
    "draw_scores": (DRAW_SCORE_FIELDS, "draws"),
}


def answers(profile: Profile, part: str = "main") -> pd.DataFrame:
    """Return the completions of a part, as `frame` has them; none where the profile
    lacks it.

    A part is main, one of PARTS, or draws, the answers that are weighted. What is not
    stored is generated, in results/. Raises InputError for what is stored with other
    settings.
    """
    accuracy = profile.parts.get(part)
    if accuracy is None or is_stored(profile, part):
        return stored_rows(profile, part)
    from lib.evaluation.run import evaluate

    folder = folder_of_run(profile, part)
    made = evaluate(accuracy, profile.filler, profile.seed, folder)
    return made.assign(part=part)


def scores(profile: Profile, part: str = "likelihood") -> pd.DataFrame:
    """Return the scores of a part, likelihood or ablations: a row per text, stored or
    scored if needed; none if the profile lacks it.
    """
    section = profile.parts.get(part)
    if section is None or is_stored(profile, part):
        return stored_rows(profile, part)
    from lib.evaluation.likelihood import likelihoods

    folder = folder_of_run(profile, part)
    return likelihoods(section, profile.filler, profile.seed, folder)


def draws(profile: Profile) -> pd.DataFrame | None:
    """Return the answers that are weighted, with log p under each condition.

    None if the profile asks for none; else as `lib.evaluation.pass_rates.scored_draws`
    has them. They are drawn and scored as far as they are not stored.
    """
    if profile.pass_rates is None:
        return None
    drawn = answers(profile, "draws")
    if is_stored(profile, "draws") and is_stored(profile, "draw_scores"):
        return scored_draws(drawn, stored_rows(profile, "draw_scores"))
    from lib.evaluation.likelihood import score_draws

    folder = folder_of_run(profile, "draws")
    scored_in = folder_of_run(profile, "draw_scores")
    return score_draws(profile.pass_rates.scoring, folder, scored_in)


def stored_rows(profile: Profile, part: str = "main") -> pd.DataFrame:
    """Return the rows of a part as far as they are stored, those of the profile's
    models in its order; none where the profile lacks the part.

    Completions are those under the conditions that are asked for, as `frame` has them.
    """
    section = profile.parts.get(part)
    rows = _rows_of_models(profile, part, section) if section else []
    if part in SCORED:
        fields, _ = SCORED[part]
        return pd.DataFrame(rows, columns=fields)
    if section:
        conditions = [str(condition) for condition in section.conditions]
        rows = [row for row in rows if row["condition"] in conditions]
    return frame(rows, part)


def is_stored(profile: Profile, part: str = "main") -> bool:
    """Say whether a part of a profile is the repository's: then nothing runs for it."""
    is_whole_here = (folder_of_run(profile, part) / SUMMARY).is_file()
    return not is_whole_here and any(_files_of_repository(profile, part))


def folder_of_run(profile: Profile, part: str) -> Path:
    """Return the folder of a part's rows in results/."""
    return profile.results if part == "main" else profile.results / part


def recorded_settings(profile: Profile, part: str) -> dict:
    """Return what the repository records of a part that is made under a profile."""
    section = profile.parts[part]
    settings = shared_settings(section, profile.filler, profile.seed)
    settings |= section.model_dump(include=IN_KEYS | ASKED, exclude_none=True)
    del settings["problems"]  # a name, for which the digest stands
    return settings


def _rows_of_models(profile: Profile, part: str, section: Any) -> list[dict]:
    """Return the stored rows of a part, model by model."""
    names = [resolve(spec).name for spec in section.models]
    rows = _rows_of_origin(profile, part, section)
    rows = [row for row in rows if row["model"] in names]
    return sorted(rows, key=lambda row: names.index(row["model"]))


def _rows_of_origin(profile: Profile, part: str, section: Any) -> list[dict]:
    """Return the rows of a part from where they lie.

    Raises InputError for a place that was made with other settings.
    """
    if not is_stored(profile, part):
        folder = folder_of_run(profile, part)
        settings = shared_settings(section, profile.filler, profile.seed)
        require_same(folder, settings)
        stem = "scores" if part in SCORED else "completions"
        return read(*sorted(folder.glob(f"{stem}*.jsonl")))

    _require_recorded(profile, part)
    return read(*_files_of_repository(profile, part))


def _files_of_repository(profile: Profile, part: str) -> list[Path]:
    """Return the files in which the repository has the rows of a part."""
    name = f"answers/{part}"
    if part in SCORED:
        _, folder = SCORED[part]
        name = f"{folder}/*"
    return sorted(profile.kept.glob(f"{name}.jsonl.gz"))


def _require_recorded(profile: Profile, part: str) -> None:
    """Raise InputError where the repository's rows were made with other settings."""
    path = profile.kept / RECORDED
    every_part = json.loads(read_text(path))
    was = every_part.get(part, {})
    now = recorded_settings(profile, part)
    for name in ("models", "conditions"):
        # Fewer of them are all there.
        if set(now[name]) <= set(was.get(name, ())):
            was[name] = now[name]
    difference = first_difference(was, now)
    if difference:
        kept = paths.relative_path(profile.kept)
        raise InputError(
            f"{kept} was made with {part}: {difference}: give the profile another name,"
            " under which it is computed anew"
        )
