"""Tabulate answers: accuracy in %, the effect of each condition in percentage points,
graders, token limits, and pass@k of several samples.

`answers` is the table of one part (`reproduction.evaluation.answers`), with a row per
completion and the column `right`. An effect is the difference to the condition `none`
on the same problems. All intervals are 95 % confidence intervals over problems
(`lib.statistics`).
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from lib.files.text_files import read_yaml
from lib.paths import DATA
from lib.statistics.intervals import POINTS, Interval, holm, interval, smallest_level
from reproduction.evaluation.rows import is_truncated
from reproduction.figures.notebook_tables import show

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
RATE_COLUMNS = [  # shares of a group's answers, in %
    "no_box",  # without a boxed answer, or with an empty box
    "truncated",  # cut off by the token limit
    "run_on",  # followed by another problem
    "ungraded",  # counted as wrong, because the grader failed or could not read them
    "unreadable_gold",  # counted as wrong, because the gold answer cannot be read
    "restated",  # correct, but with an operation left to carry out, as in 3 + 4
]
EFFECT_INTERVAL = ["effect", "effect_low", "effect_high"]
# only_none, only_this: samples that are right only under none, or only under the row's
# condition.
EFFECT_COLUMNS = [*EFFECT_INTERVAL, "p_value", "only_none", "only_this"]
PAIRED_COLUMNS = [*EFFECT_COLUMNS, "p_holm"]
LENGTH_INTERVAL = ["tokens", "tokens_low", "tokens_high"]
SHOWN_COLUMNS = [  # printed by commands
    *GROUP_COLUMNS,
    "n",
    *ACCURACY_INTERVAL,
    *RATE_COLUMNS,
    *EFFECT_INTERVAL,
    "p_value",
]


def print_accuracy(answers: pd.DataFrame) -> None:
    """Print the accuracy under each condition, with a warning if no answer of a model
    has a box; nothing without answers.
    """
    table = summarise(answers)
    if table.empty:
        return
    print(show(table, shown_columns(table), digits=1))
    if warning := warning_of(table):
        print(warning)


def shown_columns(table: pd.DataFrame) -> list[str]:
    """Return the columns of `summarise` that a command prints, without rates that are 0
    in every row.
    """
    return [
        name for name in SHOWN_COLUMNS if name not in RATE_COLUMNS or table[name].any()
    ]


def warning_of(table: pd.DataFrame) -> str:
    """Return a warning if no answer of a model has a filled box, given the table of
    `summarise`; "" otherwise.
    """
    least = table.groupby("model", sort=False)["no_box"].min()
    models = ", ".join(least.index[least == POINTS])
    return models and (
        f"No answer of {models} has a filled box, so that none is right. With"
        " `elicit` the box is asked for in a second step; another `format`, `examples`"
        " in the prompt or more `max_new_tokens` may help, too."
    )


def answer_groups(
    answers: pd.DataFrame,
) -> dict[tuple[str, str], pd.DataFrame]:
    """Return the answers by (model, condition), in order of appearance, but with `none`
    first for each model.
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
    """Return a table (problem, sample) of 1 for a right and 0 for a wrong answer; NaN
    for a missing sample.

    group: the answers of one model and condition. by: the column that says whether an
    answer is right.
    """
    table = group.pivot(index="problem_id", columns="sample", values=by)
    in_order = table.loc[group["problem_id"].unique()]
    return in_order.astype(float)


def accuracy_by_problem(group: pd.DataFrame) -> pd.Series:
    """Return the share of each problem's samples that are right, in %.

    group: the answers of one model and condition.
    """
    return POINTS * right_by_sample(group).mean(axis=1)


def rows_of_groups(
    answers: pd.DataFrame,
) -> Iterator[tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]]:
    """Yield, for each model and condition, the first fields of a table's row (model,
    condition, n problems, samples), the answers, and their `right_by_sample`.
    """
    for (model, condition), group in answer_groups(answers).items():
        values = right_by_sample(group)
        n, samples = values.shape
        row = {"model": model, "condition": condition, "n": n, "samples": samples}
        yield row, group, values


def mean_and_bounds(
    names: Sequence[str], by_problem: pd.Series, kind: str = "share"
) -> dict[str, float]:
    """Return the mean of values by problem, and the bounds of its interval, as a dict
    with these three names.

    kind: of the values, as in `lib.statistics.intervals`.
    """
    mean = interval(by_problem, by_problem.index, kind)
    return dict(zip(names, (mean.estimate, mean.low, mean.high), strict=True))


