"""Dilution and its causes, each number held against the definitions: whole matrices,
planted maps, hidden positions.
"""

import gc
import weakref

import numpy as np
import pytest
import torch
import xarray as xr
from eager import matrices, outputs_of, received

from lib.errors import InputError
from lib.measurement import networks
from lib.measurement.attention import (
    SPANS,
    measure_attention,
    prompts_of,
)
from lib.measurement.causes import affine_fits, measure_causes
from lib.measurement.plan import CAUSES
from lib.models.loading import load
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems

PROBLEMS = load_problems("embedded", limit=4)


@pytest.fixture(scope="module")
def loaded():
    return load("demo", layers=3, device="cpu")


def dilution(loaded, problems, conditions, layers=None):
    return xr.concat(
        measure_attention(loaded, prompts_of(loaded, problems, conditions), layers),
        "condition",
    )


def prompts(loaded, problem, condition="mless"):
    return [
        build_prompt(loaded.tokenizer, problem.problem, name)
        for name in ("none", condition)
    ]


def reference(loaded, problem, condition):
    """The variables of one problem, (L, H) or (L, H, span, query), from the definitions
    and the whole matrices.
    """
    before, after = both = prompts(loaded, problem, condition)
    span, matrix = after.spans["inserted"], matrices(loaded.model, after.input_ids)
    given = received(matrices(loaded.model, before.input_ids))
    old = given[..., before.original[1:-1]].numpy()
    new, inserted = (
        received(matrix)[..., tokens].numpy() for tokens in (after.original[1:-1], span)
    )
    later = torch.tril(torch.ones(len(after), len(after)), -1)
    original = (
        later * torch.isin(torch.arange(len(after)), after.original)[:, None]
    )  # rows of original tokens alone
    spans = [[prompt.original[1:-1] for prompt in both]]
    for name in SPANS[1:]:
        spans.append(
            [
                slice(max(p.spans[name].start, 1), min(p.spans[name].stop, len(p) - 1))
                for p in both
            ]
        )
    by_query = [(matrix * rows).sum(2) / rows.sum(0) for rows in (later, original)]
    by_span = [
        [every[..., two].mean(-1) / given[..., one].mean(-1) for every in by_query]
        for one, two in spans
    ]
    values = torch.stack(
        [*outputs_of(loaded.model, after.input_ids, "self_attn.v_proj").values()]
    )[:, span].numpy()
    heads = values.reshape(
        *values.shape[:2], -1, loaded.model.config.head_dim
    ).swapaxes(1, 2)  # (L, key heads, n, D)
    away = ((heads - heads.mean(2, keepdims=True)) ** 2).sum((2, 3)) / (heads**2).sum(
        (2, 3)
    )
    return {
        "lambda": new.mean(-1) / old.mean(-1),
        "level": new.mean(-1),
        "baseline": old.mean(-1),
        "irregularity": np.log(new / old).std(-1),
        "unevenness": new.std(-1) / new.mean(-1),
        "mass": matrix[:, :, span.stop :, span].sum(-1).mean(-1).numpy(),
        "flatness": inserted.std(-1) / inserted.mean(-1),
        "dispersion": np.repeat(away**0.5, loaded.heads // away.shape[1], 1),
        "portion": inserted.mean(-1) / new.mean(-1),
        "lambda_by_span": np.moveaxis(np.array(by_span), (0, 1), (2, 3)),
    }


def test_every_number_agrees_with_the_attention_matrices(loaded):
    found = dilution(loaded, PROBLEMS, ["mless", "random"])
    assert {dim: found.sizes[dim] for dim in found["lambda"].dims} == dict(
        condition=2, problem=4, layer=3, head=9
    )
    for problem in PROBLEMS:
        for condition in ("mless", "random"):
            there = found.sel(problem=problem.id, condition=condition)
            for name, expected in reference(loaded, problem, condition).items():
                np.testing.assert_allclose(
                    there[name], expected, rtol=2e-3, atol=2e-3, err_msg=name
                )
    (second,) = dilution(loaded, PROBLEMS[:1], ["mless"], [2])["lambda"].values
    np.testing.assert_allclose(
        second[:, 0], reference(loaded, PROBLEMS[0], "mless")["lambda"][[1]], rtol=1e-3
    )


def test_what_cannot_be_measured_is_refused(loaded):
    spoilt = load("demo", layers=1, device="cpu")
    spoilt.model.layers[0].self_attn.q_proj.weight.data[0, 0] = float("nan")
    with pytest.raises(InputError, match=r"gives NaN attention on problem embedded/"):
        dilution(spoilt, PROBLEMS, ["mless"])


def test_each_cause_agrees_with_the_attention_matrices_at_its_positions(loaded):
    causes = measure_causes(loaded, prompts_of(loaded, PROBLEMS, ["mless"]))
    for problem in PROBLEMS:
        before, after = prompts(loaded, problem)
        span, old, new = (
            after.spans["inserted"],
            torch.arange(len(before)),
            torch.arange(len(after)),
        )
        shift = span.stop - span.start
        runs = {"none": (before, old), "both": (after, new)}
        runs["terms"] = (
            after,
            new + shift * (new < span.start),
        )  # the instruction as near to the problem as it was
        runs["distance"] = (
            before,
            old + shift * (old >= span.start),
        )  # the problem as far away as in both
        means = {}
        for cause, (prompt, positions) in runs.items():
            matrix = matrices(loaded.model, prompt.input_ids, positions)[0]
            matrix = matrix[:, prompt.original][
                :, :, prompt.original
            ]  # (H, n, n): original tokens alone
            means[cause] = received(matrix)[:, 1:-1].mean(-1).numpy()
        for cause in CAUSES:
            there = causes.cause_lambda.sel(cause=cause, problem=problem.id)
            np.testing.assert_allclose(
                there, means[cause] / means["none"], rtol=1e-4, err_msg=cause
            )


OLD, NOISE = torch.randn(
    2, 400, 2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
)
LEFT = torch.rand(
    2, 400, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
)


@pytest.mark.parametrize(
    ("new", "high", "low"),
    [
        (0.6 * OLD + torch.arange(8.0), {"affine", "line", "direction"}, {"shifted"}),
        (OLD + 3, {"shifted", "affine"}, set()),
        # A large sigma with noise around it: along one line through zero, but in no
        # direction about its mean.
        (0.5 * OLD + 10 + NOISE, {"direction"}, {"affine", "component"}),
        (NOISE, set(), {"affine", "softmax", "direction", "component"}),
        (
            0.01 * OLD + LEFT.T[..., None] * torch.arange(8.0),
            {"line", "direction", "component"},
            set(),
        ),
        (
            LEFT.T[..., None] * OLD + (1 - LEFT.T[..., None]) * torch.arange(8.0),
            {"softmax"},
            {"affine"},
        ),
    ],
)
def test_each_fit_finds_what_was_planted(new, high, low):
    found = affine_fits(OLD, new, LEFT)
    for name in high | low:
        assert (found[name] > 0.99 if name in high else found[name] < 0.9).all(), name


def test_with_other_keys_a_head_meets_the_keys_of_the_one_before_it(loaded):
    changed, width = (
        networks.with_other_keys(loaded.model),
        loaded.model.config.head_dim,
    )
    for (name, was), now in zip(
        loaded.model.named_parameters(), changed.parameters(), strict=True
    ):
        first, *others = was.split(width)
        expected = (
            torch.cat([*others[-1:], first, *others[:-1]])
            if ".k_proj." in name
            else was
        )
        assert torch.equal(now, expected)


def test_memory_holds_one_model(tiny_checkpoint, monkeypatch):
    alive = weakref.WeakSet()

    def counted(spec, **options):
        gc.collect()
        assert not alive
        alive.add((loaded := load(spec, **options)).model)
        return loaded

    monkeypatch.setattr(networks, "load", counted)
    spec = str(tiny_checkpoint)
    for layers, seed in ((1, None), (1, None), (2, 0)):
        networks.load_cached(spec, layers, seed=seed)
    assert networks.load_cached(spec, 2, seed=0) is networks.load_cached(
        spec, 2, seed=0
    )
    networks.free()
    assert not alive
