"""What answers show, in % and points: accuracy, each condition against none, graders
and power. What several samples of an answer show is in `sample_tables`.

All take a frame of one part (`lib.evaluation.answers`); every interval is that of
`lib.statistics`, over problems.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from lib.paths import DATA, read_yaml
from lib.statistics.intervals import POINTS, Interval, interval
from lib.statistics.p_values import holm, smallest_level
from lib.statistics.power import n_deciding, smallest_effect

GRADERS = {
    "correct": "this project's grader",
    "worked_out": "this project's, worked out only",
    "correct_exact": "exact match after normalisation",
    "correct_authors_on_completion": "authors' rule, completion only",
    "correct_authors": "authors' rule as published, with our prompt",
}
GROUP = ["model", "condition"]
PAPER = DATA / "paper.yaml"  # what the paper reports
ACCURACY_ENDS = ["accuracy", "low", "high"]
ANSWER_MARKS = ["run_on", "problem_restated", "thought"]
RATES = [  # shares in % of a group's answers, by `_rates`
    "accuracy_authors",
    "no_box",
    "truncated",
    *ANSWER_MARKS,
    "elicited",
    "ungraded",
    "unreadable_gold",
    "restated",
]
EFFECT_ENDS = ["effect", "effect_low", "effect_high"]
PAIRED = [
    *EFFECT_ENDS,
    "p_value",
    "only_none",
    "only_this",
    "discordant",
    "p_holm",
]
SHOWN = [  # by a command
    *GROUP,
    "n",
    *ACCURACY_ENDS,
    *("truncated", "no_box", "restated", "run_on", "ungraded", "unreadable_gold"),
    *EFFECT_ENDS,
    "p_value",
]


def shown_columns(table: pd.DataFrame) -> list[str]:
    """Return the columns of `summarise` that a command prints: rates that are 0 in
    every row are left out.
    """
    return [name for name in SHOWN if name not in RATES or table[name].any()]


def groups(answers: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Return (model, condition) -> answers, models and conditions as they come, none
    first.
    """
    by_condition: dict[Any, pd.DataFrame] = {}
    for model, of_model in answers.groupby("model", sort=False):
        ordered = of_model.sort_values(
            "condition", key=lambda names: names != "none", kind="stable"
        )
        for condition, group in ordered.groupby("condition", sort=False):
            by_condition[model, condition] = group
    return by_condition


def solved(group: pd.DataFrame, by: str = "right") -> pd.DataFrame:
    """Return 1 or 0 (problems, samples) of one model and condition, by `right` or
    another column; NaN: missing.
    """
    # Models of one name may answer the same problems.
    first = group.drop_duplicates(["problem_id", "sample"])
    table = first.pivot(index="problem_id", columns="sample", values=by)
    in_order = table.loc[group["problem_id"].unique()]
    return in_order.astype(float)


def shares(group: pd.DataFrame) -> pd.Series:
    """Return the accuracy of each problem over its samples, in %, of one model and
    condition.
    """
    return POINTS * solved(group).mean(axis=1)


def rows_of_groups(
    answers: pd.DataFrame, least: int = 1
) -> Iterator[tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]]:
    """Yield of each model and condition with so many samples how its row begins, its
    answers, and `solved` of them.
    """
    for (model, condition), group in groups(answers).items():
        values = solved(group)
        problems, samples = values.shape
        if samples >= least:
            row = {
                "model": model,
                "condition": condition,
                "n": problems,
                "samples": samples,
            }
            yield row, group, values


def mean_and_ends(
    names: Sequence[str], by_problem: pd.Series, kind: str = "share"
) -> dict[str, float]:
    """Return the mean of a Series by problem, of a kind of `lib.statistics`, and its
    ends under three names.
    """
    mean = interval(by_problem, by_problem.index, kind)
    return dict(zip(names, (mean.estimate, mean.low, mean.high), strict=True))


