"""What is known of each model: all that a profile's claims are judged on.

evidence = gather(profile)  # by model: what is `measured`, its `answers`, ...
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import xarray as xr

from lib.evaluation import of_profile
from lib.measurement.run import measure
from lib.profiles import PARTS, Profile


def gather(profile: Profile) -> dict[str, dict[str, Any]]:
    """Return by model what the profile measures, computing only what results/ lacks.

    The models whose attention is measured come first.
    """
    answers = [of_profile.answers(profile, part) for part in ("main", *PARTS)]
    measured = measure(profile, "attention", "activations", "controls")
    scores, draws = of_profile.scores(profile), of_profile.draws(profile)
    return by_model(profile, measured, answers, scores, draws)


def by_model(
    profile: Profile,
    measured: Mapping[str, xr.Dataset],
    answers: Sequence[pd.DataFrame],
    scores: pd.DataFrame | None = None,
    draws: pd.DataFrame | None = None,
) -> dict[str, dict[str, Any]]:
    """Return by model a Dataset that is `measured`, and the rows of its `answers`, a
    frame per part, of its `scores` and of its `draws`.
    """
    unaided = profile.accuracy.format == "plain" and not profile.accuracy.elicit
    every = pd.concat(answers, ignore_index=True).assign(plain=unaided)
    tables = {"answers": every, "scores": scores, "draws": draws}
    evidence: dict[str, dict[str, Any]] = defaultdict(dict)
    for model, dataset in measured.items():
        evidence[model]["measured"] = dataset
    for kind, table in tables.items():
        if table is not None:
            for model, rows in table.groupby("model", sort=False):
                evidence[str(model)][kind] = rows
    return dict(evidence)
