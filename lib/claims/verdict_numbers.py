"""Tabulate the numbers behind verdicts for readers.

numbers_table(verdicts)  # a row per verdict, the verdicts on a claim together
"""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from lib.claims.verdicts import Verdict
from lib.figures.notebook_tables import interval_texts

# Of networks with random weights, by `Verdict.specific`.
UNTRAINED_VERDICT = {True: "another", False: "the same", None: ""}


def numbers_table(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return the numbers behind the verdicts on tested claims, in a row per verdict.

    `part` is the deciding part, `measured` its estimate with the interval, and `range`
    where the claim expects it. `parts` says how many parts hold and are refuted; it is
    empty for a claim with one part, as is `part`. `untrained` says which verdict
    untrained networks get, and `rule` when the rule was written.
    """
    by_claim: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.n:
            by_claim.setdefault(verdict.id, []).append(verdict)
    rows = []
    for of_claim in by_claim.values():
        parts = [_as_measured(verdict) for verdict in of_claim]
        # The verdicts on a claim have the same number of decimals.
        texts = interval_texts([estimate for _, estimate, _ in parts])
        for verdict, (part, _, bounds), text in zip(
            of_claim, parts, texts, strict=True
        ):
            rows.append(_row(verdict, part, text, bounds))
    return pd.DataFrame(rows)


def _row(
    verdict: Verdict, part: str, measured: str, bounds: tuple[float | None, ...]
) -> dict[str, Any]:
    has_several = verdict.parts > 1
    return {
        "claim": verdict.claim,
        "reading": verdict.reading,
        "model": verdict.model,
        "verdict": f"{verdict.word} †" if verdict.lost else verdict.word,
        "part": part if has_several else "",
        "measured": measured,
        "range": _range(*bounds),
        "unit": verdict.unit,
        "n": verdict.n,
        "parts": _parts(verdict) if has_several else "",
        "untrained": UNTRAINED_VERDICT[verdict.specific],
        "rule": verdict.written,
    }


def _as_measured(
    verdict: Verdict,
) -> tuple[str, tuple[float | None, ...], tuple[float | None, ...]]:
    """Return the deciding part with its (estimate, low, high) and its range, all with
    the sign of what was measured.

    `activation_changes` names its parts after the expected change, as in "L1 up", and
    turns the sign of those that should fall, so that all parts share a range.
    """
    name, _, expected = verdict.part.rpartition(" ")
    estimate = verdict.effect, verdict.low, verdict.high
    low, high = verdict.range
    if expected == "down":
        turned = verdict.effect, verdict.high, verdict.low
        return name, tuple(map(_negative, turned)), (_negative(high), _negative(low))
    return (name if expected == "up" else verdict.part), estimate, (low, high)


def _negative(number: float | None) -> float | None:
    return None if number is None else 0 - number


def _range(low: float | None, high: float | None) -> str:
    if high is None:
        return f"above {low:g}"
    return f"below {high:g}" if low is None else f"{low:g} to {high:g}"


def _parts(verdict: Verdict) -> str:
    holds = f"{len(verdict.holds)} of {verdict.parts} hold"
    return f"{holds}, {len(verdict.refuted)} refuted"
