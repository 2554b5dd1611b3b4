"""What a profile measured on a model `m`, made by hand: its inside as arrays, answers and likelihoods as tables."""

import numpy as np
import pandas as pd
import xarray as xr

from lib.arm.activations import MEASURES
from lib.claims.claim import load_claims
from lib.claims.verdict import judge
from lib.claims.words import rows_of
from lib.measurement.activations import NAMES

CLAIMS = {claim.id: claim for claim in load_claims()}
TEMPLATES = 25
CONDITIONS = ["none", "mless", "mful", "random", "arm"]
WITHOUT_CONDITION = ("affine", "line", "softmax")
DIMS = dict.fromkeys(("lambda", "flatness", "unevenness", "dispersion", "portion", "irregularity"), ("layer", "head"))
DIMS |= dict.fromkeys(WITHOUT_CONDITION, ("head",)) | {"lambda_by_span": ("layer", "head", "span", "query")}
DIMS |= {"measures": ("layer", "measure"), "classes": ("layer", "class"), "shape": ("layer",)}


def row_of(name, evidence, model="m", **changes):
    """Return the row of a claim, with other arguments or range than it has, on what is known of a model."""
    (row,) = rows_of(judge([CLAIMS[name].model_copy(update=changes)], {model: evidence}))
    return row


def problems(n, embedded=True):
    return [f"embedded/template{i % TEMPLATES}/{i}" if embedded else f"test/{i}.json" for i in range(n)]


def inside(n=40, heads=2, layers=3, embedded=True, networks=("trained",), **arrays):
    """Return a Dataset with these arrays (network, condition, problem, ...), or what is broadcast to them."""
    labels = {"network": list(networks), "condition": CONDITIONS, "problem": problems(n, embedded)}
    labels |= {"layer": list(range(1, layers + 1)), "head": list(range(1, heads + 1))}
    labels |= {"span": ["original", "problem", "instruction"], "query": ["all", "original"]}
    labels |= {"measure": list(MEASURES), "class": list(NAMES)}
    found = {}
    for name, values in arrays.items():
        dims = ["network", "condition", "problem", *DIMS[name]]
        if name in WITHOUT_CONDITION:
            dims.remove("condition")
        found[name] = dims, np.broadcast_to(values, [len(labels[dim]) for dim in dims])
    return xr.Dataset(found, labels)


def answers(part="main", samples=1, embedded=False, plain=True, **solved):
    """Return evidence of so many problems per condition (`_` for @, `x` for :), with so many right samples each."""
    rows = []
    for name, right in solved.items():
        condition = name.replace("_", "@").replace("mlessx", "mless:")
        for index, count in enumerate(right):
            for sample in range(samples):
                words = " ".join(f"w{sample * (condition != 'none') + i % 3}" for i in range(5))
                row = {"model": "m", "part": part, "condition": condition, "sample": sample, "response": words}
                problem = problems(len(right), embedded)[index]
                row |= {"problem_id": problem, "right": float(sample < count), "plain": plain}
                rows.append(row | {"finish_reason": "stop"})
    return {"answers": pd.DataFrame(rows)}


def right(solved, of=60):
    return [1] * solved + [0] * (of - solved)


def scores(shifts, model="m", target="solution", n=30, tokens=100):
    """Return likelihoods in which a condition gives each problem so many nats more than none, no two the same."""
    rows = [
        {"model": model, "target": target, "condition": name, "problem_id": f"p{i:03d}", "tokens": tokens}
        | {"nats": -200.0 + i + shift * factor}
        for name, shift in ({"none": 0} | shifts).items()
        for i, factor in enumerate(np.linspace(0.99, 1.01, n))
    ]
    return pd.DataFrame(rows)
