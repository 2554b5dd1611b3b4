"""Tables of answers and likelihoods: accuracy in %, each condition compared with none
in points, graders, token limits, and log-likelihoods of solutions. Tables of several
samples are in `pass_at_k_tables`.

All functions take the answers of one part (`lib.evaluation.answers`) or
`lib.evaluation.scores`; all intervals are those of `lib.statistics`, over problems.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from lib.files.atomic import read_yaml
from lib.paths import DATA
from lib.statistics.intervals import POINTS, Interval, interval
from lib.statistics.p_values import holm, smallest_level

GRADERS = {
    "correct": "this project's grader",
    "worked_out": "this project's, worked out only",
    "correct_exact": "exact match after normalisation",
    "correct_authors_on_completion": "authors' rule, completion only",
    "correct_authors": "authors' rule as published, with our prompt",
}
GROUP_COLUMNS = ["model", "condition"]
PAPER = DATA / "paper.yaml"  # the paper's numbers
ACCURACY_INTERVAL = ["accuracy", "low", "high"]
RATE_COLUMNS = [  # shares of a group's answers in %, by `_rates`
    "no_box",
    "truncated",
    "run_on",
    "ungraded",
    "unreadable_gold",
    "restated",
]
EFFECT_INTERVAL = ["effect", "effect_low", "effect_high"]
EFFECT_COLUMNS = [*EFFECT_INTERVAL, "p_value", "only_none", "only_this"]
PAIRED_COLUMNS = [*EFFECT_COLUMNS, "p_holm"]
LENGTH_INTERVAL = ["tokens", "tokens_low", "tokens_high"]
NAT_COLUMNS = ["target", "model", "condition", "n", "nats", *EFFECT_INTERVAL]
SHOWN_COLUMNS = [  # by commands
    *GROUP_COLUMNS,
    "n",
    *ACCURACY_INTERVAL,
    *RATE_COLUMNS,
    *EFFECT_INTERVAL,
    "p_value",
]


def shown_columns(table: pd.DataFrame) -> list[str]:
    """Return the columns of `summarise` that a command prints, without rates that are 0
    in every row.
    """
    always = set(SHOWN_COLUMNS) - set(RATE_COLUMNS)
    return [name for name in SHOWN_COLUMNS if name in always or table[name].any()]


def answer_groups(
    answers: pd.DataFrame,
) -> dict[tuple[str, str], pd.DataFrame]:
    """Return (model, condition) -> answers; models and conditions in order of
    appearance, none first.
    """
    by_condition: dict[Any, pd.DataFrame] = {}
    for model, of_model in answers.groupby("model", sort=False):
        ordered = of_model.sort_values(
            "condition", key=lambda names: names != "none", kind="stable"
        )
        for condition, group in ordered.groupby("condition", sort=False):
            by_condition[model, condition] = group
    return by_condition


def right_by_sample(group: pd.DataFrame, by: str = "right") -> pd.DataFrame:
    """Return 1 or 0 (problems, samples) of one model and condition, by `right` or
    another column; NaN for a missing sample.
    """
    # Models with the same name may answer the same problems.
    first = group.drop_duplicates(["problem_id", "sample"])
    table = first.pivot(index="problem_id", columns="sample", values=by)
    in_order = table.loc[group["problem_id"].unique()]
    return in_order.astype(float)


def accuracy_by_problem(group: pd.DataFrame) -> pd.Series:
    """Return the accuracy of each problem over its samples, in %, of one model and
    condition.
    """
    return POINTS * right_by_sample(group).mean(axis=1)


def rows_of_groups(
    answers: pd.DataFrame,
) -> Iterator[tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]]:
    """Yield for each model and condition the first fields of its row, its answers, and
    `right_by_sample`.
    """
    for (model, condition), group in answer_groups(answers).items():
        values = right_by_sample(group)
        n, samples = values.shape
        row = {"model": model, "condition": condition, "n": n, "samples": samples}
        yield row, group, values


def mean_and_bounds(
    names: Sequence[str], by_problem: pd.Series, kind: str = "share"
) -> dict[str, float]:
    """Return the mean of a Series by problem (of a kind of `lib.statistics`) and the
    bounds of its interval, under three names.
    """
    mean = interval(by_problem, by_problem.index, kind)
    return dict(zip(names, (mean.estimate, mean.low, mean.high), strict=True))


def summarise(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model and condition: n, samples, accuracy with its interval,
    RATES, and PAIRED compared with none.

    `p_value` is the smallest level at which the effect's interval excludes 0, and
    `p_holm` corrects it for all rows. PAIRED are NaN if there are no answers to pair.
    """
    rows = []
    of_none = {}
    for row, group, values in rows_of_groups(answers):
        by_problem = POINTS * values.mean(axis=1)
        row |= mean_and_bounds(ACCURACY_INTERVAL, by_problem)
        row |= _rates(group)
        if row["condition"] == "none":
            of_none[row["model"]] = values
        elif row["model"] in of_none:
            row |= _paired(of_none[row["model"]], values)
        rows.append(row)
    columns = [
        *GROUP_COLUMNS,
        "n",
        "samples",
        *ACCURACY_INTERVAL,
        *RATE_COLUMNS,
        *PAIRED_COLUMNS,
    ]
    table = pd.DataFrame(rows, columns=columns)
    tested = table["p_value"].dropna()
    corrected = pd.Series(holm(tested), tested.index)
    return table.assign(p_holm=corrected)


