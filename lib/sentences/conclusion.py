"""The answer in a paragraph that can be quoted, written from the numbers alone.

Its first sentence is the README's headline, and notebook 07 closes with all of it.

    conclude(verdicts, shares_drawn(run))
"""

from collections.abc import Mapping, Sequence
from itertools import chain

import pandas as pd

from lib.claims.claim import load_claims
from lib.claims.verdict import Verdict, about, models_of
from lib.profiles import Profile
from lib.sentences.numbers import in_words, range_of, some_models
from lib.statistics import ENOUGH

PAPERS_GAIN = 2  # points, of Qwen2.5-Math-1.5B in Table 1
# What takes attention, in `shares_drawn`.
SLASHES = "slashes"
SENTENCE = "a sentence as long"
# What sampled answers say beside the slashes' own effect, by claim.
IN_POINTS = {
    "points-layer-1-needed": "What the first layer adds to later ones",
    "points-layer-1-suffices": "The first layer alone",
    "points-arm": "ARM, the paper's other method,",
}


def conclude(verdicts: Sequence[Verdict], shares: pd.DataFrame) -> list[str]:
    """Return the sentences of the paragraph, the answer first."""
    return list(chain.from_iterable(conclusion_parts(verdicts, shares)))


def conclusion_parts(
    verdicts: Sequence[Verdict], shares: pd.DataFrame
) -> list[list[str]]:
    """Return the sentences by what they are about: the answer and its models,
    attention, likelihoods, points of single and of sampled answers, what layer 1 and
    ARM change in those, and what was corrected.

    shares: the attention that is taken, by layer, as `shares_drawn` has it. Nothing is
    said of what was not measured.
    """
    nats = about(verdicts, "likelihood-gain", ENOUGH)
    sampled = about(verdicts, "points-slashes", ENOUGH)
    single = about(verdicts, "accuracy-mless", ENOUGH)
    measures = [*nats, *sampled, *single]
    if not measures:
        return [["Nothing that was scored or answered says whether slashes help."]]
    return [
        [answer_of(measures), *_limits(measures)],
        attention_taken(shares),
        _likelihood_changes(nats, about(verdicts, "likelihood-layer-1", ENOUGH)),
        _points_moved("With one answer to each problem", single),
        _points_moved("With several sampled answers, weighted", sampled),
        parts_in_points(verdicts),
        _uncertain({"likelihood": nats, "accuracy": [*single, *sampled]}),
    ]


def shares_drawn(run: Profile) -> pd.DataFrame:
    """Return the shares of attention by layer that notebook 02 drew, none before."""
    drawn = run.figures / "mass_by_layer.csv"
    if not drawn.is_file():
        return pd.DataFrame(columns=["model", "inserted", "layer", "mass"])
    return pd.read_csv(drawn)


def sentence_takes_as_much(shares: pd.DataFrame) -> pd.Series:
    """Return by model whether an ordinary sentence takes at least as large a share of
    the first layer's attention as the slashes; nothing where either is unknown.

    shares: as `shares_drawn` has them.
    """
    first = shares[shares.layer == 1]
    slashes, sentence = (
        first[first.inserted == name].set_index("model").mass
        for name in (SLASHES, SENTENCE)
    )
    models = slashes.index.intersection(sentence.index, sort=False)
    return sentence[models] >= slashes[models]


def answer_of(measures: Sequence[Verdict]) -> str:
    """Return whether any measure shows a gain, in one sentence.

    A gain is an interval that lies wholly above 0, also once all verdicts are corrected
    for their number: of seven intervals, one lies above 0 by chance now and then. While
    any interval reaches above 0, a gain is not certain, and not excluded either.
    """
    models = models_of(measures)
    gains = [row for row in measures if row.estimate.lies_above(0)]
    certain = models_of(row for row in gains if row.survives)
    where = f"the {some_models(len(models))} that we could run"
    if certain:
        return (
            f"In {in_words(len(certain))} of {where}, we see a gain in maths from 55"
            " slashes in the prompt."
        )
    possible = any(not row.estimate.lies_below(0) for row in measures)
    word = "certain " if possible else ""
    return f"In {where}, we see no {word}gain in maths from 55 slashes in the prompt."


def attention_taken(shares: pd.DataFrame) -> list[str]:
    """Return what slashes and a sentence take of the first layer's attention."""
    if shares.empty:
        return []
    first = shares[shares.layer == 1]
    slashes = first[first.inserted == SLASHES].mass
    sentence = first[first.inserted == SENTENCE].mass
    return [
        f"The slashes take {range_of(slashes, 0)} % of the first layer's attention; an"
        f" ordinary sentence as long takes {range_of(sentence, 0)} %."
    ]


