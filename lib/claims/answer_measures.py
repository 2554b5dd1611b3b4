"""What a claim asks of answers and likelihoods: a number per problem and component.

A public function that returns an array is what data/claims.yaml names as `measure`; its
first parameters say what it is given: `answers`, a row per completion, `scores`, a row
per likelihood, `ablations`, a row per likelihood with the next token's distribution,
or `draws`, a row per sampled answer with its log p under each condition. Each returns
(network, component, problem) of the one trained network, with the kind of its numbers
(`lib.statistics`) as attribute; or it raises Untestable.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

import pandas as pd
import xarray as xr

from lib.claims.rule import Untestable
from lib.errors import InputError
from lib.evaluation.answer_tables import groups, shares, solved
from lib.evaluation.pass_rates import checked_weighted_differences
from lib.evaluation.records import WINDOWS
from lib.evaluation.several_samples import distinct_2, pass_at_k
from lib.statistics.intervals import POINTS
from lib.statistics.prediction import roc_values

# The positive control, a worked example: its gain is the scale of an effect.
POSITIVE = ("example", "none")
# Problems on either side of a curve: of fewer its area has no error worth a verdict.
LEAST_OF_EACH = 5


def accuracy_unaided(answers: pd.DataFrame, part: str, condition: str) -> xr.DataArray:
    """Return the accuracy under a condition in %, of answers that are not helped.

    The model is left to write its answer itself.
    """
    accuracy = _by_condition(answers, part, [condition], shares)
    if not answers.plain.all():
        raise Untestable(
            "the model is asked in chat form, or its answer is elicited after what was"
            " inserted"
        )
    return _values(accuracy[[condition]], "share")


def accuracy_differences(
    answers: pd.DataFrame, part: str, pairs: Sequence[Sequence[str]]
) -> xr.DataArray:
    """Return for each pair of conditions the accuracy of the first less the second's,
    in points; an answer that a limit cut counts as wrong.
    """
    right = _by_condition(answers, part, chain.from_iterable(pairs), shares)
    return _values(_differences(right, pairs), "difference")


def _differences(
    table: pd.DataFrame, pairs: Sequence[Sequence[str]]
) -> dict[str, pd.Series]:
    """Return for each pair of conditions the first column less the second, by name."""
    columns = {}
    for more, less in pairs:
        columns[f"{more} - {less}"] = table[more] - table[less]
    return columns


def largest_gain(answers: pd.DataFrame, part: str) -> xr.DataArray:
    """Return each condition's accuracy less that of none, in points.

    The best of them is to be more than choosing it gives.
    """
    conditions = answers[answers.part == part].condition.unique()
    right = _by_condition(answers, part, ["none", *conditions], shares).dropna()
    if right.shape[1] < 3:
        raise Untestable(
            f"the profile compares fewer than two conditions with none ({part})"
        )
    gains = right.drop(columns="none").sub(right["none"], axis=0)
    return _values(gains, "largest")


def sampling_differences(
    answers: pd.DataFrame, condition: str, k: int, distinct: bool
) -> xr.DataArray:
    """Return a condition less none, in points over a problem's samples: pass@k, and
    perhaps the share of distinct 2-grams.
    """

    def passed(group: pd.DataFrame) -> pd.Series:
        samples = solved(group)
        fewest = samples.count(axis=1).min()
        if fewest < k:
            raise Untestable(
                f"pass@{k} needs {k} samples of each problem, and {fewest} were taken"
            )
        return pd.Series(pass_at_k(samples, k), samples.index)

    def diversity(group: pd.DataFrame) -> pd.Series:
        return group.groupby("problem_id", sort=False).response.agg(distinct_2)

    numbers = {f"pass@{k}": passed}
    if distinct:
        numbers["distinct 2-grams"] = diversity
    differences = {}
    for name, number in numbers.items():
        table = _by_condition(answers, "sampling", [condition, "none"], number)
        points = POINTS * table
        differences[name] = points[condition] - points["none"]
    return _values(differences, "difference")


def likelihood_differences(
    scores: pd.DataFrame, target: str, pairs: Sequence[Sequence[str]]
) -> xr.DataArray:
    """Return for each pair of conditions log p under the first less the second's, in
    nats per problem.
    """
    rows = scores[scores.target == target]
    if rows.empty:
        raise Untestable(f"the profile scores no {target}s")
    nats = rows.pivot(index="problem_id", columns="condition", values="nats")
    _check_known(nats, chain.from_iterable(pairs), "scores nothing")
    return _values(_differences(nats, pairs), "mean")


def ablation_differences(
    ablations: pd.DataFrame, pairs: Sequence[Sequence[str]]
) -> xr.DataArray:
    """Return for each pair of conditions log p of the reference solution under the
    first less the second's, in nats per problem.
    """
    table = _ablation_table(ablations, ablations.nats, pairs)
    return _values(_differences(table, pairs), "mean")


def entropy_differences(
    ablations: pd.DataFrame,
    tokens: str,
    less: str | None,
    pairs: Sequence[Sequence[str]],
) -> xr.DataArray:
    """Return for each pair of conditions the next token's entropy under the first less
    the second's, in nats, averaged over some `tokens` of the reference solution (one of
    `lib.evaluation.next_token.WINDOWS`).

    `less` names other tokens whose difference is taken off that; null: none.
    """

    def differences(window: str) -> dict[str, pd.Series]:
        number = list(WINDOWS).index(window)
        table = _ablation_table(ablations, ablations.entropy.str[number], pairs)
        return _differences(table, pairs)

    values = differences(tokens)
    if less:
        later = differences(less)
        values = {name: column - later[name] for name, column in values.items()}
    return _values(values, "mean")


def _ablation_table(
    ablations: pd.DataFrame, values: pd.Series, pairs: Sequence[Sequence[str]]
) -> pd.DataFrame:
    """Return a row per problem and a column per condition of the pairs."""
    rows = ablations[["problem_id", "condition"]].assign(value=values.astype(float))
    table = rows.pivot(index="problem_id", columns="condition", values="value")
    _check_known(table, chain.from_iterable(pairs), "scores nothing")
    return table


def pass_at_k_differences(
    draws: pd.DataFrame, k: int, treatment: str, reference: str
) -> xr.DataArray:
    """Return pass@k of the answers sampled under `treatment` minus that under
    `reference`, in points per problem.
    """
    passed = {}
    for condition in (treatment, reference):
        sampled = draws[draws.drawn_under == condition]
        samples = sampled.pivot(index="problem_id", columns="sample", values="right")
        if samples.shape[1] < k or samples.isna().any(axis=None):
            raise Untestable(
                f"pass@{k} needs {k} answers of each problem under {condition}"
            )
        values = pass_at_k(samples.astype(float), k)
        passed[condition] = POINTS * pd.Series(values, samples.index)
    difference = passed[treatment] - passed[reference]
    return _values({f"{treatment} - {reference}": difference}, "difference")


def solved_likelier(scores: pd.DataFrame, answers: pd.DataFrame) -> xr.DataArray:
    """Return in % how often, of two problems, the solved one has the likelier solution.

    That is the area under the curve of log p(solution) per token under none, against
    whether the answers under none are right. The mean over problems is the area.
    Answers of other parts than the main one may be without reasoning.
    """
    rows = scores[(scores.target == "solution") & (scores.condition == "none")]
    answered = answers[(answers.part == "main") & (answers.condition == "none")]
    if rows.empty or answered.empty:
        raise Untestable("the profile has no problem that is scored and answered")
    solutions = rows.set_index("problem_id")[["nats", "tokens"]].astype(float)
    both = solutions.join(shares(answered).rename("right"), how="inner")
    solved = both.right.to_numpy() > POINTS / 2
    if min(solved.sum(), (~solved).sum()) < LEAST_OF_EACH:
        raise Untestable(
            f"{solved.sum()} of {len(solved)} problems are solved: an area needs"
            f" {LEAST_OF_EACH} that are and as many that are not"
        )
    per_token = both.nats / both.tokens
    order = POINTS * roc_values(per_token.to_numpy(), solved)
    columns = {"solved and unsolved": pd.Series(order, both.index)}
    return _values(columns, "share")


def pass_rates(draws: pd.DataFrame, treatment: str, reference: str) -> xr.DataArray:
    """Return the importance-weighted difference in pass rate, treatment minus
    reference, in points per problem.
    """
    unscored = [name for name in (treatment, reference) if name not in draws]
    if unscored:
        raise Untestable(f"no sampled answer is scored under {', '.join(unscored)}")
    try:
        points = checked_weighted_differences(draws, treatment, reference)
    except InputError as error:
        raise Untestable(str(error)) from error
    return _values({f"{treatment} - {reference}": points}, "mean")


def _by_condition(
    answers: pd.DataFrame,
    part: str,
    names: Iterable[str],
    number: Callable[[pd.DataFrame], pd.Series],
) -> pd.DataFrame:
    """Return a column per named condition: a number per problem, of its answers."""
    names = list(dict.fromkeys(names))
    by_condition = groups(answers[answers.part == part])
    columns = {
        condition: number(group)
        for (_, condition), group in by_condition.items()
        if condition in names
    }
    table = pd.DataFrame(columns)
    _check_known(table, names, f"answers no problems ({part})")
    return table


def _check_known(table: pd.DataFrame, names: Iterable[str], lacks: str) -> None:
    """Raise Untestable where a condition has no column."""
    missing = [name for name in dict.fromkeys(names) if name not in table]
    if missing:
        raise Untestable(f"the profile {lacks} under {', '.join(missing)}")


def _values(columns: Mapping[str, pd.Series] | pd.DataFrame, kind: str) -> xr.DataArray:
    """Return columns by problem as the values of one network, of a kind of numbers.

    They are NaN where a problem has none.
    """
    table = pd.DataFrame(columns)
    table = table.rename_axis(index="problem", columns="component")
    values = xr.DataArray(table).expand_dims(network=["trained"])
    return values.assign_attrs(kind=kind)
