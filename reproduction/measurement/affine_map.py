"""Measure how well the map of the paper's Eq. 2, new = lambda * old + sigma, describes
the outputs of layer 1's heads with the slashes.
"""

import numpy as np
import torch
import xarray as xr

from lib import progress
from lib.attention.received import observe
from lib.models.loading import Loaded
from lib.prompts.building import Prompt
from reproduction.measurement.attention_changes import Prompts
from reproduction.measurement.dataset import stacked, to_dataset


def measure_affine(loaded: Loaded, prompts: Prompts) -> xr.Dataset:
    """Return the variables `affine` (reproduction.measurement.dataset): R² of three
    forms of the map in layer 1, by problem and head.

    prompts: under `none` and mless. Costs two forward passes of one layer per problem.
    """
    problems = list(prompts["none"])
    rows = []
    with progress.bar(f"{loaded.name}, outputs of layer 1", len(problems)) as bar:
        for problem in problems:
            plain = prompts["none"][problem]
            slashes = prompts["mless"][problem]
            rows.append(_fits_of(loaded, plain, slashes))
            bar.update()

    coords = {"problem": problems, "head": range(1, loaded.heads + 1)}
    return to_dataset("affine", stacked(rows), coords)


def _fits_of(loaded: Loaded, plain: Prompt, slashes: Prompt) -> dict[str, np.ndarray]:
    """Return the variables `affine` of one problem, (H,) each, fitted over the tokens
    after the slashes.
    """
    inserted = slashes.spans["inserted"]
    is_later = slashes.original >= inserted.stop
    later = slashes.original[is_later]
    before = observe(loaded.model, plain.input_ids, [1], with_output=True)
    # If each later token is a set of queries by itself, the received attention is the
    # attention that this token gives.
    single_queries = torch.nn.functional.one_hot(later, len(slashes)).bool()
    after = observe(
        loaded.model,
        slashes.input_ids,
        [1],
        queries=single_queries[None],
        with_output=True,
    )

    # (n, H, D)
    old = before.output[0, slashes.counterparts[is_later]].float().cpu()
    new = after.output[0, later].float().cpu()
    attention = after.received[0, 0]  # (H, n, T), that n tokens give
    to_slashes = attention[:, :, inserted].sum(-1)
    to_original = 1 - to_slashes.double().cpu()
    return affine_fits(old, new, to_original)


def affine_fits(
    old: torch.Tensor, new: torch.Tensor, to_original: torch.Tensor
) -> dict[str, np.ndarray]:
    """Return R² of each form of the map from the heads' old outputs to the new ones,
    (H,) each; VARIABLES describes the forms.

    old, new: (n, H, D), without and with the slashes, of n tokens. to_original: (H, n),
    the share of its attention that each token gives to the original tokens.
    """
    old = old.transpose(0, 1).double()  # (H, n, D)
    new = new.transpose(0, 1).double()
    old_centred = _centred(old)
    new_centred = _centred(new)

    # Least squares with one lambda and one sigma for all tokens.
    products = (old_centred * new_centred).sum((1, 2))
    scale = (products / _squares(old_centred))[:, None, None]
    affine_error = _squares(new_centred - scale * old_centred)

    total = _squares(new_centred)
    fits = {
        "affine": 1 - affine_error / total,
        "line": 1 - _error_of_line(new - scale * old) / total,
        "softmax": 1 - _softmax_error(old, new, to_original) / total,
    }
    return {name: values.numpy() for name, values in fits.items()}


def _centred(vectors: torch.Tensor) -> torch.Tensor:
    """Return vectors (H, n, D) minus the mean of each head."""
    return vectors - vectors.mean(1, keepdim=True)


def _squares(vectors: torch.Tensor) -> torch.Tensor:
    """Return the sum of squares of vectors (H, n, D), (H,)."""
    return vectors.square().sum((1, 2))


def _error_of_line(vectors: torch.Tensor) -> torch.Tensor:
    """Return the sum of squared distances of vectors (H, n, D) from the line through
    zero that fits each head best, (H,).
    """
    strengths = torch.linalg.svdvals(vectors).square()
    return strengths[:, 1:].sum(1)


def _softmax_error(
    old: torch.Tensor, new: torch.Tensor, to_original: torch.Tensor
) -> torch.Tensor:
    """Return the sum of squared residuals of new = lambda * old + (1 - lambda) * v,
    (H,), with a lambda for each token and one vector v for each head.

    old, new: (H, n, D). lambda is `to_original`, the share of its attention that a
    token gives to the original tokens; v is determined by least squares.
    """
    scale = to_original[..., None]
    to_inserted = 1 - scale
    remainder = new - scale * old
    v = (to_inserted * remainder).sum(1) / to_inserted.square().sum(1)  # (H, D)
    return _squares(remainder - to_inserted * v[:, None])
