"""Stored answers and verdicts by hand, from which the expected tables follow."""

import gzip
import json
from itertools import product

import numpy as np
import pandas as pd

from reproduction.claims.verdicts import Verdict


def record(condition, problem, correct, sample=0, **others):
    fields = {
        "model": "m",
        "condition": condition,
        "problem_id": problem,
        "level": 1,
        "subject": "Algebra",
        "answer": "1",
        "sample": sample,
        "response": "a b c",
        "finish_reason": "stop",
        "elicited": False,
        "run_on": False,
        "extracted": "1",
        "method": "equal",
        "correct": correct,
        "correct_authors": correct,
        "correct_authors_on_completion": correct,
        "correct_exact": correct,
    }
    return fields | others


def run(condition, right, n, **others):
    """Return one answer to each of n problems, of which the first `right` are right."""
    return [record(condition, f"p{i}", i < right, **others) for i in range(n)]


def sampled(condition, answers):
    """Return several samples of each problem from one string per problem, in which each
    character is a sample: 1 is right, 0 is wrong, and _ is missing.
    """
    return [
        record(condition, f"p{number}", answer == "1", sample)
        for number, of_problem in enumerate(answers)
        for sample, answer in enumerate(of_problem)
        if answer != "_"
    ]


def keep(path, rows):
    """Write rows as lines of a file; a row without a key gets its index as the key."""
    lines = [json.dumps({"key": str(index)} | row) for index, row in enumerate(rows)]
    content = "".join(f"{line}\n" for line in lines).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def draws_of(problems):
    """Return two answers under none and two under mless to each problem, of which the
    first is right, and their log-likelihoods under three conditions.
    """
    names = [f"p{number}" for number in range(problems)]
    answers = pd.DataFrame(product(names, range(4)), columns=["problem_id", "number"])
    number = answers.pop("number")
    answers = answers.assign(
        key=answers.problem_id + "-" + number.astype(str),
        condition=np.where(number < 2, "none", "mless"),
        sample=number % 2,
        right=number == 0,
        model="tiny",
        finish_reason="stop",
    )
    scored = pd.DataFrame({"condition": ["none", "mless", "hidden-from-layer-1"]})
    keys = answers[["key", "problem_id", "model"]].rename(columns={"key": "answer"})
    return answers, keys.merge(scored, how="cross").assign(nats=-50.0)


def verdict(id: str = "dilution", model: str = "m", **changes) -> Verdict:
    """Return a verdict: supported with n = 40, except for the changed fields."""
    fields = {
        "claim": "Every head drops",
        "reading": "literal",
        "source": "Fig. 2",
        "unit": "λ",
        "range": (None, 1),
        "written": "after",
        "verdict": "supported",
        "effect": 0.8,
        "low": 0.7,
        "high": 0.9,
        "n": 40,
        "survives": True,
    }
    return Verdict(id=id, model=model, **fields | changes)