def p_value_of_mean(by_problem: pd.Series, kind: str = "mean") -> float:
    """Return the p-value of a mean over problems: the smallest level at which its
    interval excludes 0.

    kind: of the values, as in `lib.statistics.intervals`.
    """

    def excludes_zero(mean: Interval) -> bool:
        return mean.low * mean.high > 0

    return smallest_level(excludes_zero, by_problem, by_problem.index, kind)


def summarise(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy under each condition, and its effect compared with `none`.

    A row per model and condition has n (problems), samples (per problem), the accuracy
    with its interval, RATE_COLUMNS and PAIRED_COLUMNS. `p_value` is the smallest level
    at which the effect's interval excludes 0, and `p_holm` corrects it for all rows.
    PAIRED_COLUMNS are NaN for `none`, and if no problem was also answered under `none`.
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
    """Return RATE_COLUMNS for the answers of one model and condition."""
    method = group["method"]
    has_no_box = method.isin(("no-box", "empty-box"))
    is_ungraded = method.isin(("timeout", "crash", "refused", "unreadable-answer"))
    is_restated = group["correct"] & ~group["worked_out"]
    answers = {
        "no_box": has_no_box,
        "truncated": is_truncated(group),
        "run_on": group["run_on"],
        "ungraded": is_ungraded,
        "unreadable_gold": method.eq("unreadable-gold"),
        "restated": is_restated,
    }
    return {name: POINTS * float(answers[name].mean()) for name in RATE_COLUMNS}


def _paired(none: pd.DataFrame, treated: pd.DataFrame) -> dict[str, float]:
    """Return EFFECT_COLUMNS over the problems answered under both conditions; an empty
    dict if there are none.

    none, treated: `right_by_sample` under `none` and under another condition.
    """
    differences = (treated - none).reindex(none.index).dropna(how="all")
    if differences.empty:
        return {}
    by_problem = POINTS * differences.mean(axis=1)
    changes = differences.to_numpy()
    row = mean_and_bounds(EFFECT_INTERVAL, by_problem, "difference")
    row["p_value"] = p_value_of_mean(by_problem, "difference")
    row["only_none"] = int((changes < 0).sum())
    row["only_this"] = int((changes > 0).sum())
    return row


def graders(answers: pd.DataFrame) -> pd.DataFrame:
    """Return accuracy and effect by each of GRADERS, in a row per model, condition and
    grader.

    `disagree` is the number of answers that the grader and this project's grade
    differently.
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


def answered_under_all(
    answers: pd.DataFrame, conditions: Collection[str]
) -> pd.DataFrame:
    """Return the answers under some conditions to the problems that a model answered
    under all of those that it has, so that their accuracies can be compared.
    """
    chosen = answers[answers["condition"].isin(conditions)]
    of_model = chosen.groupby("model")["condition"]
    of_problem = chosen.groupby(["model", "problem_id"])["condition"]
    return chosen[of_problem.transform("nunique") == of_model.transform("nunique")]


def beside_the_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracies of `summarise`, followed by those of the paper's Fig. 10,
    which have no intervals; the column `source` distinguishes them.
    """
    measured = table.assign(source="this run")
    reported = pd.DataFrame(read_yaml(PAPER)["fig10"])
    reported = reported.assign(source="the paper", n=500)
    both = pd.concat([measured, reported], ignore_index=True)
    return both[["source", "model", "condition", "n", *ACCURACY_INTERVAL]]


def reported_gains() -> tuple[float, float]:
    """Return the smallest and the largest change in accuracy by 55 slashes that the
    paper reports for a model of its own, in points.
    """
    paper = read_yaml(PAPER)
    bars = pd.DataFrame(paper["fig10"]).pivot(
        index="model", columns="condition", values="accuracy"
    )
    rows = bars.to_dict("records")
    for name, table in paper.items():
        if name.startswith("table"):
            rows += [row for row in table["values"].values() if "mless" in row]
    gains = [row["mless"] - row["none"] for row in rows]
    return min(gains), max(gains)


def varied_fillers(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `summarise` for the fillers that the paper compares in Fig. 8.

    Of the added columns, `varied` names the property that differs, `label` is the
    filler's name in the figure, and `reported` the paper's accuracy for Qwen2.5-Math-7B
    in %, if there is one.
    """
    points = pd.DataFrame(read_yaml(PAPER)["fig08"])
    return points.merge(table, on="condition").sort_values("model", kind="stable")


def with_token_limit(answers: pd.DataFrame, limit: int) -> pd.DataFrame:
    """Return the answers as a run with a lower token limit would grade them: a longer
    answer counts as wrong and as truncated.
    """
    is_cut = answers["completion_tokens"].astype(int) > limit
    return answers.assign(
        right=answers["right"].astype(bool) & ~is_cut,
        finish_reason=answers["finish_reason"].mask(is_cut, "length"),
    )


def change_of_length(answers: pd.DataFrame) -> dict[str, float]:
    """Return the mean change in the number of tokens that slashes cause, with its
    interval, over the problems whose answers end by themselves under both conditions.

    `ended` is the number of these problems; if it is 0, it is the only field.
    """
    ended = answers[~is_truncated(answers)]
    lengths = ended["completion_tokens"].astype(float)
    # The mean over a problem's answers, if there are several.
    by_problem = lengths.groupby([ended["problem_id"], ended["condition"]]).mean()
    tokens = by_problem.unstack().reindex(columns=["none", "mless"])
    change = (tokens["mless"] - tokens["none"]).dropna()
    if change.empty:
        return {"ended": 0}
    return {"ended": len(change)} | mean_and_bounds(LENGTH_INTERVAL, change, "mean")


def by_limit(answers: pd.DataFrame, limits: Sequence[int]) -> pd.DataFrame:
    """Return accuracy and effect of the slashes if answers were cut at lower token
    limits, in a row per model and limit.

    answers: models that lack `none` or `mless` are left out. A row has the accuracy
    under both conditions, the share of truncated answers (cut_none, cut_mless),
    EFFECT_COLUMNS and `change_of_length`.
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


PASSES = (1, 3, 4, 5, 8, 16)  # the k for which pass@k is shown
DIFFERENCE_COLUMNS = [*GROUP_COLUMNS, "measure", "n", *EFFECT_INTERVAL]


def pass_at_k_table(answers: pd.DataFrame) -> pd.DataFrame:
    """Return pass@k, in % with its intervals, in a row per model and condition that has
    several samples of each problem.
    """
    rows = []
    for row, _, values in rows_of_groups(answers):
        if row["samples"] < 2:
            continue
        measures = _measures_by_problem(values)
        # Without measures for which no problem has enough samples.
        for name, share in measures.dropna(axis=1, how="all").items():
            names = [str(name), f"{name} low", f"{name} high"]
            row |= mean_and_bounds(names, share.dropna())
        rows.append(row)
    return pd.DataFrame(rows)


def paired_differences(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the change of each measure of `pass_at_k_table` from `none` to each other
    condition on the same problems, in points with its interval.

    A row per model, condition and measure has n, the problems with the measure under
    both. There is no row if `none` lacks several samples of each problem.
    """
    rows = []
    of_none: dict[str, pd.DataFrame] = {}  # by model; answer_groups has none first
    for row, _, values in rows_of_groups(answers):
        if row["samples"] < 2:
            continue
        measures = _measures_by_problem(values)
        if row["condition"] == "none":
            of_none[row["model"]] = measures
        elif row["model"] in of_none:
            for name, change in (measures - of_none[row["model"]]).items():
                known = change.dropna()
                if known.empty:
                    continue
                fields = {"measure": name, "n": len(known)}
                fields |= mean_and_bounds(EFFECT_INTERVAL, known, "difference")
                rows.append(row | fields)
    return pd.DataFrame(rows, columns=DIFFERENCE_COLUMNS)


def _measures_by_problem(values: pd.DataFrame) -> pd.DataFrame:
    """Return pass@k by problem, in %, from the `right_by_sample` of answers."""
    samples = values.shape[1]
    measures = {f"pass@{k}": pass_at_k(values, k) for k in PASSES if k <= samples}
    return POINTS * pd.DataFrame(measures, index=values.index)


def pass_at_k(correct: ArrayLike, k: int) -> np.ndarray:
    """Return the unbiased estimate (N,) of the probability that at least one of k
    samples of a problem is right.

    correct: (N, S), 1 for right, 0 for wrong, NaN for a missing sample. With c of S
    samples right, the estimate is 1 - C(S - c, k) / C(S, k) (Chen et al. 2021, arXiv
    2107.03374); NaN for a problem with fewer than k samples.
    """
    correct = np.asarray(correct, dtype=float)
    samples = np.isfinite(correct).sum(1)
    wrong = (correct == 0).sum(1)
    choices = np.where(samples < k, np.nan, special.comb(samples, k))
    return 1 - special.comb(wrong, k) / choices
