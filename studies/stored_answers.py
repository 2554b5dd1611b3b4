"""Every table that follows from stored answers and scores, mostly of the profile
families.

    python -m studies.stored_answers [TABLE ...]

Writes the named tables, or all of them, to studies/results and prints them. TABLES has
their names, and the docstring of each function says what a table shows. No model and no
network is needed; all tables take a few minutes. What these studies look at was decided
after the data had been seen, unless docs/findings.md says otherwise.
"""

import argparse
import functools
from collections.abc import Callable, Iterator
from itertools import product
from statistics import NormalDist

import numpy as np
import pandas as pd
import scipy

from lib.files.text_files import read_yaml
from lib.grading.authors_grader import is_correct_by_authors
from lib.prompts.conditions import AUTHORS_INSTRUCTION, INSTRUCTION
from lib.prompts.problems import listed_problems, sampling_order
from lib.statistics.importance_weighting import log_weights
from lib.statistics.intervals import (
    POINTS,
    RESAMPLES,
    holm,
    interval,
)
from lib.statistics.proportions import mcnemar_exact
from reproduction import evaluation
from reproduction.evaluation.answer_tables import (
    PAPER,
    accuracy_by_problem,
    answer_groups,
    by_limit,
    mean_and_bounds,
    p_value_of_mean,
    right_by_sample,
    summarise,
    with_token_limit,
)
from reproduction.evaluation.pass_rate_tables import POINTS_INTERVAL, pass_rate_table
from reproduction.evaluation.rows import is_truncated
from reproduction.evaluation.weighted_pass_rates import is_mixed, weighted_differences
from reproduction.profiles import SAMPLING_CONDITIONS, load_profile
from studies.keeping import RESULTS, keep
from studies.stored_contrasts import (
    CHANGE,
    attention_taken,
    change_of_nats,
    contrasts,
    first_token,
    lambda_and_nats,
    single_problems,
    verdict_counts,
)

Z_ALPHA = NormalDist().inv_cdf(0.975)  # two-sided test at 5 %
Z_POWER = NormalDist().inv_cdf(0.8)  # power of 80 %
# The model whose answers were looked at while their number grew, and the number of
# problems at the last look before all were drawn.
GROWING = "Qwen2.5-Coder-0.5B-Instruct"
LAST_LOOK = 320


@functools.cache
def answers(part: str = "main") -> pd.DataFrame:
    """Return the answers of a part: main are greedy, draws sampled, direct without
    reasoning.
    """
    return evaluation.answers(load_profile("families"), part)


@functools.cache
def draws() -> pd.DataFrame:
    """Return the sampled answers with their scores, as `scored_draws` does."""
    found = evaluation.draws(load_profile("families"))
    assert found is not None
    return found


@functools.cache
def solutions() -> pd.DataFrame:
    """Return the log-likelihoods of reference solutions."""
    scores = evaluation.scores(load_profile("families"))
    return scores[scores["target"] == "solution"]


