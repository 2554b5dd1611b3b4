"""What all verdicts say together: how many stand how, and the findings in sentences.

The literal readings are what is counted and told.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from lib.claims.claim import load_claims
from lib.claims.evidence import by_model
from lib.claims.judging import judge
from lib.claims.verdict import (
    EVEN,
    NOT_TESTED,
    OTHER_HEADS,
    UNJUDGED,
    UNTRAINED,
    VERDICTS,
    Estimate,
    Verdict,
)
from lib.claims.verdict_tables import verdict_table
from lib.claims.words import (
    LOST,
    answers_text,
    measured_text,
    verdict_text,
)
from lib.evaluation.answer_tables import GRADERS, graders
from lib.paths import DATA, read_yaml
from lib.profiles import Profile
from lib.statistics import ALPHA, ENOUGH

# How the ids of claims on weighted pass rates begin.
WEIGHTED = "points-"


def models_of(verdicts: Iterable[Verdict]) -> list[str]:
    """Return the models of some verdicts, in their order."""
    return list(dict.fromkeys(verdict.model for verdict in verdicts))


def about(verdicts: Iterable[Verdict], claim: str, least: int = 1) -> list[Verdict]:
    """Return the verdicts on a claim by its id, of at least so many problems."""
    return [row for row in verdicts if row.id == claim and row.n >= least]


def literal(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts on what the paper's sentences say."""
    return [verdict for verdict in verdicts if verdict.reading == "literal"]


def counts(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """Return a row per model: how many literal claims stand how.

    What was not tested counts too.
    """
    claims = {verdict.id for verdict in literal(verdicts)}
    rows = []
    for model in models_of(verdicts):
        own = [row for row in literal(verdicts) if row.model == model and row.n]
        stands = Counter(verdict.stands for verdict in own)
        stands[NOT_TESTED] = len(claims) - len(own)
        rows.append({"model": model, **stands})

    names = [*VERDICTS, *UNJUDGED]
    table = pd.DataFrame(rows, columns=["model", *names])
    table[names] = table[names].fillna(0).astype(int)
    used = [name for name in names if table[name].any()]
    return table[["model", *used]]


def totals(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Return how many literal claims stand how, over all models."""
    return counts(verdicts).set_index("model").sum().to_dict()


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


def in_sentences(table: pd.DataFrame) -> list[str]:
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
            f"With the slashes the original tokens keep {span(effects)} of the"
            " attention that they receive in layer 1 (λ, mean over heads)."
        ),
        (
            "In networks of the same shape that were never trained they keep"
            f" {span(_control_effects(rows, UNTRAINED))}, and where attention is spread"
            f" evenly {span(_control_effects(rows, EVEN))}."
        ),
    ]
    if keys := _control_effects(rows, OTHER_HEADS):
        lines.append(
            f"In trained heads with the keys of another head they keep {span(keys)}."
        )
    if later := about(verdicts, "later-layers"):
        layer = later[0].part.split()[1]
        deep = [verdict.estimate.effect for verdict in later]
        lines.append(f"From layer {layer} on they keep {span(deep)}.")
    return lines


def checks(verdicts: Sequence[Verdict]) -> list[str]:
    """Say how the measure of likelihoods fares in its own checks.

    Whether a likelier worked solution goes with a right answer, what the instruction
    and a worked example give; none where nothing is scored.
    """
    lines = []
    if areas := about(verdicts, "likelihood-right", ENOUGH):
        apart = sum(row.verdict == "supported" for row in areas)
        shares = span((row.estimate.effect for row in areas), 0)
        lines.append(
            "A likelier worked solution goes with a right answer in"
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
        gains = span((row.estimate.effect for row in example), 1)
        lines.append(
            f"A worked example, a real help, makes the worked solution {gains} nats"
            " likelier; small is what lies within a tenth of that."
        )
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
            row = slashes.loc[grader]
            low = float(row.effect_low)
            high = float(row.effect_high)
            effect = Estimate(float(row.effect), low, high, int(row.n))
            effects.append(f"{effect:+} points")
        lines.append(
            f"By {ours} {none[ours]:.1f} % of the answers of {model} are right, by the"
            f" {theirs} {none[theirs]:.1f} % of the same answers. Slashes change the"
            f" first by {effects[0]} and the second by {effects[1]}."
        )
    return lines


def _control_effects(verdicts: Iterable[Verdict], kind: str) -> list[float]:
    """Return what the networks of a kind give, as far as they are measured."""
    return [
        verdict.controls[kind].estimate.effect
        for verdict in verdicts
        if kind in verdict.controls
    ]


def span(values: Iterable[float], digits: int = 2) -> str:
    """Return the lowest and the highest of some numbers."""
    values = list(values)
    low = f"{min(values):.{digits}f}"
    high = f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


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
