"""How well a number of each problem tells which problems are answered right."""

import numpy as np


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
