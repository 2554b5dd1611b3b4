"""The forest plots of the page: intervals by model, and the problems behind each."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from lib.claims.claim import load_claims, values_of
from lib.claims.rule import Untestable
from lib.claims.verdict import Verdict
from lib.errors import InputError
from lib.measurement.plan import TRAINED
from lib.sentences.page_sections import known

# By panel of the section on help: the claims, and what their rows are called.
POINTS_ROWS = {
    "accuracy-mless": "Answers counted, slashes less none",
    "points-slashes": "Sampled answers, weighted",
    "points-layer-1-needed": "What layer 1 adds to the later layers",
    "points-layer-1-suffices": "Layer 1 alone",
    "points-mful": '"he" in place of slashes, weighted',
    "accuracy-sentence": "A sentence as long, answers counted",
    "points-arm": "ARM, weighted",
    "arm-accuracy": "ARM counted, the paper's intervention",
}
NATS_ROWS = {
    "likelihood-gain": "Slashes, all in all",
    "likelihood-layer-1": "What layer 1 adds to the later layers",
    "likelihood-layer-1-suffices": "Layer 1 alone",
    "likelihood-dilution": "Layer 1 alone, slashes without values",
    "likelihood-later-layers": "All layers but the first",
    "likelihood-arm": "ARM, the paper's intervention",
    "likelihood-example": "A worked example, for scale",
}
# The three lines that open the page.
OPENING = {
    "dilution": ("Attention on the original tokens, first layer", 1),
    "likelihood-gain": ("Likelihood of the worked solution, in nats", 0),
    "accuracy-mless": ("Accuracy, in points", 0),
}
CHECK_ROWS = {
    "likelihood-right": ("Of two problems the solved one has the likelier text, %", 50),
    "likelihood-instruction": ("The instruction against none, in nats", 0),
}


def opening(verdicts: Sequence[Verdict]) -> list[dict]:
    """Return the panels that open the page: a line each, with a dot per model."""
    return [_panel(verdicts, {claim: ""}, *about) for claim, about in OPENING.items()]


def forests(verdicts: Sequence[Verdict]) -> list[dict]:
    """Return the panels of points and nats, with a group of rows per claim."""
    return [
        _panel(verdicts, POINTS_ROWS, "Points of accuracy", 0),
        _panel(verdicts, NATS_ROWS, "Nats of the worked solution", 0),
    ]


def failed_checks(verdicts: Sequence[Verdict]) -> list[dict]:
    """Return the panels of what should have come out and did not."""
    return [
        _panel(verdicts, {claim: ""}, *about) for claim, about in CHECK_ROWS.items()
    ]


def _panel(
    verdicts: Sequence[Verdict], claims: Mapping[str, str], title: str, even: float
) -> dict:
    """Return what is drawn on one axis; `even` is where nothing changes.

    `side` is -1 where the paper claims less than that, 1 where more; `rings` are the
    paper's own numbers, for its own models.
    """
    groups = []
    rings: dict[str | None, float] = {}
    side = 0
    for claim, name in claims.items():
        rows = known(verdicts, claim)
        if not rows:
            continue
        groups.append({"title": name, "rows": [_drawn_verdict(row) for row in rows]})
        low, high = rows[0].range
        side = side or (1 if low == even else -1 if high == even else 0)
        rings |= {row.paper_of: row.paper for row in rows if row.paper is not None}
    return {
        "title": title,
        "even": even,
        "side": side,
        "rings": [{"x": number, "label": name} for name, number in rings.items()],
        "groups": groups,
    }


def _drawn_verdict(verdict: Verdict) -> dict:
    estimate = verdict.estimate
    return {
        "id": f"{verdict.id}|{verdict.model}",
        "claim": verdict.id,
        "model": verdict.model,
        "x": _short(estimate.effect),
        "low": _short(estimate.low),
        "high": _short(estimate.high),
        "n": verdict.n,
        "text": f"{estimate:+} {verdict.unit}"
        if verdict.unit != "λ"
        else f"{estimate}",
    }


def _short(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.5g}")


def clouds(
    evidence: Mapping[str, Mapping[str, Any]], panels: Sequence[dict]
) -> dict[str, list[float]]:
    """Return by row of the panels what its effect is on each problem, sorted."""
    rows = [
        row for panel in panels for group in panel["groups"] for row in group["rows"]
    ]
    claims = {claim.id: claim for claim in load_claims()}
    effects = {}
    for row in rows:
        own = evidence.get(row["model"], {})
        # What cannot be read again is drawn without its problems.
        with contextlib.suppress(Untestable, InputError, KeyError):
            values = values_of(claims[row["claim"]], own).sel(network=TRAINED)
            by_problem = values.isel(component=0).dropna("problem").values
            if len(by_problem) == row["n"]:
                effects[row["id"]] = sorted(round(float(x), 2) for x in by_problem)
    return effects
