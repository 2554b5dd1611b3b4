"""Terms and distance, told apart; and how affine layer 1's output is: on models where the truth is known."""

import numpy as np
import pytest
import torch
import xarray as xr
from eager import matrices, received

from lib.errors import InputError
from lib.measurement.causes import CAUSES, _affine, _left, measure_causes
from lib.models.loading import load
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems

PROBLEMS = load_problems("embedded", limit=4)


@pytest.fixture(scope="module")
def loaded():
    return load("demo", layers=1, device="cpu")


@pytest.fixture(scope="module")
def found(loaded):
    return measure_causes(loaded, PROBLEMS)


def prompts(loaded, problem):
    return (build_prompt(loaded.tokenizer, problem.problem, condition) for condition in ("none", "mless"))


def test_each_cause_agrees_with_the_attention_matrices_at_its_positions(loaded, found):
    for problem in PROBLEMS:
        before, after = prompts(loaded, problem)
        span, old, new = after.spans["inserted"], torch.arange(len(before)), torch.arange(len(after))
        shift = span.stop - span.start
        runs = {
            "none": (before, old),
            "both": (after, new),
            "terms": (after, new + shift * (new < span.start)),  # the instruction as near to the problem as it was
            "distance": (before, old + shift * (old >= span.start)),  # the problem as far away as in both
        }
        means = {}
        for cause, (prompt, positions) in runs.items():
            (matrix,) = matrices(loaded.model, prompt.input_ids, positions)
            matrix = matrix[:, prompt.original][:, :, prompt.original]  # (H, n, n): original tokens alone
            means[cause] = received(matrix)[:, 1:-1].mean(-1).numpy()
        for cause in CAUSES:
            there = found["lambda"].sel(cause=cause, problem=problem.id)
            np.testing.assert_allclose(there, means[cause] / means["none"], rtol=1e-4, err_msg=cause)


def test_the_fits_are_of_the_heads_outputs_for_the_problems_tokens(loaded, found):
    heads, given = loaded.heads, []
    handle = loaded.model.layers[0].self_attn.o_proj.register_forward_pre_hook(lambda _, x: given.append(x[0][0]))
    for problem in PROBLEMS:
        before, after = prompts(loaded, problem)
        with torch.inference_mode():
            for prompt in (before, after):
                loaded.model(prompt.input_ids[None])
        span = after.spans["inserted"]
        new, old = (given.pop().unflatten(-1, (heads, -1)).double().numpy() for _ in range(2))  # (T, H, D)
        for head in range(heads):
            x, y = old[span.start :, head], new[span.stop :, head]
            x, y = (values - values.mean(0) for values in (x, y))
            slope = (x * y).sum() / (x * x).sum()
            there = found.sel(problem=problem.id, head=head + 1)
            strengths = np.linalg.svd(y - slope * x, compute_uv=False) ** 2
            expected = {
                "shifted": 1 - ((y - x) ** 2).sum() / (y * y).sum(),
                "affine": 1 - ((y - slope * x) ** 2).sum() / (y * y).sum(),
                "component": strengths[0] / strengths.sum(),
            }
            for name, value in expected.items():
                assert float(there[name]) == pytest.approx(value, abs=2e-3), name
    handle.remove()


def test_without_positions_everything_comes_from_the_terms():
    loaded = load("demo", layers=1, device="cpu")
    loaded.model.rotary_emb.inv_freq.zero_()  # rotation by nothing: queries and keys do not know where they are
    found = measure_causes(loaded, PROBLEMS)
    both, terms, distance = (found["lambda"].sel(cause=cause) for cause in CAUSES)
    np.testing.assert_allclose(distance, 1, rtol=1e-5)
    np.testing.assert_allclose(terms, both, rtol=1e-5)


def test_new_terms_can_only_dilute(found):
    lam = found["lambda"]
    assert (lam.sel(cause="terms") < 1).all() and (lam.sel(cause="distance") > 0).all()


