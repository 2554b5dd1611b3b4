"""What was found, in sentences with the numbers of the verdicts: on attention, on the
measures' own checks, on graders, and on every model's answers.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from lib.claims.verdict import (
    EVEN,
    OTHER_HEADS,
    UNTRAINED,
    Estimate,
    Verdict,
    about,
)
from lib.evaluation.answer_tables import GRADERS, graders
from lib.sentences.numbers import range_of
from lib.sentences.one_verdict import answers_text, verdict_text
from lib.statistics import ENOUGH


def finding(verdicts: Sequence[Verdict]) -> list[str]:
    """Say how far the dilution of layer 1 goes, and how far it reaches."""
    rows = [
        verdict
        for verdict in about(verdicts, "dilution")
        if {UNTRAINED, EVEN} <= set(verdict.controls)
    ]
    if not rows:
        return []
    effects = [verdict.estimate.effect for verdict in rows]
    lines = [
        (
            f"With the slashes the original tokens keep {range_of(effects)} of the"
            " attention that they receive in layer 1 (λ, mean over heads)."
        ),
        (
            "In networks of the same shape that were never trained they keep"
            f" {range_of(_control_effects(rows, UNTRAINED))}, and where attention is"
            f" spread evenly {range_of(_control_effects(rows, EVEN))}."
        ),
    ]
    if keys := _control_effects(rows, OTHER_HEADS):
        lines.append(
            "In trained heads with the keys of another head they keep"
            f" {range_of(keys)}."
        )
    if later := about(verdicts, "later-layers"):
        layer = later[0].part.split()[1]
        deep = [verdict.estimate.effect for verdict in later]
        lines.append(f"From layer {layer} on they keep {range_of(deep)}.")
    return lines


def _control_effects(verdicts: Iterable[Verdict], kind: str) -> list[float]:
    """Return what the networks of a kind give, as far as they are measured."""
    return [
        verdict.controls[kind].effect
        for verdict in verdicts
        if kind in verdict.controls
    ]


def checks(verdicts: Sequence[Verdict]) -> list[str]:
    """Say how the measures fare in their own checks.

    Whether a likelier worked solution goes with a right answer, what the instruction
    and a worked example give, in nats and in points; none where nothing is known.
    """
    lines = []
    if areas := about(verdicts, "likelihood-right", ENOUGH):
        apart = sum(row.verdict == "supported" for row in areas)
        shares = range_of((row.estimate.effect for row in areas), 0)
        lines.append(
            "That a likelier worked solution goes with a right answer is seen in"
            f" {apart} of {len(areas)} models. Of a solved and an unsolved problem, the"
            f" solved one has the likelier solution in {shares} % of pairs, where 50 %"
            " is chance."
        )
    if instruction := about(verdicts, "likelihood-instruction", ENOUGH):
        turned = sum(row.verdict == "contradicted" for row in instruction)
        lines.append(
            "The negative control failed in"
            f" {turned} of {len(instruction)} models: there a prompt without its"
            " instruction makes the worked solution likelier, not less likely."
        )
    if example := about(verdicts, "likelihood-example", ENOUGH):
        gains = range_of((row.estimate.effect for row in example), 1)
        lines.append(
            f"A worked example, a real help, makes the worked solution {gains} nats"
            " likelier; small is what lies within a tenth of that."
        )
    return [*lines, *_controls_in_points(verdicts)]


def _controls_in_points(verdicts: Sequence[Verdict]) -> list[str]:
    """Say by how many points each control changes accuracy, model by model: what the
    same number of problems says of a model stands together.
    """
    subjects = {
        "accuracy-example": "a worked example",
        "accuracy-instruction": "the instruction",
        "accuracy-sentence": "an ordinary sentence",
    }
    by_model = defaultdict(list)
    for claim, subject in subjects.items():
        for row in about(verdicts, claim, ENOUGH):
            by_model[row.model, row.n].append((subject, f"{row.estimate:+}"))

    lines = []
    for (model, n), changes in by_model.items():
        (subject, change), *others = changes
        line = (
            f"In {model} ({n} problems) {subject} changes accuracy by {change} points."
        )
        for subject, change in others:
            line += f" {subject.capitalize()} changes it by {change}."
        lines.append(line)
    return lines


def graders_apart(answers: pd.DataFrame) -> list[str]:
    """Say what the same answers are worth to two graders, and what slashes do to each.

    To this project's, and to the authors' rule as published.
    """
    table = graders(answers)
    ours, theirs = (GRADERS[name] for name in ("correct", "correct_authors"))
    lines = []
    for model, rows in table.groupby("model", sort=False):
        none = rows[rows.condition == "none"].set_index("grader").accuracy
        slashes = rows[rows.condition == "mless"].set_index("grader")
        if not {ours, theirs} <= set(none.index) & set(slashes.index):
            continue
        effects = []
        for grader in (ours, theirs):
            effects.append(f"{effect_of(slashes.loc[grader]):+} points")
        lines.append(
            f"By {ours} {none[ours]:.1f} % of the answers of {model} are right, by the"
            f" {theirs} {none[theirs]:.1f} % of the same answers. Slashes change the"
            f" first by {effects[0]} and the second by {effects[1]}."
        )
    return lines


def effect_of(row: Any) -> Estimate:
    """Return what a row of a table of answers says of a change, in points."""
    low = float(row.effect_low)
    high = float(row.effect_high)
    return Estimate(float(row.effect), low, high, int(row.n))


def accuracies(verdicts: Iterable[Verdict]) -> list[str]:
    """Return a sentence per claim and model on answers.

    The effect, and what belongs beside it.
    """
    lines = []
    for verdict in verdicts:
        if verdict.answers and verdict.n:
            lines.append(
                f"{verdict.claim}? {verdict.model}: {verdict.estimate:+} points, n ="
                f" {verdict.n}, {verdict_text(verdict)}{answers_text(verdict)}."
            )
    return lines or ["No model's accuracy was tested."]
