"""Answers written by hand, whose tables are known."""

import gzip
import json
from itertools import product

import numpy as np
import pandas as pd


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
    """The first `right` of n problems are solved."""
    return [record(condition, f"p{i}", i < right, **others) for i in range(n)]


def sampled(condition, answers):
    """Several samples of each problem, a character each: 1 is right, 0 is wrong, and _
    is missing.
    """
    return [
        record(condition, f"p{place}", answer == "1", sample)
        for place, of_problem in enumerate(answers)
        for sample, answer in enumerate(of_problem)
        if answer != "_"
    ]


def keep(path, rows):
    """Write rows as lines of a file, with their places as keys where they have none."""
    lines = [json.dumps({"key": str(place)} | row) for place, row in enumerate(rows)]
    content = "".join(f"{line}\n" for line in lines).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def draws_of(problems):
    """Two answers under none and two under mless to each problem, of which the first is
    right, and their log p under three conditions.
    """
    names = [f"p{number}" for number in range(problems)]
    answers = pd.DataFrame(product(names, range(4)), columns=["problem_id", "place"])
    place = answers.pop("place")
    answers = answers.assign(
        key=answers.problem_id + "-" + place.astype(str),
        condition=np.where(place < 2, "none", "mless"),
        sample=place % 2,
        right=place == 0,
        model="tiny",
        finish_reason="stop",
    )
    seen = pd.DataFrame({"condition": ["none", "mless", "hidden-from-layer-1"]})
    keys = answers[["key", "problem_id", "model"]].rename(columns={"key": "answer"})
    return answers, keys.merge(seen, how="cross").assign(nats=-50.0)
