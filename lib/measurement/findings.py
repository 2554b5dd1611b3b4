"""What notebooks 01, 02 and 04 found: from their tables to the rows that they publish and the sentences they end with.

Rows have the columns of the table that a run ends with: figure, model, n, what was found, and what the paper says.
"""

from collections.abc import Hashable

import pandas as pd

from lib.measurement.tables import LEVEL, count_heads
from lib.statistics import told

MOVED = ["near zero", "L1", "L2", "variance"]  # what the paper says moves: the first falls, the others rise
FITS = 0.9  # the R2 from which on one λ and one σ are said to describe the new outputs


def drawn_heads_rows(heads: pd.DataFrame) -> list[dict]:
    """Return a row per figure and model of drawn heads: the range of λ."""
    rows = []
    for (figure, model), part in heads.groupby(["figure", "model"], sort=False):
        found = f"λ {part['lambda'].min():.2f} to {part['lambda'].max():.2f}", "every head lower with slashes"
        rows += [row | {"lambda": part["lambda"].tolist()} for row in _rows(model, 1, {figure: found})]
    return rows


def drawn_heads_sentences(heads: pd.DataFrame) -> list[str]:
    """Say per model on how many of the drawn heads the original tokens receive less."""
    sentences = []
    for model, part in heads.groupby("model", sort=False):
        lower, drawn = int((part["lambda"] < 1).sum()), len(part)
        text = f"{model}: with the slashes the original tokens receive less on {lower} of {drawn} drawn heads"
        against = f" and no less on {drawn - lower}, where the paper says every head"
        sentences.append(text + (", as the paper says of every head." if lower == drawn else f"{against}."))
    return sentences


