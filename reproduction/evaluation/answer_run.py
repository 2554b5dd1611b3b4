"""Answer problems under every condition, grade the answers and store each one.

    evaluate(accuracy, filler, seed, folder)  # the table of all answers

Stored answers are found by their keys (`reproduction.row_keys`). Missing ones are
generated beside those of other settings, and a run that is started again continues
where it stopped.
"""

import contextlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from lib import progress
from lib.arm.settings import Arm
from lib.errors import InputError, PartlyDone
from lib.files.row_store import Store, open_store
from lib.generation.engine_interface import (
    Completion,
    Request,
    Sampling,
    Writer,
    engine_class,
    positions_after,
)
from lib.grading.authors_grader import is_correct_by_authors, is_exact_match
from lib.grading.worker_pool import grade
from lib.models.loading import Loaded, load_without_weights
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import Condition, Filler
from lib.prompts.problems import Problem, load_problems
from reproduction.evaluation.rows import (
    COMPLETIONS,
    frame,
    recorded_settings,
    versions,
)
from reproduction.profiles import Accuracy
from reproduction.row_keys import (
    ELICITATION,
    WantedRows,
    answers_wanted,
    read_rows,
    say_if_none_is_found,
    say_if_plain,
    seed_of,
    stored_among,
    wanted_rows,
)

if TYPE_CHECKING:
    from lib.generation.workers import Workers

NO_SHARDS = (1, 1)  # the first of one shard: the run is not split
# Threads that grade answers, so that a slow grade does not delay the others.
GRADING_THREADS = 4


def evaluate(
    accuracy: Accuracy,
    filler: Filler,
    seed: int,
    folder: Path,
    shard: tuple[int, int] = NO_SHARDS,
    others: Sequence[Path] = (),
) -> pd.DataFrame:
    """Generate and grade the answers that are not stored, store each in `folder` when
    it is graded, and return the table of all answers, in a fixed order.

    others: further files in which answers may be stored. Shard (i, n) generates every
    n-th completion of each model, from the i-th on, into a separate file; the returned
    answers are those of all shards so far. Raises PartlyDone at the end if some prompts
    failed, and InputError for a missing engine, an invalid prompt, and as `open_store`
    does.
    """
    own = read_rows(folder, "completions")
    stored = read_rows(folder, "completions", others)
    run = _AnswerRun(accuracy, filler)
    wanted_of = partial(answers_wanted, accuracy, filler, seed)
    wanted = [
        wanted_rows(spec, accuracy, wanted_of, stored, run.device)
        for spec in accuracy.models
    ]
    say_if_none_is_found(wanted, own, folder)
    # Invalid input raises before the folder is opened.
    missing = [run.missing(one, stored, shard) for one in wanted]
    if own or any(missing):
        settings = recorded_settings(accuracy, filler, seed)
        with open_store(folder, settings, versions(), shard, file=COMPLETIONS) as store:
            run.generate(store, [one for one in missing if one])
            stored |= store.rows_of_all_shards()
    return frame(stored_among(wanted, stored))


class MissingAnswer(NamedTuple):
    """An answer to generate: a sample under a condition, with its prompt."""

    problem: Problem
    condition: Condition
    sample: int  # counted from 0
    prompt: Prompt
    arm: Arm | None  # None: the condition is without ARM


class MissingAnswers(NamedTuple):
    """The answers that a model has to generate."""

    loaded: Loaded  # without weights
    answers: dict[str, MissingAnswer]  # by key
    total: int  # number of the wanted answers, with the stored ones