def summarise(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model and condition: n, samples, accuracy with its interval,
    RATES, and PAIRED against none.

    `p_value` is the smallest level at which the effect's interval leaves 0 out, which
    `p_holm` corrects for all rows; PAIRED are NaN without answers to pair.
    """
    rows = []
    of_none = {}
    for row, group, values in rows_of_groups(answers):
        by_problem = POINTS * values.mean(axis=1)
        row |= mean_and_ends(ACCURACY_ENDS, by_problem)
        row |= _rates(group)
        if row["condition"] == "none":
            of_none[row["model"]] = values
        elif row["model"] in of_none:
            row |= _paired(of_none[row["model"]], values)
        rows.append(row)
    columns = [*GROUP, "n", "samples", *ACCURACY_ENDS, *RATES, *PAIRED]
    table = pd.DataFrame(rows, columns=columns)
    tested = table["p_value"].dropna()
    corrected = pd.Series(holm(tested), tested.index)
    return table.assign(p_holm=corrected)


def _rates(group: pd.DataFrame) -> dict[str, float]:
    """Return RATES of one model and condition."""
    method = group["method"]
    has_no_box = method.isin(("no-box", "empty-box"))
    was_cut = group["finish_reason"] != "stop"
    is_ungraded = method.isin(("timeout", "crash", "refused"))
    is_restated = group["correct"] & ~group["worked_out"]
    # Answers of an older run may lack some.
    told = {name: group[name].eq(True) for name in ANSWER_MARKS}
    answers = {
        "accuracy_authors": group["correct_authors"],
        "no_box": has_no_box,
        "truncated": was_cut,
        **told,
        "elicited": group["elicited"],
        "ungraded": is_ungraded,
        "unreadable_gold": method.eq("unreadable-gold"),
        "restated": is_restated,
    }
    return {name: POINTS * float(answers[name].mean()) for name in RATES}


def _paired(none: pd.DataFrame, treated: pd.DataFrame) -> dict[str, float]:
    """Return PAIRED but p_holm of answers (problems, samples) under one condition and
    none, over what both answered.
    """
    differences = (treated - none).reindex(none.index).dropna(how="all")
    if differences.empty:
        return {}
    by_problem = POINTS * differences.mean(axis=1)
    changes = differences.to_numpy()
    lost = int((changes < 0).sum())
    gained = int((changes > 0).sum())

    def leaves_out_zero(mean: Interval) -> bool:
        return mean.low * mean.high > 0

    row = mean_and_ends(EFFECT_ENDS, by_problem, "difference")
    row["p_value"] = smallest_level(
        leaves_out_zero, by_problem, by_problem.index, "difference"
    )
    row["only_none"] = lost
    row["only_this"] = gained
    row["discordant"] = POINTS * (lost + gained) / differences.count().sum()
    return row


def cut_apart(answers: pd.DataFrame) -> pd.DataFrame:
    """Return `summarise` of all problems, then of those that a model finished under
    every condition.
    """
    ended = answers["finish_reason"].eq("stop")
    by_problem = ended.groupby([answers["model"], answers["problem_id"]])
    finished = answers[by_problem.transform("all")]
    of_all = summarise(answers).assign(problems="all")
    of_finished = summarise(finished).assign(problems="finished")
    return pd.concat([of_all, of_finished])


def graders(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model, condition and grader: accuracy, disagreements with this
    project's, effect.
    """
    by_condition = groups(answers).values()
    sizes = [len(group) for group in by_condition]
    tables = []
    for field, name in GRADERS.items():
        if answers[field].isna().any():  # an older run may lack one
            continue
        different = [(group[field] != group["correct"]).sum() for group in by_condition]
        table = summarise(answers.assign(right=answers[field]))
        tables.append(table.assign(grader=name, n=sizes, disagree=different))
    # A group's graders stand side by side.
    table = pd.concat(tables).sort_index(kind="stable", ignore_index=True)
    return table[[*GROUP, "grader", "n", "accuracy", "disagree", *PAIRED[:4]]]


def breakdown(answers: pd.DataFrame, field: str) -> pd.DataFrame:
    """Return a row per model, condition and level or subject that is known: n and
    accuracy with its interval.
    """
    known = answers[answers[field].astype(bool)]
    rows = []
    for (model, condition), group in groups(known).items():
        for value, part in group.groupby(field):
            row = {"model": model, "condition": condition, field: value}
            row["n"] = len(part)
            rows.append(row | mean_and_ends(ACCURACY_ENDS, shares(part)))
    return pd.DataFrame(rows, columns=[*GROUP, field, "n", *ACCURACY_ENDS])


def beside_the_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracies of `summarise`, and below them those that the paper reports
    in Fig. 10, which have no interval; `source` says which is which.
    """
    values = pd.DataFrame(read_yaml(PAPER)["fig10"]["values"])
    rows = values.reset_index(names="condition")
    reported = rows.melt("condition", var_name="model", value_name="accuracy")
    own = table.assign(source="this run")
    both = pd.concat(
        [own, reported.assign(source="the paper", n=500)], ignore_index=True
    )
    return both[["source", "model", "condition", "n", *ACCURACY_ENDS]]


def varied_fillers(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row of `summarise` for each filler that the paper varies in Fig. 8.

    `varied` says what is varied, `label` what the figure calls the filler, `reported`
    what the paper reports of Qwen2.5-Math-7B, where it does.
    """
    parts = []
    for name, points in read_yaml(PAPER)["fig08"]["panels"].items():
        by_condition = pd.DataFrame.from_dict(points, orient="index")
        part = by_condition.rename_axis("condition").reset_index()
        parts.append(part.assign(varied=name))
    points = pd.concat(parts)[["varied", "condition", "reported", "label"]]
    return points.merge(table, on="condition").sort_values("model", kind="stable")


def power(table: pd.DataFrame, effect: float) -> pd.DataFrame:
    """Return what each row of `summarise` with pairs could show at 80 % power, and the
    n that such an effect needs.

    `lib.statistics.n_deciding` for the spread of the changes that were found; NaN where
    none was, and for more than changes at all.
    """
    tested = table[table["p_value"].notna()]
    pairs = tested["n"] * tested["samples"]
    changed = tested["discordant"]
    mean_squares = POINTS * changed
    variances = (mean_squares - tested["effect"] ** 2) * pairs / (pairs - 1)

    smallest = []
    needed = []
    for n, deviation in zip(pairs, variances**0.5, strict=True):
        smallest.append(smallest_effect(n, deviation))
        needed.append(n_deciding(effect, deviation))
    shown = pd.Series(smallest, tested.index, dtype=float)
    enough = pd.Series(needed, tested.index, dtype=float)

    rows = tested[[*GROUP, "discordant"]].copy()
    rows["pairs"] = pairs
    rows["smallest"] = shown.where((changed > 0) & (shown <= changed))
    rows["needed"] = enough.where(changed >= effect)
    return rows
