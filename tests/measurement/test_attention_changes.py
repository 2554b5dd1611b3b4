"""Effects of insertions on received attention, compared with full matrices."""

import numpy as np
import pytest
import torch
import xarray as xr
from eager import matrices, received, values_of

from lib import progress
from lib.errors import InputError
from lib.models.loading import load
from lib.prompts.building import build_prompt
from lib.prompts.conditions import Condition
from lib.prompts.problems import load_problems
from reproduction.measurement.attention_changes import (
    SPANS,
    measure_attention,
    prompts_of,
)

PROBLEMS = load_problems("embedded", limit=4)


@pytest.fixture(scope="module")
def loaded():
    return load("demo", layers=3, device="cpu")


def reference(loaded, before, after):
    """Return the variables of one problem, (L, H) or (L, span, query), computed by
    their definitions from the full attention matrices.

    before, after: the prompts without and with the insertion.
    """
    span = after.spans["inserted"]
    matrix = matrices(loaded.model, after.input_ids)
    baseline = received(matrices(loaded.model, before.input_ids))
    old = baseline[..., after.counterparts[1:-1]].numpy()
    new = received(matrix)[..., after.original[1:-1]].numpy()
    inserted = received(matrix)[..., span].numpy()
    values = values_of(loaded.model, after.input_ids)

    variables = {"lambda": new.mean(-1) / old.mean(-1)}
    variables["lambda_over_heads"] = lambda_over_heads(matrix, baseline, before, after)
    variables["irregularity"] = np.log(new / old).std(-1)
    variables["unevenness"] = new.std(-1) / new.mean(-1)
    variables["mass"] = matrix[:, :, span.stop :, span].sum(-1).mean(-1).numpy()
    variables["flatness"] = inserted.std(-1) / inserted.mean(-1)
    variables["dispersion"] = dispersion(values[:, :, span].numpy())
    variables["portion"] = inserted.mean(-1) / new.mean(-1)
    return variables


def dispersion(values):
    """Return the relative dispersion (L, H) of value vectors (L, H, n, D)."""
    away = values - values.mean(2, keepdims=True)
    return ((away**2).sum((2, 3)) / (values**2).sum((2, 3))) ** 0.5


def lambda_over_heads(matrix, baseline, before, after):
    """Return lambda over all heads for each span and set of queries, (L, span, query).

    matrix: attention with the insertion (L, H, T, T).
    baseline: received attention without it (L, H, T).
    """
    later = torch.tril(torch.ones(len(after), len(after)), -1)
    is_original = torch.isin(torch.arange(len(after)), after.original)
    by_query = []
    for rows in (later, later * is_original[:, None]):
        by_query.append((matrix * rows).sum(2) / rows.sum(0))

    by_span = []
    for name in SPANS:
        new = inner_tokens(after, name)
        old = [after.counterparts[after.original == index].item() for index in new]
        without = baseline[..., old].mean((1, 2))
        levels = [given[..., new].mean((1, 2)) for given in by_query]
        by_span.append([level / without for level in levels])
    return np.moveaxis(np.array(by_span), (0, 1), (1, 2))


def inner_tokens(prompt, name):
    """Return the positions of the original tokens of a span, without the prompt's first
    and last token.
    """
    inner = prompt.original[1:-1].tolist()
    if name == "original":
        return inner
    span = prompt.spans[name]
    return [index for index in inner if span.start <= index < span.stop]


@pytest.mark.parametrize("format", ["plain", "authors"])
def test_measures_of_attention_equal_those_of_full_matrices(loaded, format):
    conditions = ["mless", "random"]
    prompts = prompts_of(loaded, PROBLEMS, conditions, format)
    measured = measure_attention(loaded, prompts, [1, 2, 3])
    assert measured["lambda"].shape == (len(conditions), len(PROBLEMS), 3, 9)
    for problem, before in prompts["none"].items():
        for condition in conditions:
            expected = reference(loaded, before, prompts[condition][problem])
            found = measured.sel(problem=problem, condition=condition)
            for name, numbers in expected.items():
                np.testing.assert_allclose(
                    found[name], numbers, rtol=2e-3, atol=2e-3, err_msg=name
                )

    second = measure_attention(loaded, prompts, [2])
    xr.testing.assert_allclose(second, measured.sel(layer=[2]), rtol=1e-5)


def test_the_progress_bar_counts_problems(tiny_llama, capsys, monkeypatch):
    monkeypatch.setattr(progress, "shown", True)
    loaded = load(str(tiny_llama), device="cpu")
    measure_attention(loaded, prompts_of(loaded, PROBLEMS, ["mless"]), [1])
    bars = capsys.readouterr().err
    for condition in ("none", "mless"):
        assert f"attention under {condition} in 1 layer: 100%" in bars
    assert bars.count("4/4") == 2


def test_attention_that_is_nan_is_named_by_its_problem():
    spoilt = load("demo", layers=1, device="cpu")
    spoilt.model.layers[0].self_attn.q_proj.weight.data[0, 0] = float("nan")
    prompts = prompts_of(spoilt, PROBLEMS, ["mless"])
    with pytest.raises(InputError, match="gives NaN attention on problem embedded/"):
        measure_attention(spoilt, prompts, [1])


def test_a_prompt_that_is_too_long_is_named_before_anything_is_measured(
    tiny_llama, refused
):
    long = PROBLEMS[0].model_copy(update={"id": "long", "problem": "Add $1$. " * 300})
    message = refused(prompts_of, load(str(tiny_llama)), [*PROBLEMS, long], [])
    assert message.startswith("problem long, none: ")
    assert message.endswith("leave this problem out")


def test_a_span_without_any_token_has_no_lambda(tiny_llama):
    loaded = load(str(tiny_llama))
    slashes = Condition(
        text="mless@end", inserted="mless", position="end", instructed=False
    )
    prompts = {}
    for name, condition in {"none": "bare", "mless": slashes}.items():
        prompt = build_prompt(loaded.tokenizer, "What is $3 + 4$?", condition)
        prompts[name] = {"p": prompt}
    over_heads = measure_attention(loaded, prompts, [1])["lambda_over_heads"]
    assert over_heads.sel(span="instruction").isnull().all()
    assert over_heads.sel(span=["original", "problem"]).notnull().all()
