"""Compute the measures of claims on answers and likelihoods, one value per problem.

Each public function that returns an array is a `measure` of data/claims.yaml. Its first
parameters name the tables that it receives: `answers`, a row per completion; `scores`,
a row per log-likelihood; `ablations`, a row per log-likelihood with the next token's
entropy; `draws`, a row per sampled answer with its log-likelihood under each condition.
All are the rows of one model. A measure returns an array (network, component, problem)
for the trained network alone, with the kind of its values (`lib.statistics.intervals`)
as the attribute `kind`, or raises Untestable with the reason. A component is a part of
the claim, such as a pair of conditions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Annotated, Literal

import pandas as pd
import xarray as xr
from pydantic import AfterValidator, PositiveInt

from lib.claims.decision_rule import Untestable
from lib.errors import InputError
from lib.evaluation.answer_tables import (
    accuracy_by_problem,
    answer_groups,
    right_by_sample,
)
from lib.evaluation.pass_at_k_tables import distinct_2_by_problem, pass_at_k
from lib.evaluation.row_fields import WINDOWS
from lib.evaluation.weighted_pass_rates import checked_weighted_differences
from lib.statistics.intervals import POINTS
from lib.statistics.roc_auc import roc_values

# The positive control: an effect on log-likelihood is also reported in % of the gain by
# a worked example in the prompt.
POSITIVE_CONTROL = ("example", "none")
# Minimum number of solved problems, and of unsolved ones: with fewer, the area under
# the ROC curve is too uncertain for a verdict.
MIN_SOLVED_AND_UNSOLVED = 5


def _require_window(name: str) -> str:
    """Return the name of a window unchanged; raise ValueError for an unknown one."""
    if name not in WINDOWS:
        raise ValueError(f"unknown window {name!r}: choose from {', '.join(WINDOWS)}")
    return name


# Types of arguments, which `lib.claims.claim` validates when it reads the claims.
Pairs = Sequence[tuple[str, str]]  # of conditions: treatment, reference
Window = Annotated[str, AfterValidator(_require_window)]
Target = Literal["solution", "answer"]


def accuracy_unaided(answers: pd.DataFrame, part: str, condition: str) -> xr.DataArray:
    """Return the accuracy under a condition, in %, for plain prompts without
    elicitation.

    Raises Untestable for other answers, because a chat template or an elicitation
    follows the insertion and helps the model to answer.
    """
    accuracy = _by_condition(answers, part, [condition], accuracy_by_problem)
    if not answers.plain.all():
        raise Untestable(
            "the prompt is a chat, or the answer is elicited after the insertion"
        )
    return _values(accuracy[[condition]], "share")


def accuracy_differences(
    answers: pd.DataFrame, part: str, pairs: Pairs
) -> xr.DataArray:
    """Return the accuracy under the first condition of each pair minus that under the
    second, in points. An answer cut off by the token limit is graded like any other, so
    it is wrong unless it has a box already or one is elicited.
    """
    names = chain.from_iterable(pairs)
    accuracy = _by_condition(answers, part, names, accuracy_by_problem)
    return _values(_differences(accuracy, pairs), "difference")


def _differences(table: pd.DataFrame, pairs: Pairs) -> dict[str, pd.Series]:
    """Return the first column of each pair minus the second, by name."""
    columns = {}
    for treatment, reference in pairs:
        difference = table[treatment] - table[reference]
        columns[f"{treatment} - {reference}"] = difference
    return columns


def largest_gain(answers: pd.DataFrame, part: str) -> xr.DataArray:
    """Return the accuracy under each condition minus that under `none`, in points.

    The claim is about the largest gain; the kind "largest" corrects its interval for
    the selection of the best condition.
    """
    names = ["none", *answers[answers.part == part].condition.unique()]
    accuracy = _by_condition(answers, part, names, accuracy_by_problem).dropna()
    if accuracy.shape[1] < 3:
        raise Untestable(
            f"the profile compares fewer than two conditions with none ({part})"
        )
    gains = accuracy.drop(columns="none").sub(accuracy["none"], axis=0)
    return _values(gains, "largest")


def sampling_differences(
    answers: pd.DataFrame, condition: str, k: PositiveInt, distinct: bool
) -> xr.DataArray:
    """Return pass@k under a condition minus that under `none`, in points, from the part
    sampling.

    distinct: whether the share of distinct 2-grams in a problem's samples, in points,
    is a second component.
    """

    def passed(group: pd.DataFrame) -> pd.Series:
        samples = right_by_sample(group)
        fewest = samples.count(axis=1).min()
        if fewest < k:
            raise Untestable(
                f"pass@{k} needs {k} samples of each problem, and {fewest} were taken"
            )
        return pd.Series(pass_at_k(samples, k), samples.index)

    statistics = {f"pass@{k}": passed}
    if distinct:
        statistics["distinct 2-grams"] = distinct_2_by_problem
    differences = {}
    for name, statistic in statistics.items():
        table = _by_condition(answers, "sampling", [condition, "none"], statistic)
        points = POINTS * table
        differences[name] = points[condition] - points["none"]
    return _values(differences, "difference")


def likelihood_differences(
    scores: pd.DataFrame, target: Target, pairs: Pairs
) -> xr.DataArray:
    """Return the log-likelihood under the first condition of each pair minus that under
    the second, in nats per problem.

    target: the scored text, solution or answer.
    """
    rows = scores[scores.target == target]
    if rows.empty:
        raise Untestable(f"the profile scores no {target}s")
    nats = rows.pivot(index="problem_id", columns="condition", values="nats")
    _require_conditions(nats, chain.from_iterable(pairs), "scores nothing")
    return _values(_differences(nats, pairs), "mean")


def ablation_differences(ablations: pd.DataFrame, pairs: Pairs) -> xr.DataArray:
    """Return the log-likelihood of the reference solution under the first condition of
    each pair minus that under the second, in nats per problem.
    """
    table = _ablation_table(ablations, ablations.nats, pairs)
    return _values(_differences(table, pairs), "mean")


def entropy_differences(
    ablations: pd.DataFrame,
    tokens: Window,
    less: Window | None,
    pairs: Pairs,
) -> xr.DataArray:
    """Return the entropy of the next token under the first condition of each pair minus
    that under the second, in nats per problem.

    tokens: the window of the reference solution over which the entropy is averaged, one
    of `lib.evaluation.row_fields.WINDOWS`. less: another window, whose difference is
    subtracted; None: nothing is subtracted.
    """

    def differences(window: str) -> dict[str, pd.Series]:
        index = list(WINDOWS).index(window)
        table = _ablation_table(ablations, ablations.entropy.str[index], pairs)
        return _differences(table, pairs)

    values = differences(tokens)
    if less:
        later = differences(less)
        values = {name: column - later[name] for name, column in values.items()}
    return _values(values, "mean")


def _ablation_table(
    ablations: pd.DataFrame, values: pd.Series, pairs: Pairs
) -> pd.DataFrame:
    """Return `values`, one per row of `ablations`, as a table with a row per problem
    and a column per condition; raise Untestable if a condition was not scored.
    """
    rows = ablations[["problem_id", "condition"]].assign(value=values.astype(float))
    table = rows.pivot(index="problem_id", columns="condition", values="value")
    _require_conditions(table, chain.from_iterable(pairs), "scores nothing")
    return table


def pass_at_k_differences(
    draws: pd.DataFrame, k: PositiveInt, treatment: str, reference: str
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
    """Return values whose mean is the share, in %, of pairs of a solved and an unsolved
    problem in which the solved one has the more likely reference solution.

    This share is the area under the ROC curve for predicting whether a problem is
    solved from the log-likelihood of its solution per token, both under `none`. Only
    answers of the main part are used, because those of other parts may be without
    reasoning.
    """
    rows = scores[(scores.target == "solution") & (scores.condition == "none")]
    answered = answers[(answers.part == "main") & (answers.condition == "none")]
    if rows.empty or answered.empty:
        raise Untestable("the profile has no problem that is scored and answered")
    solutions = rows.set_index("problem_id")[["nats", "tokens"]].astype(float)
    both = solutions.join(accuracy_by_problem(answered).rename("right"), how="inner")
    is_solved = both.right.to_numpy() > POINTS / 2
    if min(is_solved.sum(), (~is_solved).sum()) < MIN_SOLVED_AND_UNSOLVED:
        raise Untestable(
            f"{is_solved.sum()} of {len(is_solved)} problems are solved: an area needs"
            f" {MIN_SOLVED_AND_UNSOLVED} that are and as many that are not"
        )
    per_token = both.nats / both.tokens
    order = POINTS * roc_values(per_token.to_numpy(), is_solved)
    columns = {"solved and unsolved": pd.Series(order, both.index)}
    return _values(columns, "share")


def pass_rates(draws: pd.DataFrame, treatment: str, reference: str) -> xr.DataArray:
    """Return the importance-weighted difference in pass rate, treatment minus
    reference, in points per problem.

    Raises Untestable for the same reasons as `checked_weighted_differences`.
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
    statistic: Callable[[pd.DataFrame], pd.Series],
) -> pd.DataFrame:
    """Return a statistic of the answers to each problem, in a table with a row per
    problem and a column per condition; raise Untestable if a condition was not
    answered.

    statistic: returns a value per problem, given the answers under one condition.
    """
    names = list(dict.fromkeys(names))
    by_condition = answer_groups(answers[answers.part == part])
    columns = {
        condition: statistic(group)
        for (_, condition), group in by_condition.items()
        if condition in names
    }
    table = pd.DataFrame(columns)
    _require_conditions(table, names, f"answers no problems ({part})")
    return table


def _require_conditions(table: pd.DataFrame, names: Iterable[str], lacks: str) -> None:
    """Raise Untestable if a condition has no column; `lacks` says what the profile does
    not do under it.
    """
    missing = [name for name in dict.fromkeys(names) if name not in table]
    if missing:
        raise Untestable(f"the profile {lacks} under {', '.join(missing)}")


def _values(columns: Mapping[str, pd.Series] | pd.DataFrame, kind: str) -> xr.DataArray:
    """Return columns of values by problem as an array (network, component, problem),
    NaN for a problem without a value.

    kind: of the values, as in `lib.statistics.intervals`.
    """
    table = pd.DataFrame(columns)
    table = table.rename_axis(index="problem", columns="component")
    values = xr.DataArray(table).expand_dims(network=["trained"])
    return values.assign_attrs(kind=kind)
