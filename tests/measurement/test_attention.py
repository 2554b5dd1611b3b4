"""What insertions do to received attention, held against whole matrices."""

import numpy as np
import pytest
import torch
import xarray as xr
from eager import matrices, outputs_of, received

from lib.errors import InputError
from lib.measurement.attention import (
    SPANS,
    _lambda_over_heads,
    measure_attention,
    prompts_of,
)
from lib.models.loading import load
from lib.prompts.problems import load_problems

PROBLEMS = load_problems("embedded", limit=4)


@pytest.fixture(scope="module")
def loaded():
    return load("demo", layers=3, device="cpu")


def dilution(loaded, problems, conditions, layers=None):
    prompts = prompts_of(loaded, problems, conditions)
    return measure_attention(loaded, prompts, layers)


def reference(loaded, before, after):
    """Return the variables of one problem, (L, H) or (L, span, query).

    They are made of the definitions and the whole matrices of its prompts without and
    with the insertion.
    """
    span = after.spans["inserted"]
    matrix = matrices(loaded.model, after.input_ids)
    baseline = received(matrices(loaded.model, before.input_ids))
    old = baseline[..., before.original[1:-1]].numpy()
    new = received(matrix)[..., after.original[1:-1]].numpy()
    inserted = received(matrix)[..., span].numpy()

    variables = {"lambda": new.mean(-1) / old.mean(-1)}
    variables["lambda_over_heads"] = lambda_over_heads(matrix, baseline, before, after)
    variables["irregularity"] = np.log(new / old).std(-1)
    variables["unevenness"] = new.std(-1) / new.mean(-1)
    variables["mass"] = matrix[:, :, span.stop :, span].sum(-1).mean(-1).numpy()
    variables["flatness"] = inserted.std(-1) / inserted.mean(-1)
    variables["dispersion"] = dispersion(loaded, after)
    variables["portion"] = inserted.mean(-1) / new.mean(-1)
    return variables


def dispersion(loaded, prompt):
    """Return (L, H) of the values that the projections of each layer put out."""
    outputs = outputs_of(loaded.model, prompt.input_ids, "self_attn.v_proj")
    values = torch.stack(list(outputs.values()))[:, prompt.spans["inserted"]].numpy()
    layers, tokens, _ = values.shape
    width = loaded.model.config.head_dim
    heads = values.reshape(layers, tokens, -1, width).swapaxes(1, 2)  # (L, K, n, D)
    away = heads - heads.mean(2, keepdims=True)
    share = (away**2).sum((2, 3)) / (heads**2).sum((2, 3))
    return np.repeat(share**0.5, loaded.heads // share.shape[1], 1)


def lambda_over_heads(matrix, baseline, before, after):
    """Return lambda of each span and query over heads, (L, span, query).

    matrix: with the insertion; baseline: what is received without it.
    """
    later = torch.tril(torch.ones(len(after), len(after)), -1)
    is_original = torch.isin(torch.arange(len(after)), after.original)
    by_query = []
    for rows in (later, later * is_original[:, None]):
        by_query.append((matrix * rows).sum(2) / rows.sum(0))

    by_span = []
    for name in SPANS:
        old, new = inner_tokens(before, name), inner_tokens(after, name)
        without = baseline[..., old].mean((1, 2))
        levels = [given[..., new].mean((1, 2)) for given in by_query]
        by_span.append([level / without for level in levels])
    return np.moveaxis(np.array(by_span), (0, 1), (1, 2))


def inner_tokens(prompt, name):
    """Return where a span's tokens stand but the prompt's first and last."""
    if name == "original":
        return prompt.original[1:-1]
    span = prompt.spans[name]
    return slice(max(span.start, 1), min(span.stop, len(prompt) - 1))


def test_every_number_agrees_with_the_attention_matrices(loaded):
    conditions = ["mless", "random"]
    prompts = prompts_of(loaded, PROBLEMS, conditions)
    measured = dilution(loaded, PROBLEMS, conditions)
    sizes = {dim: measured.sizes[dim] for dim in measured["lambda"].dims}
    assert sizes == {"condition": 2, "problem": 4, "layer": 3, "head": 9}
    for problem in PROBLEMS:
        before = prompts["none"][problem.id]
        for condition in conditions:
            expected = reference(loaded, before, prompts[condition][problem.id])
            there = measured.sel(problem=problem.id, condition=condition)
            for name, numbers in expected.items():
                np.testing.assert_allclose(
                    there[name], numbers, rtol=2e-3, atol=2e-3, err_msg=name
                )


def test_a_layer_alone_has_the_numbers_that_it_has_among_others(loaded):
    every = dilution(loaded, PROBLEMS[:1], ["mless"])
    second = dilution(loaded, PROBLEMS[:1], ["mless"], [2])
    assert second.layer.values.tolist() == [2]
    xr.testing.assert_allclose(second, every.sel(layer=[2]), rtol=1e-5)


def test_what_cannot_be_measured_is_refused(loaded):
    spoilt = load("demo", layers=1, device="cpu")
    spoilt.model.layers[0].self_attn.q_proj.weight.data[0, 0] = float("nan")
    with pytest.raises(InputError, match=r"gives NaN attention on problem embedded/"):
        dilution(spoilt, PROBLEMS, ["mless"])


def test_over_heads_lambda_is_a_ratio_of_means_that_one_head_cannot_decide():
    # Two heads, of which the second gives the tokens next to nothing before.
    before = torch.tensor([[[0.5, 0.5], [1e-6, 1e-6]]])  # (L, H, n)
    after = torch.tensor([[[0.25, 0.25], [1e-4, 1e-4]]])[:, :, None]  # (L, H, R, n)
    lam = _lambda_over_heads(["problem", "problem"], before, after)
    problem = SPANS.index("problem")
    assert lam[0, problem].item() == pytest.approx(0.5, rel=1e-3)
    assert lam[0, SPANS.index("instruction")].isnan()
