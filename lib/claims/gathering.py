"""Everything that a profile's claims are judged on, computed where it is not stored.

evidence = gather(profile)  # by model: what is `measured`, its `answers`, ...
"""

from typing import Any

from lib.claims.evidence import by_model
from lib.evaluation import of_profile
from lib.measurement.run import measure
from lib.profiles import PARTS, Profile


def gather(
    profile: Profile, completions: str | None = None
) -> dict[str, dict[str, Any]]:
    """Return by model what the profile measures, computing only what results/ lacks.

    The models whose attention is measured come first.
    """
    answers = [of_profile.answers(profile, "main", completions)]
    answers += [of_profile.answers(profile, part) for part in PARTS]
    measured = measure(profile, "attention", "activations", "controls")
    return by_model(
        profile,
        measured=measured,
        answers=answers,
        scores=of_profile.scores(profile),
        draws=of_profile.draws(profile),
    )
