"""What each section of the HTML page says first: one or two plain sentences, filled
from the verdicts.

A sentence has at most 25 words and three numbers, beside the names of models. A section
of which too few problems are known says nothing here.
"""

from collections.abc import Sequence

import pandas as pd

from lib.claims.claim import load_claims
from lib.claims.verdict import UNTRAINED, Verdict, about
from lib.claims.verdict_tables import totals
from lib.evaluation.answer_tables import GRADERS
from lib.sentences.conclusion import (
    answer_of,
    attention_taken,
    problems_of,
    sentence_takes_as_much,
)
from lib.sentences.findings import effect_of
from lib.sentences.numbers import of_models, range_of
from lib.statistics import ENOUGH

# What would be a gain, if its interval lay above 0.
GAINS = ("likelihood-gain", "accuracy-mless", "points-slashes")


def known(verdicts: Sequence[Verdict], claim: str) -> list[Verdict]:
    """Return the verdicts on a claim that rest on enough problems."""
    return about(verdicts, claim, ENOUGH)


def is_gain(verdict: Verdict) -> bool:
    """Return whether the whole interval lies above 0."""
    return verdict.estimate.lies_above(0)


def _is_open(verdict: Verdict) -> bool:
    """Return whether the interval holds both 0 and the paper's number."""
    low, high, paper = verdict.estimate.low, verdict.estimate.high, verdict.paper
    if low is None or high is None or paper is None:
        return False
    return low < 0 < paper < high


def answer(verdicts: Sequence[Verdict], shares: pd.DataFrame) -> list[str]:
    """Say whether slashes help, and what they do.

    shares: as `lib.sentences.conclusion.shares_drawn` has them.
    """
    gains = [row for claim in GAINS for row in known(verdicts, claim)]
    lines = []
    if not gains:
        lines.append(
            f"Too few problems were measured to answer: that takes {ENOUGH} or more."
        )
    else:
        lines.append(answer_of(gains))
    return [*lines, *attention_taken(shares), *_accuracy(verdicts)]


def _accuracy(verdicts: Sequence[Verdict]) -> list[str]:
    """Say how accuracy moved, and whether that tells the paper's gain from none."""
    rows = known(verdicts, "accuracy-mless")
    if not rows:
        return []
    effects = sorted(row.estimate.effect for row in rows)
    moved = f"{effects[0]:+.1f}"
    if len(effects) > 1:
        moved += f" to {effects[-1]:+.1f}"
    line = f"Accuracy moved by {moved} points"
    if all(map(_is_open, rows)):
        line += ", too uncertain to tell the paper's gain of about 2 from nothing"
    return [f"{line}."]


def any_text(verdicts: Sequence[Verdict], shares: pd.DataFrame) -> list[str]:
    """Say whether slashes are special, beside a sentence and untrained networks.

    shares: as `lib.sentences.conclusion.shares_drawn` has them.
    """
    as_much = sentence_takes_as_much(shares)
    lines = []
    if as_much.any():
        where = of_models(int(as_much.sum()), len(as_much))
        lines.append(
            "This is not special to slashes: a sentence as long takes no less of the"
            f" first layer's attention in {where}."
        )
    elif len(as_much):
        lines.append("Slashes take more attention than an ordinary sentence as long.")
    rows = [row for row in known(verdicts, "dilution") if UNTRAINED in row.controls]
    if rows:
        trained = _lost(row.estimate.effect for row in rows)
        without = _lost(row.controls[UNTRAINED].effect for row in rows)
        lines += [
            "Token by token (λ), the original ones lose"
            f" {trained} % of their attention in trained networks.",
            f"In untrained networks they lose {without} %.",
        ]
    return lines


def _lost(kept) -> str:
    return range_of((100 * (1 - share) for share in kept), 0)


def layers(verdicts: Sequence[Verdict]) -> list[str]:
    """Say how the first layer differs from those behind it."""
    lines = []
    if rows := known(verdicts, "layer-1-most"):
        held = sum(row.verdict == "supported" for row in rows)
        lines.append(
            "The first layer loses more attention to the slashes than the next two in"
            f" {of_models(held, len(rows))}."
        )
    if rows := known(verdicts, "later-layers"):
        above = sum(row.verdict == "supported" for row in rows)
        layer = rows[0].part.split()[1]
        if above:
            lines.append(
                f"From layer {layer} on the effect turns round in"
                f" {of_models(above, len(rows))}: there the original tokens get more."
            )
        else:
            lines.append(f"From layer {layer} on they surely get more in no model.")
    return lines


