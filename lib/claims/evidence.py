"""What is known of each model: what claims are judged on.

evidence = by_model(profile, answers=[answers])  # by model: what is at hand
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import xarray as xr

from lib.profiles import Profile


def by_model(
    profile: Profile,
    measured: Mapping[str, xr.Dataset] | None = None,
    answers: Sequence[pd.DataFrame] = (),
    scores: pd.DataFrame | None = None,
    draws: pd.DataFrame | None = None,
) -> dict[str, dict[str, Any]]:
    """Return by model what is at hand.

    `measured` has a Dataset per model, `answers` a frame per part.
    """
    tables = {"scores": scores, "draws": draws}
    if answers:
        unaided = profile.accuracy.format == "plain" and not profile.accuracy.elicit
        every = pd.concat(answers, ignore_index=True).assign(plain=unaided)
        tables = {"answers": every, **tables}
    evidence: dict[str, dict[str, Any]] = defaultdict(dict)
    for model, dataset in (measured or {}).items():
        evidence[model]["measured"] = dataset
    for kind, table in tables.items():
        if table is not None:
            for model, rows in table.groupby("model", sort=False):
                evidence[str(model)][kind] = rows
    return dict(evidence)
