"""Tabulate how log-likelihoods of texts differ between conditions.

`nat_table` compares each condition with `none`, for each kind of text. The other tables
take `reproduction.evaluation.scores(profile, "ablations")`, whose conditions show the
slashes, for example, to some layers only. They have a row per model and contrast (a
pair of conditions): the mean difference over the problems scored under both, with its
95 % interval (low, high) and their number n.
"""

from collections.abc import Mapping

import pandas as pd

from lib.prompts.conditions import NO_LAYER, parse_condition
from reproduction.evaluation.answer_tables import (
    EFFECT_INTERVAL,
    answer_groups,
    mean_and_bounds,
)

NAT_COLUMNS = ["target", "model", "condition", "n", "nats", *EFFECT_INTERVAL]
CHANGE_INTERVAL = ["change", "low", "high"]
FIRST_LAYERS = "layers 1 to k see the slashes"
OTHER_LAYERS = "the layers after k see the slashes"


def nat_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean log-likelihood and its change under each condition, in nats, in a
    row per target (solution, answer or draw), model and condition.

    nats is the mean over all problems scored under the condition. The effect is the
    mean difference per problem to `none`, or to the first condition if `none` was not
    scored. n is the number of problems scored under both; there is no row if it is 0.
    """
    rows = []
    for target, of_target in scores.groupby("target", sort=False):
        first_of: dict[str, pd.Series] = {}  # by model
        for (model, condition), group in answer_groups(of_target).items():
            # The mean over a problem's answers, if there are several.
            by_problem = group.groupby("problem_id")["nats"].mean()
            first = first_of.setdefault(model, by_problem)
            differences = (by_problem - first).dropna()
            if differences.empty:
                continue
            row = {"target": target, "model": model, "condition": condition}
            row["n"] = len(differences)
            row["nats"] = by_problem.mean()
            rows.append(row | mean_and_bounds(EFFECT_INTERVAL, differences, "mean"))
    return pd.DataFrame(rows, columns=NAT_COLUMNS)


def nats_by_condition(scores: pd.DataFrame, target: str = "solution") -> pd.DataFrame:
    """Return the log-likelihoods of a model's texts of one kind, in a row per problem
    and a column per condition.
    """
    rows = scores[scores["target"] == target]
    return rows.pivot(index="problem_id", columns="condition", values="nats")


def with_likelihoods(ablations: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `ablations`, followed by those rows of `scores` that have the
    reference solutions of the same models and problems under further conditions.

    Problems without ablations are left out, because effects differ between problems, so
    that contrasts over different problems could not be compared.
    """
    same = ablations[["model", "problem_id"]].drop_duplicates()
    both = pd.concat([ablations, scores.merge(same)], ignore_index=True)
    solutions = both[both["target"] == "solution"]
    return solutions.drop_duplicates(["model", "condition", "problem_id"])


def contrast_table(
    ablations: pd.DataFrame, contrasts: Mapping[str, tuple[str, str]]
) -> pd.DataFrame:
    """Return the mean difference in log-likelihood between the conditions of each
    contrast, in nats, for each model that was scored under both.

    contrasts: by label, the pair (treatment, reference); the reference is subtracted.
    Either may be a sum, such as "mless + space", for differences of differences.
    """
    by_model = {
        model: nats_by_condition(of_model)
        for model, of_model in ablations.groupby("model", sort=False)
    }
    changes = []
    for label, pair in contrasts.items():
        treatment, reference = (sides.split(" + ") for sides in pair)
        for model, table in by_model.items():
            if not {*treatment, *reference} <= {*table}:
                continue
            treated = table[treatment].sum(axis=1, skipna=False)
            untreated = table[reference].sum(axis=1, skipna=False)
            differences = (treated - untreated).dropna()
            if differences.empty:
                continue
            row = {"model": model, "contrast": label, "n": len(differences)}
            changes.append(row | mean_and_bounds(CHANGE_INTERVAL, differences, "mean"))
    return pd.DataFrame(changes, columns=["model", "contrast", "n", *CHANGE_INTERVAL])


def with_mean_of_models(scores: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return scores of reference solutions, followed by their means over the models on
    the problems and conditions that all of them have, as a model of this name.
    """
    solutions = scores[scores["target"] == "solution"]
    by_model = solutions.pivot(
        index=["problem_id", "condition"], columns="model", values="nats"
    )
    means = by_model.dropna().mean(axis=1).rename("nats").reset_index()
    means = means.assign(model=name, target="solution")
    return pd.concat([solutions, means], ignore_index=True)


def depth_table(ablations: pd.DataFrame) -> pd.DataFrame:
    """Return the log-likelihood if only some layers can attend to the slashes, minus
    that with a gap (no layer can), in nats.

    The column "visible to" says which layers can: layers 1 to k, or those after k (all
    layers if k is 0).
    """
    visible_to = {}
    for name in ablations.condition.unique():
        condition = parse_condition(name)
        view = condition.view
        if condition.inserted != "mless" or view == NO_LAYER or view.silent:
            continue
        if condition.length or condition.position or condition.arm:
            continue
        if view.last is None:
            visible_to[name] = (OTHER_LAYERS, view.first - 1)
        else:
            visible_to[name] = (FIRST_LAYERS, view.last)
    table = contrast_table(ablations, {name: (name, "gap") for name in visible_to})
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
