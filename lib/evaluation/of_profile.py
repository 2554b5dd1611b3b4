"""The answers and likelihoods of a profile: as they are stored, else computed now.

    answers = of_profile.answers(profile, "fillers")

What is stored is read without the libraries that run a network.
"""

from pathlib import Path

import pandas as pd

from lib.errors import InputError
from lib.evaluation.stored import (
    folder_of_run,
    is_stored,
    stored_draws,
    stored_rows,
)
from lib.profiles import Profile


def answers(
    profile: Profile, part: str = "main", folder: str | Path | None = None
) -> pd.DataFrame:
    """Return the completions of a part, as `frame` has them; none where the profile
    lacks it.

    A part is main, one of PARTS, or draws, the answers that are weighted. What is not
    stored is generated, in `folder` or in results/. Raises InputError for what is
    stored with other settings, and for a folder that is not there.
    """
    accuracy = profile.parts.get(part)
    if accuracy is None or (folder is None and is_stored(profile, part)):
        return stored_rows(profile, part)
    if folder is not None and not Path(folder).is_dir():
        raise InputError(
            f"completions {str(folder)!r} is no folder: give that of a run, or none"
        )
    from lib.evaluation.run import evaluate

    folder = Path(folder or folder_of_run(profile, part))
    made = evaluate(accuracy, profile.filler, profile.seed, folder)
    return made.assign(part=part)


def scores(profile: Profile) -> pd.DataFrame:
    """Return the likelihoods of a profile, a row per text, stored or scored if needed;
    none if it asks for none.
    """
    if profile.likelihood is None or is_stored(profile, "likelihood"):
        return stored_rows(profile, "likelihood")
    from lib.evaluation.likelihood import likelihoods

    folder = folder_of_run(profile, "likelihood")
    return likelihoods(profile.likelihood, profile.filler, profile.seed, folder)


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
    folder = folder_of_run(profile, "draws")
    scored_in = folder_of_run(profile, "draw_scores")
    return score_draws(profile.pass_rates.scoring, folder, scored_in)
