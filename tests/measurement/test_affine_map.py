"""Affine maps of layer 1's outputs compared with full matrices and least squares."""

import numpy as np
import pytest
from eager import matrices, values_of

from lib.models.loading import load
from lib.prompts.problems import load_problems
from reproduction.measurement.affine_map import measure_affine
from reproduction.measurement.attention_changes import prompts_of

(PROBLEM,) = load_problems("embedded", limit=1)


@pytest.fixture(scope="module")
def loaded():
    return load("demo", layers=1, device="cpu")


def outputs(loaded, prompt, matrix):
    """Return the outputs (H, T, D) of layer 1's heads for attention (H, T, T)."""
    (values,) = values_of(loaded.model, prompt.input_ids)
    return (matrix @ values).double().numpy()


def unexplained(target, *columns):
    """Return the residual sum of squares of the least-squares fit of these columns, and
    the coefficients.
    """
    matrix = np.stack([column.ravel() for column in columns], -1)
    best, *_ = np.linalg.lstsq(matrix, target.ravel(), rcond=None)
    return ((target.ravel() - matrix @ best) ** 2).sum(), best


def fits_of_head(x, y, scales):
    """Return R² of the maps of one head's outputs (n, D) without and with slashes.

    scales: each token's attention on the original tokens (n, 1).
    """
    # The shift of a map has one number for each component of the outputs.
    ones = [np.tile(unit, (len(x), 1)) for unit in np.eye(x.shape[1])]
    total, _ = unexplained(y, *ones)
    affine, (scale, *_) = unexplained(y, x, *ones)
    softmax, _ = unexplained(y - scales * x, *[(1 - scales) * one for one in ones])
    sigma = y - scale * x
    through_zero = np.linalg.eigvalsh(sigma.T @ sigma)
    return {
        "affine": 1 - affine / total,
        "line": 1 - through_zero[:-1].sum() / total,
        "softmax": 1 - softmax / total,
    }


def test_the_fits_equal_least_squares_on_the_tokens_after_the_slashes(loaded):
    prompts = prompts_of(loaded, [PROBLEM], ["mless"])
    before, after = (prompts[name][PROBLEM.id] for name in ("none", "mless"))
    span = after.spans["inserted"]
    (plain,) = matrices(loaded.model, before.input_ids)
    (matrix,) = matrices(loaded.model, after.input_ids)
    old = outputs(loaded, before, plain)[:, span.start :]
    new = outputs(loaded, after, matrix)[:, span.stop :]
    left = 1 - matrix[:, span.stop :, span].double().sum(-1, keepdim=True).numpy()

    fits = measure_affine(loaded, prompts).isel(problem=0)
    for head in range(loaded.heads):
        expected = fits_of_head(old[head], new[head], left[head])
        for name, number in expected.items():
            assert fits[name][head] == pytest.approx(number, abs=1e-4), name


def test_the_fits_are_nan_if_nothing_follows_the_slashes(loaded):
    prompts = prompts_of(loaded, [PROBLEM], ["mless@end"])
    prompts["mless"] = prompts.pop("mless@end")
    fits = measure_affine(loaded, prompts)
    assert fits.isnull().all().to_array().all()
