"""Stored answers and verdicts by hand, from which the expected tables follow."""

import gzip
import json

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
