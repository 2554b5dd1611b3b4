"""How often the checks of weights detect answers that were not drawn as scored.

    python -m studies.weights_checks [--simulations 240]

An answer is a path of TOKENS tokens, each chosen out of OPTIONS. Answers are drawn
under two prompts; no answer is drawn under a third prompt, which is close to the
second, as slashes hidden from layer 1 are to slashes. Answers are scored at temperature
0.6 and in full precision. They are drawn in the same way, or at another temperature,
with top-p, or with rounding that changes log ratios as much as bfloat16 changed those
of an earlier sample (CHANGELOG.md); or the scores are rounded instead, or those
under the second prompt are all too high by the same amount, as if a token of its texts
were left out. Each simulation has 440 answers to 110 problems, like the stored
estimate.

Writes studies/results/weights_checks.csv and prints it: a row per way to draw, with the
means of the slope and of the mean weights of the second and the third prompt; how often
the interval of each excludes 1; how often the estimate is withheld, because one of
these intervals excludes 1 or the effective sample size is below half of the answers;
and the bias of the difference between the second and the first prompt, and between the
second and the third, in points, with its standard error over simulations.
"""

import argparse
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy

from lib.evaluation.weighted_pass_rates import MIN_EFFECTIVE_SHARE
from lib.statistics.importance_weighting import (
    AccuracyDifference,
    accuracy_difference,
)
from lib.statistics.intervals import POINTS, Interval
from studies.keeping import RESULTS, keep

PROBLEMS, EACH = 110, 2  # answers of either prompt
TOKENS, OPTIONS = 20, 8
LOGITS = 2.0  # standard deviation over options
CHANGE = 0.235  # of what a prompt adds to the logits: log ratios vary by 1.2 nats
CHANGE_OF_THIRD = 0.09  # of the third prompt's logits against the second's
GAIN = 0.1  # of that change, the share that goes with better tokens
TEMPERATURE = 0.6  # at which answers are scored
AT_ONCE = 20  # simulations in one array, which limits the memory


@dataclass(frozen=True)
class Drawing:
    """How answers are drawn."""

    temperature: float = TEMPERATURE
    top_p: float = 1.0
    rounding: float = 0.0  # standard deviation of what it adds to the logits
    rounding_of_scores: float = 0.0
    offset: float = 0.0  # nats by which scores under the second prompt are too high


# Rounding of this size changes log ratios by about BFLOAT16_CHANGE nats on average, as
# bfloat16 did in an earlier sample of Qwen2.5-Coder-1.5B-Instruct.
BFLOAT16 = 0.065
BFLOAT16_CHANGE = 0.34
DRAWINGS = {
    "as scored": Drawing(),
    "temperature 0.5": Drawing(temperature=0.5),
    "temperature 0.8": Drawing(temperature=0.8),
    "temperature 1": Drawing(temperature=1.0),
    "top-p 0.95": Drawing(top_p=0.95),
    "top-p 0.8": Drawing(top_p=0.8),
    "rounding as of bfloat16": Drawing(rounding=BFLOAT16),
    "twice that rounding": Drawing(rounding=2 * BFLOAT16),
    "scores rounded as of bfloat16": Drawing(rounding_of_scores=BFLOAT16),
    "scores of one prompt 0.3 nats too high": Drawing(offset=0.3),
    "scores of one prompt 1 nat too high": Drawing(offset=1.0),
}


@dataclass(frozen=True)
class Paths:
    """Answers (S, N) of S simulations, as `accuracy_difference` takes them."""

    right: np.ndarray
    log_p: np.ndarray  # (S, N, 3): under the two prompts that drew, and a third
    rounded: np.ndarray  # (S, N, 2): log p with the logits that drew the answers
    drawn_from: np.ndarray  # (N,)
    problem: np.ndarray  # (N,)


def draw(drawing: Drawing, simulations: int, rng: np.random.Generator) -> Paths:
    """Return answers that a simulated model draws under two prompts."""
    problem = np.repeat(np.arange(PROBLEMS), 2 * EACH)
    drawn_from = np.tile(np.repeat([0, 1], EACH), PROBLEMS)
    shape = (simulations, len(problem), TOKENS, OPTIONS)
    # A separate generator, so that all other random numbers are the same for every way.
    (of_rounding,) = rng.spawn(1)
    logits = LOGITS * _normal(shape, rng)
    goodness = _normal(shape, rng)
    second = logits + CHANGE * GAIN * goodness
    second += CHANGE * (1 - GAIN**2) ** 0.5 * _normal(shape, rng)
    third = second + CHANGE_OF_THIRD * _normal(shape, rng)
    prompts = np.stack([logits, second, third])
    drawing_logits = prompts[:2].copy()
    if drawing.rounding:
        drawing_logits += drawing.rounding * _normal((2, *shape), of_rounding)
    if drawing.rounding_of_scores:
        prompts += drawing.rounding_of_scores * _normal(prompts.shape, of_rounding)

    of_own = np.where(drawn_from[:, None, None] == 0, *drawing_logits)
    token = _chosen(of_own / drawing.temperature, drawing.top_p, rng)[..., None]
    hard = rng.normal(0.3, 0.25, (simulations, PROBLEMS))[:, problem]
    found = np.take_along_axis(goodness, token, -1)[..., 0].mean(-1)
    return Paths(
        found > hard,
        np.add(_log_p(prompts / TEMPERATURE, token), [0, drawing.offset, 0]),
        _log_p(drawing_logits / TEMPERATURE, token),
        drawn_from,
        problem,
    )


