"""Measure how well a number predicts whether a problem is solved."""

import numpy as np


def roc_values(x: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return (N,) values whose mean is the area under the ROC curve, and whose standard
    error is that of the area (DeLong et al. 1988).

    x: (N,) the predictor of each problem. right: (N,) bool, whether it is solved; both
    values must occur.
    """
    wrong = ~right
    # For each solved problem, the share of the others that are below it (half for
    # ties), and for each of the others the share of solved ones above it.
    of_right = _below(x[right], x[wrong]) / wrong.sum()
    of_wrong = 1 - _below(x[wrong], x[right]) / right.sum()
    area = of_right.mean()
    values = np.empty(len(x))
    values[right] = area + (of_right - area) * len(x) / right.sum()
    values[wrong] = area + (of_wrong - area) * len(x) / wrong.sum()
    return values


def _below(x: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return for each x the number of `others` below it; ties count half."""
    ranked = np.sort(others)
    return (ranked.searchsorted(x) + ranked.searchsorted(x, "right")) / 2