class _AnswerRun:
    """A run that generates and grades the answers which a section wants."""

    def __init__(self, accuracy: Accuracy, filler: Filler) -> None:
        self.accuracy = accuracy
        self.filler = filler
        # The kind of device that generates the answers: as on this machine, unless the
        # settings of the workers decide it.
        self.device = "auto"
        if accuracy.workers and accuracy.gpus_per_worker is not None:
            self.device = "cuda" if accuracy.gpus_per_worker else "cpu"
        self.sampling = Sampling(
            accuracy.max_new_tokens,
            accuracy.temperature,
            accuracy.top_p,
            ELICITATION if accuracy.elicit else "",
            accuracy.elicit_tokens,
        )

    def missing(
        self, wanted: WantedRows, stored: Mapping[str, dict], shard: tuple[int, int]
    ) -> MissingAnswers | None:
        """Return the answers of a model that are not stored and belong to a shard; None
        if there are none.

        Raises InputError if the engine is not installed, or if a prompt cannot be built
        or leaves no room for its answer.
        """
        of_shard = dict(islice(wanted.by_key.items(), shard[0] - 1, None, shard[1]))
        missing = {key: one for key, one in of_shard.items() if key not in stored}
        if not missing:
            return None
        say_if_plain(wanted.model, self.accuracy.format)
        source, dtype, format = wanted.model
        loaded = load_without_weights(source.spec, self.device, dtype, fetch=False)
        problems = {one.id: one for one in load_problems(self.accuracy.problems)}
        shared = {
            "format": format,
            "filler": self.filler,
            "examples": self.accuracy.examples,
        }
        answers = {}
        for key, (listed, condition, sample) in missing.items():
            problem = problems[listed.id]
            prompt = build_prompt(loaded.tokenizer, problem, condition, **shared)
            arm = condition.arm_over(source.arm)
            answers[key] = MissingAnswer(problem, condition, sample, prompt, arm)
        engine_class(self.accuracy.engine)
        following = positions_after(loaded.tokenizer, self.sampling)
        _require_prompts_fit(loaded, answers, following)
        return MissingAnswers(loaded, answers, len(of_shard))

    def generate(self, store: Store, missing: Sequence[MissingAnswers]) -> None:
        """Generate and grade missing answers, and store each when it is graded.

        Raises PartlyDone if some prompts failed.
        """
        failed = 0
        for loaded, answers, total in missing:
            # Another run may have stored some of them before this one opened the file.
            left = store.missing(answers)
            if left:
                self._generate_of_model(store, loaded, left, total)
            failed += sum(key not in store.rows for key in left)
        if failed:
            raise PartlyDone(
                f"{failed} prompts failed; all others are done; run again to retry"
            )

    def _generate_of_model(
        self,
        store: Store,
        loaded: Loaded,
        missing: Mapping[str, MissingAnswer],
        total: int,
    ) -> None:
        """Generate the missing answers of a model; grade and store each in a thread
        while the next ones are generated.

        total: the number of answers with those that were stored before, for the
        progress bar. Answers that were generated are stored even if the run is
        interrupted. Raises InputError before the first answer for a request that the
        engine refuses.
        """
        requests = [
            Request(key, answer.prompt.input_ids.tolist(), seed_of(key), answer.arm)
            for key, answer in missing.items()
        ]
        stored = total - len(missing)
        with (
            progress.bar(loaded.name, total, "completion", stored) as bar,
            self._engine(loaded, requests) as engine,
            ThreadPoolExecutor(GRADING_THREADS) as threads,
        ):
            waiting: deque[Future[None]] = deque()
            for completion in engine.complete(requests, self.sampling):
                row = loaded, missing[completion.key], completion
                waiting.append(threads.submit(self._store_graded, store, *row))
                bar.update()
                while waiting and waiting[0].done():
                    waiting.popleft().result()
            for graded in waiting:
                graded.result()

    def _store_graded(
        self, store: Store, loaded: Loaded, asked: MissingAnswer, completion: Completion
    ) -> None:
        """Grade a completion and store its row of completions.jsonl: FIELDS, in
        order.
        """
        problem, text = asked.problem, completion.text
        graded = grade(problem.answer, text)
        extracted = graded.extracted
        row: dict[str, object] = {
            "key": completion.key,
            "model": loaded.name,
            "revision": loaded.revision,
            "condition": str(asked.condition),
            "format": asked.prompt.format,
            "problem_id": problem.id,
            "level": problem.level,
            "subject": problem.subject,
            "answer": problem.answer,
            "sample": asked.sample,
            "response": text,
            "finish_reason": completion.finish_reason,
            "prompt_tokens": completion.prompt_tokens,
            "completion_tokens": completion.completion_tokens,
            "elicited": completion.elicited,
            "run_on": graded.run_on,
            "extracted": extracted,
            "method": graded.method,
            "correct": graded.correct,
            "correct_authors": is_correct_by_authors(
                problem.answer, asked.prompt.text, text
            ),
            "correct_authors_on_completion": is_correct_by_authors(
                problem.answer, "", text
            ),
            "correct_exact": is_exact_match(problem.answer, extracted),
            "evaluated": graded.evaluated,
            "dtype": loaded.dtype,
            "processor": completion.processor,
        }
        if asked.arm:
            row["arm"] = asked.arm.model_dump()
        if self.sampling.temperature > 0:
            # Those of a greedy answer follow from its prompt.
            row["token_ids"] = completion.token_ids
        store.append(row)

    @contextlib.contextmanager
    def _engine(
        self, loaded: Loaded, requests: list[Request]
    ) -> Iterator["Writer | Workers"]:
        """Yield the object that completes requests: an engine with the model's weights
        in this process, or workers with an engine each.
        """
        name, size = self.accuracy.engine, self.accuracy.batch_size
        engine = engine_class(name)
        if not self.accuracy.workers:
            yield engine(engine.load(loaded), size, self.accuracy.gpus_per_worker or 1)
            return

        # An engine without weights checks the requests, so that invalid ones raise
        # before the workers start.
        engine(loaded, size).complete(requests, self.sampling)
        from lib.generation.workers import Workers  # imports Ray

        gpus = self.accuracy.gpus_per_worker or int(loaded.device == "cuda")
        with Workers(self.accuracy.workers, gpus, loaded, name, size) as workers:
            yield workers


def _require_prompts_fit(
    loaded: Loaded, answers: Mapping[str, MissingAnswer], following: int
) -> None:
    """Raise InputError if a prompt and the longest answer to it, of `following` tokens,
    exceed the model's context.

    An answer that the context cuts off, or that cannot begin, would count as wrong.
    """
    for answer in answers.values():
        length = len(answer.prompt)
        if length + following > loaded.context:
            fits_alone = length < loaded.context
            advice = "lower max_new_tokens" if fits_alone else "leave this problem out"
            raise InputError(
                f"problem {answer.problem.id}, {answer.condition}:"
                f" {loaded.name} has room for {loaded.context} tokens, not for a prompt"
                f" of {length} and {following} that may follow: {advice}"
            )