def _normal(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)  # twice as fast as float64


def _chosen(logits: np.ndarray, top_p: float, rng: np.random.Generator) -> np.ndarray:
    """Return the index of a token drawn from the most probable ones with a total
    probability of `top_p`.
    """
    if top_p < 1:
        falling = -np.sort(-scipy.special.softmax(logits, -1), -1)
        before = falling.cumsum(-1) - falling  # of more probable tokens
        kept = (before < top_p).sum(-1, keepdims=True)
        least = np.take_along_axis(-np.sort(-logits, -1), kept - 1, -1)
        logits = np.where(logits >= least, logits, -np.inf)
    waiting = rng.standard_exponential(logits.shape, dtype=np.float32)
    return (logits - np.log(waiting.clip(1e-30))).argmax(-1)  # Gumbel's noise


def _log_p(logits: np.ndarray, token: np.ndarray) -> np.ndarray:
    """Return log p of the tokens (S, N, prompts), from logits (prompts, S, N, ...)."""
    at = np.broadcast_to(token, (len(logits), *token.shape))
    chosen = np.take_along_axis(logits, at, -1)[..., 0]
    totals = np.log(np.exp(logits).sum(-1))  # the logits are too small to overflow
    return np.moveaxis((chosen - totals).sum(-1, dtype=float), 0, -1)


def is_withheld(pair: AccuracyDifference, third: AccuracyDifference) -> bool:
    """Return whether the rule withholds an estimate: the interval of a check excludes
    1, or the effective sample size is too small.
    """
    checks = (pair.slope, *third.mean_weights)
    least = MIN_EFFECTIVE_SHARE * pair.mixed_answers
    too_few = min(pair.effective_sample_size, third.effective_sample_size) < least
    return too_few or any(excludes_1(check) for check in checks)


def excludes_1(check: Interval) -> bool:
    return check.low > 1 or check.high < 1


def simulated(name: str, simulations: int) -> pd.DataFrame:
    """Return the checks of each simulation, one a row, for one way to draw."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(max(simulations // AT_ONCE, 1)):
        paths = draw(DRAWINGS[name], min(simulations, AT_ONCE), rng)
        rows += [_checked(paths, at) for at in range(len(paths.log_p))]
    return pd.DataFrame(rows)


def row(name: str, found: pd.DataFrame, as_scored: pd.DataFrame) -> dict:
    """Return the means over simulations, and the bias of the estimates: the difference
    from the same simulations with answers that are drawn as scored.
    """
    numbers = {"drawn": name, "simulations": len(found)} | found.mean().to_dict()
    for points in ("points", "points_third"):
        missed = found[points] - as_scored[points]
        bias = points.replace("points", "bias")
        numbers[bias] = missed.mean()
        numbers[f"{bias}_error"] = missed.sem()
    return numbers


def _checked(paths: Paths, at: int) -> dict:
    """Return the checks and estimates of one simulation."""
    log_p = paths.log_p[at]
    ratio, of_drawing = np.diff(log_p[:, :2]), np.diff(paths.rounded[at])
    drawn = (paths.right[at], log_p[:, :2], paths.drawn_from, paths.problem)
    pair = accuracy_difference(*drawn)
    third = accuracy_difference(*drawn, log_p_compared=log_p[:, [2, 1]])
    return {
        "spread": ratio.std(),
        "rounding": np.abs(ratio - of_drawing).mean(),
        "effective": pair.effective_sample_size / pair.mixed_answers,
        "slope": pair.slope.estimate,
        "slope_excludes_1": POINTS * excludes_1(pair.slope),
        "second_mean": pair.mean_weights[1].estimate,
        "second_excludes_1": POINTS * excludes_1(pair.mean_weights[1]),
        "third_mean": third.mean_weights[0].estimate,
        "third_excludes_1": POINTS * excludes_1(third.mean_weights[0]),
        "withheld": POINTS * is_withheld(pair, third),
        "points": pair.difference.estimate,
        "points_third": third.difference.estimate,
    }


def main() -> None:
    """Simulate every way to draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=240)
    simulations = parser.parse_args().simulations
    found = {name: simulated(name, simulations) for name in DRAWINGS}
    table = [row(name, each, found["as scored"]) for name, each in found.items()]
    keep(RESULTS / "weights_checks.csv", pd.DataFrame(table))


if __name__ == "__main__":
    main()