def _rates(group: pd.DataFrame) -> dict[str, float]:
    """Return RATES of one model and condition."""
    method = group["method"]
    has_no_box = method.isin(("no-box", "empty-box"))
    was_cut = group["finish_reason"] != "stop"
    is_ungraded = method.isin(("timeout", "crash", "refused", "unreadable-answer"))
    is_restated = group["correct"] & ~group["worked_out"]
    answers = {
        "no_box": has_no_box,
        "truncated": was_cut,
        "run_on": group["run_on"],
        "ungraded": is_ungraded,
        "unreadable_gold": method.eq("unreadable-gold"),
        "restated": is_restated,
    }
    return {name: POINTS * float(answers[name].mean()) for name in RATE_COLUMNS}


def _paired(none: pd.DataFrame, treated: pd.DataFrame) -> dict[str, float]:
    """Return COMPARED of answers (problems, samples) under one condition and none, over
    the problems that both answered.
    """
    differences = (treated - none).reindex(none.index).dropna(how="all")
    if differences.empty:
        return {}
    by_problem = POINTS * differences.mean(axis=1)
    changes = differences.to_numpy()

    def leaves_out_zero(mean: Interval) -> bool:
        return mean.low * mean.high > 0

    row = mean_and_bounds(EFFECT_INTERVAL, by_problem, "difference")
    row["p_value"] = smallest_level(
        leaves_out_zero, by_problem, by_problem.index, "difference"
    )
    row["only_none"] = int((changes < 0).sum())
    row["only_this"] = int((changes > 0).sum())
    return row


def graders(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model, condition and grader: accuracy, disagreements with this
    project's grader, and effect.
    """
    by_condition = answer_groups(answers).values()
    sizes = [len(group) for group in by_condition]
    tables = []
    for field, name in GRADERS.items():
        different = [(group[field] != group["correct"]).sum() for group in by_condition]
        table = summarise(answers.assign(right=answers[field]))
        tables.append(table.assign(grader=name, n=sizes, disagree=different))
    # Keep the graders of a group together.
    table = pd.concat(tables).sort_index(kind="stable", ignore_index=True)
    columns = ["grader", "n", "accuracy", "disagree"]
    return table[[*GROUP_COLUMNS, *columns, *EFFECT_INTERVAL, "p_value"]]


def beside_the_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracies of `summarise`, followed by those of the paper's Fig. 10,
    which have no intervals; the column `source` distinguishes them.
    """
    own = table.assign(source="this run")
    reported = pd.DataFrame(read_yaml(PAPER)["fig10"])
    reported = reported.assign(source="the paper", n=500)
    both = pd.concat([own, reported], ignore_index=True)
    return both[["source", "model", "condition", "n", *ACCURACY_INTERVAL]]


def varied_fillers(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row of `summarise` for each filler that the paper varies in Fig. 8.

    `varied` names the varied property, `label` the filler in the figure, and `reported`
    the paper's number for Qwen2.5-Math-7B, if there is one.
    """
    points = pd.DataFrame(read_yaml(PAPER)["fig08"])
    return points.merge(table, on="condition").sort_values("model", kind="stable")


def with_token_limit(answers: pd.DataFrame, limit: int) -> pd.DataFrame:
    """Return answers as they would be graded with a lower token limit: a longer answer
    counts as wrong.
    """
    is_cut = answers["completion_tokens"].astype(int) > limit
    return answers.assign(
        right=answers["right"].astype(bool) & ~is_cut,
        finish_reason=answers["finish_reason"].mask(is_cut, "length"),
    )


def change_of_length(answers: pd.DataFrame) -> dict[str, float]:
    """Return the change in tokens that slashes cause in answers that end under both
    conditions, with its interval over problems and their number; only the number if it
    is 0.
    """
    ended = answers[answers["finish_reason"] == "stop"]
    tokens = ended.pivot(
        index="problem_id", columns="condition", values="completion_tokens"
    ).reindex(columns=["none", "mless"])
    change = (tokens["mless"] - tokens["none"]).astype(float).dropna()
    if change.empty:
        return {"ended": 0}
    return {"ended": len(change)} | mean_and_bounds(LENGTH_INTERVAL, change, "mean")


def by_limit(answers: pd.DataFrame, limits: Sequence[int]) -> pd.DataFrame:
    """Return a row per model and limit, for the greedy answers under none and mless of
    the models that have both.
    """
    rows = []
    for model, of_model in answers.groupby("model", sort=False):
        if not {"none", "mless"} <= set(of_model["condition"]):
            continue
        for limit in limits:
            cut = with_token_limit(of_model, limit)
            table = summarise(cut).set_index("condition")
            row = {"model": model, "limit": limit, "n": table["n"]["none"]}
            for condition in ("none", "mless"):
                row[condition] = table["accuracy"][condition]
                row[f"cut_{condition}"] = table["truncated"][condition]
            row |= table[EFFECT_COLUMNS].to_dict("index")["mless"]
            rows.append(row | change_of_length(cut))
    return pd.DataFrame(rows)


def nat_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return a row per target, model and condition: the mean of log p in nats, and the
    effect, which is the mean difference per problem to none (or else to the first
    condition).

    n is the number of problems with both; there is no row if it is 0.
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