def by_model(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each model and its rows, in order of appearance."""
    for model, rows in table.groupby("model", sort=False):
        yield str(model), rows


def change_by_slashes(of_model: pd.DataFrame) -> pd.Series:
    """Return the change in accuracy of each problem, in points, by counting."""
    none, mless = (
        accuracy_by_problem(of_model[of_model["condition"] == condition])
        for condition in ("none", "mless")
    )
    return (mless - none).dropna()


# ---- token limits --------------------------------------------------------------------

LIMITS = (256, 320, 384, 448, 512, 576, 640, 704, 768)  # of greedy answers
SAMPLED_LIMITS = (*LIMITS, 1536)  # the last is that of the answers


def same_limits(greedy: pd.DataFrame, sampled: pd.DataFrame) -> pd.DataFrame:
    """A row per model and limit: how much more slashes change greedy answers than
    sampled ones to the same problems (`change`), both by counting.

    p_holm is corrected for the limits of a model. `without` and `with_slashes` are
    greedy less sampled accuracy under each prompt.
    """
    tables = []
    for model, of_model in by_model(greedy):
        is_same = sampled["problem_id"].isin(of_model["problem_id"])
        drawn = sampled[is_same & (sampled["model"] == model)]
        changes = _greedy_less_sampled(of_model, drawn)
        p_values = p_of_limits(changes)
        rows = []
        for (limit, change), p in zip(changes.items(), p_values, strict=True):
            row = {"model": model, "limit": limit, "n": len(change)}
            rows.append(row | mean_and_bounds(CHANGE, change, "mean") | {"p_value": p})
        one, other = by_limit(of_model, LIMITS), by_limit(drawn, LIMITS)
        table = pd.DataFrame(rows).assign(
            without=one["none"] - other["none"],
            with_slashes=one["mless"] - other["mless"],
            p_holm=holm(p_values),
        )
        tables.append(table)
    return pd.concat(tables)


PLANNED_LIMITS = (512, 768)  # of number_formats, in data/claims.yaml


def number_formats() -> pd.DataFrame:
    """A row per condition, limit and pair of kinds of answers: the difference in
    accuracy of the model that has answers of all kinds, on the same problems: greedy in
    bfloat16, greedy in float32, and sampled.

    An answer that a limit cuts off counts as wrong even if it has a box by then, which
    is known only at the limit of the greedy answers.
    """
    parts = {"bfloat16": "main", "float32": "comparisons", "sampled": "draws"}
    rows = []
    for condition, limit in product(("mless", "none"), PLANNED_LIMITS):
        right = pd.DataFrame()
        for kind, part in parts.items():
            _, given = next(by_model(with_token_limit(answers(part), limit)))
            ended = given.assign(right=given["right"] & ~is_truncated(given))
            under = ended[ended["condition"] == condition]
            right[kind] = accuracy_by_problem(under)
        for one, other in (("float32", "sampled"), ("bfloat16", "float32")):
            change = (right[one] - right[other]).dropna()
            row = {"condition": condition, "limit": limit, "one": one, "other": other}
            row |= {"n": len(change)} | mean_and_bounds(CHANGE, change, "difference")
            rows.append(row | {"p_value": p_value_of_mean(change, "difference")})
    return pd.DataFrame(rows)


# ---- findings by chance --------------------------------------------------------------

# Enough for a standard error of 0.001 in the p-value of a cut, which is near 0.05.
SHUFFLES = 60_000
AT_ONCE = 500  # shuffles in one array, which limits the memory
CUTS = np.arange(100, 401)  # problems before the cut
BLOCKS = 10


def chance(
    points: np.ndarray, greedy: pd.DataFrame, sampled: pd.DataFrame
) -> pd.DataFrame:
    """P-values of three findings that were noticed by looking at parts of the data.

    If many cuts or limits could have been chosen, the p-value compares the largest
    statistic with its null distribution: that of shuffled problems for cuts and blocks,
    of random signs of the problems' changes for limits.
    """
    rows = [{"of": "weighted samples"} | row for row in of_blocks(points)]
    changes = {"greedy answers": changes_by_limit(greedy, LIMITS)}
    changes["sampled answers"] = changes_by_limit(sampled, SAMPLED_LIMITS)
    changes["greedy less sampled"] = _greedy_less_sampled(greedy, sampled)
    for name, by_limit_ in changes.items():
        rows += [{"of": name} | row for row in of_limits(by_limit_)]
    return pd.DataFrame(rows)


def changes_by_limit(given: pd.DataFrame, limits_: tuple[int, ...]) -> pd.DataFrame:
    """Return the change of each problem by slashes, with a column per limit."""
    changes = {
        limit: change_by_slashes(with_token_limit(given, limit)) for limit in limits_
    }
    return pd.DataFrame(changes).sort_index()


def _greedy_less_sampled(greedy: pd.DataFrame, sampled: pd.DataFrame) -> pd.DataFrame:
    """Return how much more each problem's greedy answer gains, by limit."""
    changes = changes_by_limit(greedy, LIMITS) - changes_by_limit(sampled, LIMITS)
    return changes.dropna()


def of_blocks(points: np.ndarray) -> list[dict]:
    """Return rows on whether the effect depends on a problem's position in the sample.

    points: the weighted change of each problem, in the sample's order. A cut compares
    the problems before it with those after it.
    """
    rng = np.random.default_rng(0)
    cut = float(z_of_cuts(points, np.array([LAST_LOOK]))[0])
    largest = np.abs(z_of_cuts(points, CUTS)).max()
    spread = float(_spread_of_blocks(points))
    by_chance, spreads = [], []
    for _ in range(SHUFFLES // AT_ONCE):
        shuffled = rng.permuted(np.tile(points, (AT_ONCE, 1)), axis=1)
        by_chance.append(np.abs(z_of_cuts(shuffled, CUTS)).max(-1))
        spreads.append(_spread_of_blocks(shuffled))
    of_largest = _share_reaching(by_chance, largest)
    cuts = f"largest of cuts from {CUTS[0]} to {CUTS[-1]}"
    return [
        _row(f"cut at {LAST_LOOK}", cut, 2 * scipy.stats.norm.sf(abs(cut))),
        _row(cuts, largest, of_largest),
        _row(f"{BLOCKS} blocks", spread, _share_reaching(spreads, spread)),
    ]


def z_of_cuts(points: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Return for each cut the mean before it minus the mean after it, in standard
    errors of that difference: (..., cuts) from points (..., N).
    """
    sums, squares = np.cumsum(points, -1), np.cumsum(points**2, -1)
    before, after = cuts, points.shape[-1] - cuts
    sum_before, square_before = sums[..., cuts - 1], squares[..., cuts - 1]
    mean_before = sum_before / before
    mean_after = (sums[..., -1:] - sum_before) / after
    variance_before = square_before / before - mean_before**2
    variance_after = (squares[..., -1:] - square_before) / after - mean_after**2
    error = np.sqrt(variance_before / (before - 1) + variance_after / (after - 1))
    return (mean_before - mean_after) / error


def _spread_of_blocks(points: np.ndarray) -> np.ndarray:
    """Return the standard deviation over the means of BLOCKS blocks of points (..., N),
    in points.
    """
    means = [block.mean(-1) for block in np.array_split(points, BLOCKS, axis=-1)]
    return np.std(means, axis=0, ddof=1)


def of_limits(by_limit_: pd.DataFrame) -> list[dict]:
    """Return rows on one model's changes, a column per limit: the limit with the
    smallest p-value by itself, after Holm's correction, and as the largest of all.
    """
    changes = by_limit_.to_numpy() / POINTS
    p_values = p_of_limits(by_limit_)
    best = int(np.argmin(p_values))

    # Standard errors of the sums without an effect; a limit without any change has
    # a z of 0.
    errors = np.sqrt((changes**2).sum(0)).clip(min=1)
    z = changes.sum(0) / errors
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], size=(RESAMPLES, len(changes)))
    by_chance = np.abs(signs @ changes / errors).max(1)
    largest = np.abs(z).max()
    corrected = f"the same, Holm over {len(p_values)} limits"
    of_largest = _share_reaching(by_chance, largest)
    return [
        _row(f"limit of {by_limit_.columns[best]} tokens", z[best], p_values[best]),
        _row(corrected, z[best], holm(p_values)[best]),
        _row(f"largest of {len(p_values)} limits", largest, of_largest),
    ]


def p_of_limits(by_limit_: pd.DataFrame) -> list[float]:
    """Return the p-value of the change at each limit: McNemar's if a problem has one
    answer under each prompt, else that of a mean over problems.
    """
    p_values = []
    for _, change in by_limit_.items():
        if change.isin([-POINTS, 0, POINTS]).all():
            p_values.append(mcnemar_exact((change < 0).sum(), (change > 0).sum()))
        else:
            p_values.append(p_value_of_mean(change))
    return p_values


def _share_reaching(by_chance: np.ndarray | list[np.ndarray], found: float) -> float:
    """Return the p-value: the share of statistics, including the observed one, that are
    at least as large as the observed one, up to rounding.
    """
    reached = np.asarray(by_chance) >= found * (1 - 1e-9)
    return (reached.sum() + 1) / (reached.size + 1)


def _row(question: str, statistic: float, p_value: float) -> dict:
    return {"question": question, "statistic": statistic, "p_value": p_value}


# ---- greedy, sampled and pooled answers ----------------------------------------------


def greedy_and_sampled(greedy: pd.DataFrame, drawn: pd.DataFrame) -> pd.DataFrame:
    """A row per model: the change by slashes of greedy answers, of weighted samples to
    the same problems, and the difference between the two, which is paired.
    """
    rows = []
    for model, of_model in by_model(greedy):
        sampled = weighted_differences(drawn[drawn["model"] == model], "mless", "none")
        both = {"greedy": change_by_slashes(of_model), "sampled": sampled}
        changes = pd.DataFrame(both).dropna()
        changes["difference"] = changes["greedy"] - changes["sampled"]
        row = {"model": model, "n": len(changes)}
        for name, values in changes.items():
            row |= mean_and_bounds(
                [name, f"{name}_low", f"{name}_high"], values, "mean"
            )
        row["p_value"] = scipy.stats.ttest_1samp(changes["difference"], 0).pvalue
        rows.append(row)
    return pd.DataFrame(rows)


def pooled(direct: pd.DataFrame) -> pd.DataFrame:
    """A row per condition: its change from none, in points, over several models.

    A problem's change is the mean over the models that answered it, so the interval is
    over problems and takes the models as fixed. `p_holm` is corrected for the rows;
    gained and lost are numbers of answers.
    """
    labels = ["condition", "model"]
    right = direct.pivot(index="problem_id", columns=labels, values="right")
    points = POINTS * right.astype(float)
    rows = []
    for condition in direct["condition"].unique():
        if condition == "none":
            continue
        changes = points[condition] - points["none"]  # a column per model
        change = changes.mean(axis=1).dropna()
        row = {"condition": condition, "models": changes.shape[1], "n": len(change)}
        row |= mean_and_bounds(["effect", "low", "high"], change, "mean")
        row["p_value"] = p_value_of_mean(change)
        row["gained"] = int((changes > 0).to_numpy().sum())
        row["lost"] = int((changes < 0).to_numpy().sum())
        rows.append(row)
    table = pd.DataFrame(rows)
    return table.assign(p_holm=holm(table["p_value"]))


# ---- precision -----------------------------------------------------------------------

TIMES_SHUFFLED = 400
MORE = 16  # answers to a problem


def precision(greedy: pd.DataFrame, drawn: pd.DataFrame) -> pd.DataFrame:
    """A row per model and kind of answers: the change in points that is significant
    with 80 % power at this n (`detectable`).

    More problems narrow an interval; MORE answers to each problem (half_width_more)
    only reduce the part of its width that is sampling noise. This noise is estimated by
    shuffling the right answers among the answers to the same problem, so that no prompt
    can have made them more likely (by_shuffling).
    """
    rows = []
    for model, of_model in by_model(greedy):
        rows.append({"model": model, "way": "greedy"})
        rows[-1] |= _widths(change_by_slashes(of_model))
    for model, of_model in by_model(drawn):
        points = weighted_differences(of_model, "mless", "none")
        row = {"model": model, "way": "sampled, weighted"} | _widths(points)
        by_shuffling = _variance_by_shuffling(of_model)
        of_problems = max(row["variance"] - by_shuffling, 0)
        count = len(of_model) / len(points)
        of_draws = (row["variance"] - of_problems) * count / MORE
        error = np.sqrt((of_problems + of_draws) / len(points))
        row |= {"by_shuffling": by_shuffling, "answers": count, "more": MORE}
        rows.append(row | {"half_width_more": Z_ALPHA * error})
    return pd.DataFrame(rows)


def _widths(points: pd.Series) -> dict[str, float]:
    """Return n, half-width and detectable change of the mean of the problems'
    changes.
    """
    error = interval(points, points.index).error
    return {
        "n": len(points),
        "half_width": Z_ALPHA * error,
        "detectable": (Z_ALPHA + Z_POWER) * error,
        "variance": points.var(),
    }


def _variance_by_shuffling(drawn: pd.DataFrame) -> float:
    """Return the mean square of the problems' weighted changes after shuffling the
    grades within each problem.
    """
    rng = np.random.default_rng(0)
    mixed = drawn[is_mixed(drawn)].sort_values("problem_id", kind="stable")
    problem = mixed["problem_id"].to_numpy()
    right = mixed["right"].to_numpy()
    squares = []
    for _ in range(TIMES_SHUFFLED):
        # A random order within each problem.
        order = np.lexsort((rng.random(len(problem)), problem))
        shuffled = mixed.assign(right=right[order])
        squares.append((weighted_differences(shuffled, "mless", "none") ** 2).sum())
    return float(np.mean(squares)) / drawn["problem_id"].nunique()


# ---- likelihood and accuracy ---------------------------------------------------------


def nats_and_points(scores: pd.DataFrame, drawn: pd.DataFrame) -> pd.DataFrame:
    """A row per model: Spearman's correlation over problems between the change of log p
    of the solution and that of accuracy, both by slashes.
    """
    rows = []
    for model, of_model in by_model(drawn):
        nats = change_of_nats(scores[scores["model"] == model], "mless", "none")
        points = weighted_differences(of_model, "mless", "none")
        both = pd.DataFrame({"nats": nats, "points": points}).dropna()
        ranks = scipy.stats.pearsonr(both["nats"].rank(), both["points"].rank())
        low, high = ranks.confidence_interval()
        row = {"model": model, "rho": ranks.statistic, "rho_low": low, "rho_high": high}
        rows.append(row | {"p_value": ranks.pvalue, "n": len(both)})
    return pd.DataFrame(rows)


# ---- right and wrong answers ---------------------------------------------------------

OWN_ANSWERS = {
    "a gap": ("gap", "none"),
    "slashes in the gap": ("mless", "gap"),
    "layer 1 in addition to later layers": ("mless", "hidden-from-layer-1"),
    "slashes": ("mless", "none"),
}


def right_minus_wrong(drawn: pd.DataFrame) -> pd.DataFrame:
    """A row per change and model: how much likelier, in nats, it makes the model's own
    right answers than its own wrong answers to the same problem.

    Only a problem with both kinds of answers says anything about that.
    """
    rows = []
    for name, (treatment, reference) in OWN_ANSWERS.items():
        for model, of_model in by_model(drawn[is_mixed(drawn)]):
            change = (of_model[treatment] - of_model[reference]).astype(float)
            keys = [of_model["problem_id"], of_model["right"].astype(bool)]
            means = change.groupby(keys).mean().unstack()
            both = (means[True] - means[False]).dropna()
            row = {"change": name, "treatment": treatment, "reference": reference}
            row |= {"model": model, "n": len(both)}
            rows.append(row | mean_and_bounds(["nats", "low", "high"], both, "mean"))
    return pd.DataFrame(rows)


def rescue(drawn: pd.DataFrame) -> pd.DataFrame:
    """Two rows per model: whether slashes solve what fails without them, in %.

    In the first, how often another answer is right after a wrong one without slashes:
    the other one without them, or one with them. In the second, how often one of two
    answers under the other prompt is right if none of two is: without slashes and then
    with them (`slashes`), and the reverse (`none`). n counts the wrong answers, or the
    problems without a right one.
    """
    rows = []
    for model, of_model in by_model(drawn):
        right = of_model.groupby(["problem_id", "drawn_under"])["right"].sum()
        none, mless = (right.xs(name, level=1) for name in ("none", "mless"))
        wrong, unsolved, unsolved_with = 2 - none, none == 0, mless == 0
        questions = {
            "another answer after a wrong one": (
                (wrong * mless / 2, wrong),
                (none == 1, wrong),
            ),
            "solved by one of two after none": (
                (unsolved & (mless > 0), unsolved),
                (unsolved_with & (none > 0), unsolved_with),
            ),
        }
        for question, (with_slashes, without) in questions.items():
            solved_with, solved_without = _share(*with_slashes), _share(*without)
            row = {"question": question, "model": model}
            row |= {"n": int(with_slashes[1].sum())}
            row |= {"slashes": solved_with.mean(), "none": solved_without.mean()}
            change = solved_with - solved_without
            rows.append(row | mean_and_bounds(CHANGE, change, "mean"))
    return pd.DataFrame(rows)


def _share(part: pd.Series, whole: pd.Series) -> pd.Series:
    """Return numbers by problem whose mean is sum(part) / sum(whole) in %, with its
    variance by the delta method.
    """
    part, whole = part.astype(float), whole.astype(float)
    share = part.mean() / whole.mean()
    return POINTS * (share + (part - share * whole) / whole.mean())


# ---- weights -------------------------------------------------------------------------

PAIRS = [
    ("mless", "none"),
    ("mless", "hidden-from-layer-1"),
    ("layer-1-only", "gap"),
    ("arm", "none"),
]
OF_MIXED = ["of_mixed", "of_mixed_low", "of_mixed_high"]


def weights(drawn: pd.DataFrame) -> pd.DataFrame:
    """A row of `pass_rate_table` per model and pair of PAIRS.

    The columns added are `worth`, how many times as many answers counting would need
    for an interval of the same width; `right`, the % of right answers without slashes;
    and `refused`, whether the weights are too uneven for an estimate.
    """
    table = pass_rate_table(drawn, PAIRS)
    by_counting = table["observed_high"] - table["observed_low"]
    by_weights = table["high"] - table["low"]
    without = drawn[drawn["drawn_under"] == "none"]
    right = without["right"].astype(float).groupby(without["model"]).mean()
    return table.assign(
        worth=(by_counting / by_weights) ** 2,
        right=POINTS * table["model"].map(right),
        refused=table["points"].isna(),
    )


def mixed_weights(drawn: pd.DataFrame) -> pd.DataFrame:
    """A row per model and condition: the mean weight of answers to problems with both
    right and wrong answers. Over the answers to all problems it would have to be 1.
    """
    rates = load_profile("families").pass_rates
    assert rates
    conditions = [str(condition) for condition in rates.conditions]
    rows = []
    for model, table in by_model(drawn[is_mixed(drawn)]):
        halves = table[list(SAMPLING_CONDITIONS)].to_numpy()
        weight = np.exp(log_weights(table[conditions].to_numpy(), halves))
        weights_ = pd.DataFrame(weight, columns=conditions)
        means = weights_.groupby(table["problem_id"].to_numpy()).mean()
        for condition, by_problem in means.items():
            row = {"model": model, "condition": condition, "answers": len(table)}
            rows.append(row | mean_and_bounds(OF_MIXED, by_problem, "mean"))
    return pd.DataFrame(rows)


def baselines(drawn: pd.DataFrame) -> pd.DataFrame:
    """The weighted change by slashes with other baselines than the pass rate of the
    other answers: a row per model and baseline, either none or, self-normalised, the
    weighted pass rate of the problem's answers under each prompt.

    A problem that is not mixed counts as no change, since its answers have no scores.
    """
    rows = []
    for model, table in by_model(drawn):
        nats = table[["none", "mless"]].to_numpy()
        weight = np.exp(log_weights(nats, nats))
        weight[~is_mixed(table)] = 1
        weighted = pd.DataFrame(weight, table.index)
        problem = table["problem_id"]
        right = weighted.mul(table["right"], axis=0).groupby(problem)
        sizes = {
            "none": problem.value_counts().sort_index(),
            "self-normalised": weighted.groupby(problem).sum().T,
        }
        for name, size in sizes.items():
            rates = right.sum().T / size
            change = POINTS * (rates.loc[1] - rates.loc[0])
            points = mean_and_bounds(POINTS_INTERVAL, change, "mean")
            rows.append({"model": model, "baseline": name} | points)
    return pd.DataFrame(rows)


def paper_gains(table: pd.DataFrame) -> pd.DataFrame:
    """A row per model of `weights`: by how many points it would gain with the odds
    ratio of Qwen2.5-Math-1.5B in the paper's Table 1 (`gain`), and the lowest and the
    highest gain by the odds ratios of the models in Tables 1 and 5.
    """
    paper = read_yaml(PAPER)
    reported = pd.concat(
        pd.DataFrame(paper[name]["values"]).T for name in ("table1", "table5")
    )
    odds = reported / (POINTS - reported)
    ratios = odds["mless"] / odds["none"]
    rows = []
    for model, of_model in by_model(table):
        right = of_model["right"].iloc[0]
        new_odds = ratios * right / (POINTS - right)
        gains = POINTS * new_odds / (1 + new_odds) - right
        row = {"model": model, "gain": gains.iloc[0]}
        rows.append(row | {"lowest": gains.min(), "highest": gains.max()})
    return pd.DataFrame(rows)


def processors(sampled: pd.DataFrame) -> pd.DataFrame:
    """A row per model and kind of processor: how many sampled answers it wrote."""
    on_gpu = sampled["processor"].str.startswith("NVIDIA")
    kinds = on_gpu.map({True: "GPU", False: "CPU"})
    by_kind = sampled.groupby(["model", kinds], sort=False)
    return by_kind.size().reset_index(name="answers")


def blocks(drawn: pd.DataFrame, order: list[str]) -> pd.DataFrame:
    """The row of `weights` for slashes on the first LAST_LOOK problems of the sample,
    and on the others.
    """
    is_first = drawn["problem_id"].isin(order[:LAST_LOOK])
    parts = {
        f"first {LAST_LOOK}": weights(drawn[is_first]).head(1),
        "others": weights(drawn[~is_first]).head(1),
    }
    return pd.concat(parts, names=["problems"]).reset_index("problems")


def in_order() -> list[str]:
    """Return the ids of the problems of MATH-500 in the order in which they were
    sampled, stratified by their levels.
    """
    seed = load_profile("families").seed
    return [problem.id for problem in sampling_order(listed_problems("math500"), seed)]


# ---- the authors' rule ---------------------------------------------------------------

# By the column of a rule's verdicts: the prompt that the authors' rule reads.
PROMPTS = {"rule_our_prompt": INSTRUCTION, "rule_authors_prompt": AUTHORS_INSTRUCTION}


def authors_rule(profile: str) -> pd.DataFrame:
    r"""A row per model and condition of a profile: the accuracy by this project's
    grader and by the authors' rule, which depends on the prompt that it reads.

    The rule looks for the last `\boxed{...}` of prompt plus answer. Their instruction
    carries `\boxed{{}}`, whose content, a pair of braces, is in no gold answer; ours
    carries `\boxed{}`, and an empty text is contained in every gold answer. So an
    answer without a box is wrong by the rule with their prompt, and right with ours.
    """
    greedy = evaluation.answers(load_profile(profile)).sort_values(
        "model", kind="stable"
    )
    rows = []
    for (model, condition), group in answer_groups(judged(greedy)).items():
        row = {"profile": profile, "part": "main", "model": model}
        row |= {"condition": condition, "n": group["problem_id"].nunique()}
        for name in ("ours", *PROMPTS):
            by_problem = POINTS * right_by_sample(group, name).mean(axis=1)
            row |= mean_and_bounds([name, f"{name}_low", f"{name}_high"], by_problem)
        rows.append(row)
    return pd.DataFrame(rows)


def judged(given: pd.DataFrame) -> pd.DataFrame:
    """Return answers with a column for our grader and each of PROMPTS: whether the rule
    accepts the answer.
    """
    # The rule only reads the last box, and that of a prompt is in its instruction.
    by_rule = {"ours": given["correct"]}
    for name, prompt in PROMPTS.items():
        by_rule[name] = [
            is_correct_by_authors(row.answer, prompt, row.response)
            for row in given.itertuples()
        ]
    return given.assign(**by_rule)


# ---- the command ---------------------------------------------------------------------


def _growing() -> pd.DataFrame:
    return draws()[draws()["model"] == GROWING]


def _chance() -> pd.DataFrame:
    points = weighted_differences(_growing(), "mless", "none")
    first, greedy = next(by_model(answers()))
    sampled = answers("draws")[answers("draws")["model"] == first]
    return chance(points.loc[in_order()].to_numpy(), greedy, sampled)


def _ablations() -> pd.DataFrame:
    return evaluation.scores(load_profile("families"), "ablations")


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "limits": lambda: by_limit(answers(), LIMITS),
    "sampled_limits": lambda: by_limit(answers("draws"), SAMPLED_LIMITS),
    "same_limits": lambda: same_limits(answers(), answers("draws")),
    "number_formats": number_formats,
    "float32_limits": lambda: by_limit(answers("comparisons"), PLANNED_LIMITS),
    "chance": _chance,
    "greedy_and_sampled": lambda: greedy_and_sampled(answers(), draws()),
    "pooled": lambda: pooled(answers("direct")),
    "precision": lambda: precision(answers(), draws()),
    "nats_and_points": lambda: nats_and_points(solutions(), draws()),
    "right_minus_wrong": lambda: right_minus_wrong(draws()),
    "rescue": lambda: rescue(draws()),
    "contrasts": lambda: contrasts(solutions(), _ablations()),
    "lambda_and_nats": lambda_and_nats,
    "single_problems": lambda: single_problems(_ablations()),
    "attention_taken": attention_taken,
    "first_token": first_token,
    "verdict_counts": lambda: verdict_counts("families"),
    "authors_verdict_counts": lambda: verdict_counts("authors"),
    "authors_answers": lambda: summarise(evaluation.answers(load_profile("authors"))),
    "weights": lambda: weights(draws()),
    "mixed_weights": lambda: mixed_weights(draws()),
    "baselines": lambda: baselines(draws()),
    "paper_gains": lambda: paper_gains(weights(draws())),
    "processors": lambda: processors(answers("draws")),
    "blocks": lambda: blocks(_growing(), in_order()),
    "authors_rule": lambda: pd.concat(map(authors_rule, ("families", "demo"))),
}


def main() -> None:
    """Write the tables that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], metavar="TABLE")
    for name in parser.parse_args().tables or TABLES:
        keep(RESULTS / f"{name}.csv", TABLES[name]())


if __name__ == "__main__":
    main()
