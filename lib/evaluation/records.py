"""What is kept of one completion, and many of them as tables."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pandas as pd


class Record(TypedDict):
    """One graded completion: a line of completions.jsonl."""

    key: str  # 16 hex digits that stand for everything the completion depends on
    model: str
    revision: str  # commit on the hub, or a digest of the files
    condition: str
    problem_id: str
    level: int  # 0: not known
    subject: str  # "": not known
    answer: str  # the gold answer
    sample: int  # from 0
    response: str  # with the elicitation and what followed it, if any
    finish_reason: str  # stop, length (token limit) or context (no room left)
    prompt_tokens: int
    completion_tokens: int
    elicited: bool  # the box was asked for in a second step
    run_on: bool  # a new problem or chat turn follows the answer
    extracted: str | None  # content of the last box
    method: str  # what decided, or why nothing did: `lib.grading.Grade`
    correct: bool
    correct_authors: bool  # the authors' rule on prompt and completion, as published
    correct_authors_on_completion: bool
    correct_exact: bool  # equal after the MATH string rules
    evaluated: bool  # whether the answer is worked out: `lib.grading.Grade`
    dtype: NotRequired[str]  # of the weights; completions of an older run lack it, and the processor
    processor: NotRequired[str]  # which greedy answers in bfloat16 depend on
    arm: NotRequired[dict]  # the settings of ARM, under a condition that has it


FIELDS = list(Record.__annotations__)


def table_of(records: Sequence[Record]) -> pd.DataFrame:
    """Return a row per record, a column for each of FIELDS, and `right`: correct and evaluated."""
    table = pd.DataFrame(records, columns=FIELDS, dtype=object)  # pandas' own strings refuse broken text
    return table.assign(right=table["correct"] & table["evaluated"].ne(False))


def outcome_of(problems: str) -> str:
    """Return what counts as solved: on the embedded set, whose problems are mostly sums, an answer is worked out."""
    return "right" if problems == "embedded" else "correct"


def groups(records: Sequence[Record]) -> dict[tuple[str, str], pd.DataFrame]:
    """Return (model, condition) -> records, models and conditions as they come, none first."""
    found = {}
    for model, table in table_of(records).groupby("model", sort=False):
        ordered = table.sort_values("condition", key=lambda names: names != "none", kind="stable")
        found |= {(model, condition): group for condition, group in ordered.groupby("condition", sort=False)}
    return found


def matrix(group: pd.DataFrame, outcome: str = "correct") -> pd.DataFrame:
    """Return right/wrong (problems, samples) of one model and condition, by a grader's field or right; NaN: missing."""
    values = group.drop_duplicates(["problem_id", "sample"]).pivot(index="problem_id", columns="sample", values=outcome)
    return values.loc[group["problem_id"].unique()].astype(float)


def shares(group: pd.DataFrame, outcome: str = "correct") -> pd.Series:
    """Return the accuracy of each problem over its samples, in %, of one model and condition."""
    return 100 * matrix(group, outcome).mean(axis=1)


def finished(records: Sequence[Record]) -> list[Record]:
    """Return the records of problems that a model finished within the token limit under every condition."""
    cut = {(record["model"], record["problem_id"]) for record in records if record["finish_reason"] != "stop"}
    return [record for record in records if (record["model"], record["problem_id"]) not in cut]
