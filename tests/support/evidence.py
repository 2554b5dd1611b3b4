"""Evidence on a model `m`, made by hand for the claims: measurements of its attention
as arrays, answers and log-likelihoods as tables.
"""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hand_written import sampled

from reproduction.claims.claim import load_claims
from reproduction.claims.judging import judge
from reproduction.evaluation.rows import frame
from reproduction.measurement.dataset import VARIABLES

CLAIMS = {claim.id: claim for claim in load_claims()}
TEMPLATES = 25
CONDITIONS = ["none", "mless", "mful"]


def verdict_on(name, evidence, model="m", **changes):
    """Return the verdict on a claim from the evidence on a model.

    changes: fields of the claim, such as its range, with other values than stored.
    """
    claim = CLAIMS[name].model_copy(update=changes)
    (verdict,) = judge([claim], {model: evidence})
    return verdict


def lambdas(values, n=40, layers=3, networks=("trained",)):
    """Return evidence on λ for two heads, and on that of their means; the values are
    broadcast to (network, condition, problem, layer, head).
    """
    labels = {"network": list(networks), "condition": CONDITIONS}
    labels["problem"] = [f"embedded/template{i % TEMPLATES}/{i}" for i in range(n)]
    labels |= {"layer": range(1, layers + 1), "head": [1, 2]}
    labels |= {"span": ["original"], "query": ["all"]}
    measured = dataset(labels, {"lambda": values})
    means = measured["lambda"].mean("head").expand_dims(["span", "query"], [-2, -1])
    return {"measured": measured.assign(lambda_over_heads=means)}


DIMENSIONS = {
    name: dims.split()
    for variables in VARIABLES.values()
    for name, (dims, _) in variables.items()
}


def dataset(labels, arrays):
    """Return a dataset with these coordinates, to which the arrays are broadcast."""
    sizes = {name: [len(labels[dim]) for dim in DIMENSIONS[name]] for name in arrays}
    return xr.Dataset(
        {
            name: (DIMENSIONS[name], np.broadcast_to(arrays[name], sizes[name]))
            for name in arrays
        },
        labels,
    )


def close(column, expected):
    """Assert that a column of a table has about these numbers."""
    assert column.tolist() == pytest.approx(expected)


def answers(part="main", **conditions):
    """Return evidence on answers under each condition (`_` in a name becomes @).

    conditions: for each a list of strings, one a problem, as `sampled` takes them, or
    one string with one answer per problem.
    """
    records = []
    for name, of_problems in conditions.items():
        records += sampled(name.replace("_", "@"), of_problems)
    return {"answers": frame(records, part).assign(plain=True)}


def right(solved, of=60):
    """Return one answer per problem for `answers`, of which the first `solved` are
    right.
    """
    return "1" * solved + "0" * (of - solved)


def scores(n=30, **shifts):
    """Return log-likelihoods of solutions of n problems under none and under conditions
    that raise them by about so many nats, by a slightly different number each.
    """
    rows = [
        {"condition": name, "problem_id": f"p{i}", "nats": -200.0 + i + shift * factor}
        for name, shift in ({"none": 0} | shifts).items()
        for i, factor in enumerate(np.linspace(0.99, 1.01, n))
    ]
    return pd.DataFrame(rows).assign(model="m", target="solution", tokens=100)
