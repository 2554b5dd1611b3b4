"""Build the keys of answers and scores, which say everything that decides a row, and
find the stored rows that a section of a profile wants by them.

    model = row_model(spec, section, "float32")
    under = model.digest(condition, filler, TARGETS["solution"])
    key = row_key(under, problem, solution=problem.solution)
    found = found_rows(section, wanted_of, read_rows(folder, "completions"))

A key is built from texts and settings, and not from tokens, so that rows are found
without the weights and the tokenizer of their model, and without the texts of MATH-500.
Rows of other settings may lie in the same file.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from lib.files.row_store import settings_key
from lib.files.text_files import read
from lib.models.sources import Source, resolve, revision_of
from lib.prompts.conditions import (
    AUTHORS_FORMATS,
    AUTHORS_INSTRUCTION,
    INSTRUCTION,
    WORKED_EXAMPLE,
    Condition,
    Filler,
    is_chat,
    without_chat,
)
from lib.prompts.problems import Listed, listed_problems, sampling_order
from reproduction.profiles import Accuracy, Likelihood, PassRates
from reproduction.profiles.sections import Section

# With `elicit`, this text is appended to an answer without a box, and the model
# continues (Kojima et al. 2022), because small models rarely write a box otherwise.
ELICITATION = "\n\nTherefore, the final answer is \\boxed{"
# The text that precedes a scored gold answer; it is not scored itself.
BEFORE_ANSWER = "The final answer is $\\boxed{"
# By kind of text, what the keys of its scores say of it.
TARGETS = {
    "solution": {"target": "solution"},
    "answer": {"target": "answer", "lead": BEFORE_ANSWER},
    "draw": {"target": "draw"},
}


class RowModel(NamedTuple):
    """A model with the settings that are resolved for it before rows are looked for."""

    source: Source  # with its revision
    dtype: str  # never auto
    format: str  # the prompt format that is really used

    def digest(
        self, condition: Condition, filler: Filler, others: Mapping[str, object]
    ) -> str:
        """Return a digest of what the keys of all problems under a condition have in
        common: everything about model and prompt except the problem, and `others`, the
        decoding settings of answers or one of TARGETS.

        Raises InputError if more inserted tokens would be visible than are inserted.
        """
        settings: dict[str, object] = {
            "model": self.source.name,
            "revision": self.source.revision,
            "dtype": self.dtype,
            "format": self.format,
            "condition": str(condition),
        }
        if condition.instructed:
            is_glued = self.format in AUTHORS_FORMATS
            settings["instruction"] = AUTHORS_INSTRUCTION if is_glued else INSTRUCTION
        if condition.inserted != "none":
            used = condition.filler(filler)
            text = used.text(condition.inserted)
            settings["filler"] = [text, used.length, used.position]
        if condition.example:
            settings["example"] = WORKED_EXAMPLE.model_dump()
        if condition.arm:
            settings["arm"] = condition.arm.over(self.source.arm).model_dump()
        return settings_key(**settings, **others)


def row_key(under: str, problem: Listed, **own: object) -> str:
    """Return the key of a row, a digest of everything that decides it.

    under: `RowModel.digest` of its condition. own: what distinguishes it from the other
    rows of the problem under the condition.
    """
    return settings_key(under=under, id=problem.id, question=problem.question, **own)


def seed_of(key: str) -> int:
    """Return the seed of the random draws for a row, which derives from its key."""
    return int(key, 16) % 2**63


def row_model(spec: str, section: Section, dtype: str) -> RowModel:
    """Return a model in a dtype, with its revision and the format of its prompts.

    Raises InputError for an unknown model. Its tokenizer is read only if
    data/models.yaml does not tell whether it has a chat template.
    """
    source = resolve(spec)
    source = source.model_copy(update={"revision": revision_of(source)})
    format = section.format
    if is_chat(format) and not _has_chat(source):
        format = without_chat(format)
    return RowModel(source, dtype, format)


def _has_chat(source: Source) -> bool:
    """Return whether a model's tokenizer has a chat template."""
    if source.chat_template is not None:
        return source.chat_template
    from lib.models.loading import load_without_weights  # imports torch

    loaded = load_without_weights(source.spec, fetch=False)
    return bool(loaded.tokenizer.chat_template)


class WantedAnswer(NamedTuple):
    """A sample of the answer to a problem under a condition."""

    problem: Listed
    condition: Condition
    sample: int  # counted from 0


class WantedScore(NamedTuple):
    """The log-likelihood of a text under a condition."""

    problem: Listed
    condition: Condition
    # Kind of text: solution, answer (the gold answer) or draw (a sampled answer).
    target: str
    # Of a draw: the fields of its row that other scores lack, and its tokens.
    draw: dict | None = None
    token_ids: list[int] | None = None


def answers_wanted(
    accuracy: Accuracy, filler: Filler, seed: int, model: RowModel
) -> dict[str, WantedAnswer]:
    """Return the answers that a section wants of a model by key, condition by
    condition.
    """
    problems = listed_problems(accuracy.problems, accuracy.limit, seed, accuracy.levels)
    names = {"engine", "max_new_tokens", "temperature", "top_p"}
    decoding = accuracy.model_dump(include=names) | {"seed": seed}
    if accuracy.elicit:
        decoding["elicit"] = [ELICITATION, accuracy.elicit_tokens]
    if accuracy.examples:
        decoding["examples"] = [one.model_dump() for one in accuracy.examples]

    wanted = {}
    for condition in accuracy.conditions:
        under = model.digest(condition, filler, decoding)
        for problem in problems:
            own = {}
            if condition.posed == "hinted":
                own["solution"] = problem.solution
            for sample in range(accuracy.samples):
                key = row_key(under, problem, sample=sample, **own)
                wanted[key] = WantedAnswer(problem, condition, sample)
    return wanted


