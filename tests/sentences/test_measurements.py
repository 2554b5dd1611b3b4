"""Sentences say what their tables say, counted by hand."""

import pandas as pd

from lib.sentences import measurements


def test_drawn_heads_are_counted():
    table = pd.DataFrame({"λ": [0.5, 1.0, 0.9], "slash / original": [0.5, 1.2, 1.1]})
    assert measurements.drawn_heads_sentence(table) == (
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
    text = measurements.heads_sentence(table)
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
    text = measurements.later_heads_sentence(counts)
    assert "below 1 in 720 of 1,100 heads under the slashes, and above 1 in 7." in text
    assert measurements.later_heads_sentence(counts[:0]) == ""


def layers(**means):
    """Return λ of layer 1 of two models by condition."""
    rows = [
        {"model": model, "condition": condition, "mean": mean}
        for condition, pair in means.items()
        for model, mean in zip("ab", pair, strict=True)
    ]
    return pd.DataFrame(rows).assign(layer=1, measure="lambda")


def test_a_sentence_dilutes_as_much_where_its_mean_is_no_higher():
    text = measurements.length_sentence(layers(mless=(0.8, 0.8), random=(0.8, 0.9)))
    assert text.endswith("in 1 of 2 models.")
    assert measurements.length_sentence(layers(mless=(0.8, 0.8))) == ""


def test_causes_are_told_by_the_range_of_the_models():
    causes = pd.DataFrame(
        {
            "cause": ["both", "terms", "distance", "terms", "distance"],
            "lambda": [0.5, 0.8, 1.02, 0.9, 1.02],
        }
    )
    assert measurements.causes_sentence(causes) == (
        "λ is 0.80 to 0.90 where the longer softmax acts alone (terms), and 1.02 where"
        " only the distance grows (distance)."
    )
