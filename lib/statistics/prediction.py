"""How well a number of each problem tells which problems are answered right."""

import numpy as np
import scipy


def roc_values(x: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return (N,) whose mean is the area under the ROC curve (DeLong et al. 1988).

    The mean has the area's standard error too.
    """
    wrong = ~right
    # Of each right one, with how many wrong ones it is in order, half of a tie; of each
    # wrong one likewise.
    of_right = _below(x[right], x[wrong]) / wrong.sum()
    of_wrong = 1 - _below(x[wrong], x[right]) / right.sum()
    area = of_right.mean()
    values = np.empty(len(x))
    values[right] = area + (of_right - area) * len(x) / right.sum()
    values[wrong] = area + (of_wrong - area) * len(x) / wrong.sum()
    return values


def _below(x: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return for each x how many of the others are below it, half of a tie."""
    ranked = np.sort(others)
    return (ranked.searchsorted(x) + ranked.searchsorted(x, "right")) / 2


def logistic_slopes(x: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return (N,): the slope of a logistic regression with each problem's influence.

    The mean is the slope, and the standard error of the mean is the slope's (the
    sandwich estimator).
    """
    design = np.stack([np.ones_like(x), x - x.mean()], axis=1)  # (N, 2)
    beta = np.zeros(2)
    for _ in range(50):  # Newton's method, which needs about 7
        chance = scipy.special.expit(design @ beta)
        curvature = design.T @ (design * (chance * (1 - chance))[:, None])
        gradients = design * (right - chance)[:, None]  # (N, 2)
        influence = np.linalg.pinv(curvature) @ gradients.T  # (2, N)
        beta = beta + influence.sum(1)
    return beta[1] + len(x) * influence[1]
