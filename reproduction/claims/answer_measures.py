"""Compute the measures of claims on answers and likelihoods, one value per problem.

Each public function that returns an array is a `measure` of data/claims.yaml. Its first
parameters name the tables that it receives: `answers`, a row per completion; `scores`
and `ablations`, a row per log-likelihood; `draws`, a row per sampled answer with its
log-likelihood under each condition. All are the rows of one model. A measure returns an
array (network, component, problem) for the trained network alone, with the kind of its
values (`lib.statistics.intervals`) as the attribute `kind`, or raises Untestable with
the reason. A component is a part of the claim, such as a pair of conditions.

Most measures make a table with a row per problem and a column per condition, and return
the differences between pairs of its columns (treatment, reference).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain

import pandas as pd
import xarray as xr

from lib.errors import InputError
from lib.statistics.intervals import POINTS
from reproduction.claims.decision_rule import Untestable
from reproduction.evaluation.answer_tables import (
    accuracy_by_problem,
    answer_groups,
    pass_at_k,
    right_by_sample,
)
from reproduction.evaluation.likelihood_tables import nats_by_condition
from reproduction.evaluation.weighted_pass_rates import checked_weighted_differences

# The positive control: an effect on log-likelihood is also reported in % of the gain by
# a worked example in the prompt.
POSITIVE_CONTROL = ("example", "none")
Pairs = Sequence[tuple[str, str]]  # of conditions: treatment, reference


def accuracy_unaided(answers: pd.DataFrame, part: str, condition: str) -> xr.DataArray:
    """Return the accuracy under a condition, in %, for plain prompts without
    elicitation.

    Raises Untestable for other answers, because a chat template or an elicitation
    follows the insertion and helps the model to answer.
    """
    accuracy = _by_condition(answers, part, accuracy_by_problem)
    _require_conditions(accuracy, [condition])
    if not answers.plain.all():
        raise Untestable(
            "the prompt is a chat, or the answer is elicited after the insertion"
        )
    return _values(accuracy[[condition]], "share")


def accuracy_differences(
    answers: pd.DataFrame, part: str, pairs: Pairs
) -> xr.DataArray:
    """Return differences in accuracy, in points. An answer cut off by the token limit
    is graded like any other, so it is wrong unless it has a box already or one is
    elicited.
    """
    accuracy = _by_condition(answers, part, accuracy_by_problem)
    return _differences(accuracy, pairs, "difference")


def largest_gain(answers: pd.DataFrame, part: str) -> xr.DataArray:
    """Return the accuracy under each condition minus that under `none`, in points.

    The claim is about the largest gain; the kind "largest" corrects its interval for
    the selection of the best condition.
    """
    accuracy = _by_condition(answers, part, accuracy_by_problem).dropna()
    _require_conditions(accuracy, ["none"])
    if accuracy.shape[1] < 3:
        raise Untestable(
            f"the profile compares fewer than two conditions with none ({part})"
        )
    gains = accuracy.drop(columns="none").sub(accuracy["none"], axis=0)
    return _values(gains, "largest")


def sampling_differences(answers: pd.DataFrame, condition: str, k: int) -> xr.DataArray:
    """Return pass@k under a condition minus that under `none`, in points, from the part
    sampling.
    """
    points = POINTS * _by_condition(answers, "sampling", partial(_passed, k))
    _require_conditions(points, [condition, "none"])
    differences = {f"pass@{k}": points[condition] - points["none"]}
    return _values(differences, "difference")


def _passed(k: int, group: pd.DataFrame) -> pd.Series:
    """Return pass@k by problem from the answers under one condition; raise Untestable
    if a problem has fewer than k samples.
    """
    samples = right_by_sample(group)
    fewest = samples.count(axis=1).min()
    if fewest < k:
        raise Untestable(
            f"pass@{k} needs {k} samples of each problem, and {fewest} were taken"
        )
    return pd.Series(pass_at_k(samples, k), samples.index)


def likelihood_differences(
    scores: pd.DataFrame, target: str, pairs: Pairs
) -> xr.DataArray:
    """Return differences in log-likelihood, in nats per problem.

    target: the scored text, solution or answer.
    """
    return _differences(nats_by_condition(scores, target), pairs, "mean")


def likelihood_interaction(
    scores: pd.DataFrame, pair: tuple[str, str], less: tuple[str, str]
) -> xr.DataArray:
    """Return the difference in the log-likelihood of the reference solution between two
    conditions, minus that between two others, in nats per problem.
    """
    both = likelihood_differences(scores, "solution", [pair, less])
    first, second = both.transpose("component", ...)
    difference = (first - second).expand_dims(
        component=[f"({' - '.join(pair)}) - ({' - '.join(less)})"]
    )
    return difference.assign_attrs(kind="mean")


def ablation_differences(ablations: pd.DataFrame, pairs: Pairs) -> xr.DataArray:
    """Return differences in the log-likelihood of the reference solution, in nats per
    problem.
    """
    return likelihood_differences(ablations, "solution", pairs)


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
    statistic: Callable[[pd.DataFrame], pd.Series],
) -> pd.DataFrame:
    """Return a statistic of the answers of a part, in a table with a row per problem
    and a column per condition.

    statistic: returns a value per problem, given the answers under one condition.
    """
    groups = answer_groups(answers[answers.part == part])
    return pd.DataFrame({name: statistic(rows) for (_, name), rows in groups.items()})


def _require_conditions(table: pd.DataFrame, names: Iterable[str]) -> None:
    """Raise Untestable if a condition has no column."""
    missing = [name for name in dict.fromkeys(names) if name not in table]
    if missing:
        raise Untestable(f"the profile has nothing under {', '.join(missing)}")


def _differences(table: pd.DataFrame, pairs: Pairs, kind: str) -> xr.DataArray:
    """Return the first column of each pair minus the second."""
    _require_conditions(table, chain.from_iterable(pairs))
    return _values({f"{a} - {b}": table[a] - table[b] for a, b in pairs}, kind)


def _values(columns: Mapping[str, pd.Series] | pd.DataFrame, kind: str) -> xr.DataArray:
    """Return columns of values by problem as an array (network, component, problem),
    NaN for a problem without a value.

    kind: of the values, as in `lib.statistics.intervals`.
    """
    table = pd.DataFrame(columns)
    table = table.rename_axis(index="problem", columns="component")
    values = xr.DataArray(table).expand_dims(network=["trained"])
    return values.assign_attrs(kind=kind)
