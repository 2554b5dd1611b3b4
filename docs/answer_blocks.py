"""What the documents say of the paper's claims: the answer, each model, each check."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from docs import sources
from docs.markdown import as_list, as_markdown
from lib.claims.verdict import Verdict, about, models_of
from lib.paths import FIGURES
from lib.sentences import all_verdicts, conclusion, findings
from lib.statistics import ENOUGH

# What the README says of each model, and of the paper's claims, by their ids.
NUMBERS_OF_MODELS = {
    "likelihood-gain": "worked solution, nats",
    "likelihood-layer-1": "layer 1's part, nats",
    "accuracy-mless": "right answers, points",
    "points-slashes": "right answers, sampled, points",
}
MAIN_CLAIMS = {
    "dilution": "lower the attention that the prompt's tokens receive in layer 1",
    "dilution-problem": "lower it for the problem's tokens alone",
    "layer-1-most": "do so in layer 1 more than in layers 2 and 3",
    "affine": "turn layer 1's output into λ times the old one plus one direction",
    "variance-grows": "raise the variance before the first MLP's activation function",
    "redistribution": "move near-zero activations, norms and variance together",
    "likelihood-layer-1": "help through layer 1: the worked solution gets likelier",
    "accuracy-mless": "raise accuracy",
}


def headline() -> str:
    """Return the answer and the numbers that it rests on: the paragraph that notebook
    07 closes with.
    """
    verdicts = sources.stored_as_verdicts("families")
    first, *parts = conclusion.conclusion_parts(verdicts, sources.families_shares())
    answer, *limits = first
    *others, last = models_of(row for row in verdicts if row.n)
    names = f"{', '.join(others)} and {last}"
    models = " ".join([f"They are {names}, with 4-bit weights.", *limits])
    lines = [" ".join(sentences) for sentences in parts if sentences]
    return f"**{answer}** {models}\n\n{as_list(*lines)}"


def models_table() -> str:
    """Return a row per model: attention, likelihoods and answers under slashes."""
    verdicts = sources.stored_as_verdicts("families")
    shares = sources.families_shares().query("layer == 1")
    drawn = shares[shares.inserted.isin(("slashes", "a sentence as long"))]
    taken = shares.set_index(["model", "inserted"]).mass
    rows = []
    for model in models_of(row for row in verdicts if row.n):
        own = [row for row in verdicts if row.model == model]
        cells = [
            f"{taken[model, 'slashes']:.0f}",
            f"{taken[model, 'a sentence as long']:.0f}",
        ]
        for claim in NUMBERS_OF_MODELS:
            row = next(iter(about(own, claim, ENOUGH)), None)
            cells.append(f"{row.estimate:+}, n = {row.n}" if row else "")
        rows.append((model, *cells))
    columns = [
        "model",
        f"slashes take, % of layer 1 (n = {drawn.n.max()})",
        "a sentence takes, %",
        *NUMBERS_OF_MODELS.values(),
    ]
    return as_markdown(rows, columns)


def paper_says() -> str:
    """Return in how many models each of the paper's main claims holds."""
    verdicts = sources.stored_as_verdicts("families")
    rows = [(text, held(verdicts, claim)) for claim, text in MAIN_CLAIMS.items()]
    return as_markdown(rows, ["The paper says that 55 slashes ...", "holds in"])


def held(verdicts: Sequence[Verdict], claim: str) -> str:
    """Return in how many models a claim is supported, and in how many neither that nor
    the opposite is.
    """
    rows = about(verdicts, claim, ENOUGH)
    supported = sum(row.verdict == "supported" for row in rows)
    text = f"{supported} of {len(rows)} models"
    others = Counter(row.stands for row in rows)
    told = [
        f"{others[name]} {name}" for name in ("in part", "undecided") if others[name]
    ]
    if told:
        return ", ".join([text, *told])
    return text if supported else f"no: {text}"


def checks() -> str:
    """Return how the measure fares in its own checks, and what graders make of it."""
    told = findings.checks(sources.stored_as_verdicts("families"))
    return as_list(*told, *findings.graders_apart(sources.families_answers()))


def families() -> str:
    """Return what holds in all, some and none of the families' models.

    And which n would decide accuracy.
    """
    verdicts = sources.stored_as_verdicts("families")
    return as_list(
        *all_verdicts.inside(verdicts),
        *findings.finding(verdicts),
        *findings.accuracies(verdicts),
        all_verdicts.closing(verdicts)[-1],
    )


def demo_claims() -> str:
    """Return what the demo run says: in numbers, and which claims got which verdict."""
    verdicts = sources.stored_as_verdicts("demo")
    heads = sources.stored(FIGURES / "demo" / "lambda_by_head.csv")
    first = heads[heads.layer == 1]
    slashes = first[first.condition == "mless"]
    sentence = first[first.condition == "random"]
    answered = [row for row in verdicts if row.id in ("accuracy-mless", "arm-accuracy")]
    below_1 = (
        f"With slashes λ is below 1 in {below(slashes)} heads of layer 1, with an"
        f" ordinary sentence as long in {below(sentence)} (n = {slashes.n.max():.0f})."
    )
    *told, _, corrected = all_verdicts.lead(verdicts)
    return as_list(*told, below_1, *findings.accuracies(answered), corrected)


def below(heads: pd.DataFrame) -> str:
    """Return how many heads have the whole interval of λ below 1, of how many."""
    return f"{(heads.high < 1).sum()} of {len(heads)}"
