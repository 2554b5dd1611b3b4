"""Entropy and divergence of small distributions; test_solution_scores.py checks those
of models.
"""

import pytest
import torch

from lib.evaluation.next_token_entropy import divergences, entropies, window_means
from lib.profiles import Likelihood


def test_a_token_of_probability_zero_adds_nothing():
    log_p = torch.tensor([[0.0, -torch.inf], [0.5, 0.5]])
    log_p[1] = log_p[1].log_softmax(-1)
    assert entropies(log_p).tolist() == pytest.approx([0, 0.6931], abs=1e-4)
    assert divergences(log_p, log_p).tolist() == [0, 0]


def test_windows_that_a_text_does_not_reach_have_no_mean():
    assert window_means(torch.tensor([2.0])) == [2.0, None, None, None]
    assert window_means(torch.arange(64.0)) == [0, 4, 19.5, 47.5]


def test_next_token_distributions_need_the_condition_none():
    with pytest.raises(ValueError, match="next_token needs none"):
        Likelihood(models=["demo"], conditions=["gap"], next_token=True)
