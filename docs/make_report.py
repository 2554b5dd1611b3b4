"""Write the numbers of docs/report.md, the reproducibility report of two pages.

`make readme` runs it after docs/make_readme.py; tests/test_report_document.py holds the
report against what this would write.
"""

import functools
import sys
from collections.abc import Callable, Sequence

import pandas as pd

from docs import sources
from docs.markdown import as_list, as_markdown, with_blocks
from lib import evaluation, paths
from lib.claims.verdict import UNTRAINED, Verdict, about, models_of
from lib.errors import InputError
from lib.report.facts import addresses
from lib.sentences import findings
from lib.sentences.conclusion import (
    PAPERS_GAIN,
    parts_in_points,
    problems_of,
    sentence_takes_as_much,
)
from lib.sentences.numbers import in_words, of_models, range_of
from lib.statistics import ENOUGH

REPORT = paths.ROOT / "docs" / "report.md"
TITLE = (
    "Fifty-five slashes: attention moves, and nothing certain follows from it in"
    " {models} small models"
)
SIGNS_OF_HELP = ("likelihood-gain", "accuracy-mless", "points-slashes")
# The claims that have a section each, and what the paper says.
SECTIONS = {
    "dilution": "Slashes lower the attention on the prompt in layer 1",
    "layer-1-most": "They do so in layer 1 more than in layers 2 and 3",
    "redistribution": "The first MLP's activations move away from zero",
    "likelihood-gain": "The worked solution becomes likelier",
    "likelihood-layer-1": "What helps passes through layer 1",
    "accuracy-mless": "More answers are right",
}


def main() -> int:
    """Rewrite the report; 2 with one line when a stored file is missing."""
    try:
        text = with_blocks(REPORT.read_text(encoding="utf-8"), REPORT_BLOCKS)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    paths.write_whole(REPORT, text.encode())
    return 0


def families_about(claim: str) -> list[Verdict]:
    """Return the families' verdicts on a claim that rest on enough problems."""
    return about(sources.stored_as_verdicts("families"), claim, ENOUGH)


@functools.cache
def families_scores() -> pd.DataFrame:
    """Return the likelihoods of the families' models."""
    return evaluation.scores(sources.families_run())


def holds(claim: str) -> str:
    """Return in how many models a claim holds, and where that cannot be told."""
    rows = families_about(claim)
    supported = sum(row.verdict == "supported" for row in rows)
    undecided = sum(row.stands == "undecided" for row in rows)
    if undecided == len(rows):
        return "no model for sure, and is refuted in none"
    text = of_models(supported, len(rows))
    if undecided:
        text += f"; for {in_words(undecided)} it cannot be told"
    return text


def likelier(rows: Sequence[Verdict]) -> str:
    """Return in how many models an interval lies wholly above 0."""
    count = sum(row.estimate.lies_above(0) for row in rows)
    return f"{in_words(count)} of {in_words(len(rows))} models"


def title() -> str:
    """Return the title, as far as the numbers bear it."""
    signs = [row for claim in SIGNS_OF_HELP for row in families_about(claim)]
    if any(row.estimate.lies_above(0) and row.survives for row in signs):
        return "# Fifty-five slashes: attention moves, and some of it helps"
    models = len(models_of(families_about("dilution")))
    return f"# {TITLE.format(models=in_words(models))}"


def abstract() -> str:
    """Return the abstract, of about 120 words."""
    dilution = families_about("dilution")
    sentence = more_under_a_sentence()
    kept = range_of((100 * row.estimate.effect for row in dilution), 0)
    accuracy = families_about("accuracy-mless")
    moved = range_of(sorted(row.estimate.effect for row in accuracy), 1)
    widest = max(row.estimate.high for row in accuracy)
    lowest = min(row.estimate.low for row in accuracy)
    return (
        "The paper reports that 55 slashes between instruction and problem raise the"
        " accuracy of language models on mathematics, and explains it by attention that"
        " is diluted in the first layer. We measured"
        f" {in_words(len(dilution))} models of 135 million to 1.5 billion parameters"
        " with 4-bit weights; none of them is the paper's. Attention moves as the paper"
        f" says: in the first layer the original tokens keep {kept} % of it. An"
        f" ordinary sentence takes at least as much of it as the slashes in {sentence};"
        " in untrained networks more is lost. Nothing certain follows from it: the"
        " worked solution becomes surely likelier in"
        f" {likelier(families_about('likelihood-gain'))},"
        " and what layer 1 makes of the slashes helps in"
        f" {likelier(families_about('likelihood-layer-1'))}. Accuracy moves by {moved}"
        f" points; the intervals reach from {lowest:.1f} to {widest:+.1f}, so the"
        " paper's +2 stays possible."
    )


def more_under_a_sentence() -> str:
    """Return in how many models a sentence takes as much attention as slashes."""
    more = sentence_takes_as_much(sources.families_shares())
    return of_models(int(more.sum()), len(more))


def scope() -> str:
    """Return the claims that are tested, and in how many models each holds."""
    rows = [
        (number, text, holds(claim))
        for number, (claim, text) in enumerate(SECTIONS.items(), 1)
    ]
    return as_markdown(rows, ["", "The paper says", "here it holds in"])


def of_each_model(claim: str) -> str:
    """Return a table of what was measured of a claim, a row per model."""
    rows = [
        (row.model, f"{row.estimate:{'' if row.unit == 'λ' else '+'}}", row.n)
        for row in families_about(claim)
    ]
    unit = families_about(claim)[0].unit
    return as_markdown(rows, ["model", f"{unit} [95 % interval]", "problems"])


