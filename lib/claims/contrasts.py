"""What the likelihoods of a profile show: one condition less another per model, and
what a nat goes with.

scores = evaluation.scores(run)  # a row per text that was scored
table = differences(scores, "solution", run.filler)  # a row per pair of conditions and model, in nats per problem
"""

from itertools import product

import numpy as np
import pandas as pd
from scipy.special import expit

from lib.claims.measures import POSITIVE
from lib.errors import InputError
from lib.evaluation.answer_tables import shares
from lib.models.names import resolve
from lib.profiles import Profile
from lib.prompts.conditions import EVERY_LAYER, NO_LAYER, Filler, parse_condition
from lib.statistics import ENOUGH, interval

# of the positive control's gain: what lies within it counts as none, as the claims have
# it
SHARE = 0.1
# Pairs of conditions, by what is scored, and what the first has that the second lacks.
PAIRS = {
    "solution": {
        ("mless", "none"): "slashes, all in all",
        ("gap", "none"): "positions moved on",
        ("dilution", "gap"): "dilution in layer 1",
        ("layer-1-only", "dilution"): "values in layer 1",
        ("mless", "hidden-from-layer-1"): "layer 1 beside the others",
        POSITIVE: "a worked example",
    },
    "answer": {
        ("mless", "none"): "55 slashes",
        ("dots:50@end", "none"): "50 dots",
        ("pause:10@end", "none"): "10 pauses",
        ("pause:50@end", "none"): "50 pauses",
        ("dots-for-thought", "thought"): "dots for the solution",
        POSITIVE: "a worked example",
    },
}
COLUMNS = ("panel", "curve", "x", "model", "effect", "low", "high", "n", "band")


def one_problem(scores: pd.DataFrame) -> pd.DataFrame:
    """Return what the first model gives the gold solution of its first problem, a row
    per condition, none first.

    Raises InputError where nothing is scored.
    """
    if scores.empty:
        raise InputError(
            "nothing to show: the profile has no section `likelihood`, as"
            " data/profiles/families.yaml has"
        )
    rows = scores[(scores.model == scores.model[0]) & (scores.target == "solution")]
    table = rows[rows.problem_id == rows.problem_id.iloc[0]]
    table = table.sort_values(
        "condition", key=lambda names: names != "none", kind="stable", ignore_index=True
    )
    table["per token"], table["to none"] = (
        table.nats / table.tokens,
        table.nats - table.nats[0],
    )
    return table[["condition", "problem_id", "tokens", "nats", "per token", "to none"]]


def differences(scores: pd.DataFrame, target: str, filler: Filler) -> pd.DataFrame:
    """Return a row of COLUMNS per difference of log p(solution), or (answer), and
    model, in nats per problem.

    Panel pairs has those of PAIRS; length, place and depth what so many slashes, in
    another place, or seen by some layers only, give against none. `band` is what counts
    as no effect, NaN without the positive control. A difference has ENOUGH problems,
    and a curve two points.
    """
    some, rows = scores[scores.target == target], []
    asked = [
        ("pairs", text, f"{more} \N{MINUS SIGN} {less}", more, less)
        for (more, less), text in PAIRS[target].items()
    ]
    if target == "solution":
        asked += [
            (*place, name, "none")
            for name in some.condition.unique()
            for place in _places(name, filler)
        ]
    models = list(some.groupby("model", sort=False))
    tables = [
        (name, one.pivot(index="problem_id", columns="condition", values="nats"))
        for name, one in models
    ]
    for (*place, more, less), (model, nats) in product(asked, tables):
        nats = nats.reindex(
            columns=list({more, less, *POSITIVE})
        )  # NaN under a condition that was not scored
        apart, gain = (
            (nats[more] - nats[less]).dropna(),
            (nats[POSITIVE[0]] - nats[POSITIVE[1]]).mean(),
        )
        if len(apart) >= ENOUGH:
            found = interval(apart, apart.index)
            ends = found.estimate, found.low, found.high, found.n
            rows.append((*place, model, *ends, SHARE * gain if gain > 0 else np.nan))
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    points = table.groupby(["panel", "curve", "model"]).x.transform("nunique")
    return table[(table.panel == "pairs") | (points > 1)].reset_index(drop=True)


