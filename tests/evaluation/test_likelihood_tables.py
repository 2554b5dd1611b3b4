"""Tables of log-likelihoods, from hand-made scores whose changes are known."""

import evidence
import pandas as pd
import pytest

from reproduction.evaluation import likelihood_tables
from reproduction.evaluation.likelihood_tables import FIRST_LAYERS, OTHER_LAYERS


def scores(nats, model="m", target="solution"):
    """Return a row for each condition and problem.

    nats: by condition, the log-likelihoods of the problems.
    """
    rows = []
    for condition, values in nats.items():
        for number, value in enumerate(values):
            row = {"model": model, "condition": condition, "nats": value}
            row["target"] = target
            row["problem_id"] = f"p{number}"
            rows.append(row)
    return pd.DataFrame(rows)


def test_a_contrast_is_over_the_problems_that_have_both_conditions():
    table = scores({"none": [-9.0, -8.0, -7.0], "gap": [-10.0, -10.0]})
    first = scores({"none": [-1.0], "gap": [-2.0]}, model="n")
    other = scores({"none": [-1.0]}, model="without a gap")
    rows = likelihood_tables.contrast_table(
        pd.concat([first, table, other]),
        {"a gap": ("gap", "none"), "more": ("mless", "none")},
    )
    assert rows.model.tolist() == ["n", "m"]  # in order of appearance
    _, row = rows.to_dict("records")
    assert (row["model"], row["contrast"], row["n"]) == ("m", "a gap", 2)
    assert row["change"] == -1.5
    assert row["low"] <= -1.5 <= row["high"]


def test_gold_answers_that_are_scored_too_are_no_part_of_contrasts():
    solutions = scores({"none": [-9.0, -8.0], "gap": [-10.0, -9.0]})
    answers = scores({"none": [-1.0, -1.0], "gap": [-5.0, -5.0]}, target="answer")
    both = pd.concat([solutions, answers])
    contrast = {"a gap": ("gap", "none")}
    tables = [both, likelihood_tables.with_likelihoods(both, both)]
    tables.append(likelihood_tables.with_mean_of_models(both, "mean"))
    for table in tables:
        rows = likelihood_tables.contrast_table(table, contrast)
        assert set(rows.change) == {-1.0}
    assert set(likelihood_tables.depth_table(both).change) == set()


def test_a_contrast_of_sums_is_a_difference_of_differences():
    nats = {"none": [-9.0, -8.0], "mless": [-6.0, -6.0], "space": [-5.0, -5.0]}
    table = scores(nats | {"mless-spaced": [-4.0, -5.0]})
    pair = ("mless + space", "none + mless-spaced")
    (row,) = likelihood_tables.contrast_table(table, {"glue": pair}).to_dict("records")
    assert row["change"] == ((3 - 1) + (2 - 0)) / 2
    assert row["n"] == 2


def test_the_mean_of_models_is_over_what_all_of_them_have():
    first = scores({"none": [-1.0, -2.0], "mless": [-2.0, -4.0]}, model="a")
    second = scores({"none": [-3.0, -9.0], "mless": [-3.0]}, model="b")
    both = likelihood_tables.with_mean_of_models(pd.concat([first, second]), "mean")
    pair = {"slashes": ("mless", "none")}
    table = likelihood_tables.contrast_table(both, pair).set_index("model")
    assert table.change.to_dict() == {"a": -1.5, "b": 0.0, "mean": -0.5}
    assert table.n.to_dict() == {"a": 2, "b": 1, "mean": 1}


def test_likelihoods_add_conditions_but_no_problems_to_ablations():
    ablations = scores({"none": [-9.0, -8.0], "gap": [-10.0, -9.5]})
    more = scores({"gap": [0.0] * 3, "layer-1-only": [-9.5, -9.0, 0.0]})
    more = more.assign(target="solution")
    others = more.assign(model="another")
    answers = more.assign(target="answer", condition="mless")
    every = likelihood_tables.with_likelihoods(
        ablations, pd.concat([more, others, answers])
    )
    contrasts = {"a gap": ("gap", "none"), "layer 1": ("layer-1-only", "gap")}
    table = likelihood_tables.contrast_table(every, contrasts)
    assert set(every.condition) == {"none", "gap", "layer-1-only"}
    assert table[["model", "n", "change"]].values.tolist() == [
        ["m", 2, -1.25],
        ["m", 2, 0.5],
    ]


def test_depth_rows_are_the_conditions_that_show_all_slashes_to_some_layers():
    nats = {
        "none": [-9.0, -9.0],
        "gap": [-10.0, -10.0],
        "mless": [-6.0, -6.0],
        "layers-1-to-4-only": [-9.0, -9.0],
        "layer-1-only": [-10.0, -10.0],
        "hidden-from-layers-1-to-4": [-8.0, -8.0],
        # These do not show all slashes to some of the layers, so they have no row.
        "mless:10": [0.0, 0.0],
        "mless+arm": [0.0, 0.0],
        "mless@before": [0.0, 0.0],
        "mless-last-5": [0.0, 0.0],
        "dilution": [0.0, 0.0],
        "random": [0.0, 0.0],
    }
    table = likelihood_tables.depth_table(scores(nats))
    assert table["visible to"].nunique() == 2
    found = list(zip(table["visible to"], table.k, table.change, strict=True))
    assert found == [
        (FIRST_LAYERS, 1, 0),
        (FIRST_LAYERS, 4, 1),
        (OTHER_LAYERS, 0, 4),
        (OTHER_LAYERS, 4, 2),
    ]


def test_log_likelihoods_are_compared_with_none_within_each_target():
    answers = evidence.scores(20, mless=5).assign(target="answer")
    table = likelihood_tables.nat_table(
        pd.concat([evidence.scores(30, mless=2), answers])
    )
    assert table.target.tolist() == ["solution"] * 2 + ["answer"] * 2
    assert table.n.tolist() == [30] * 2 + [20] * 2
    assert table.effect.tolist() == pytest.approx([0, 2, 0, 5])
    assert table.nats.tolist() == pytest.approx([-185.5, -183.5, -190.5, -185.5])
