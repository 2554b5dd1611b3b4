"""Measure how well a number for each problem predicts whether it is solved."""

import numpy as np


def roc_values(x: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return (N,) values whose mean is the area under the ROC curve (DeLong et al.
    1988).

    The mean also has the area's standard error.
    """
    wrong = ~right
    # For each right one, the share of wrong ones below it (half for ties), and likewise
    # for each wrong one.
    of_right = _below(x[right], x[wrong]) / wrong.sum()
    of_wrong = 1 - _below(x[wrong], x[right]) / right.sum()
    area = of_right.mean()
    values = np.empty(len(x))
    values[right] = area + (of_right - area) * len(x) / right.sum()
    values[wrong] = area + (of_wrong - area) * len(x) / wrong.sum()
    return values


def _below(x: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return for each x how many of the others are below it, with half for ties."""
    ranked = np.sort(others)
    return (ranked.searchsorted(x) + ranked.searchsorted(x, "right")) / 2
