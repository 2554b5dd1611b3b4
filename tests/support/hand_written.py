"""Answers written by hand, whose tables are known."""

from lib.evaluation.store import frame


def record(condition, problem, correct, sample=0, **others):
    fields = {
        "model": "m",
        "condition": condition,
        "problem_id": problem,
        "sample": sample,
        "correct": correct,
    }
    fields |= dict.fromkeys(
        ("correct_authors", "correct_exact", "correct_authors_on_completion"), correct
    )
    fields |= {
        "method": "equal",
        "finish_reason": "stop",
        "elicited": False,
        "run_on": False,
    }
    return (
        fields
        | {
            "level": 1,
            "subject": "Algebra",
            "response": "a b c",
            "answer": "1",
            "extracted": "1",
        }
        | others
    )


def run(condition, right, n, **others):
    """The first `right` of n problems are solved."""
    return [record(condition, f"p{i}", i < right, **others) for i in range(n)]


def solved(**right):
    """Answers to 40 problems, of which each condition solves the first so many."""
    return frame(
        [row for condition, count in right.items() for row in run(condition, count, 40)]
    )