def counted_layers(heads: pd.DataFrame, layers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model, condition and layer: mean λ over heads, and heads surely below and above 1."""
    return count_heads(heads).merge(layers[layers.measure == "lambda"], on=["model", "condition", "layer"])


def later_layers(heads: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model and condition: heads surely below and above 1 in all layers after the first."""
    later = count_heads(heads[heads.layer > 1]).groupby(["model", "condition"], sort=False)
    return later[["below", "above", "heads"]].sum().reset_index().assign(n=int(heads.n.iloc[0]))


def effect_rows(counted: pd.DataFrame, span: pd.DataFrame, causes: pd.DataFrame) -> list[dict]:
    """Return the rows of notebook 02, four per model, from the tables of layers, of the inserted span and of causes."""
    rows = []
    for model, part in counted.groupby("model", sort=False):
        mean = part.set_index(["condition", "layer"])["mean"]
        flat, share = _flatness(span[span.model == model]), _shares(causes, model)
        by_layer = ", ".join(f"L{layer} {value:.2f}" for layer, value in mean["mless"].items())
        found = {
            "fig09": (f"λ {by_layer}", "regular in layer 1 only"),
            "fig10_right": (f"L1 λ: mless {mean['mless', 1]:.2f}, mful {mean['mful', 1]:.2f}", "Mful acts like Mless"),
            "fig11": (f"L1 spread: mless {flat['mless']:.2f}, random {flat['random']:.2f}", "random more diverse"),
            "causes": (f"terms {share['terms']:.0%}, distance {share['distance']:.0%} of log λ", "(not separated)"),
        }
        rows += [row | {"lambda": mean["mless"].tolist()} for row in _rows(model, part.n.iloc[0], found)]
    return rows


def _rows(model: Hashable, n: int, found: dict[str, tuple[str, str]]) -> list[dict]:
    """Return a row per figure: what was found, and what the paper says."""
    return [
        {"figure": figure, "model": model, "n": int(n), "found": text, "paper": paper}
        for figure, (text, paper) in found.items()
    ]


def dilution_sentences(counted: pd.DataFrame, later: pd.DataFrame) -> list[str]:
    """Say how many heads the slashes dilute, in each first layer and in all later ones."""
    sentences = []
    for row in counted[counted.condition == "mless"].itertuples():
        text = f"{row.model}, layer {row.layer}: the slashes surely dilute {row.below} of {row.heads} heads"
        sentences.append(f"{text} and surely strengthen {row.above}; mean λ {row.mean:.2f} (n = {row.n}).")
    for row in later[later.condition == "mless"].itertuples():
        text = f"{row.model}, all later layers that were loaded: they surely dilute {row.below} of {row.heads} heads"
        sentences.append(f"{text} and surely strengthen {row.above} (n = {row.n}).")
    return sentences


def span_sentences(span: pd.DataFrame) -> list[str]:
    """Say whether a random sentence's tokens receive more uneven attention in layer 1 than the slashes do."""
    sentences = []
    for model, part in span.groupby("model", sort=False):
        flat = _flatness(part)
        more = "more uneven" if flat["random"] > flat["mless"] else "no more uneven"
        numbers = f"coefficient of variation {flat['random']:.2f} against {flat['mless']:.2f}"
        text = f"{model}, layer 1: a random sentence receives {more} attention than slashes do"
        sentences.append(f"{text} ({numbers}).")
    return sentences


def _flatness(span: pd.DataFrame) -> pd.Series:
    """Return by condition the coefficient of variation in layer 1, of one model."""
    return span[(span.layer == 1) & (span.measure == "flatness")].set_index("condition")["mean"]


def cause_sentences(causes: pd.DataFrame) -> list[str]:
    """Say which of the two causes alone gives more of the dilution of layer 1."""
    sentences = []
    for model in causes.model.unique():
        share = _shares(causes, model)
        larger = "the enlarged denominator" if share["terms"] > share["distance"] else "the distance"
        numbers = f"of log λ, added terms alone give {share['terms']:.0%}, distance alone {share['distance']:.0%}"
        sentences.append(f"{model}, layer 1: the dilution comes from {larger} ({numbers}).")
    return sentences


def _shares(causes: pd.DataFrame, model: Hashable) -> pd.Series:
    return causes[causes.model == model].set_index("cause")["share"]


def affine_sentences(affine: pd.DataFrame) -> list[str]:
    """Say whether new = λ · old + σ describes the outputs of layer 1's heads."""
    sentences = []
    found = affine[affine.measure.str.startswith("R2 of lambda")]
    for row, fits in zip(found.itertuples(), found.low > FITS, strict=True):
        describes = "describe" if fits else "do not describe"
        text = f"one λ and one σ per prompt and head {describes} the outputs of layer 1 with slashes"
        sentences.append(f"{row.model}: {text} (R² {told(row.mean, row.low, row.high)}, n = {row.n}).")
    return sentences


def activation_rows(changes: pd.DataFrame, classes: pd.DataFrame) -> list[dict]:
    """Return the rows of notebook 04, two per model, from the tables of changes and of classes of tokens."""
    rows = []
    for model, part in _first(changes, "mless").groupby("model", sort=False):
        apart = _apart(classes, model)
        texts = ", ".join(f"{label} {value:+.1f}" for label, value in apart["against others"].items())
        found = {
            "fig04": (f"layer 1, mless: {_ratios(part)}", "near zero falls, the rest rises"),
            "fig07": (f"near zero against others: {texts} points", "all higher"),
        }
        rows += _rows(model, part.n.iloc[0], found)
    return rows


def change_sentences(changes: pd.DataFrame) -> list[str]:
    """Say of the slashes and of ARM whether they move layer 1's activations away from zero as the paper says."""
    sentences = []
    for condition in ("mless", "arm"):
        for model, part in _first(changes, condition).groupby("model", sort=False):
            ends = part.set_index("measure").loc[MOVED]
            moved = ends.high.iloc[0] < 1 and (ends.low.iloc[1:] > 1).all()
            verdict = "surely moves activations away from zero" if moved else "does not move all four as the paper says"
            sentences.append(f"{model}, layer 1: {condition} {verdict} ({_ratios(part)}, n = {part.n.iloc[0]}).")
    return sentences


def rising_layers(changes: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model, condition and measure: in how many layers it surely rises and falls, and of how many."""
    sure = changes.p < LEVEL
    counted = changes.assign(rises=sure & (changes.ratio > 1), falls=sure & (changes.ratio < 1), layers=1)
    groups = counted.groupby(["model", "condition", "measure"], sort=False)
    return groups[["rises", "falls", "layers"]].sum().reset_index()


def class_sentences(classes: pd.DataFrame) -> list[str]:
    """Say which classes of tokens surely have more and surely have fewer near-zero activations than others."""
    sentences = []
    for model in classes.model.unique():
        apart = _apart(classes, model)
        more, fewer = apart[apart["against low"] > 0].index, apart[apart["against high"] < 0].index
        text = f"more near-zero activations than others surely have: {', '.join(more) or 'none'}"
        sentences.append(f"{model}, layer 1: {text}; fewer: {', '.join(fewer) or 'none'}.")
    return sentences


def likeness_sentences(alike: pd.DataFrame) -> list[str]:
    """Say how like the slashes' change of layer 1 each other change is."""
    return [
        f"{row.model}: {row.condition} changes the histogram of layer 1 as slashes do with cosine {row.shape:.2f}, "
        f"single activations with {row.elements:.2f} (n = {row.n})."
        for row in alike[alike.layer == 1].itertuples()
    ]


def _first(changes: pd.DataFrame, condition: str) -> pd.DataFrame:
    return changes[(changes.layer == 1) & (changes.condition == condition)]


def _ratios(part: pd.DataFrame) -> str:
    ratio = part.set_index("measure").ratio
    return ", ".join(f"{name} ×{ratio[name]:.2f}" for name in MOVED)


def _apart(classes: pd.DataFrame, model: Hashable) -> pd.DataFrame:
    """Return a model's classes without insertion, by name, each against the others."""
    part = classes[(classes.model == model) & (classes.condition == "none") & (classes["class"] != "others")]
    return part.set_index("class")
