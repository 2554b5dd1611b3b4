"""Answer problems under every condition, or score their solutions; keep what came out,
and say what it shows.

    answers = evaluation.answers(profile, "fillers")  # stored, or generated now
    answer_tables.summarise(answers)
"""

from pathlib import Path

import pandas as pd

from lib import paths
from lib.evaluation.store import SCORE_FIELDS, frame, read
from lib.models.names import resolve
from lib.profiles import Profile, variation


def answers(
    profile: Profile, part: str = "main", folder: str | Path | None = None
) -> pd.DataFrame:
    """Return the completions of a part, main or one of PARTS, as `frame` has them; none
    where the profile lacks it.

    They are what the repository has, else those of `folder` (None: of results/),
    generated as far as they are missing.
    """
    asked = profile.accuracy if part == "main" else getattr(profile.accuracy, part)
    if asked is None or (folder is None and stored_file(profile, part)):
        return _stored(profile, part)
    from lib.evaluation.run import (
        evaluate,
    )  # with the libraries that run a network, which stored answers do without

    asked, place = (
        (profile.accuracy, "")
        if part == "main"
        else (variation(profile.accuracy, part), part)
    )
    return evaluate(
        asked, profile.filler, profile.seed, Path(folder or profile.results / place)
    ).assign(part=part)


def stored_answers(profile: Profile, part: str = "main") -> pd.DataFrame:
    """Return a part's completions as far as results/ has any, else as the repository
    has them: nothing runs.
    """
    rows = read(
        *(profile.results / ("" if part == "main" else part)).glob("completions*.jsonl")
    )
    return frame(rows, part) if rows else _stored(profile, part)


def scores(profile: Profile) -> pd.DataFrame:
    """Return the likelihoods of a profile, a row per text, stored or scored if needed;
    none if it asks for none.
    """
    asked = profile.likelihood
    files = sorted((paths.DATA / profile.name / "likelihood").glob("*.jsonl.gz"))
    if asked is None or files:
        return pd.DataFrame(
            _rows_of_models(asked.models, read(*files)) if asked else [],
            columns=SCORE_FIELDS,
        )
    from lib.evaluation.likelihood import likelihoods

    return likelihoods(
        asked, profile.filler, profile.seed, profile.results / "likelihood"
    )


def same_texts(profile: Profile, found: pd.DataFrame) -> tuple[int, int]:
    """Return how many answers have the same text as the profile's stored ones, and how
    many could be compared.
    """
    stored = _stored(profile, "main")
    both = found.merge(
        stored,
        on=["model", "condition", "problem_id", "sample"],
        suffixes=("", "_stored"),
    )
    return int((both["response"] == both["response_stored"]).sum()), len(both)


def stored_file(profile: Profile, part: str = "main") -> Path | None:
    """Return the file in which the repository has the completions of a profile's part,
    None where it has none.
    """
    path = paths.DATA / profile.name / "answers" / f"{part}.jsonl.gz"
    return path if path.is_file() else None


def _stored(profile: Profile, part: str) -> pd.DataFrame:
    """Return the stored completions of a part: those of the profile's models under the
    conditions that it asks for.
    """
    settings = profile.accuracy if part == "main" else getattr(profile.accuracy, part)
    path = stored_file(profile, part)
    if settings is None or path is None:
        return frame([], part)
    conditions = [str(condition) for condition in settings.conditions]
    rows = [row for row in read(path) if row["condition"] in conditions]
    return frame(_rows_of_models(profile.accuracy.models, rows), part)


def _rows_of_models(models: list[str], rows: list[dict]) -> list[dict]:
    """Return the rows of these models, in their order."""
    names = [resolve(spec).name for spec in models]
    return sorted(
        (row for row in rows if row["model"] in names),
        key=lambda row: names.index(row["model"]),
    )
