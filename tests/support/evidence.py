"""What a profile measured on a model `m`, made by hand: its inside as arrays, answers
and likelihoods as tables.
"""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hand_written import sampled

from lib.claims.claim import load_claims
from lib.claims.judging import judge
from lib.evaluation.records import frame
from lib.measurement.variables import DIMENSIONS

CLAIMS = {claim.id: claim for claim in load_claims()}
TEMPLATES = 25
CONDITIONS = ["none", "mless", "mful"]


def verdict_on(name, evidence, model="m", **changes):
    """Return the verdict on a claim, of what is known of a model.

    The claim may have other arguments or another range than it has.
    """
    claim = CLAIMS[name].model_copy(update=changes)
    (verdict,) = judge([claim], {model: evidence})
    return verdict


def lambdas(values, n=40, layers=3, networks=("trained",)):
    """Return evidence of λ (network, condition, problem, layer, head) of two heads, to
    which the values are broadcast.
    """
    labels = {"network": list(networks), "condition": CONDITIONS}
    labels["problem"] = [f"embedded/template{i % TEMPLATES}/{i}" for i in range(n)]
    labels |= {"layer": range(1, layers + 1), "head": [1, 2]}
    return {"measured": dataset(labels, {"lambda": values})}


def dataset(labels, arrays):
    """Return measurements over these labels: the variables that are given, or what is
    broadcast to them.
    """
    sizes = {name: [len(labels[dim]) for dim in DIMENSIONS[name]] for name in arrays}
    return xr.Dataset(
        {
            name: (DIMENSIONS[name], np.broadcast_to(arrays[name], sizes[name]))
            for name in arrays
        },
        labels,
    )


def close(column, expected):
    """Say that a column of a table has these numbers."""
    assert column.tolist() == pytest.approx(expected)


def answers(part="main", **conditions):
    """Return evidence of answers under each condition (`_` for @), which is told by a
    text for each problem as `sampled` has it, or by one text of single answers.
    """
    records = []
    for name, of_problems in conditions.items():
        records += sampled(name.replace("_", "@"), of_problems)
    return {"answers": frame(records, part).assign(plain=True)}


def right(solved, of=60):
    """Return single answers of which the first so many are right."""
    return "1" * solved + "0" * (of - solved)


def scores(n=30, **shifts):
    """Return likelihoods of solutions in which a condition gives each problem so many
    nats more than none, no two the same.
    """
    rows = [
        {"condition": name, "problem_id": f"p{i}", "nats": -200.0 + i + shift * factor}
        for name, shift in ({"none": 0} | shifts).items()
        for i, factor in enumerate(np.linspace(0.99, 1.01, n))
    ]
    return pd.DataFrame(rows).assign(model="m", target="solution", tokens=100)
