"""Completions become graded rows, as an engine writes them."""

from collections.abc import Generator, Mapping

from lib import progress
from lib.evaluation.provenance import provenance
from lib.evaluation.rows import FIELDS
from lib.evaluation.wanted import WantedCompletion
from lib.generation.requests import Completion, Request, Sampling
from lib.grading.authors import correct_authors, correct_exact
from lib.grading.pool import grade
from lib.grading.status import Grade
from lib.models.loading import Loaded


def graded_rows(
    engine,
    requests: list[Request],
    sampling: Sampling,
    wanted: Mapping[str, WantedCompletion],
    bar: progress.Bar,
) -> Generator[dict, None, None]:
    """Yield a line of completions.jsonl for each completion as it is graded; beside the
    bar stands how the run goes.
    """
    tokens = correct = 0
    for done, completion in enumerate(engine.complete(requests, sampling), 1):
        asked = wanted[completion.key]
        verdict = grade(asked.problem.answer, completion.text)
        tokens += completion.completion_tokens
        correct += verdict.correct
        speed = tokens / max(bar.format_dict["elapsed"], 1e-3)
        bar.set_postfix_str(
            f"{correct / done:.0%} correct, {speed:.0f} tokens/s{engine.status}",
            refresh=False,
        )
        row = _graded_row(engine.loaded, asked, completion, verdict)
        if sampling.temperature == 0:  # a greedy answer's tokens follow from its prompt
            del row["token_ids"]
        yield row


def _graded_row(
    loaded: Loaded, wanted: WantedCompletion, completion: Completion, grade: Grade
) -> dict:
    """Return a line of completions.jsonl: FIELDS, in their order."""
    problem = wanted.problem
    text = completion.text
    gold = problem.answer
    row = problem.model_dump() | vars(completion) | vars(grade)
    row |= provenance(loaded, completion.processor)
    row["condition"] = str(wanted.condition)
    row["problem_id"] = problem.id
    row["sample"] = wanted.sample
    row["response"] = text
    row["correct_exact"] = correct_exact(gold, grade.extracted)
    row["correct_authors"] = correct_authors(gold, wanted.prompt.text, text)
    row["correct_authors_on_completion"] = correct_authors(gold, "", text)
    if wanted.arm:
        row["arm"] = wanted.arm.model_dump()
    return {name: row[name] for name in FIELDS if name in row}
