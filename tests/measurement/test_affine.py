"""Maps of layer 1's outputs against whole matrices, least squares and planted maps."""

import numpy as np
import pytest
import torch
from eager import matrices

from lib.attention.received import observe
from lib.measurement import affine
from lib.measurement.affine import affine_fits, measure_affine
from lib.measurement.attention import prompts_of
from lib.models.loading import load
from lib.prompts.problems import load_problems

PROBLEMS = load_problems("embedded", limit=1)


def outputs(loaded, prompt):
    """Return (T, H, D), what the heads of layer 1 put out, by whole matrices."""
    matrix = matrices(loaded.model, prompt.input_ids)[0]
    seen = observe(loaded.model, prompt.input_ids, [1], values=True)
    values = seen.values[0][0]
    of_head = values.repeat_interleave(len(matrix) // len(values), 0)
    return (matrix @ of_head).transpose(0, 1)


def test_the_fits_are_of_the_tokens_behind_the_slashes(monkeypatch):
    loaded = load("demo", layers=1, device="cpu")
    nothing = {"affine": np.zeros(loaded.heads)}
    given = []
    monkeypatch.setattr(affine, "affine_fits", lambda *x: given.append(x) or nothing)
    prompts = prompts_of(loaded, PROBLEMS, ["mless"])
    measure_affine(loaded, prompts)
    ((old, new, left),) = given

    before = prompts["none"][PROBLEMS[0].id]
    after = prompts["mless"][PROBLEMS[0].id]
    span = after.spans["inserted"]
    torch.testing.assert_close(old, outputs(loaded, before)[span.start :])
    torch.testing.assert_close(new, outputs(loaded, after)[span.stop :])
    matrix = matrices(loaded.model, after.input_ids)[0].double()
    taken = matrix[:, span.stop :, span].sum(-1)
    torch.testing.assert_close(left, 1 - taken, rtol=1e-4, atol=1e-5)


def test_where_nothing_follows_the_slashes_there_is_nothing_to_fit():
    loaded = load("demo", layers=1, device="cpu")
    prompts = prompts_of(loaded, PROBLEMS, ["mless@end"])
    prompts["mless"] = prompts.pop("mless@end")
    fits = measure_affine(loaded, prompts)
    assert all(fits[name].isnull().all() for name in fits)


OLD, NOISE = torch.randn(
    2, 400, 2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
)
LEFT = torch.rand(
    2, 400, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
)
OWN = LEFT.T[..., None]  # each token's lambda


@pytest.mark.parametrize(
    ("new", "high", "low"),
    [
        (0.6 * OLD + torch.arange(8.0), {"affine", "line"}, {"softmax"}),
        (0.5 * OLD + 10 + NOISE, set(), {"affine"}),
        (NOISE, set(), {"affine", "softmax"}),
        (0.01 * OLD + OWN * torch.arange(8.0), {"line"}, {"affine"}),
        (OWN * OLD + (1 - OWN) * torch.arange(8.0), {"softmax"}, {"affine"}),
    ],
)
def test_each_fit_finds_what_was_planted(new, high, low):
    fits = affine_fits(OLD, new, LEFT)
    for name in high:
        assert (fits[name] > 0.99).all(), name
    for name in low:
        assert (fits[name] < 0.9).all(), name


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


def test_each_fit_is_that_of_least_squares():
    tokens, heads, width = 4, 2, 3
    rng = np.random.default_rng(0)
    old = rng.normal(size=(tokens, heads, width))
    new = rng.normal(size=(tokens, heads, width))
    left = rng.uniform(size=(heads, tokens))
    fits = affine_fits(torch.tensor(old), torch.tensor(new), torch.tensor(left))
    for head in range(heads):
        expected = fits_of_head(old[:, head], new[:, head], left[head][:, None])
        for name, number in expected.items():
            assert fits[name][head] == pytest.approx(number), name
