"""What answers show, in % and points: accuracy, each condition against none, graders,
power, and several samples.

All take a frame of one part (`lib.evaluation.answers`); every interval is that of
`lib.statistics`, over problems.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lib.statistics import (
    POINTS,
    format_interval,
    holm,
    interval,
    n_deciding,
    pass_at_k,
    smallest_effect,
    smallest_level,
)

GRADERS = {
    "correct": "this project's grader",
    "worked_out": "this project's, worked out only",
    "correct_exact": "exact match after normalisation",
    "correct_authors_on_completion": "authors' rule, completion only",
    "correct_authors": "authors' rule as published",
}
RATES: dict[
    str, Callable[[pd.DataFrame], pd.Series]
] = {  # the share in % of a group's answers
    "accuracy_authors": lambda some: some["correct_authors"],
    "no_box": lambda some: some["method"].isin(("no-box", "empty-box")),
    "truncated": lambda some: some["finish_reason"] != "stop",
    "run_on": (
        lambda some: some["run_on"].eq(True)
    ),  # answers of an older run may lack it
    "elicited": lambda some: some["elicited"],
    "ungraded": lambda some: some["method"].isin(("timeout", "crash", "refused")),
    "restated": lambda some: some["correct"] & ~some["worked_out"],
}
GROUP, ENDS = ["model", "condition"], ["accuracy", "low", "high"]
PAIRED = [
    "effect",
    "effect_low",
    "effect_high",
    "p_value",
    "only_none",
    "only_this",
    "discordant",
    "p_holm",
]


def groups(answers: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Return (model, condition) -> answers, models and conditions as they come, none
    first.
    """
    found = {}
    for model, table in answers.groupby("model", sort=False):
        ordered = table.sort_values(
            "condition", key=lambda names: names != "none", kind="stable"
        )
        found |= {
            (model, condition): group
            for condition, group in ordered.groupby("condition", sort=False)
        }
    return found


def solved(group: pd.DataFrame, by: str = "right") -> pd.DataFrame:
    """Return 1 or 0 (problems, samples) of one model and condition, by `right` or
    another column; NaN: missing.
    """
    first = group.drop_duplicates(
        ["problem_id", "sample"]
    )  # models of one name may answer the same problems
    values = first.pivot(index="problem_id", columns="sample", values=by)
    return values.loc[group["problem_id"].unique()].astype(float)


def shares(group: pd.DataFrame) -> pd.Series:
    """Return the accuracy of each problem over its samples, in %, of one model and
    condition.
    """
    return POINTS * solved(group).mean(axis=1)


def _rows(
    answers: pd.DataFrame, least: int = 1
) -> Iterator[tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]]:
    """Yield of each model and condition with so many samples how its row begins, its
    answers, and `solved` of them.
    """
    for (model, condition), group in groups(answers).items():
        values = solved(group)
        if values.shape[1] >= least:
            yield (
                {
                    "model": model,
                    "condition": condition,
                    "n": len(values),
                    "samples": values.shape[1],
                },
                group,
                values,
            )


def _ends(
    names: Sequence[str], values: pd.Series, kind: str = "share"
) -> dict[str, float]:
    """Return the mean of a Series by problem, of a kind of `lib.statistics`, and its
    ends under three names.
    """
    found = interval(values, values.index, kind)
    return dict(zip(names, (found.estimate, found.low, found.high), strict=True))