def test_padding_and_batches_change_nothing(loaded, found, monkeypatch):
    monkeypatch.setattr(
        "lib.measurement.causes.in_batches", lambda lengths, run: (([i], run([i])) for i in range(len(lengths)))
    )
    alone = measure_causes(loaded, PROBLEMS)
    np.testing.assert_allclose(found["lambda"], alone["lambda"], rtol=1e-4)
    np.testing.assert_allclose(found.affine, alone.affine, rtol=1e-3)


def test_the_fit_finds_a_planted_affine_map():
    old = torch.randn(50, 2, 8, dtype=torch.float64)
    shifted, affine, _, _, direction, component = _affine(old, 0.6 * old + torch.arange(8.0), torch.rand(2, 50))
    torch.testing.assert_close(affine, torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(direction, torch.ones(2, dtype=torch.float64))
    assert (shifted < 0.9).all() and (component <= 1).all()


def test_a_constant_vector_is_part_of_every_fit():
    old = torch.randn(50, 2, 8, dtype=torch.float64)
    one = torch.ones(2, dtype=torch.float64)
    shifted, affine, *_ = _affine(old, old + 3, torch.rand(2, 50))
    torch.testing.assert_close(shifted, one)
    torch.testing.assert_close(affine, one)
    # A large sigma with noise around it: along one line through zero, but not in one direction about its mean.
    _, affine, _, _, direction, component = _affine(old, 0.5 * old + 10 + torch.randn_like(old), torch.rand(2, 50))
    assert (affine < 0.5).all() and (direction > 0.9).all() and (component < 0.5).all()


def test_the_fit_finds_nothing_in_noise():
    old, new = torch.randn(2, 400, 3, 8, dtype=torch.float64)
    _, affine, _, softmax, direction, component = _affine(old, new, torch.rand(3, 400))
    assert (affine < 0.02).all() and (softmax < 0.02).all() and (direction < 0.3).all() and (component < 0.3).all()


def test_remainders_along_one_line_are_recognised():
    line, amounts = torch.randn(8, dtype=torch.float64), torch.rand(60, 1, 1, dtype=torch.float64)
    old = 0.01 * torch.randn(60, 1, 8, dtype=torch.float64)
    _, _, along, _, direction, component = _affine(old, amounts * line, torch.rand(1, 60))
    assert along > 0.99 and direction > 0.99 and component > 0.99


def test_what_each_softmax_leaves_is_recognised_where_one_lambda_does_not_fit():
    old, left = torch.randn(60, 2, 8, dtype=torch.float64), torch.rand(2, 60, dtype=torch.float64)
    new = left.T[..., None] * old + (1 - left.T[..., None]) * torch.arange(8.0)
    _, affine, _, softmax, _, _ = _affine(old, new, left)
    torch.testing.assert_close(softmax, torch.ones(2, dtype=torch.float64))
    assert (affine < 0.9).all()


def test_what_a_softmax_leaves_agrees_with_the_attention_matrix(loaded):
    prompt = build_prompt(loaded.tokenizer, PROBLEMS[1].problem, "mless")
    span, (matrix,) = prompt.spans["inserted"], matrices(loaded.model, prompt.input_ids)
    expected = 1 - matrix[:, prompt.original[span.start :]][:, :, span].sum(-1)
    torch.testing.assert_close(_left(loaded, prompt).float(), expected, rtol=1e-4, atol=1e-5)


def test_what_was_measured_is_kept(loaded, tmp_path, monkeypatch):
    first = measure_causes(loaded, PROBLEMS, folder=tmp_path)
    monkeypatch.setattr("lib.measurement.causes._measure", None)
    again = measure_causes(loaded, PROBLEMS, folder=tmp_path)
    xr.testing.assert_identical(first, again)
    (file,) = tmp_path.iterdir()
    opened = xr.open_dataset(file)
    assert opened.sizes == {"cause": 3, "problem": 4, "head": 9} and opened.n == 4
    assert all(values.attrs["units"] and values.attrs["long_name"] for values in opened.values())


def test_no_problems_are_refused(loaded):
    with pytest.raises(InputError, match="no problems"):
        measure_causes(loaded, [])
