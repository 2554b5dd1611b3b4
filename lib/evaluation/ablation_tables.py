"""What ablations show: how far the log-likelihood of the reference solution, or the
entropy of its next token, moves between two conditions, over the problems that have
both.

All take `lib.evaluation.scores(profile, "ablations")` and return a row per model and
contrast, with the 95 % interval over problems.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from lib.evaluation.answer_tables import mean_and_bounds
from lib.evaluation.records import WINDOWS
from lib.prompts.conditions import NO_LAYER, parse_condition

CHANGE_INTERVAL = ["change", "low", "high"]
FIRST_LAYERS = "layers 1 to k see the slashes"
OTHER_LAYERS = "the layers after k see the slashes"


def with_likelihoods(ablations: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return the ablations and, of the same models and problems, the likelihoods of
    reference solutions under further conditions.

    Problems without ablations are left out: they differ in their effects, so that
    contrasts of different problems could not be compared.
    """
    same = ablations[["model", "problem_id"]].drop_duplicates()
    solutions = scores[scores.target == "solution"].merge(same)
    every = pd.concat([ablations, solutions], ignore_index=True)
    return every.drop_duplicates(["model", "condition", "problem_id"])


def contrast_table(
    ablations: pd.DataFrame, contrasts: Mapping[str, tuple[str, str]]
) -> pd.DataFrame:
    """Return the change of log p in nats for each contrast: a label, with the condition
    whose log p is reduced by that of the other.
    """
    return _changes(ablations, ablations.nats, contrasts)


def depth_table(ablations: pd.DataFrame) -> pd.DataFrame:
    """Return the change of log p in nats against a gap where layers 1 to k alone see
    the slashes, and where the layers after k alone see them, by k.

    After layer 0 all layers see them.
    """
    contrasts = {}
    visible_to = {}
    for name in ablations.condition.unique():
        condition = parse_condition(name)
        view = condition.view
        if condition.inserted != "mless" or view == NO_LAYER or view.silent:
            continue
        if condition.length or condition.position or condition.arm:
            continue
        contrasts[name] = (name, "gap")
        if view.last is None:
            visible_to[name] = (OTHER_LAYERS, view.first - 1)
        else:
            visible_to[name] = (FIRST_LAYERS, view.last)
    table = contrast_table(ablations, contrasts)
    table["visible to"] = [visible_to[name][0] for name in table.contrast]
    table["k"] = [visible_to[name][1] for name in table.contrast]
    models = list(dict.fromkeys(table.model))
    return table.sort_values(
        ["model", "visible to", "k"],
        key=lambda column: (
            column.map(models.index) if column.name == "model" else column
        ),
        ignore_index=True,
    )


def entropy_table(ablations: pd.DataFrame, conditions: Sequence[str]) -> pd.DataFrame:
    """Return the change of the next token's mean entropy against none in nats, and the
    mean `divergence` of its distribution from none's (Kullback-Leibler, in nats), by
    tokens of the solution and by condition.
    """
    contrasts = {name: (name, "none") for name in conditions}
    tables = []
    for number, tokens in enumerate(WINDOWS):
        table = _changes(ablations, ablations.entropy.str[number], contrasts)
        values = ablations.assign(divergence=ablations.divergence.str[number])
        means = values.groupby(["model", "condition"]).divergence.mean()
        pairs = zip(table.model, table.contrast, strict=True)
        table["divergence"] = [means[pair] for pair in pairs]
        tables.append(table.assign(tokens=tokens))
    return pd.concat(tables, ignore_index=True).rename(
        columns={"contrast": "condition"}
    )


def _changes(
    ablations: pd.DataFrame,
    values: pd.Series,
    contrasts: Mapping[str, tuple[str, str]],
) -> pd.DataFrame:
    """Return a row per contrast and model that has it, with the mean change."""
    rows = ablations[["model", "condition", "problem_id"]].assign(
        value=values.astype(float)
    )
    by_model = {
        model: of_model.pivot(index="problem_id", columns="condition", values="value")
        for model, of_model in rows.groupby("model", sort=False)
    }
    changes = []
    for label, (more, less) in contrasts.items():
        for model, table in by_model.items():
            if more not in table or less not in table:
                continue
            differences = (table[more] - table[less]).dropna()
            if differences.empty:
                continue
            row = {"model": model, "contrast": label, "n": len(differences)}
            changes.append(row | mean_and_bounds(CHANGE_INTERVAL, differences, "mean"))
    return pd.DataFrame(changes, columns=["model", "contrast", "n", *CHANGE_INTERVAL])
