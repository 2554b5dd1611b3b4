"""What tables of measurements say, a sentence each: what holds, and in how many heads
or models.
"""

import pandas as pd

# Of the table of the first MLP: what the paper says falls, and what it says rises.
FALLING = "near zero"
RISING = ("L1", "L2", "variance")


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
        f"λ is {_from_to(terms)} where the longer softmax acts alone (terms), and"
        f" {_from_to(distance)} where only the distance grows (distance)."
    )


def redistribution_table(changes: pd.DataFrame) -> pd.DataFrame:
    """Return which models do what the paper says of the first MLP, in two ways.

    A row says whether near-zero activations surely become fewer with slashes, a column
    whether L1, L2 and variance all surely rise. changes: as `changes_table` has them.
    """
    first = changes[(changes.layer == 1) & (changes.condition == "mless")]
    cells: dict[tuple[bool, bool], list[str]] = {}
    for model, rows in first.groupby("model", sort=False):
        own = rows.set_index("measure")
        fewer = bool(own.high[FALLING] < 1)
        larger = bool((own.low[list(RISING)] > 1).all())
        cells.setdefault((fewer, larger), []).append(str(model))
    columns = {"L1, L2 and variance rise": True, "they do not all rise": False}
    rows = {"near-zero activations fall": True, "they do not fall": False}
    table = [
        {"with slashes": row}
        | {
            column: ", ".join(cells.get((fewer, larger), ["none"]))
            for column, larger in columns.items()
        }
        for row, fewer in rows.items()
    ]
    return pd.DataFrame(table)


def _from_to(values: pd.Series) -> str:
    low = f"{values.min():.2f}"
    high = f"{values.max():.2f}"
    return low if low == high else f"{low} to {high}"
