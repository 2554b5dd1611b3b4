"""What a claim on likelihoods asks of the evidence: nats per problem, one condition less another."""

from collections.abc import Sequence

import pandas as pd

from lib.claims.evidence import Evidence, Untestable
from lib.claims.verdicts import Component

POSITIVE = ("example", "none")  # the control whose gain says how large an effect would be one: a worked example


def nats(evidence: Evidence, target: str) -> pd.DataFrame:
    """Return log p of the gold solution or answer, a row per problem and a column per condition; NaN: not scored."""
    rows = [row for row in evidence.scores if row["target"] == target]
    if not rows:
        raise Untestable(f"the profile scores no {target}s with {evidence.model}")
    return pd.DataFrame(rows).pivot(index="problem_id", columns="condition", values="nats")


def likelihood_differences(evidence: Evidence, target: str, pairs: Sequence[Sequence[str]]) -> list[Component]:
    """Return for each pair of conditions log p under the first less that under the second, in nats per problem."""
    table = nats(evidence, target)
    return [_difference(evidence, table, more, less) for more, less in pairs]


def _difference(evidence: Evidence, table: pd.DataFrame, more: str, less: str) -> Component:
    if missing := {more, less} - set(table.columns):
        raise Untestable(f"the profile scores nothing under {', '.join(sorted(missing))} with {evidence.model}")
    found = (table[more] - table[less]).dropna()
    return Component(f"{more} - {less}", found.to_numpy(), problems=found.index)


def positive_gain(evidence: Evidence, target: str) -> float:
    """Return the mean gain of the positive control in nats, the scale of what counts as no effect.

    Raises Untestable where it gains nothing: then there is no scale.
    """
    gain = float(_difference(evidence, nats(evidence, target), *POSITIVE).values.mean())
    if gain <= 0:
        raise Untestable(f"the positive control gains nothing with {evidence.model}")
    return gain
