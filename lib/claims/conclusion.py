"""The answer in a paragraph that can be quoted, written from the numbers alone.

Its first sentence is the README's headline, and notebook 07 closes with all of it.

    conclude(verdicts, shares_drawn(run))
"""

from collections.abc import Mapping, Sequence
from itertools import chain

import pandas as pd

from lib.claims.claim import load_claims
from lib.claims.verdict import Verdict, about, models_of
from lib.claims.words import in_words
from lib.profiles import Profile
from lib.statistics import ENOUGH

PAPERS_GAIN = 2  # points, of Qwen2.5-Math-1.5B in Table 1


def conclude(verdicts: Sequence[Verdict], shares: pd.DataFrame) -> list[str]:
    """Return the sentences of the paragraph, the answer first."""
    return list(chain.from_iterable(conclusion_parts(verdicts, shares)))


def conclusion_parts(
    verdicts: Sequence[Verdict], shares: pd.DataFrame
) -> list[list[str]]:
    """Return the sentences by what they are about: the answer, attention, likelihoods,
    points and limits.

    shares: the attention that is taken, by layer, as `shares_drawn` has it. Nothing is
    said of what was not measured.
    """
    nats = about(verdicts, "likelihood-gain", ENOUGH)
    drawn = about(verdicts, "points-slashes", ENOUGH)
    greedy = about(verdicts, "accuracy-mless", ENOUGH)
    measures = [*nats, *drawn, *greedy]
    if not measures:
        return [["Nothing that was scored or answered says whether slashes help."]]
    return [
        [answer_of(measures)],
        _attention_taken(shares),
        _likelihood_changes(nats, about(verdicts, "likelihood-layer-1", ENOUGH)),
        _points_moved(drawn, greedy),
        [*_uncertain(measures), *_limits(measures)],
    ]


def shares_drawn(run: Profile) -> pd.DataFrame:
    """Return the shares of attention by layer that notebook 02 drew, none before."""
    drawn = run.figures / "mass_by_layer.csv"
    if not drawn.is_file():
        return pd.DataFrame(columns=["model", "inserted", "layer", "mass"])
    return pd.read_csv(drawn)


def answer_of(measures: Sequence[Verdict]) -> str:
    """Return whether any measure shows a gain, in one sentence.

    A gain is an interval that lies wholly above 0, also once all verdicts are corrected
    for their number: of seven intervals, one lies above 0 by chance now and then.
    """
    models = models_of(measures)
    gains = [row for row in measures if row.estimate.lies_above(0)]
    certain = models_of(row for row in gains if row.survives)
    where = f"the {in_words(len(models))} {_noun(len(models))} that we could run"
    if certain:
        return (
            f"In {in_words(len(certain))} of {where}, we see a gain in maths from 55"
            " slashes in the prompt."
        )
    word = "certain " if gains else ""
    return f"In {where}, we see no {word}gain in maths from 55 slashes in the prompt."


def _attention_taken(shares: pd.DataFrame) -> list[str]:
    """Return what slashes and a sentence take of the first layer's attention."""
    if shares.empty:
        return []
    first = shares[shares.layer == 1]
    slashes = first[first.inserted == "slashes"].mass
    sentence = first[first.inserted == "a sentence as long"].mass
    return [
        f"The slashes take {_percent(slashes)} of the first layer's attention; an"
        f" ordinary sentence as long takes {_percent(sentence)}."
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
            "With the slashes the known solution of a problem becomes likelier in"
            f" {in_words(len(likelier))} of {_the(nats)}, and less likely in"
            f" {in_words(len(unlikelier))}."
        )
    if layer_1:
        likelier = [row for row in layer_1 if row.estimate.lies_above(0)]
        sentences.append(
            "Showing the slashes to the first layer, as the paper's explanation asks,"
            f" makes it likelier in {in_words(len(likelier))} of {_the(layer_1)}."
        )
    return sentences


def _points_moved(drawn: Sequence[Verdict], greedy: Sequence[Verdict]) -> list[str]:
    """Return by how many points answers become right more often, by model.

    A run that is not finished says how many problems were planned.
    """
    planned = {claim.id: claim.planned for claim in load_claims()}
    sentences = [
        f"Accuracy moves by {row.estimate:+} points in {row.model} ({row.n} problems)."
        for row in greedy
    ]
    sentences += [
        f"Over drawn answers, accuracy moves by {row.estimate:+} points in {row.model}"
        f" ({_problems(row.n, planned[row.id])})."
        for row in drawn
    ]
    return [*sentences, *_ruled_out({"single": greedy, "drawn": drawn})]


def _problems(n: int, planned: int | None) -> str:
    """Return how many problems there are, of how many that were planned."""
    of_planned = f" of {planned} planned" if planned and n < planned else ""
    return f"{n}{of_planned} problems"


def _ruled_out(points: Mapping[str, Sequence[Verdict]]) -> list[str]:
    """Return which intervals in points rule out the paper's gain, or no change at all,
    by the kind of answers; nothing without any.
    """
    gain = f"the paper's gain of {PAPERS_GAIN} points"
    nothing = "that nothing changes"
    told = []
    others = 0
    for kind, rows in points.items():
        for row in rows:
            no_gain = row.estimate.lies_below(PAPERS_GAIN)
            changed = row.estimate.lies_above(0) or row.estimate.lies_below(0)
            if no_gain and changed:
                ruled = f"both {gain} and {nothing}"
            elif no_gain:
                ruled = f"{gain}, but not {nothing}"
            elif changed:
                ruled = f"{nothing}, but not {gain}"
            else:
                others += 1
                continue
            told.append(
                f"Over {kind} answers of {row.model}, that alone rules out {ruled}."
            )
    if told and others:
        told.append("The other intervals rule out neither of the two.")
    elif others:
        told.append(f"No such interval rules out {gain}, and none rules out {nothing}.")
    return told


def _uncertain(measures: Sequence[Verdict]) -> list[str]:
    """Return which intervals lie above 0 without being a gain, or nothing."""
    above = [row for row in measures if row.estimate.lies_above(0)]
    uncertain = [row for row in above if not row.survives]
    if not uncertain:
        return []
    lie, they = ("lies", "it does") if len(uncertain) == 1 else ("lie", "they do")
    return [
        f"Of the {in_words(len(measures))} intervals that could show a gain,"
        f" {in_words(len(uncertain))} {lie} above 0, but {they} not stand once all"
        " verdicts are corrected for their number (Holm)."
    ]


def _limits(measures: Sequence[Verdict]) -> list[str]:
    """Return that the models are not the paper's, where none of them is."""
    papers = {name for claim in load_claims() for name in claim.paper}
    if papers & set(models_of(measures)):
        return []
    return ["None of these models is one of the paper's."]


def _the(verdicts: Sequence[Verdict]) -> str:
    """Return of which models some verdicts are, as far as their number goes."""
    return f"{in_words(len(verdicts))} {_noun(len(verdicts))}"


def _noun(count: int) -> str:
    return "model" if count == 1 else "models"


def _percent(values: pd.Series) -> str:
    low, high = f"{values.min():.0f}", f"{values.max():.0f}"
    return f"{low} %" if low == high else f"{low} to {high} %"
