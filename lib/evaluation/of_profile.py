"""The answers and likelihoods of a profile: as they are stored, else computed now.

answers = of_profile.answers(profile, "fillers")
"""

from pathlib import Path

import pandas as pd

from lib import paths
from lib.evaluation.pass_rates import scored_draws
from lib.evaluation.rows import DRAW_SCORE_FIELDS, SCORE_FIELDS, frame
from lib.evaluation.store import read
from lib.models.names import resolve
from lib.profiles import Accuracy, Profile, variation


def answers(
    profile: Profile, part: str = "main", folder: str | Path | None = None
) -> pd.DataFrame:
    """Return the completions of a part, as `frame` has them; none where the profile
    lacks it.

    A part is main, one of PARTS, or draws, the answers that are weighted. They are what
    the repository has, else those of `folder` (None: of results/), generated as far as
    they are missing.
    """
    accuracy = _accuracy_of(profile, part)
    is_stored = folder is None and stored_file(profile, part) is not None
    if is_stored or accuracy is None:
        return _stored(profile, part)
    # With the libraries that run a network, which stored answers do without.
    from lib.evaluation.run import evaluate

    if folder is None:
        folder = _results(profile, part)
    evaluated = evaluate(accuracy, profile.filler, profile.seed, Path(folder))
    return evaluated.answers.assign(part=part)


def stored_answers(profile: Profile, part: str = "main") -> pd.DataFrame:
    """Return a part's completions as far as results/ has any, else as the repository
    has them: nothing runs.
    """
    rows = read(*sorted(_results(profile, part).glob("completions*.jsonl")))
    return frame(rows, part) if rows else _stored(profile, part)


def scores(profile: Profile) -> pd.DataFrame:
    """Return the likelihoods of a profile, a row per text, stored or scored if needed;
    none if it asks for none.
    """
    if profile.likelihood is None:
        return pd.DataFrame([], columns=SCORE_FIELDS)
    files = sorted((paths.DATA / profile.name / "likelihood").glob("*.jsonl.gz"))
    if files:
        rows = _rows_of_models(profile.likelihood.models, read(*files))
        return pd.DataFrame(rows, columns=SCORE_FIELDS)
    from lib.evaluation.likelihood import likelihoods

    folder = profile.results / "likelihood"
    return likelihoods(profile.likelihood, profile.filler, profile.seed, folder)


def stored_scores(profile: Profile) -> pd.DataFrame | None:
    """Return the likelihoods that lie in results/ or in the repository; None without
    any. Nothing is scored.
    """
    files = sorted((profile.results / "likelihood").glob("scores*.jsonl"))
    if not files:
        files = sorted((paths.DATA / profile.name / "likelihood").glob("*.jsonl.gz"))
    return pd.DataFrame(read(*files)) if files else None


def draws(profile: Profile) -> pd.DataFrame | None:
    """Return the answers that are weighted, with log p under each condition.

    None if the profile asks for none; else as `lib.evaluation.pass_rates.scored_draws`
    has them. They are what the repository has, else drawn and scored as far as they are
    missing.
    """
    if profile.pass_rates is None:
        return None
    if stored_file(profile, "draws") is not None:
        return stored_draws(profile)
    from lib.evaluation.draw_scores import score_draws

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
    condition, as far as results/ has any, else as the repository has them.
    """
    rows = read(*sorted(_results(profile, "draw_scores").glob("scores*.jsonl")))
    if not rows:
        rows = read(*sorted((paths.DATA / profile.name / "draws").glob("*.jsonl.gz")))
    return pd.DataFrame(rows, columns=DRAW_SCORE_FIELDS)


def same_texts(profile: Profile, answers: pd.DataFrame) -> tuple[int, int]:
    """Return how many answers have the same text as the profile's stored ones, and how
    many could be compared.
    """
    both = answers.merge(
        _stored(profile, "main"),
        on=["model", "condition", "problem_id", "sample"],
        suffixes=("", "_stored"),
    )
    same = both["response"] == both["response_stored"]
    return int(same.sum()), len(both)


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
    accuracy = _accuracy_of(profile, part)
    path = stored_file(profile, part)
    if accuracy is None or path is None:
        return frame([], part)
    conditions = [str(condition) for condition in accuracy.conditions]
    rows = [row for row in read(path) if row["condition"] in conditions]
    return frame(_rows_of_models(accuracy.models, rows), part)


def _accuracy_of(profile: Profile, part: str) -> Accuracy | None:
    """Return how a part of a profile is answered, None where it lacks it."""
    if part == "main":
        return profile.accuracy
    if part == "draws":
        return profile.pass_rates.drawing if profile.pass_rates else None
    has_part = part in profile.accuracy.variations
    return variation(profile.accuracy, part) if has_part else None


def _results(profile: Profile, part: str) -> Path:
    """Return the folder of a part's answers in results/."""
    return profile.results if part == "main" else profile.results / part


def _rows_of_models(models: list[str], rows: list[dict]) -> list[dict]:
    """Return the rows of these models, in their order."""
    in_order = []
    for name in dict.fromkeys(resolve(spec).name for spec in models):
        in_order += [row for row in rows if row["model"] == name]
    return in_order
