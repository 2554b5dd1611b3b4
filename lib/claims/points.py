"""What slashes are worth in points of accuracy: by sampled answers, weighted and
counted, and by single answers.

    points_table(evaluation.draws(run), evaluation.answers(run))
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from lib.claims.claim import Claim, load_claims
from lib.evaluation.answer_tables import summarise
from lib.evaluation.pass_rates import pass_rate_table
from lib.statistics import ENOUGH

WEIGHTED_WAY = "sampled answers, weighted"
COUNTED_WAY = "sampled answers, counted"
SINGLE_WAY = "single answers, counted"
# What is asked of each pair of conditions, in the order of the figure.
POINT_PAIRS = {
    ("mless", "none"): "slashes, all in all",
    ("mless", "hidden-from-layer-1"): "layer 1 beside the others",
    ("layer-1-only", "gap"): "layer 1 alone",
    ("mful", "none"): '"he" in place of slashes',
    ("random", "none"): "a sentence as long",
    ("arm", "none"): "ARM, without tokens",
}
MEASURED_POINTS = ["effect", "low", "high", "n", "answers", "scored"]
POINT_COLUMNS = ["curve", "x", "model", "way", *MEASURED_POINTS]
POINT_COLUMNS += ["effective", "largest_weight", "spread", "band", "reported", "unit"]


def points_table(draws: pd.DataFrame | None, answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row of POINT_COLUMNS per pair of conditions, model and way to find it.

    draws: as `lib.evaluation.of_profile.draws` gives them; answers: single ones. `band`
    is what was written down beforehand as too small to count, and `reported` what the
    paper has for the nearest model of the family; both are NaN where there is none.
    """
    claims = {
        tuple(claim.arguments[name] for name in ("more", "less")): claim
        for claim in load_claims()
        if claim.measure == "pass_rates"
    }
    rows = []
    for pair, curve in POINT_PAIRS.items():
        found = list(_drawn(draws, pair)) if draws is not None else []
        if pair == ("mless", "none"):
            found += _single(answers)
        for row in found:
            place = {"curve": curve, "x": " \N{MINUS SIGN} ".join(pair)}
            rows.append(place | row | _beside(claims[pair], row["model"]))
    table = pd.DataFrame(rows, columns=POINT_COLUMNS)
    return table[table.n >= ENOUGH].reset_index(drop=True)


def _drawn(draws: pd.DataFrame, pair: tuple[str, str]) -> Iterator[dict[str, Any]]:
    """Yield what sampled answers give, weighted where weights hold, and counted where
    the two halves are of this pair.
    """
    for found in pass_rate_table(draws, [pair]).to_dict("records"):
        both = {name: found[name] for name in ("model", "n", "answers")}
        if found["by"] == "weights":
            names = ("low", "high", "scored", "effective", "largest_weight", "spread")
            weighted = both | {name: found[name] for name in names}
            weighted["effect"] = found["points"]
            weighted["way"] = WEIGHTED_WAY
            yield weighted
        if pd.notna(found["counted"]):
            counted = both | {"effect": found["counted"]}
            counted["low"] = found["counted_low"]
            counted["high"] = found["counted_high"]
            counted["way"] = COUNTED_WAY
            yield counted


def _single(answers: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield what single answers to the same problems give, model by model."""
    table = summarise(answers)
    for row in table[table.condition == "mless"].dropna(subset="effect").itertuples():
        yield {
            "model": row.model,
            "effect": row.effect,
            "low": row.effect_low,
            "high": row.effect_high,
            "n": row.n,
            "way": SINGLE_WAY,
        }


def _beside(claim: Claim, model: str) -> dict[str, Any]:
    """Return the margin of a claim and what the paper reports, in points."""
    reported, _ = claim.reported(model)
    return {"band": claim.margin, "reported": reported, "unit": claim.unit}
