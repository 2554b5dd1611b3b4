"""Define the fields of the rows of answers and scores, and the table of answers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from lib.errors import InputError
from lib.profiles import Likelihood
from lib.prompts.conditions import Condition
from lib.prompts.problem_schema import Problem

if TYPE_CHECKING:  # stored rows are read without torch
    from lib.models.loading import Loaded

COMPLETIONS = "completions.jsonl"
SCORES = "scores.jsonl"
SUMMARY = "summary.json"  # written when a run of completions is complete
FIELDS = [  # of a line of completions.jsonl
    # 16 hex digits, a digest of everything that the completion depends on.
    "key",
    "model",
    # The commit of the model on its hub, or a digest of its files.
    "revision",
    "condition",
    # Four fields of the problem: level 0 and subject "" mean unknown, `answer` is the
    # gold answer.
    "problem_id",
    "level",
    "subject",
    "answer",
    # The number of the sample, from 0.
    "sample",
    # The complete text, with the elicited part.
    "response",
    # stop (an end token) or length (the token limit); older runs also have context.
    "finish_reason",
    "prompt_tokens",
    "completion_tokens",
    # Whether a boxed answer was elicited in a second step.
    "elicited",
    # Whether another problem follows the answer.
    "run_on",
    # The content of the last box, the rule that decided the grade, and the grade: see
    # `lib.grading.extraction.Grade`.
    "extracted",
    "method",
    "correct",
    # The grade by the authors' rule, which as published reads the prompt too, and by
    # exact match after normalisation.
    "correct_authors",
    "correct_authors_on_completion",
    "correct_exact",
    # False if the gold answer is a number and the box is an expression for it.
    "evaluated",
    # Older runs lack dtype and processor.
    "dtype",
    "processor",
    # ARM's settings, if any.
    "arm",
    # The tokens of a sampled answer, including the end token; greedy ones lack it.
    "token_ids",
]
# Fields without which a row cannot be tabulated.
REQUIRED_FIELDS = ("model", "condition", "problem_id", "sample", "response", "correct")
SCORE_FIELDS = [  # of a line of scores.jsonl
    "key",
    "model",
    "revision",
    "condition",
    "target",  # kind of text: solution, answer or draw
    "problem_id",
    "level",
    "subject",
    "prompt_tokens",
    "tokens",  # of the text
    "nats",  # its log-likelihood
    "dtype",
    "processor",
]
# Windows of a text's tokens, named by tokens counted from 1. A score has the mean of
# the next token's entropy and divergence over each (module next_token_entropy): the
# first token, where branching would begin, then three larger windows.
WINDOWS = {
    "1": slice(0, 1),
    "2-8": slice(1, 8),
    "9-32": slice(8, 32),
    "33-64": slice(32, 64),
}
NEXT_TOKEN_FIELDS = [*SCORE_FIELDS, "entropy", "divergence"]
# The score of a draw also has the key of its answer, and how that was sampled.
DRAW_SCORE_FIELDS = [*SCORE_FIELDS, "answer", "sample", "drawn_under", "temperature"]


def score_fields(section: Likelihood) -> list[str]:
    """Return the fields of the scores that a section requests."""
    return NEXT_TOKEN_FIELDS if section.next_token else SCORE_FIELDS


def common_fields(loaded: "Loaded", problem: Problem, condition: Condition) -> dict:
    """Return the fields of a row that describe its model, problem and condition."""
    row = problem.model_dump() | model_identity(loaded)
    row["condition"] = str(condition)
    row["problem_id"] = problem.id
    return row


def model_identity(loaded: "Loaded") -> dict[str, str]:
    """Return the name, revision and dtype of a model, as in rows and keys."""
    return {
        "model": loaded.name,
        "revision": loaded.revision,
        "dtype": loaded.dtype,
    }


def frame(rows: Sequence[dict], part: str = "main") -> pd.DataFrame:
    """Return the table of answers, with a row per completion.

    Its columns are FIELDS, `part`, and two more grades. `worked_out` is correct with no
    operation left to carry out. `right` is the grade that tables and claims count:
    `worked_out` on the embedded set, whose problems are mostly sums, and `correct` on
    other problems. Raises InputError for a row that lacks one of REQUIRED_FIELDS.
    """
    for row in rows:
        for name in REQUIRED_FIELDS:
            if name not in row:
                raise InputError(f"completions.jsonl: {name}: missing field")
    # As objects, because pandas' string type refuses invalid text.
    table = pd.DataFrame(rows, columns=FIELDS, dtype=object)
    correct = table["correct"].eq(True)
    worked_out = correct & table["evaluated"].ne(False)
    is_embedded = [name.startswith("embedded/") for name in table["problem_id"]]
    right = correct.mask(pd.Series(is_embedded, table.index, dtype=bool), worked_out)
    return table.assign(part=part, correct=correct, worked_out=worked_out, right=right)