def scores_wanted(
    likelihood: Likelihood, filler: Filler, seed: int, model: RowModel
) -> dict[str, WantedScore]:
    """Return the scores that a section wants of a model by key, problem by problem in
    sampling order: solutions under the section's conditions, and gold answers under
    those of at_once.

    They include those of solutions that are too long for the section.
    """
    problems = sampling_order(listed_problems(likelihood.problems), seed)
    targets = {"solution": likelihood.conditions, "answer": likelihood.at_once}
    conditions = dict.fromkeys([*likelihood.conditions, *likelihood.at_once])
    digests = [
        (target, condition, model.digest(condition, filler, TARGETS[target]))
        for condition, (target, under) in product(conditions, targets.items())
        if condition in under
    ]
    wanted = {}
    for problem in problems[: likelihood.limit]:
        for target, condition, under in digests:
            key = row_key(under, problem, solution=problem.solution)
            wanted[key] = WantedScore(problem, condition, target)
    return wanted


def draw_scores_wanted(
    scoring: Likelihood | PassRates,
    filler: Filler,
    seed: int,
    temperature: float,
    draws: Sequence[dict],
    model: RowModel,
) -> dict[str, WantedScore]:
    """Return the scores that a section wants of a model's sampled answers by key,
    problem by problem in sampling order.

    draws: the rows of all models' answers, which were sampled at this temperature.
    """
    by_problem: dict[str, list[dict]] = {}
    for row in draws:
        if row["model"] == model.source.name:
            by_problem.setdefault(row["problem_id"], []).append(row)
    digests = {
        one: model.digest(one, filler, TARGETS["draw"]) for one in scoring.conditions
    }
    wanted = {}
    for problem in sampling_order(listed_problems(scoring.problems), seed):
        of_problem = by_problem.get(problem.id, [])
        for (condition, under), row in product(digests.items(), of_problem):
            answer = row["key"]
            key = row_key(under, problem, answer=answer, temperature=temperature)
            draw = {
                "answer": answer,
                "sample": row["sample"],
                "drawn_under": row["condition"],
                "temperature": temperature,
            }
            tokens = row["token_ids"]
            wanted[key] = WantedScore(problem, condition, "draw", draw, tokens)
    return wanted


class WantedRows(NamedTuple):
    """The rows that a section wants of a model."""

    model: RowModel
    by_key: dict[str, Any]  # what each row is about, such as a problem and a condition


# Returns the wanted rows of a model by their keys.
WantedOf = Callable[[RowModel], dict[str, Any]]
Rows = Mapping[str, dict]  # stored rows by their keys


def wanted_in_stored_dtype(
    spec: str, section: Section, wanted_of: WantedOf, rows: Rows
) -> WantedRows | None:
    """Return the rows that a section wants of a model, in the dtype in which most of
    them are stored if its dtype is auto; None if none is stored.
    """
    name = resolve(spec).name
    dtypes = {row.get("dtype") for row in rows.values() if row.get("model") == name}
    if section.dtype != "auto":
        dtypes &= {section.dtype}
    best, most = None, 0
    for dtype in sorted(filter(None, dtypes)):
        model = row_model(spec, section, dtype)
        wanted = WantedRows(model, wanted_of(model))
        found = len(wanted.by_key.keys() & rows.keys())
        if found > most:
            best, most = wanted, found
    return best


def wanted_rows(
    spec: str, section: Section, wanted_of: WantedOf, rows: Rows, device: str = "auto"
) -> WantedRows:
    """Return the rows that a section wants of a model. If its dtype is auto, it is that
    of the stored ones, or else that of a device.
    """
    if stored := wanted_in_stored_dtype(spec, section, wanted_of, rows):
        return stored
    from lib.models.loading import placement  # imports torch

    _, dtype = placement(device, section.dtype)
    model = row_model(spec, section, dtype)
    return WantedRows(model, wanted_of(model))


def found_rows(section: Section, wanted_of: WantedOf, rows: Rows) -> list[dict]:
    """Return the stored rows that a section wants, in the order in which it wants them,
    model by model.
    """
    wanted = [
        wanted_in_stored_dtype(spec, section, wanted_of, rows)
        for spec in section.models
    ]
    return stored_among(filter(None, wanted), rows)


def stored_among(wanted: Iterable[WantedRows], rows: Rows) -> list[dict]:
    """Return the wanted rows of several models that are stored, in their order."""
    return [rows[key] for one in wanted for key in one.by_key if key in rows]


def read_rows(folder: Path, stem: str, others: Sequence[Path] = ()) -> dict[str, dict]:
    """Return the rows of other files, and of a folder's files with this stem
    (`completions` or `scores`), by key; of rows with the same key, the folder's.
    """
    files = sorted(folder.glob(f"{stem}*.jsonl"))
    return {row["key"]: row for row in read(*files, *others)}


def say_if_plain(model: RowModel, requested: str) -> None:
    """Print a line if prompts are plain although a section requests chats."""
    if model.format != requested:
        print(
            f"{model.source.name} has no chat template, so its prompts are"
            f" {model.format}, not {requested}",
            file=sys.stderr,
        )


def say_if_none_is_found(
    wanted: Iterable[WantedRows], rows: Rows, folder: Path
) -> None:
    """Print a line if a folder has rows, and none of them is wanted: rows of other
    settings, or of an earlier version, stay beside the new ones.
    """
    if rows and not stored_among(wanted, rows):
        print(
            f"{folder}: none of its {len(rows)} rows has these settings, or this"
            " version's keys: they stay, and new ones are computed beside them",
            file=sys.stderr,
        )