def helps(verdicts: Sequence[Verdict]) -> list[str]:
    """Say what likelihoods and pass rates say of a gain."""
    lines = []
    if rows := known(verdicts, "likelihood-gain"):
        likelier = sum(is_gain(row) for row in rows)
        lines.append(
            "With slashes the worked solution becomes surely likelier in"
            f" {of_models(likelier, len(rows))}."
        )
    if rows := known(verdicts, "likelihood-layer-1"):
        likelier = sum(is_gain(row) for row in rows)
        lines.append(
            "The paper's explanation predicts a gain through the first layer; it is"
            f" seen in {of_models(likelier, len(rows))}."
        )
    if rows := known(verdicts, "likelihood-later-layers"):
        likelier = sum(is_gain(row) for row in rows)
        lines += [
            "Against a gap as long, what the later layers see of them makes it surely"
            f" likelier in {of_models(likelier, len(rows))}.",
            "The paper's explanation does not speak of those.",
        ]
    for row in known(verdicts, "points-slashes"):
        low, high = row.estimate.low, row.estimate.high
        lines += [
            f"Weighted answers put the change in {row.model} between {low:+.1f} and"
            f" {high:+.1f} points.",
            f"That rests on {problems_of(row)}.",
        ]
        if is_gain(row) and not row.survives:
            lines.append("That does not stand when corrected for the number of tests.")
    return lines


def trust(verdicts: Sequence[Verdict], graders: pd.DataFrame | None) -> list[str]:
    """Say which checks of the measures failed.

    graders: as `lib.evaluation.answer_tables.graders` gives them.
    """
    lines = []
    if rows := known(verdicts, "likelihood-right"):
        apart = sum(row.verdict == "supported" for row in rows)
        lines.append(
            "That a likelier worked solution goes with a right answer is seen in"
            f" {of_models(apart, len(rows))}, so nats are not turned into points."
        )
    if rows := known(verdicts, "likelihood-instruction"):
        turned = sum(row.verdict == "contradicted" for row in rows)
        lines.append(
            "Taking the instruction away should make the solution less likely; it does"
            f" the opposite in {of_models(turned, len(rows))}."
        )
    if graders is not None and len(graders):
        lines += _apart(graders)
    return lines


def _apart(graders: pd.DataFrame) -> list[str]:
    """Say how far this project's grader and the authors' lie apart, where most."""
    own = graders[graders.condition == "none"]
    shares = own.pivot(index="model", columns="grader", values="accuracy")
    names = [GRADERS["correct"], GRADERS["correct_authors"]]
    if not set(names) <= set(shares):
        return []
    ours, theirs = (shares[name].to_numpy() for name in names)
    widest = int(abs(theirs - ours).argmax())
    low, high = sorted([float(ours[widest]), float(theirs[widest])])
    lines = [
        f"The same answers of one model are right in {low:.1f} or {high:.1f} %,"
        " depending on who grades."
    ]

    # What the slashes change in this model, by the same two.
    of_model = graders[graders.model == shares.index[widest]]
    slashes = of_model[of_model.condition == "mless"].dropna(subset="effect")
    changes = {row.grader: effect_of(row) for row in slashes.itertuples()}
    if set(names) <= set(changes):
        ours, theirs = (changes[name] for name in names)
        lines += [
            f"Slashes change that by {ours:+} points for this project's grader.",
            f"For the authors' rule they change it by {theirs:+} points.",
        ]
    return lines


def writes(flips: Sequence[dict]) -> list[str]:
    """Say how many answers the slashes turned, either way.

    flips: as `lib.report.answers.flipped` gives them.
    """
    if not flips:
        return []
    gained = sum(flip["gained"] for flip in flips)
    return [
        f"With slashes {gained} answers turned right and {len(flips) - gained} turned"
        " wrong.",
        "Answers change either way whenever a prompt changes; a gain is only what is"
        " left over.",
    ]


def settings(courses: Sequence[dict]) -> list[str]:
    """Say whether another number, place or depth of the slashes helps.

    courses: as `lib.report.courses.read_courses` gives them.
    """
    points = [row for course in courses for row in course["rows"] if "low" in row]
    if not points:
        return []
    better = sum(row["low"] > 0 for row in points)
    worse = sum(row["high"] < 0 for row in points)
    return [
        f"Of {len(points)} settings {better} make the worked solution surely likelier"
        f" and {worse} surely less likely.",
        "This is not corrected for looking at so many of them.",
    ]


def undone(verdicts: Sequence[Verdict]) -> list[str]:
    """Say what stays open, and how many problems would close it."""
    papers = {name for claim in load_claims() for name in claim.paper}
    lines = []
    if papers.isdisjoint(row.model for row in verdicts):
        lines.append("None of the paper's own models was run, so its gain stays open.")
    powers = [row.power for row in known(verdicts, "accuracy-mless") if row.power]
    if powers:
        low = min(power.needed for power in powers)
        high = max(power.needed for power in powers)
        needed = f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
        answered = range_of((row.n for row in known(verdicts, "accuracy-mless")), 0)
        lines += [
            f"Seeing a gain of 2 points takes {needed} problems.",
            f"The models here answered {answered}.",
        ]
    return lines


def claimed(verdicts: Sequence[Verdict]) -> list[str]:
    """Say how many of the paper's claims stand how."""
    counts = totals(verdicts)
    held = counts.get("supported", 0)
    against = counts.get("contradicted", 0)
    lines = [
        f"Of the tests of the paper's claims {held} support the claim and"
        f" {against} contradict it.",
        "The others hold in part, cannot tell, or were not run.",
    ]
    return lines if held or against else lines[1:]
