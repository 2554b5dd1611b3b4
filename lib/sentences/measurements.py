"""What tables of measurements say, a sentence each: what holds, and in how many heads
or models.
"""

import pandas as pd

from lib.sentences.numbers import range_of


def drawn_heads_sentence(table: pd.DataFrame) -> str:
    """Return what the heads of a `summary_of_heads` have in common."""
    heads = len(table)
    less = int((table["λ"] < 1).sum())
    weaker = int((table["slash / original"] < 1).sum())
    return (
        f"The original tokens receive less with the slashes in {less} of the {heads}"
        f" heads that are drawn (λ below 1). A slash receives less than an original"
        f" token in {weaker} of them."
    )


def heads_sentence(by_head: pd.DataFrame) -> str:
    """Return in how many heads of layer 1 slashes surely lower λ, by `heads_table`."""
    first = by_head[(by_head.layer == 1) & (by_head.condition == "mless")]
    below = int((first.high < 1).sum())
    above = int((first.low > 1).sum())
    return (
        f"The whole interval of λ lies below 1 in {below} of {len(first)} heads of"
        f" layer 1, and above 1 in {above}."
    )


def later_heads_sentence(counts: pd.DataFrame) -> str:
    """Return how λ goes in the later layers under slashes, by `count_heads`; empty
    where no later layer is loaded.
    """
    if counts.empty:
        return ""
    slashes = counts[counts.condition == "mless"]
    below = slashes.below.sum()
    above = slashes.above.sum()
    return (
        f"In the later layers λ lies surely below 1 in {below} of"
        f" {slashes.heads.sum():,} heads under the slashes, and above 1 in {above}."
    )


def length_sentence(by_layer: pd.DataFrame) -> str:
    """Return in how many models a random sentence dilutes layer 1 as slashes do, by
    `layers_table`; empty where the profile has none.
    """
    first = by_layer[(by_layer.layer == 1) & (by_layer.measure == "lambda")]
    means = first.pivot(index="model", columns="condition", values="mean")
    if not {"mless", "random"} <= set(means):
        return ""
    as_much = int((means["random"] <= means["mless"]).sum())
    return (
        "An ordinary sentence as long lowers λ of layer 1 at least as much as the"
        f" slashes do in {as_much} of {len(means)} models."
    )


def causes_sentence(causes: pd.DataFrame) -> str:
    """Return what the longer softmax and the distance do by themselves, by
    `causes_table`.
    """
    terms = causes["lambda"][causes.cause == "terms"]
    distance = causes["lambda"][causes.cause == "distance"]
    return (
        f"λ is {range_of(terms)} where the longer softmax acts alone (terms), and"
        f" {range_of(distance)} where only the distance grows (distance)."
    )
