"""Why layer 1 dilutes: more terms in every softmax, or a larger distance in between.

An insertion adds terms to every later softmax, and it moves the problem away from the
instruction in rotary position. Either can be had without the other, since `observe`
takes the positions that it is given. Beside the causes stands how well the map of the
paper's Eq. 2, new = lambda * old + sigma, describes what the heads put out.
"""

import numpy as np
import torch
import xarray as xr

from lib import progress
from lib.attention.received import Observation, observe
from lib.measurement.attention import Prompts
from lib.measurement.plan import CAUSES, to_dataset
from lib.models.loading import Loaded
from lib.prompts.building import Prompt


def measure_causes(loaded: Loaded, prompts: Prompts) -> xr.Dataset:
    """Return the variables `causes` of the slashes in layer 1.

    Costs five forwards of one layer per problem. Means run over later original tokens,
    which all of the forwards have.
    """
    problems = list(prompts["none"])
    rows = []
    with progress.bar(f"{loaded.name}, causes in layer 1", len(problems)) as bar:
        for problem in problems:
            plain = prompts["none"][problem]
            slashes = prompts["mless"][problem]
            rows.append(_causes_of(loaded, plain, slashes))
            bar.update()

    arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    arrays["cause_lambda"] = arrays["cause_lambda"].swapaxes(0, 1)
    coords = {
        "cause": list(CAUSES),
        "problem": problems,
        "head": range(1, loaded.heads + 1),
    }
    return to_dataset("causes", arrays, coords)


def _causes_of(loaded: Loaded, plain: Prompt, slashes: Prompt) -> dict[str, np.ndarray]:
    """Return `causes` of one problem's prompts without and with the slashes.

    Lambda is (causes, H), and the fits are (H,) each. `both` is the prompt with the
    slashes as it is.
    """
    inserted = slashes.spans["inserted"]
    length = inserted.stop - inserted.start

    # In `terms` the instruction moves along, so that its distance to the problem stays.
    order = torch.arange(len(slashes))
    near = order + length * (order < inserted.start)
    # In `distance` the old tokens stand alone, the problem where it is in `both`.
    order = torch.arange(len(plain))
    far = order + length * (order >= inserted.start)

    before = _observe_layer_1(loaded, plain)
    after = _observe_layer_1(loaded, slashes)
    levels = {
        "both": _level(after, slashes),
        "terms": _level(_observe_layer_1(loaded, slashes, near), slashes),
        "distance": _level(_observe_layer_1(loaded, plain, far), plain),
    }
    lambdas = np.stack([levels[cause] for cause in CAUSES]) / _level(before, plain)

    # The outputs of the tokens after the slashes, without them and with them.
    later = slashes.original[inserted.start :]
    old = _outputs(before)[inserted.start :]  # (n, H, D)
    new = _outputs(after)[later]
    left = _left_for_others(loaded, slashes, later)
    return {"cause_lambda": lambdas} | affine_fits(old, new, left)


def _observe_layer_1(
    loaded: Loaded, prompt: Prompt, positions: torch.Tensor | None = None
) -> Observation:
    """Observe layer 1 with the original tokens as the only queries that count."""
    queries = torch.zeros(1, 1, len(prompt), dtype=torch.bool)
    queries[0, 0, prompt.original] = True
    if positions is not None:
        positions = positions[None]  # of the one prompt
    return observe(
        loaded.model,
        prompt.input_ids,
        [1],
        positions=positions,
        queries=queries,
        outputs=True,
    )


def _outputs(observation: Observation) -> torch.Tensor:
    """Return (T, H, D), what the heads of the one layer put out for the one prompt."""
    (of_layer_1,) = observation.outputs
    return of_layer_1[0].float().cpu()


def _level(observation: Observation, prompt: Prompt) -> np.ndarray:
    """Return (H,), what the original tokens but the first and last receive."""
    received = observation.received[0, 0, :, 0]  # (H, T)
    mean = received[:, prompt.original[1:-1]].mean(-1)
    return mean.double().cpu().numpy()


def _left_for_others(
    loaded: Loaded, prompt: Prompt, queries: torch.Tensor
) -> torch.Tensor:
    """Return (H, n), what each of these tokens leaves for others than the inserted."""
    # Each token is a set of queries of its own.
    alone = torch.nn.functional.one_hot(queries, len(prompt)).bool()
    seen = observe(loaded.model, prompt.input_ids, [1], queries=alone[None])
    received = seen.received[0, 0]  # (H, n, T)
    to_inserted = received[:, :, prompt.spans["inserted"]].sum(-1)
    return 1 - to_inserted.double().cpu()


def affine_fits(
    old: torch.Tensor, new: torch.Tensor, left: torch.Tensor
) -> dict[str, np.ndarray]:
    """Return how well maps of the heads' outputs before give those after, (H,) each.

    old, new: (n, H, D); left: (H, n), what each token's softmax leaves for others than
    the inserted tokens. The plan's VARIABLES say what each map is.
    """
    old = old.transpose(0, 1).double()  # (H, n, D)
    new = new.transpose(0, 1).double()
    old_centred = _centred(old)
    new_centred = _centred(new)

    # One lambda and one sigma for all tokens, by least squares.
    products = (old_centred * new_centred).sum((1, 2))
    scale = (products / _squares(old_centred))[:, None, None]
    affine_error = _squares(new_centred - scale * old_centred)
    shifted_error = _squares(new_centred - old_centred)  # with a lambda of 1

    # What is left beside lambda * old: does it lie on one line?
    sigma = new - scale * old
    direction = _first_share(sigma)
    component = _first_share(_centred(sigma))
    line_error = (1 - direction) * _squares(sigma)

    total = _squares(new_centred)
    fits = {
        "shifted": 1 - shifted_error / total,
        "affine": 1 - affine_error / total,
        "line": 1 - line_error / total,
        "softmax": 1 - _softmax_error(old, new, left) / total,
        "direction": direction,
        "component": component,
    }
    return {name: values.numpy() for name, values in fits.items()}


def _centred(vectors: torch.Tensor) -> torch.Tensor:
    """Return vectors (H, n, D) less the mean of each head's."""
    return vectors - vectors.mean(1, keepdim=True)


def _softmax_error(
    old: torch.Tensor, new: torch.Tensor, left: torch.Tensor
) -> torch.Tensor:
    """Return (H,), the squares that each token's own lambda and one v leave.

    old, new: (H, n, D). A token's lambda is what its softmax leaves, and v, of which it
    takes the rest, is that of least squares.
    """
    scale = left[..., None]
    taken = 1 - scale
    remainder = new - scale * old
    value = (taken * remainder).sum(1) / taken.square().sum(1)  # (H, D)
    return _squares(remainder - taken * value[:, None])


def _squares(vectors: torch.Tensor) -> torch.Tensor:
    """Return (H,), the sum of the squares of vectors (H, n, D)."""
    return vectors.square().sum((1, 2))


def _first_share(vectors: torch.Tensor) -> torch.Tensor:
    """Return (H,), the share of the squares of vectors (H, n, D) along their best line.

    The line goes through zero. Without vectors, as where nothing follows what was
    inserted, the share is NaN.
    """
    if vectors.shape[1] == 0:
        return vectors.new_full((len(vectors),), torch.nan)
    strengths = torch.linalg.svdvals(vectors).square()
    return strengths[:, 0] / strengths.sum(1)
