"""Answer problems under every condition, grade the answers and store each one.

A run that is started again with the same folder continues where it stopped.
"""

import contextlib
import functools
import sys
from collections.abc import Generator, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from lib.errors import InputError, PartlyDone
from lib.files.atomic import write_json
from lib.files.row_store import open_store
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
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems
from reproduction.evaluation.answer_tables import summarise
from reproduction.evaluation.row_keys import (
    WantedCompletion,
    completions_wanted,
    recorded_arm,
)
from reproduction.evaluation.rows import (
    COMPLETIONS,
    FIELDS,
    SUMMARY,
    common_fields,
    frame,
    generation_device,
    resolve_engine,
    shared_settings,
    versions,
)
from reproduction.profiles import Accuracy

if TYPE_CHECKING:
    from lib.generation.workers import Workers

# With `elicit`, this text is appended to an answer without a box, and the model
# continues (Kojima et al. 2022), because small models rarely write a box otherwise.
ELICITATION = "\n\nTherefore, the final answer is \\boxed{"
NO_SHARDS = (1, 1)  # the first of one shard: the run is not split


def evaluate(
    accuracy: Accuracy,
    filler: Filler,
    seed: int,
    folder: Path,
    shard: tuple[int, int] = NO_SHARDS,
) -> pd.DataFrame:
    """Generate and grade the answers that `folder` lacks, store each as soon as it is
    graded, and return the table of all answers, in a fixed order.

    Shard (i, n) generates every n-th completion of each model, from the i-th on, into a
    separate file; the returned answers are those of all shards so far. Raises
    PartlyDone at the end if some prompts failed, and InputError for a missing engine,
    an invalid prompt, shards with engine auto, and as `open_store` does.
    """
    # Invalid input raises before the folder is opened.
    accuracy = _resolved(accuracy, Path(folder), shard)
    wanted_by_model = _wanted_by_model(accuracy, filler, seed)
    wanted = {
        key: item for _, of_model in wanted_by_model for key, item in of_model.items()
    }
    settings = shared_settings(accuracy, filler, seed)
    environment = {"batch_size": accuracy.batch_size, "dtype": accuracy.dtype}
    environment |= versions()
    summary = Path(folder) / SUMMARY

    with open_store(folder, settings, environment, shard, file=COMPLETIONS) as store:
        if store.missing(wanted):
            summary.unlink(missing_ok=True)
        failed = 0
        for loaded, of_model in wanted_by_model:
            of_shard = dict(islice(of_model.items(), shard[0] - 1, None, shard[1]))
            make = functools.partial(_completed, loaded, accuracy)
            finish = functools.partial(_row, loaded, accuracy, of_model)
            failed += store.fill(of_shard, make, loaded.name, "completion", finish)
        rows = store.rows_of_all_shards()
    if failed:
        raise PartlyDone(
            f"{failed} prompts failed; all others are done; run again to retry"
        )

    answers = frame([rows[key] for key in wanted if key in rows])
    if len(answers) == len(wanted):  # other shards may still be running
        lines = [row.dropna().to_dict() for _, row in summarise(answers).iterrows()]
        write_json(summary, lines)
    return answers


def _wanted_by_model(
    accuracy: Accuracy, filler: Filler, seed: int
) -> list[tuple[Loaded, dict[str, WantedCompletion]]]:
    """Return each model, without its weights, with all of its completions by key.

    Raises InputError if the engine is not installed, or a prompt cannot be built or
    leaves no room for its answer.
    """
    engine_class(accuracy.engine)
    problems = load_problems(accuracy.problems, accuracy.limit, seed, accuracy.levels)
    wanted_by_model = []
    for spec in accuracy.models:
        loaded = load_without_weights(
            spec, generation_device(accuracy), accuracy.dtype, fetch=False
        )
        wanted = completions_wanted(loaded, accuracy, filler, seed, problems)
        _require_prompts_fit(loaded, accuracy, wanted)
        wanted_by_model.append((loaded, wanted))
    return wanted_by_model


