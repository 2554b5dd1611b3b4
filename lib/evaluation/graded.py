"""Completions become graded rows, while an engine goes on to write more of them."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future

from lib import progress
from lib.evaluation.plan import WantedCompletion
from lib.evaluation.provenance import provenance
from lib.evaluation.rows import FIELDS
from lib.generation.requests import Completion, Request, Sampling
from lib.grading.authors import correct_authors, correct_exact
from lib.grading.equal import Grade
from lib.grading.pool import submit
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
    completions = engine.complete(requests, sampling)
    for done, (completion, grade) in enumerate(_with_grades(completions, wanted), 1):
        tokens += completion.completion_tokens
        correct += grade.correct
        speed = tokens / max(bar.format_dict["elapsed"], 1e-3)
        bar.set_postfix_str(
            f"{correct / done:.0%} correct, {speed:.0f} tokens/s{engine.status}",
            refresh=False,
        )
        row = _graded_row(engine.loaded, wanted[completion.key], completion, grade)
        if sampling.temperature == 0:  # a greedy answer's tokens follow from its prompt
            del row["token_ids"]
        yield row


def _with_grades(
    completions: Iterable[Completion], wanted: Mapping[str, WantedCompletion]
) -> Iterator[tuple[Completion, Grade]]:
    """Yield completions with their grades, which processes of their own work out while
    generation goes on.
    """
    waiting: dict[Future, Completion] = {}
    try:
        for completion in completions:
            answer = wanted[completion.key].problem.answer
            waiting[submit(answer, completion.text)] = completion
            for future in [future for future in waiting if future.done()]:
                yield waiting.pop(future), future.result()
        for future, completion in waiting.items():
            yield completion, future.result()
    finally:
        for future in waiting:  # of a run that was interrupted
            future.cancel()


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
