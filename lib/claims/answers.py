"""What a claim on answers or on likelihoods asks of them: a number per problem for each component.

`answers` are a model's completions and `scores` its likelihoods, each a DataFrame with a row for each. Each function
returns (network, component, problem) of the one trained network, with the kind of its numbers (`lib.statistics`) as
attribute, or raises Untestable.
"""

from collections.abc import Sequence

import pandas as pd
import xarray as xr

from lib.claims import Untestable
from lib.evaluation.tables import distinct_2
from lib.statistics import POINTS, interval, pass_at_k

POSITIVE = ("example", "none")  # the control whose gain says how large an effect would be one: a worked example


def _values(parts: dict[str, pd.Series], kind: str) -> xr.DataArray:
    """Return Series by problem as the values of one network, NaN where a problem has none."""
    table = pd.DataFrame(parts)
    coords = {"network": ["trained"], "component": list(table), "problem": list(table.index)}
    found = xr.DataArray(table.T.to_numpy(float)[None], coords, ("network", "component", "problem"))
    return found.assign_attrs(kind=kind)


def _wide(values: pd.Series, names: Sequence[str], what: str) -> pd.DataFrame:
    """Return values by (problem, condition) as a column per condition; raises Untestable where one has none."""
    if missing := [name for name in names or ["none"] if name not in values.index.unique(1)]:
        raise Untestable(f"the profile {what} under {', '.join(missing)}")
    return values.unstack(sort=False)


def _by_problem(answers: pd.DataFrame, part: str, names: Sequence[str], column: str, how) -> pd.DataFrame:
    """Return an aggregate of a column over each problem's samples, a column per condition, of which some are needed."""
    some = answers[answers.part == part].drop_duplicates(["condition", "problem_id", "sample"])
    found = some.groupby(["problem_id", "condition"], sort=False)[column].agg(how)
    return _wide(found, names, f"answers no problems ({part})")


def _accuracies(answers: pd.DataFrame, part: str, names: Sequence[str]) -> pd.DataFrame:
    return POINTS * _by_problem(answers, part, names, "right", "mean")


def _named(pairs: Sequence[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(name for pair in pairs for name in pair))


def accuracy_unaided(answers: pd.DataFrame, part: str, condition: str) -> xr.DataArray:
    """Return the accuracy under a condition in %, where the model is left to write its answer itself."""
    found = _accuracies(answers, part, [condition])[condition]
    if not answers.plain.all():
        raise Untestable("the model is asked in chat form, or its answer is elicited after what was inserted")
    return _values({condition: found}, "share")


def accuracy_differences(answers: pd.DataFrame, part: str, pairs: Sequence[Sequence[str]]) -> xr.DataArray:
    """Return for each pair of conditions the accuracy of the first minus that of the second, in points."""
    solved = _accuracies(answers, part, _named(pairs))
    apart = {f"{more} - {less}": solved[more] - solved[less] for more, less in pairs}
    found = _values(apart, "difference")
    if len(pairs) > 1:
        return found
    ((more, less), only) = pairs[0], apart.popitem()[1]
    return found.assign_attrs(cut=_cut(answers, part, more, less, only))


def _cut(answers: pd.DataFrame, part: str, more: str, less: str, apart: pd.Series) -> dict[str, float]:
    """Return the shares of answers that were cut at the token limit, in %, and the effect where both ended."""
    ended = answers.assign(ended=answers.finish_reason.eq("stop").astype(float))
    shares = _by_problem(ended, part, [more, less], "ended", "mean")[[more, less]]
    row = {"cut": POINTS * (1 - shares[more].mean()), "cut_less": POINTS * (1 - shares[less].mean())}
    both = apart[(shares == 1).all(axis=1)].dropna()
    if both.empty:
        return row
    found = interval(both, both.index, "difference")
    return row | {
        "finished_n": found.n,
        "finished": found.estimate,
        "finished_low": found.low,
        "finished_high": found.high,
    }


def largest_gain(answers: pd.DataFrame, part: str) -> xr.DataArray:
    """Return each condition's accuracy minus that of none: the best of them is to be more than choosing it gives."""
    solved = _accuracies(answers, part, ["none"]).dropna()
    if solved.shape[1] < 3:
        raise Untestable(f"the profile compares fewer than two conditions with none ({part})")
    gains = {str(name): solved[name] - solved["none"] for name in solved if name != "none"}
    return _values(gains, "largest")


def _passed(answers: pd.DataFrame, names: Sequence[str], k: int) -> pd.DataFrame:
    """Return pass@k of each problem in %; raises Untestable where one has fewer samples."""
    fewest = _by_problem(answers, "sampling", names, "right", "size")[names].min().min()
    if fewest < k:
        raise Untestable(f"pass@{k} needs {k} samples of each problem, and {fewest:.0f} were taken")
    return _by_problem(answers, "sampling", names, "right", lambda some: POINTS * pass_at_k([some], k)[0])


def pass_differences(answers: pd.DataFrame, condition: str, k: int) -> xr.DataArray:
    """Return a condition minus none: pass@k, in points."""
    passed = _passed(answers, [condition, "none"], k)
    return _values({f"pass@{k}": passed[condition] - passed["none"]}, "difference")


def sampling_differences(answers: pd.DataFrame, condition: str, k: int) -> xr.DataArray:
    """Return a condition minus none: pass@k and the share of distinct 2-grams of a problem's samples, in points."""
    passed = _passed(answers, [condition, "none"], k)
    pairs = _by_problem(answers, "sampling", [], "response", lambda some: POINTS * distinct_2(some))
    both = {f"pass@{k}": passed, "distinct 2-grams": pairs}
    return _values({name: table[condition] - table["none"] for name, table in both.items()}, "difference")


def likelihood_differences(scores: pd.DataFrame, target: str, pairs: Sequence[Sequence[str]]) -> xr.DataArray:
    """Return for each pair of conditions log p under the first less that under the second, in nats per problem."""
    found = scores[scores.target == target].set_index(["problem_id", "condition"]).nats
    if found.empty:
        raise Untestable(f"the profile scores no {target}s")
    nats = _wide(found, _named(pairs), "scores nothing")
    return _values({f"{more} - {less}": nats[more] - nats[less] for more, less in pairs}, "mean")


def positive_gain(scores: pd.DataFrame, target: str) -> float:
    """Return the mean gain of the positive control in nats, the scale of what counts as no effect.

    Raises Untestable where it gains nothing: then there is no scale.
    """
    gain = float(likelihood_differences(scores, target, [POSITIVE]).mean())
    if gain <= 0:
        raise Untestable("the positive control gains nothing")
    return gain