def _likelihood_changes(
    nats: Sequence[Verdict], layer_1: Sequence[Verdict]
) -> list[str]:
    """Return in how many models the worked solution becomes likelier, all in all and
    by what the first layer sees.
    """
    sentences = []
    if nats:
        likelier = [row for row in nats if row.estimate.lies_above(0)]
        unlikelier = [row for row in nats if row.estimate.lies_below(0)]
        sentences.append(
            "The slashes make a problem's worked solution certainly likelier in"
            f" {in_words(len(likelier))} of {some_models(len(nats))}, and certainly"
            f" less likely in {in_words(len(unlikelier))}."
        )
    if layer_1:
        likelier = [row for row in layer_1 if row.estimate.lies_above(0)]
        sentences.append(
            "The paper's explanation needs a gain from what the first layer sees of"
            f" them: it is certain in {in_words(len(likelier))} of"
            f" {some_models(len(layer_1))}."
        )
    return sentences


def _points_moved(how: str, rows: Sequence[Verdict]) -> list[str]:
    """Return by how many points accuracy moves in each model, and what the intervals
    hold.

    how: the beginning of the first sentence, which says what was counted. A run that
    is not finished says how many problems were planned.
    """
    sentences = []
    for row in rows:
        subject = "it" if sentences else f"{how}, accuracy"
        sentences.append(
            f"{subject[0].upper()}{subject[1:]} moves by {row.estimate:+} points in"
            f" {row.model} ({problems_of(row)})."
        )
    return [*sentences, *_held(rows)]


def parts_in_points(verdicts: Sequence[Verdict]) -> list[str]:
    """Return by how many points layer 1's part of the slashes, and ARM, change
    accuracy in each model, by the same sampled answers, and which change is small.
    """
    sentences = []
    for claim, subject in IN_POINTS.items():
        changes = [
            f"{row.estimate:+} points in {row.model}{_certainty(row)}"
            for row in about(verdicts, claim, ENOUGH)
        ]
        if changes:
            sentences.append(f"{subject} changes accuracy by {' and '.join(changes)}.")
    return sentences


def _certainty(row: Verdict) -> str:
    """Return what is certain of a change in points: that it is small, or not even its
    side; empty where 0 lies inside a wide interval.
    """
    if row.small:
        return f" (surely below {row.equivalence:g})"
    if not row.estimate.holds(0) and not row.survives:
        return " (lost when corrected)"
    return ""


def problems_of(row: Verdict) -> str:
    """Return how many problems a verdict rests on, of how many that were planned."""
    planned = {claim.id: claim.planned for claim in load_claims()}[row.id]
    if planned and row.n < planned:
        return f"so far {row.n} of {planned} planned problems"
    return f"{row.n} problems"


def _held(rows: Sequence[Verdict]) -> list[str]:
    """Return whether the intervals hold 0 and the paper's gain; nothing without any."""
    by_text: dict[str, list[str]] = {}
    for row in rows:
        by_text.setdefault(_what_it_holds(row), []).append(row.model)
    if not by_text:
        return []
    if len(by_text) > 1:
        return [
            f"In {' and '.join(models)} the interval holds {text}."
            for text, models in by_text.items()
        ]
    (text,) = by_text
    subject = "The interval holds" if len(rows) == 1 else "Their intervals hold"
    return [f"{subject} {text}."]


def _what_it_holds(row: Verdict) -> str:
    """Return which of 0 and the paper's gain an interval leaves possible."""
    gain = f"the paper's gain of {PAPERS_GAIN} points"
    holds_zero = row.estimate.holds(0)
    holds_gain = row.estimate.holds(PAPERS_GAIN)
    if holds_zero and holds_gain:
        return f"both 0 and {gain}"
    if holds_zero:
        return f"0 but not {gain}"
    if holds_gain:
        return f"{gain} but not 0"
    return f"neither 0 nor {gain}"


def _uncertain(measures: Mapping[str, Sequence[Verdict]]) -> list[str]:
    """Return which intervals lie above 0 without being a gain, or nothing.

    measures: the verdicts that could show a gain, by what was measured.
    """
    rows = list(chain.from_iterable(measures.values()))
    above = [row for row in rows if row.estimate.lies_above(0)]
    uncertain = [row for row in above if not row.survives]
    if not uncertain:
        return []
    counts = [f"{in_words(len(own))} of {name}" for name, own in measures.items()]
    lie, they = ("lies", "it does") if len(uncertain) == 1 else ("lie", "they do")
    return [
        f"Of these intervals, {' and '.join(counts)}, {in_words(len(uncertain))} {lie}"
        f" above 0; corrected for the number of all tests (Holm), {they} not."
    ]


def _limits(measures: Sequence[Verdict]) -> list[str]:
    """Return that the models are not the paper's, where none of them is."""
    papers = {name for claim in load_claims() for name in claim.paper}
    if papers & set(models_of(measures)):
        return []
    return ["None of these models is one of the paper's."]
