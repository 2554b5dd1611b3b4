"""A small profile's results and figures, made by hand, from which a report is made."""

import base64
import json

import numpy as np
import pytest
from evidence import dataset
from pydantic import TypeAdapter

from lib import paths
from lib.claims.verdict import Verdict
from lib.measurement.store import save_measured
from lib.profiles import load_profile

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="
)
CONDITIONS = ("none", "mless")
NOTEBOOK = {
    "cells": [{"cell_type": "markdown", "metadata": {}, "source": ["# One prompt"]}],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 4,
}
# as a model's text
EVIL = (
    "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned ="
    " 1'>\"'\u2028"
)


def claim(**changes) -> dict:
    """Return a verdict as claims.json has it, supported unless changed.

    An estimate of it may be given as flat names, such as control_effect.
    """
    row = {
        "id": "dilution",
        "claim": "Every head drops",
        "source": "Fig. 2",
        "model": "tiny",
        "reading": "literal",
        "unit": "λ",
        "low_end": None,
        "high_end": 1,
        "verdict": "supported",
        "part": "head 1",
        "parts": 2,
        "holds": ("head 1", "head 2"),
        "effect": 0.8,
        "low": 0.7,
        "high": 0.9,
        "n": 24,
        "clusters": 24,
        "written": "after",
        "survives": True,
    }
    row |= changes
    row["range"] = (row.pop("low_end"), row.pop("high_end"))
    for name in ("control", "keys", "uniform", "difference"):
        within = [key for key in row if key.startswith(f"{name}_")]
        if within:
            row[name] = {key.removeprefix(f"{name}_"): row.pop(key) for key in within}
            row[name]["n"] = row["n"]
    if "needed" in row:
        row["power"] = {"needed": row.pop("needed")}
    return row


def verdict_of(row: dict) -> Verdict:
    """Return a row of claims.json as a verdict."""
    return TypeAdapter(Verdict).validate_python(row)


CONTROL = {
    "control_effect": 0.95,
    "control_low": 0.9,
    "control_high": 1.02,
    "control_verdict": "undecided",
    "difference_effect": -0.15,
    "difference_low": -0.2,
    "difference_high": -0.1,
}
PAPER = {"needed": 90, "paper": -2.0, "paper_of": "a bigger model", "unit": "points"}
NOTHING = {"effect": None, "low": None, "high": None, "part": ""} | {"n": 0, "parts": 0}
CLAIMS = [
    claim(**CONTROL),
    claim(model="other", verdict="contradicted", effect=1.3, low=1.2, high=1.4),
    claim(
        id="length",
        claim="Long fillers hurt",
        high_end=0,
        verdict="undecided",
        low=-0.4,
        parts=1,
        **PAPER,
    ),
    claim(
        id="arm",
        claim="ARM helps",
        verdict="undecided",
        reason="the profile measures none",
        **NOTHING,
    ),
]


def answer(problem: str, condition: str, correct: bool, **changes) -> dict:
    """Return a record of a completion."""
    record = {
        "key": f"{problem}-{condition}-{changes.get('sample', 0)}",
        "model": "tiny",
        "revision": "abc",
        "condition": condition,
        "problem_id": problem,
        "level": 1,
        "answer": "4",
        "sample": 0,
        "response": f"{problem} under {condition}: \\boxed{{4}}",
        "extracted": "4" if correct else "5",
        "finish_reason": "stop",
        "completion_tokens": 9,
        "correct": correct,
        "correct_authors": correct,
    }
    return record | changes


ANSWERS = [
    answer("sum/1", "none", True),
    answer("sum/1", "mless", True, correct_authors=False),
    answer("sum/2", "none", False, level=2),
    answer("sum/2", "mless", True, level=2),
]


def measured(
    model: str = "tiny",
    token: str = " is",
    layers: int = 2,
    heads: int = 3,
    tokens: int = 6,
):
    """Return measurements with `tokens` drawn tokens, of which the fourth and the fifth
    are inserted under mless.
    """
    n = 24
    text, part = drawn_prompt(token, tokens)

    # None has two tokens less; of the other prompt the last one receives nothing.
    shape = (len(CONDITIONS), layers, heads, tokens)
    received = np.linspace(0.01, 0.4, np.prod(shape)).reshape(shape)
    received[0, ..., -3:] = np.nan
    received[1, ..., -1] = np.nan

    # Of two problems one lies above the mean of its head, the other below it.
    means = np.linspace(0.5, 1.4, layers * heads).reshape(layers, heads)
    ratio = means + 0.1 * (-1) ** np.arange(n)[:, None, None]
    unknown = np.full_like(ratio, np.nan)  # under none there is no ratio

    labels = {
        "network": ["trained"],
        "condition": list(CONDITIONS),
        "problem": [f"sum/{i}" for i in range(n)],
        "layer": range(1, layers + 1),
        "head": range(1, heads + 1),
        "token": range(tokens),
    }
    arrays = {
        "received": received.astype("float32"),
        "even": 0.1,
        "text": text,
        "part": part,
        "lambda": np.stack([unknown, ratio]),
    }
    about = {
        "model": model,
        "revision": "abc",
        "dtype": "float32",
        "example": "sum/1",
    }
    # A copy, since a test may alter what was broadcast.
    return dataset(labels, arrays).assign_attrs(about).copy(deep=True)


def drawn_prompt(token: str, tokens: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return the texts of a prompt's tokens under none and under mless, and the parts
    that they are of.
    """
    rest = tokens - 5
    texts = ["Please", token, "?"]
    parts = ["instruction", "instruction", "problem"]
    end = [" 4"] * rest
    plain = [*texts, *end, "", ""]
    plain_parts = [*parts, *["problem"] * rest, "", ""]
    slashes = [*texts, " /", " /", *end]
    inserted = ["instruction"] * 3 + ["inserted"] * 2
    return [plain, slashes], [plain_parts, [*inserted, *["problem"] * rest]]


@pytest.fixture
def made_profile(tmp_path, monkeypatch):
    """A profile whose results and figures lie in the test's folder, with something of
    everything.
    """
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    profile = load_profile("demo").model_copy(update={"name": "made"})
    profile.results.mkdir(parents=True)
    profile.figures.mkdir(parents=True)
    paths.NOTEBOOKS.mkdir()
    (paths.NOTEBOOKS / "01_attention_maps.ipynb").write_text(json.dumps(NOTEBOOK))
    write(profile, CLAIMS, ANSWERS, measured())
    for name in ("fig13", "lambda_map"):
        (profile.figures / f"{name}.png").write_bytes(PIXEL)
        (profile.figures / f"{name}.pdf").write_bytes(b"%PDF-1.4")
        (profile.figures / f"{name}.csv").write_text("head,λ\n1,0.5\n2,0.6\n")
    return profile


def write(profile, claims, answers, heads) -> None:
    """Write claims, completions and measurements into the profile's results."""
    (profile.results / "claims.json").write_text(json.dumps(claims))
    (profile.results / "completions.jsonl").write_text(
        "".join(json.dumps(record) + "\n" for record in answers)
    )
    save_measured(profile.results / "tiny.nc", heads)