def attention() -> str:
    """Return what is diluted, and what untrained networks lose."""
    rows = families_about("dilution")
    sentence = more_under_a_sentence()
    trained = range_of((100 * (1 - row.estimate.effect) for row in rows), 0)
    without = range_of(
        (100 * (1 - row.controls[UNTRAINED].estimate.effect) for row in rows), 0
    )
    return (
        f"It holds in {holds('dilution')}. The original tokens lose {trained} % of the"
        " attention that they got; untrained networks of the same shape lose"
        f" {without} %. An ordinary sentence as long takes as much of it as the"
        f" slashes, or more, in {sentence}.\n\n{of_each_model('dilution')}"
    )


def solution_moves() -> str:
    """Return the table of the likelihoods, and how far single problems move."""
    scores = families_scores()
    spreads = []
    for _, rows in scores[scores.target == "solution"].groupby("model"):
        nats = rows.pivot(index="problem_id", columns="condition", values="nats")
        spreads.append(float((nats["mless"] - nats["none"]).std()))
    return (
        f"It holds in {holds('likelihood-gain')}."
        " That is not no effect: from problem to problem the change has a standard"
        f" deviation of {range_of(spreads, 1)} nats."
        f"\n\n{of_each_model('likelihood-gain')}"
    )


def answers_move() -> str:
    """Return the table of accuracy, and what weighted answers add."""
    weighted = [
        f"at {row.estimate:+} points in {row.model} ({problems_of(row)})"
        for row in families_about("points-slashes")
    ]
    needed = [row.power.needed for row in families_about("accuracy-mless") if row.power]
    lines = [
        f"It holds in {holds('accuracy-mless')}.",
        f"Seeing a gain of {PAPERS_GAIN} points takes {range_of(needed, 0)} problems.",
        "Sampled answers, weighted by their likelihood, put the change"
        f" {' and '.join(weighted)}.",
        *parts_in_points(sources.stored_as_verdicts("families")),
    ]
    return f"{' '.join(lines)}\n\n{of_each_model('accuracy-mless')}"


def layers() -> str:
    """Return whether the first layer is diluted most."""
    return f"It holds in {holds('layer-1-most')}."


def activations() -> str:
    """Return what becomes of the first MLP's activations."""
    return (
        "The share near zero, both norms and the variance all move as claimed in"
        f" {holds('redistribution')}. The variance before the activation function grows"
        f" in {holds('variance-grows')}."
    )


def first_layer() -> str:
    """Return what the first layer adds to the later ones."""
    table = of_each_model("likelihood-layer-1")
    return f"It holds in {holds('likelihood-layer-1')}.\n\n{table}"


def failed() -> str:
    """Return how the measures fare in their own checks, and how far graders differ."""
    verdicts = sources.stored_as_verdicts("families")
    told = findings.graders_apart(sources.families_answers())
    return as_list(*told, *findings.checks(verdicts))


def limits() -> str:
    """Return what the report does not say."""
    rows = [*families_about("accuracy-mless"), *families_about("points-slashes")]
    inside = sum(row.estimate.holds(PAPERS_GAIN) for row in rows)
    why = "its models were not run"
    if inside:
        why += (
            f", and +{PAPERS_GAIN} points lie inside {in_words(inside)} of our"
            f" {in_words(len(rows))} intervals on accuracy"
        )
    return (
        "This report does not say that the paper's gain is absent or due to chance:"
        f" {why}. It does not say that slashes have no effect. It does not say that"
        " training causes the smaller losses of attention, as nothing but trained and"
        " random weights was compared. It says nothing of models of 7 billion"
        " parameters, and little of ARM's accuracy, which one model gave."
    )


def cite() -> str:
    """Return where the repository is, and where it says how to cite it."""
    return (
        f"*Meaningless tokens, measured*, {addresses()['Repository']};"
        " [CITATION.cff](../CITATION.cff) has all fields. The page to explore is"
        f" {addresses()['Page']}."
    )


def cost() -> str:
    """Return what it took, in hours and bytes."""
    commands = sources.stored(sources.BENCHMARKS / "commands.csv").set_index("command")
    size = sum(
        path.stat().st_size
        for path in (paths.DATA / "families").rglob("*")
        if path.suffix in (".nc", ".gz")
    )
    answers = sources.families_answers()
    sampled = evaluation.stored_draws(sources.families_run())
    assert sampled is not None
    tokens = pd.to_numeric(answers.completion_tokens).sum()
    return as_list(
        f"Figures and verdicts from what is stored: `make reproduce`,"
        f" {commands.minutes['make reproduce']} minutes on {commands.cores['install']}"
        f" CPU cores; installing takes {commands.minutes['install']} minutes and"
        f" {commands.disk_gb['install']} GB.",
        "Attention and activations measured anew: an hour and more on 2 CPU cores, with"
        " 1.8 GB of weights.",
        f"Answers: {len(answers):,} of them, {tokens / 1000:,.0f} thousand tokens; the"
        " 200 problems of the 0.5B model took an hour.",
        f"Sampled answers, which are weighted: {len(sampled):,} more.",
        f"Likelihoods: {len(families_scores()):,} texts were scored.",
        f"What is stored and committed: {size / 1e6:.0f} MB. No GPU was used.",
    )


REPORT_BLOCKS: dict[str, Callable[[], str]] = {
    "title": title,
    "abstract": abstract,
    "scope": scope,
    "attention": attention,
    "layers": layers,
    "activations": activations,
    "solutions": solution_moves,
    "layer-1": first_layer,
    "answers": answers_move,
    "checks": failed,
    "limits": limits,
    "cost": cost,
    "cite": cite,
}

if __name__ == "__main__":
    sys.exit(main())
