"""Sentences say what their tables say, counted by hand."""

import pandas as pd

from lib.measurement import sentences


def test_drawn_heads_are_counted():
    table = pd.DataFrame({"λ": [0.5, 1.0, 0.9], "slash / original": [0.5, 1.2, 1.1]})
    assert sentences.drawn_heads_sentence(table) == (
        "The original tokens receive less with the slashes in 2 of the 3 heads that are"
        " drawn (λ below 1). A slash receives less than an original token in 1 of them."
    )


def test_heads_of_layer_1_count_by_their_whole_interval_under_slashes():
    rows = [
        (1, "mless", 0.5, 0.6),
        (1, "mless", 0.9, 1.1),
        (1, "mless", 1.1, 1.2),
        (2, "mless", 0.5, 0.6),
        (1, "mful", 0.5, 0.6),
    ]
    table = pd.DataFrame(rows, columns=["layer", "condition", "low", "high"])
    text = sentences.heads_sentence(table)
    assert "below 1 in 1 of 3 heads of layer 1, and above 1 in 1." in text


def test_later_heads_are_added_up_over_models():
    counts = pd.DataFrame(
        {
            "condition": ["mless", "mless", "mful"],
            "below": [700, 20, 9],
            "above": [3, 4, 9],
            "heads": [1000, 100, 9],
        }
    )
    text = sentences.later_heads_sentence(counts)
    assert "below 1 in 720 of 1,100 heads under the slashes, and above 1 in 7." in text
    assert sentences.later_heads_sentence(counts[:0]) == ""


def layers(**means):
    """Return λ of layer 1 of two models by condition."""
    rows = [
        {"model": model, "condition": condition, "mean": mean}
        for condition, pair in means.items()
        for model, mean in zip("ab", pair, strict=True)
    ]
    return pd.DataFrame(rows).assign(layer=1, measure="lambda")


def test_a_sentence_dilutes_as_much_where_its_mean_is_no_higher():
    text = sentences.length_sentence(layers(mless=(0.8, 0.8), random=(0.7, 0.9)))
    assert text.endswith("in 1 of 2 models.")
    assert sentences.length_sentence(layers(mless=(0.8, 0.8))) == ""


def test_causes_are_told_by_the_range_of_the_models():
    causes = pd.DataFrame(
        {
            "cause": ["both", "terms", "distance", "terms", "distance"],
            "lambda": [0.5, 0.8, 1.02, 0.9, 1.02],
        }
    )
    assert sentences.causes_sentence(causes) == (
        "λ is 0.80 to 0.90 where the longer softmax acts alone (terms), and 1.02 where"
        " only the distance grows (distance)."
    )


def changes(**by_model):
    """Return ratios by measure: those that surely rise have an r, those that fall an f,
    in the order near zero, L1, L2, variance.
    """
    ends = {"r": (1.1, 1.2), "f": (0.8, 0.9), "-": (0.9, 1.1)}
    rows = []
    for model, letters in by_model.items():
        measures = ("near zero", "L1", "L2", "variance")
        for measure, letter in zip(measures, letters, strict=True):
            low, high = ends[letter]
            row = {"model": model, "measure": measure, "low": low, "high": high}
            rows.append(row | {"layer": 1, "condition": "mless"})
    return pd.DataFrame(rows)


def test_models_stand_by_what_falls_and_what_rises():
    table = sentences.redistribution_table(
        changes(both="frrr", rises="-rrr", falls="frr-", neither="rfff", too="frrf")
    )
    assert table.to_numpy().tolist() == [
        ["near-zero activations fall", "both", "falls, too"],
        ["they do not fall", "rises", "neither"],
    ]
    only = sentences.redistribution_table(changes(both="frrr"))
    assert only.iloc[1].tolist() == ["they do not fall", "none", "none"]