def summarise(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model and condition: n, samples, accuracy with its interval,
    RATES, and PAIRED against none.

    `p_value` is the smallest level at which the effect's interval leaves 0 out, which
    `p_holm` corrects for all rows; PAIRED are NaN without answers to pair.
    """
    rows, none = [], {}
    for row, group, values in _rows(answers):
        row |= _ends(ENDS, POINTS * values.mean(axis=1))
        row |= {
            name: POINTS * float(rate(group).mean()) for name, rate in RATES.items()
        }
        if row["condition"] == "none":
            none[row["model"]] = values
        elif row["model"] in none:
            row |= _paired(none[row["model"]], values)
        rows.append(row)
    table = pd.DataFrame(rows, columns=[*GROUP, "n", "samples", *ENDS, *RATES, *PAIRED])
    tested = table["p_value"].dropna()
    return table.assign(p_holm=pd.Series(holm(tested), tested.index))


def cut_apart(answers: pd.DataFrame) -> pd.DataFrame:
    """Return `summarise` of all problems, then of those that a model finished under
    every condition.
    """
    whole = (
        answers["finish_reason"]
        .eq("stop")
        .groupby([answers["model"], answers["problem_id"]])
        .transform("all")
    )
    both = {"all": answers, "finished": answers[whole]}
    return pd.concat(
        [summarise(some).assign(problems=which) for which, some in both.items()]
    )


def summary_as_text(table: pd.DataFrame) -> str:
    """Return a line per row of `summarise`: accuracy, what was cut off or has no box,
    and the effect.
    """
    lines = []
    for row in table.to_dict("records"):
        text = (
            f"{row['condition']:16} {format_interval(row['accuracy'], row['low'], row['high'])} % "
            f" n = {row['n']}"
        )
        text += (
            "  truncated {truncated:.0f} %  no box {no_box:.0f} %  restated"
            " {restated:.0f} %".format_map(row)
        )
        if not np.isnan(row["p_value"]):
            effect = format_interval(
                row["effect"], row["effect_low"], row["effect_high"], "+"
            )
            text += f"  against none {effect} points  p = {row['p_value']:.2g}"
        lines.append(text)
    return "\n".join(lines)


def _paired(none: pd.DataFrame, treated: pd.DataFrame) -> dict[str, float]:
    """Return PAIRED but p_holm of answers (problems, samples) under one condition and
    none, over what both answered.
    """
    differences = (treated - none).reindex(none.index).dropna(how="all")
    if differences.empty:
        return {}
    by_problem = POINTS * differences.mean(axis=1)
    lost, gained = (
        int(changed.to_numpy().sum()) for changed in (differences < 0, differences > 0)
    )
    p_value = smallest_level(
        lambda found: found.low * found.high > 0,
        by_problem,
        by_problem.index,
        "difference",
    )
    numbers = (
        p_value,
        lost,
        gained,
        POINTS * (lost + gained) / differences.count().sum(),
    )
    return _ends(PAIRED[:3], by_problem, "difference") | dict(
        zip(PAIRED[3:7], numbers, strict=True)
    )


def graders(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model, condition and grader: accuracy, disagreements with this
    project's, effect.
    """
    tables, found = [], groups(answers).values()
    for by, name in GRADERS.items():
        if answers[by].notna().all():  # an older run may lack one
            table = summarise(answers.assign(right=answers[by])).assign(grader=name)
            different = [(group[by] != group["correct"]).sum() for group in found]
            tables.append(
                table.assign(n=[len(group) for group in found], disagree=different)
            )
    table = pd.concat(tables).sort_index(
        kind="stable", ignore_index=True
    )  # a group's graders side by side
    return table[[*GROUP, "grader", "n", "accuracy", "disagree", *PAIRED[:4]]]


def breakdown(answers: pd.DataFrame, field: str) -> pd.DataFrame:
    """Return a row per model, condition and level or subject: n and accuracy with its
    interval.
    """
    rows = [
        {"model": model, "condition": condition, field: value, "n": len(part)}
        | _ends(ENDS, shares(part))
        for (model, condition), group in groups(answers).items()
        for value, part in group.groupby(field)
    ]
    return pd.DataFrame(rows, columns=[*GROUP, field, "n", *ENDS])


def power(table: pd.DataFrame, effect: float) -> pd.DataFrame:
    """Return what each row of `summarise` with pairs could show at 80 % power, and the
    n that such an effect needs.

    `lib.statistics.n_deciding` for the spread of the changes that were found; NaN for
    more than changes at all.
    """
    tested = table[table["p_value"].notna()]
    found = tested[[*GROUP, "discordant"]].assign(pairs=tested["n"] * tested["samples"])
    pairs, rate = found["pairs"], found["discordant"]
    deviations = ((POINTS * rate - tested["effect"] ** 2) * pairs / (pairs - 1)) ** 0.5
    smallest = [smallest_effect(*row) for row in zip(pairs, deviations, strict=True)]
    needed = [n_deciding(effect, deviation) for deviation in deviations]
    smallest, needed = (
        pd.Series(some, found.index, dtype=float) for some in (smallest, needed)
    )
    return found.assign(
        smallest=smallest.where(smallest <= rate), needed=needed.where(rate >= effect)
    )


def diversity(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model and condition with several samples: pass@k and distinct
    2-grams, in %, with intervals.
    """
    rows = []
    for row, group, values in _rows(answers, 2):
        shares: dict[str, Any] = {
            f"pass@{k}": pass_at_k(values, k)
            for k in (1, 3, 4, 8, 16)
            if k <= values.shape[1]
        }
        shares["distinct 2-grams"] = group.groupby("problem_id", sort=False)[
            "response"
        ].agg(distinct_2)
        rows.append(row | _means(pd.DataFrame(shares, values.index)))
    return pd.DataFrame(rows)


def best_of(answers: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return a row per model and condition, in %: one sample, best of n (pass@n),
    majority of the first n; Table 8.
    """

    def majority(
        some: pd.DataFrame,
    ) -> bool:  # the first of the most frequent answers; none is no vote
        first = some.sort_values("sample").head(n)
        votes = Counter(filter(None, first["extracted"])).most_common(1)
        return bool(votes) and first["right"][first["extracted"] == votes[0][0]].any()

    rows = []
    for row, group, values in _rows(answers, n):
        voted = [majority(some) for _, some in group.groupby("problem_id", sort=False)]
        shares = {
            "one": values.mean(axis=1),
            "best": pass_at_k(values, n),
            "majority": voted,
        }
        rows.append(row | _means(pd.DataFrame(shares, values.index)))
    return pd.DataFrame(rows)


def _means(shares: pd.DataFrame) -> dict[str, float]:
    """Return the mean over problems of each column in %, with its ends."""
    found = {}
    for name, share in shares.items():
        found |= _ends([str(name), f"{name} low", f"{name} high"], POINTS * share)
    return found


def distinct_2(texts: Iterable[str]) -> float:
    """Return the share of distinct pairs of neighbouring words among all of them, over
    the texts; 0 without any.
    """
    pairs = [
        two
        for text in texts
        for two in zip(text.split(), text.split()[1:], strict=False)
    ]
    return len(set(pairs)) / len(pairs) if pairs else 0.0


def noise_floor(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model: how far two runs of none that differ in nothing but the
    seed lie apart, in points.

    `difference` and `largest` are of two samples' accuracies, `discordant` of problems
    that one of the two solves.
    """
    rows = []
    for row, _, values in _rows(answers[answers["condition"] == "none"], 2):
        first, second = np.triu_indices(row["samples"], 1)
        apart = POINTS * (
            values.to_numpy()[:, first] - values.to_numpy()[:, second]
        )  # (problems, pairs of samples)
        between = np.abs(apart.mean(0))
        row |= {
            "difference": between.mean(),
            "discordant": np.abs(apart).mean(),
            "largest": between.max(),
        }
        rows.append({name: value for name, value in row.items() if name != "condition"})
    return pd.DataFrame(rows)