def _resolved(accuracy: Accuracy, folder: Path, shard: tuple[int, int]) -> Accuracy:
    """Return the settings with `auto` replaced by an engine; print the choice with its
    reason.
    """
    if accuracy.engine == "auto" and shard != NO_SHARDS:
        raise InputError(
            "engine auto may differ between the jobs of an array: with --shard, give"
            " --engine vllm or transformers"
        )
    named, reason = resolve_engine(accuracy, folder)
    if reason:
        print(f"engine auto: {named.engine}, because {reason}", file=sys.stderr)
    return named


def _sampling(accuracy: Accuracy) -> Sampling:
    """Return the decoding settings of a section."""
    return Sampling(
        accuracy.max_new_tokens,
        accuracy.temperature,
        accuracy.top_p,
        ELICITATION if accuracy.elicit else "",
        accuracy.elicit_tokens,
    )


def _require_prompts_fit(
    loaded: Loaded, accuracy: Accuracy, wanted: Mapping[str, WantedCompletion]
) -> None:
    """Raise InputError if a prompt and the longest answer to it exceed the model's
    context.

    An answer that the context cuts off, or that cannot begin, would count as wrong.
    """
    following = positions_after(loaded.tokenizer, _sampling(accuracy))
    for completion in wanted.values():
        length = len(completion.prompt)
        if length + following > loaded.context:
            fits_alone = length < loaded.context
            advice = "lower max_new_tokens" if fits_alone else "leave this problem out"
            raise InputError(
                f"problem {completion.problem.id}, {completion.condition}:"
                f" {loaded.name} has room for {loaded.context} tokens, not for a prompt"
                f" of {length} and {following} that may follow: {advice}"
            )


def _completed(
    loaded: Loaded, accuracy: Accuracy, missing: Mapping[str, WantedCompletion]
) -> Generator[Completion, None, None]:
    """Yield each missing completion as soon as the engine has generated it.

    Raises InputError before the first completion for a request that the engine refuses.
    """
    requests = [_request(key, completion) for key, completion in missing.items()]
    sampling = _sampling(accuracy)
    with _engine(loaded, accuracy, requests, sampling) as engine:
        yield from engine.complete(requests, sampling)


@contextlib.contextmanager
def _engine(
    loaded: Loaded, accuracy: Accuracy, requests: list[Request], sampling: Sampling
) -> Iterator["Writer | Workers"]:
    """Yield the object that completes requests: an engine with the model's weights in
    this process, or workers with an engine each.
    """
    engine = engine_class(accuracy.engine)
    size = accuracy.batch_size
    if not accuracy.workers:
        yield engine(engine.load(loaded), size, accuracy.gpus_per_worker or 1)
        return

    # An engine without weights checks the requests, so that invalid ones raise before
    # the workers start.
    engine(loaded, size).complete(requests, sampling)
    from lib.generation.workers import Workers  # imports Ray

    gpus = accuracy.gpus_per_worker or int(loaded.device == "cuda")
    with Workers(accuracy.workers, gpus, loaded, accuracy.engine, size) as workers:
        yield workers


def _request(key: str, wanted: WantedCompletion) -> Request:
    """Return the request for a completion, whose seed derives from its key."""
    seed = int(key, 16) % 2**63
    input_ids = wanted.prompt.input_ids.tolist()
    return Request(key, input_ids, seed, wanted.arm)


def _row(
    loaded: Loaded,
    accuracy: Accuracy,
    wanted_by_key: Mapping[str, WantedCompletion],
    completion: Completion,
) -> dict:
    """Grade a completion, and return its row of completions.jsonl: FIELDS, in order."""
    wanted = wanted_by_key[completion.key]
    text = completion.text
    gold = wanted.problem.answer
    graded = grade(gold, text)
    row = common_fields(loaded, wanted.problem, wanted.condition)
    row |= vars(completion) | vars(graded)
    if accuracy.temperature == 0:
        # The tokens of a greedy answer follow from its prompt.
        del row["token_ids"]
    row["sample"] = wanted.sample
    row["response"] = text
    row["correct_exact"] = is_exact_match(gold, graded.extracted)
    row["correct_authors"] = is_correct_by_authors(gold, wanted.prompt.text, text)
    row["correct_authors_on_completion"] = is_correct_by_authors(gold, "", text)
    if wanted.arm:
        row["arm"] = recorded_arm(wanted.arm)
    return {name: row[name] for name in FIELDS if name in row}
