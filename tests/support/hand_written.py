"""Answers written by hand, whose tables are known."""

from lib.evaluation.rows import frame


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


def solved(**right):
    """Answers to 40 problems, of which each condition solves the first so many."""
    rows = []
    for condition, count in right.items():
        rows += run(condition, count, 40)
    return frame(rows)