def _places(condition: str, filler: Filler) -> list[tuple]:
    """Return the panels that a condition belongs to, with curve and x: the profile's
    own length and place to two.
    """
    asked = parse_condition(condition)
    view = asked.view
    if asked.inserted != "mless" or asked.arm:
        return []
    if view == EVERY_LAYER:
        found: list[tuple] = []
        if not asked.position:
            found.append(("length", "slashes", asked.length or filler.length))
        if not asked.length:
            found.append(("place", "slashes", asked.position or filler.position))
        return found
    if view.silent or view == NO_LAYER or asked.length:
        return []
    hidden = ("depth", "hidden from layers 1 to k", view.first - 1)
    return [
        (
            hidden
            if view.last is None
            else ("depth", "shown to layers 1 to k alone", view.last)
        )
    ]


def unscored(run: Profile, scores: pd.DataFrame) -> list[str]:
    """Say what the profile asks for and nobody has scored on ENOUGH problems, in a
    sentence per model; none if none.
    """
    assert run.likelihood
    said = []
    for name in (resolve(spec).name for spec in run.likelihood.models):
        counts = scores[scores.model == name].value_counts(["target", "condition"])
        asked = (
            ("solution", run.likelihood.conditions),
            ("answer", run.likelihood.at_once),
        )
        missing = {
            t: [str(c) for c in some if counts.get((t, str(c)), 0) < ENOUGH]
            for t, some in asked
        }
        parts = [f"{t}s under {', '.join(some)}" for t, some in missing.items() if some]
        if parts:
            said.append(
                f"Not scored with {name}: {'; '.join(parts)}."
                if len(counts)
                else f"Not scored: {name}."
            )
    return said


def worth(scores: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Return per model what log p(solution) per token under none says of the answer
    under none: whether it is right.

    A correlation over problems: `slope` of a logistic regression in log odds per nat
    and token, `auc` the chance in % that of two problems the solved one has the
    likelier solution, `points` of accuracy that go with one nat on every solution, all
    with intervals. Models with both for ENOUGH problems, some solved and some not.
    """
    rows = []
    solutions = scores[
        (scores.target == "solution") & (scores.condition == "none")
    ].set_index("problem_id")
    for model, some in solutions.groupby("model", sort=False):
        answered = answers[(answers.model == model) & (answers.condition == "none")]
        both = some.join(shares(answered).rename("right"), how="inner")
        solved = both.right.to_numpy() > 50
        if len(both) >= ENOUGH and 0 < solved.sum() < len(both):
            tokens = both.tokens.to_numpy(float)
            likely = both.nats.to_numpy(float) / tokens
            slopes, steepness = _slopes(likely, solved)
            slope, area = (
                interval(slopes, both.index),
                interval(100 * _orders(likely, solved), both.index, "share"),
            )
            scale = 100 * float((steepness / tokens).mean())
            row = {"model": model, "n": len(both), "solved": 100 * solved.mean()}
            for what, found, by in (
                ("slope", slope, 1),
                ("auc", area, 1),
                ("points", slope, scale),
            ):
                row |= {
                    what: by * found.estimate,
                    f"{what}_low": by * found.low,
                    f"{what}_high": by * found.high,
                }
            rows.append(row)
    return pd.DataFrame(rows)


def _slopes(x: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays (N,): the slope of a logistic regression plus each problem's
    influence on it, and p (1 - p).

    The first has the slope as its mean, which has the slope's standard error too (the
    sandwich estimator).
    """
    design, beta = np.stack([np.ones_like(x), x - x.mean()], axis=1), np.zeros(2)
    for _ in range(50):  # Newton's method, which needs about 7
        chance = expit(design @ beta)
        steepness = chance * (1 - chance)
        weighted = (
            np.linalg.pinv(design.T @ (design * steepness[:, None]))
            @ (design * (right - chance)[:, None]).T
        )
        beta = beta + weighted.sum(1)
    return beta[1] + len(x) * weighted[1], steepness


def _orders(x: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return (N,) with the area under the ROC curve as mean, which has its standard
    error too (DeLong et al. 1988).
    """
    above = (
        np.sign(x[right][:, None] - x[~right]) / 2 + 0.5
    )  # (right, wrong): 1 in order, 0.5 for a tie
    values = np.empty(len(x))
    values[right] = above.mean() + (above.mean(1) - above.mean()) * len(x) / right.sum()
    values[~right] = (
        above.mean() + (above.mean(0) - above.mean()) * len(x) / (~right).sum()
    )
    return values
