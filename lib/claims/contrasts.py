"""What likelihoods show: one condition less another, and what a nat goes with.

scores = evaluation.scores(run)  # a row per text that was scored
differences(scores, "solution", run.filler)  # a row per pair and model, in nats
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.claims.answer_measures import POSITIVE, likely_and_right
from lib.errors import InputError
from lib.models.names import resolve
from lib.profiles import Profile
from lib.prompts.conditions import EVERY_LAYER, NO_LAYER, Filler, parse_condition
from lib.statistics import ENOUGH, POINTS, interval, logistic_slopes, roc_values

# Of the positive control's gain: what lies within it counts as none, as the claims have
# it.
MARGIN_SHARE = 0.1
# Pairs of conditions, by what is scored, and what the first has that the second lacks.
PAIRS = {
    "solution": {
        ("mless", "none"): "slashes, all in all",
        ("gap", "none"): "positions moved on",
        ("layer-1-only", "gap"): "layer 1 alone",
        ("mless", "hidden-from-layer-1"): "layer 1 beside the others",
        ("hidden-from-layer-1", "gap"): "all later layers",
        ("dilution", "gap"): "layer 1 alone, values zero",
        ("arm", "none"): "ARM",
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
CONTRAST_COLUMNS = ("panel", "curve", "x", "model", "effect", "low", "high", "n")
CONTRAST_COLUMNS += ("band",)


class Contrast(NamedTuple):
    """Two conditions, and where their difference is drawn."""

    panel: str
    curve: str
    x: str | int
    more: str
    less: str


def one_problem(scores: pd.DataFrame) -> pd.DataFrame:
    """Return what the first model gives the worked solution of its median problem.

    That is the one for which slashes change as much as for the median of all. A row per
    condition, none first. Raises InputError where nothing is scored.
    """
    if scores.empty:
        raise InputError(
            "nothing to show: the profile has no section `likelihood`, as"
            " data/profiles/families.yaml has"
        )
    rows = scores[(scores.model == scores.model[0]) & (scores.target == "solution")]
    table = rows[rows.problem_id == _middle_problem(rows)]
    is_other = table.condition != "none"
    order = is_other.sort_values(kind="stable").index
    table = table.loc[order].reset_index(drop=True)
    table["per token"] = table.nats / table.tokens
    table["to none"] = table.nats - table.nats[0]
    return table[["condition", "problem_id", "tokens", "nats", "per token", "to none"]]


def _middle_problem(rows: pd.DataFrame) -> str:
    """Return the problem whose change by slashes is the median one of a model's, or the
    first where nothing of slashes is scored.
    """
    nats = rows.pivot(index="problem_id", columns="condition", values="nats")
    if "mless" not in nats:
        return rows.problem_id.iloc[0]
    change = (nats["mless"] - nats["none"]).dropna().sort_values(kind="stable")
    return change.index[(len(change) - 1) // 2]


def differences(scores: pd.DataFrame, target: str, filler: Filler) -> pd.DataFrame:
    """Return a row of CONTRAST_COLUMNS per model and difference of log p(solution) or
    log p(answer), in nats per problem.

    The panel pairs has the differences of PAIRS; length, place and depth have what so
    many slashes, in another place, or seen by some layers only, give against none.
    `band` is what counts as no effect, NaN without the positive control. A difference
    has ENOUGH problems, and a curve two points, all of the same problems.
    """
    scored = scores[scores.target == target]
    tables = {}
    bands = {}
    for model, rows in scored.groupby("model", sort=False):
        nats = rows.pivot(index="problem_id", columns="condition", values="nats")
        tables[model] = nats
        bands[model] = _band(nats)

    rows = []
    contrasts = list(_contrasts(scored, target, filler))
    for contrast in contrasts:
        place = contrast[:3]
        for model, nats in tables.items():
            if not {contrast.more, contrast.less} <= set(nats):
                continue
            apart = (nats[contrast.more] - nats[contrast.less]).dropna()
            if contrast.panel != "pairs":
                shared = _shared_problems(nats, contrasts, contrast.panel)
                apart = apart[apart.index.isin(shared)]
            if len(apart) >= ENOUGH:
                shown = interval(apart, apart.index)
                effect = (shown.estimate, shown.low, shown.high)
                rows.append((*place, model, *effect, shown.n, bands[model]))
    table = pd.DataFrame(rows, columns=list(CONTRAST_COLUMNS))

    points = table.groupby(["panel", "curve", "model"]).x.transform("nunique")
    drawn = (table.panel == "pairs") | (points > 1)
    return table[drawn].reset_index(drop=True)


def _contrasts(scores: pd.DataFrame, target: str, filler: Filler) -> Iterator[Contrast]:
    """Yield the contrasts that are drawn of what was scored."""
    for (more, less), text in PAIRS[target].items():
        x = f"{more} \N{MINUS SIGN} {less}"
        yield Contrast("pairs", text, x, more, less)
    if target == "solution":
        for condition in scores.condition.unique():
            for panel, curve, x in _places(condition, filler):
                yield Contrast(panel, curve, x, condition, "none")


def _shared_problems(
    nats: pd.DataFrame, contrasts: Sequence[Contrast], panel: str
) -> pd.Index:
    """Return the problems that a model scored at every point of a panel which has
    ENOUGH of them: a curve that changes its problems on the way shows both.
    """
    conditions = {contrast.more for contrast in contrasts if contrast.panel == panel}
    known = nats[["none", *sorted(conditions & set(nats))]]
    enough = known.columns[known.notna().sum() >= ENOUGH]
    return known[enough].dropna().index


def _band(nats: pd.DataFrame) -> float:
    """Return what counts as no effect of a model: a share of what the example gains."""
    if not set(POSITIVE) <= set(nats):
        return np.nan
    more, less = POSITIVE
    gain = (nats[more] - nats[less]).mean()
    return MARGIN_SHARE * gain if gain > 0 else np.nan


def _places(name: str, filler: Filler) -> list[tuple[str, str, str | int]]:
    """Return the panels that a condition belongs to, with curve and x.

    The profile's own length and place belong to two.
    """
    condition = parse_condition(name)
    view = condition.view
    if condition.inserted != "mless" or condition.arm:
        return []
    if view == EVERY_LAYER:
        places: list[tuple[str, str, str | int]] = []
        if not condition.position:
            length = condition.length or filler.length
            places.append(("length", "slashes", length))
        if not condition.length:
            place = condition.position or filler.position
            places.append(("place", "slashes", place))
        return places

    if view.silent or view == NO_LAYER or condition.length:
        return []
    if view.last is None:
        return [("depth", "hidden from layers 1 to k", view.first - 1)]
    return [("depth", "shown to layers 1 to k alone", view.last)]


def unscored(run: Profile, scores: pd.DataFrame) -> list[str]:
    """Say in a sentence per model what the profile asks for and nobody has scored on
    ENOUGH problems.
    """
    assert run.likelihood
    wanted = {
        "solution": run.likelihood.conditions,
        "answer": run.likelihood.at_once,
    }
    sentences = []
    for spec in run.likelihood.models:
        model = resolve(spec).name
        rows = scores[scores.model == model]
        counts = rows.value_counts(["target", "condition"])
        lacks = []
        for target, conditions in wanted.items():
            names = map(str, conditions)
            missing = [c for c in names if counts.get((target, c), 0) < ENOUGH]
            if missing:
                lacks.append(f"{target}s under {', '.join(missing)}")
        if lacks and len(rows):
            sentences.append(f"Not scored with {model}: {'; '.join(lacks)}.")
        elif lacks:
            sentences.append(f"Not scored: {model}.")
    return sentences


def worth(scores: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Return per model what log p(solution) per token says of the answer, under none.

    Whether it is right: a correlation over problems. `slope` of a logistic regression
    in log odds per nat and token, `auc` the chance in % that of two problems the solved
    one has the likelier solution, `points` of accuracy that go with one nat on every
    solution, all with intervals. Models with both for ENOUGH problems, some solved and
    some not.
    """
    rows = []
    unaided = scores[(scores.target == "solution") & (scores.condition == "none")]
    for model, solutions in unaided.groupby("model", sort=False):
        own = answers[answers.model == model]
        if not (own.condition == "none").any():
            continue
        both = likely_and_right(solutions, own)
        solved = both.right.to_numpy() > POINTS / 2
        if len(both) < ENOUGH or solved.all() or not solved.any():
            continue

        tokens = both.tokens.to_numpy()
        per_token = both.per_token.to_numpy()
        slopes, steepness = logistic_slopes(per_token, solved)
        slope = interval(slopes, both.index)
        area = interval(POINTS * roc_values(per_token, solved), both.index, "share")
        points = POINTS * float((steepness / tokens).mean())  # of a slope of 1
        row = {"model": model, "n": len(both), "solved": POINTS * solved.mean()}
        for name, shown, scale in (
            ("slope", slope, 1),
            ("auc", area, 1),
            ("points", slope, points),
        ):
            row[name] = scale * shown.estimate
            row[f"{name}_low"] = scale * shown.low
            row[f"{name}_high"] = scale * shown.high
        rows.append(row)
    return pd.DataFrame(rows)
