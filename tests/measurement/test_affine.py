"""Maps of layer 1's outputs against whole matrices and least squares."""

import numpy as np
import pytest
from eager import matrices, values_of

from lib.measurement.affine import measure_affine
from lib.measurement.attention import prompts_of
from lib.models.loading import load
from lib.prompts.problems import load_problems

(PROBLEM,) = load_problems("embedded", limit=1)


@pytest.fixture(scope="module")
def loaded():
    return load("demo", layers=1, device="cpu")


def outputs(loaded, prompt, matrix):
    """Return (H, T, D), what the heads of layer 1 put out by attention (H, T, T)."""
    (values,) = values_of(loaded.model, prompt.input_ids)
    return (matrix @ values).double().numpy()


def unexplained(target, *columns):
    """Return the squares that the best combination of these columns leaves, and it."""
    matrix = np.stack([column.ravel() for column in columns], -1)
    best, *_ = np.linalg.lstsq(matrix, target.ravel(), rcond=None)
    return ((target.ravel() - matrix @ best) ** 2).sum(), best


def fits_of_head(x, y, own):
    """Return the fits of one head's outputs (n, D), with each token's lambda (n, 1)."""
    # A sigma and a v have a number for each place of the vectors.
    ones = [np.tile(place, (len(x), 1)) for place in np.eye(x.shape[1])]
    total, _ = unexplained(y, *ones)
    affine, (scale, *_) = unexplained(y, x, *ones)
    softmax, _ = unexplained(y - own * x, *[(1 - own) * one for one in ones])
    sigma = y - scale * x
    through_zero = np.linalg.eigvalsh(sigma.T @ sigma)
    return {
        "affine": 1 - affine / total,
        "line": 1 - through_zero[:-1].sum() / total,
        "softmax": 1 - softmax / total,
    }


def test_the_fits_are_those_of_least_squares_for_the_tokens_behind_the_slashes(loaded):
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


def test_where_nothing_follows_the_slashes_there_is_nothing_to_fit(loaded):
    prompts = prompts_of(loaded, [PROBLEM], ["mless@end"])
    prompts["mless"] = prompts.pop("mless@end")
    fits = measure_affine(loaded, prompts)
    assert fits.isnull().all().to_array().all()
