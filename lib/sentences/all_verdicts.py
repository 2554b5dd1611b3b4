"""What all verdicts say together, and those on the claims of one notebook.

The literal readings are what is counted and told.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from lib.claims.claim import load_claims
from lib.claims.evidence import by_model
from lib.claims.judging import judge
from lib.claims.verdict import (
    UNJUDGED,
    VERDICTS,
    Verdict,
    literal,
    models_of,
)
from lib.claims.verdict_tables import totals, verdict_table
from lib.paths import DATA, read_yaml
from lib.profiles import Profile
from lib.sentences.findings import checks, finding
from lib.sentences.one_verdict import LOST, measured_text, verdict_text
from lib.statistics import ALPHA, ENOUGH

# How the ids of claims on weighted pass rates begin.
WEIGHTED = "points-"


def closing(verdicts: Sequence[Verdict]) -> list[str]:
    """Return what the number of rows means.

    How many wrong verdicts they lead one to expect, and which do not stand corrected
    for all rows.
    """
    tested = [verdict for verdict in verdicts if verdict.stands not in UNJUDGED]
    decided = [verdict for verdict in tested if verdict.decided]
    several = len(models_of(verdicts)) > 1
    lost = [
        f"{verdict.id} ({verdict.model})" if several else verdict.id
        for verdict in decided
        if verdict.lost
    ]
    return [
        (
            f"{len(tested)} verdicts were tested. Where the truth lies at the edge of"
            f" what is claimed, each is wrong with a chance of {100 * ALPHA / 2:g} %,"
            f" so that at most {len(tested) * ALPHA / 2:.1f} wrong ones are to be"
            " expected."
        ),
        (
            f"{len(decided) - len(lost)} of {len(decided)} verdicts stand when they are"
            " corrected for the number of all (Holm). These do not"
            f" ({LOST.strip()}): {', '.join(lost) or 'none'}."
        ),
    ]


def lead(verdicts: Sequence[Verdict]) -> list[str]:
    """Return how many literal claims stand how, what was found, and what that is worth.

    Worth with so many verdicts: `closing`.
    """
    by_verdict = totals(verdicts)
    numbers = ", ".join(f"{count} {name}" for name, count in by_verdict.items())
    claims = {verdict.id for verdict in literal(verdicts)}
    models = models_of(verdicts)
    where = models[0]
    if len(models) > 1:
        where = f"{len(models)} models ({sum(by_verdict.values())} cells)"
    first = f"{len(claims)} claims, as the paper words them, on {where}: {numbers}."
    others = counted_apart(verdicts)
    return [first, *others, *finding(verdicts), *checks(verdicts), *closing(verdicts)]


def counted_apart(verdicts: Sequence[Verdict]) -> list[str]:
    """Return how the tested claims of other papers, and the controls, stand."""
    kinds = {"other": "of other papers", "control": "that are controls"}
    lines = []
    for reading, text in kinds.items():
        rows = [row for row in verdicts if row.reading == reading and row.n]
        if rows:
            stands = Counter(row.stands for row in rows)
            words = [word for word in (*VERDICTS, *UNJUDGED) if stands[word]]
            numbers = ", ".join(f"{stands[word]} {word}" for word in words)
            claims = {row.id for row in rows}
            lines.append(
                f"Counted apart, {len(claims)} claims {text} ({len(rows)} cells):"
                f" {numbers}."
            )
    return lines


def inside(verdicts: Sequence[Verdict]) -> list[str]:
    """Say which literal claims on the inside hold in all, some and none of the models.

    Of several models that tested a claim; and what training adds.
    """
    by_claim: dict[str, list[Verdict]] = {}
    for verdict in literal(verdicts):
        measured = not verdict.answers and verdict.unit != "nats"
        weighted = verdict.id.startswith(WEIGHTED)
        if verdict.n >= ENOUGH and measured and not weighted:
            by_claim.setdefault(verdict.claim, []).append(verdict)
    shared = {claim: rows for claim, rows in by_claim.items() if len(rows) > 1}
    if not shared:
        return []

    supported: dict[str, list[str]] = {"all": [], "some": [], "none": []}
    for claim, rows in shared.items():
        held = [verdict.verdict == "supported" for verdict in rows]
        which = "all" if all(held) else "some" if any(held) else "none"
        supported[which].append(claim)
    tested = [verdict for rows in shared.values() for verdict in rows]
    models = len(models_of(tested))
    lines = [
        f"Supported in {which} of {models} models: {'; '.join(claims) or 'nothing'}."
        for which, claims in supported.items()
    ]

    trained = Counter(row.training for row in tested if row.training)
    decided = sum(verdict.verdict != "undecided" for verdict in tested)
    return [
        *lines,
        (
            "Networks of the same shape that were never trained get the same verdict in"
            f" {trained.total()} of {decided} verdicts on attention and activations."
        ),
        (
            f"Of these {trained.total()}, training makes the effect weaker in"
            f" {trained['weaker']} and stronger in {trained['stronger']}."
        ),
    ]


def listing(verdicts: Sequence[Verdict]) -> str:
    """Return the claims as lines, then what the number of rows means.

    A claim has its verdict, its statement, and what was measured.
    """
    lines = []
    for verdict in verdicts:
        where = f"{verdict.id} ({verdict.source}, {verdict.reading}), {verdict.model}"
        lines.append(f"{verdict_text(verdict).upper()}: {where}")
        lines.append(f"    {verdict.claim}.")
        lines.append(f"    {measured_text(verdict)}.")
    return "\n".join([*lines, *closing(verdicts)])


def verdicts_on(run: Profile, notebook: str, **evidence: Any) -> pd.DataFrame:
    """Return how the claims stand on which a notebook's figures bear.

    Those that data/figures.yaml names, as far as they are tested; the evidence is as
    `by_model` takes it. A row per model and claim: verdict, effect with its ends, unit,
    n. Whether a verdict stands when corrected for all rows is told where all are
    judged, in notebook 06.
    """
    names = set()
    for captions in read_yaml(DATA / "figures.yaml").values():
        for caption in captions:
            if caption["notebook"].startswith(notebook):
                names |= set(caption["claims"])
    claims = [claim for claim in load_claims() if claim.id in names]
    verdicts = [row for row in judge(claims, by_model(run, **evidence)) if row.n]

    models = models_of(verdicts)
    verdicts.sort(key=lambda verdict: models.index(verdict.model))
    texts = [verdict_text(verdict, mark_lost=False) for verdict in verdicts]
    table = verdict_table(verdicts).assign(verdict=texts)
    columns = ["model", "claim", "reading", "verdict", "effect", "low", "high"]
    return table[[*columns, "unit", "n"]]


def claim_sentences(table: pd.DataFrame) -> list[str]:
    """Return a sentence per literal claim of `verdicts_on`: in how many models it
    holds, and in how many that is undecided.
    """
    sentences = []
    literal_rows = table[table.reading == "literal"]
    for claim, rows in literal_rows.groupby("claim", sort=False):
        word = rows.verdict.str.split(",").str[0]
        holds = int((word == "supported").sum())
        unknown = int(word.isin(("undecided", *UNJUDGED)).sum())
        sentences.append(f"{claim}: {_holds_in(holds, unknown, len(rows))}.")
    return sentences


def _holds_in(holds: int, unknown: int, models: int) -> str:
    """Return in words in how many models a claim holds."""
    where = f"{models} models" if models > 1 else "the one model"
    if holds == models:
        return f"yes, in all {where}" if models > 1 else f"yes, in {where}"
    if unknown == models:
        return "undecided"
    if not holds:
        text = f"no, in none of {where}" if models > 1 else f"no, not in {where}"
        return f"{text}, undecided in {unknown}" if unknown else text
    text = f"it holds in {holds} of {where}"
    return f"{text}, undecided in {unknown}" if unknown else text
