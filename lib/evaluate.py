"""Answer problems under every condition, grade the answers, keep each one, and compare in pairs.

records = evaluate(profile.accuracy, filler, seed, folder)     # continues where an earlier run stopped
rows = summarise(records, seed)
"""

import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from lib import paths
from lib.errors import InputError
from lib.generation import Completion, Request, Sampling, engine_class
from lib.grading import correct_authors, correct_exact, grade
from lib.models import Loaded, load
from lib.problems import Problem, describe, digest, load_problems
from lib.profiles import Accuracy, Profile
from lib.prompts import CONDITIONS, INSTRUCTION, Filler, Prompt, build_prompt
from lib.results import Store, completion_key, read_records, write_json
from lib.statistics import paired_comparison, wilson

# A second step asks for the answer in a box (Kojima et al. 2022); small models rarely write one unasked.
ELICITATION = "\n\nTherefore, the final answer is \\boxed{"
STORED_DEMO = paths.DATA / "demo_completions.jsonl"


def evaluate(
    accuracy: Accuracy,
    filler: Filler,
    seed: int,
    folder: Path,
    report: Callable[[str, int, int, int], None] = lambda model, done, total, correct: None,
) -> list[dict]:
    """Complete and grade what `folder` lacks, then return the records of this run in a fixed order.

    `report` gets model, completions done, in all, and correct so far. Each completion is on disk before the next
    is taken, so an interrupted run loses only those still being written. Raises InputError for a folder
    that cannot be written or holds a run with other settings.
    """
    engine = engine_class(accuracy.engine)
    everything = load_problems(accuracy.problems)
    problems = load_problems(accuracy.problems, limit=accuracy.limit, seed=seed)
    store = Store(folder, _settings(accuracy, filler, seed, everything), _environment(accuracy))
    records = []
    for spec in accuracy.models:
        loaded = load(spec)
        wanted = _wanted(loaded, accuracy, filler, seed, problems)
        _complete(loaded, engine, accuracy, wanted, store, report)
        by_key = {record["key"]: record for record in store.records}
        records += [by_key[key] for key in wanted]
    write_json(Path(folder) / "summary.json", summarise(records, seed))
    return records


def _settings(accuracy: Accuracy, filler: Filler, seed: int, problems: Sequence[Problem]) -> dict:
    """Return what must not change between a run and its continuation; more models or problems may join."""
    names = ("format", "max_new_tokens", "elicit", "elicit_tokens", "temperature", "top_p", "engine")
    return {
        "problems": describe(accuracy.problems),
        "problems_sha256": digest(problems),
        "instruction": INSTRUCTION,
        "filler": vars(filler),
        "seed": seed,
        **{name: getattr(accuracy, name) for name in names},
    }


def _environment(accuracy: Accuracy) -> dict:
    packages = ("torch", "transformers", "tokenizers", "math-verify", "sympy")
    versions = {name: version(name) for name in packages}
    return {"python": platform.python_version(), "batch_size": accuracy.batch_size, **versions}


def _wanted(
    loaded: Loaded, accuracy: Accuracy, filler: Filler, seed: int, problems: Sequence[Problem]
) -> dict[str, tuple[Problem, str, int, Prompt]]:
    """Return key -> (problem, condition, sample, prompt) of every completion this run asks for."""
    wanted = {}
    for condition in accuracy.conditions:
        for problem in problems:
            prompt = build_prompt(loaded.tokenizer, problem.problem, condition, format=accuracy.format, filler=filler)
            for sample in range(accuracy.samples):
                # The prompt's ids stand for problem, format and filler: whatever changes them changes the key.
                key = completion_key(
                    model=loaded.name,
                    revision=loaded.revision,
                    dtype=loaded.dtype,
                    condition=condition,
                    problem=problem.id,
                    prompt=prompt.input_ids.tolist(),
                    sample=sample,
                    seed=seed,
                )
                wanted[key] = (problem, condition, sample, prompt)
    return wanted


def _complete(loaded: Loaded, make: type, accuracy: Accuracy, wanted: dict, store: Store, report: Callable) -> None:
    correct = sum(record["correct"] for record in store.records if record["key"] in wanted)
    missing = [key for key in wanted if key not in store.done]
    done = len(wanted) - len(missing)
    report(loaded.name, done, len(wanted), correct)
    if not missing:
        return
    requests = [Request(key, wanted[key][3].input_ids.tolist(), int(key, 16) % 2**63) for key in missing]
    sampling = Sampling(
        accuracy.max_new_tokens,
        accuracy.temperature,
        accuracy.top_p,
        ELICITATION if accuracy.elicit else None,
        accuracy.elicit_tokens,
    )
    for completion in make(loaded, accuracy.batch_size).complete(requests, sampling):
        record = _record(loaded, *wanted[completion.key], completion)
        store.append(record)
        done, correct = done + 1, correct + record["correct"]
        report(loaded.name, done, len(wanted), correct)
    lost = [key for key in wanted if key not in store.done]
    if lost:
        raise InputError(f"engine {accuracy.engine} returned nothing for {len(lost)} prompts; run again to retry")


def _record(
    loaded: Loaded, problem: Problem, condition: str, sample: int, prompt: Prompt, completion: Completion
) -> dict:
    graded = grade(problem.answer, completion.text)
    return {
        "key": completion.key,
        "model": loaded.name,
        "revision": loaded.revision,
        "condition": condition,
        "problem_id": problem.id,
        "level": problem.level,
        "subject": problem.subject,
        "answer": problem.answer,
        "sample": sample,
        "response": completion.text,
        "finish_reason": completion.finish_reason,
        "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens,
        "elicited": completion.elicited,
        "extracted": graded.extracted,
        "method": graded.method,
        "correct": graded.correct,
        "correct_authors": correct_authors(problem.answer, prompt.text, completion.text),
        "correct_exact": correct_exact(problem.answer, completion.text),
    }


def summarise(records: Sequence[dict], seed: int) -> list[dict]:
    """Return a row per model and condition: accuracy in % with its Wilson interval, and the pairs against none."""
    rows = []
    for model in dict.fromkeys(record["model"] for record in records):
        mine = [record for record in records if record["model"] == model]
        baseline = {_pair(record): record["correct"] for record in mine if record["condition"] == "none"}
        for condition in CONDITIONS:
            group = [record for record in mine if record["condition"] == condition]
            if not group:
                continue
            rows.append({"model": model, "condition": condition} | _row(group, baseline, seed))
    return rows


def _pair(record: dict) -> tuple[str, int]:
    return record["problem_id"], record["sample"]


def _row(group: Sequence[dict], baseline: dict, seed: int) -> dict:
    accuracy = wilson(sum(record["correct"] for record in group), len(group))
    share = {
        "accuracy_authors": sum(record["correct_authors"] for record in group),
        "no_box": sum(record["method"] in ("no-box", "empty-box") for record in group),
        "truncated": sum(record["finish_reason"] != "stop" for record in group),
        "elicited": sum(record["elicited"] for record in group),
    }
    row = {"n": len(group), "accuracy": 100 * accuracy.estimate}
    row |= {"low": 100 * accuracy.low, "high": 100 * accuracy.high}
    row |= {name: 100 * count / len(group) for name, count in share.items()}
    pairs = [(baseline[_pair(r)], r["correct"]) for r in group if _pair(r) in baseline]
    if group[0]["condition"] == "none" or not pairs:
        return row
    compared = paired_comparison(*zip(*pairs, strict=True), seed)
    return row | {
        "effect": 100 * float(compared.effect.estimate),
        "effect_low": 100 * float(compared.effect.low),
        "effect_high": 100 * float(compared.effect.high),
        "p_value": compared.p_value,
        "only_none": compared.only_baseline,
        "only_this": compared.only_treated,
    }


def completions_for(profile: Profile, overridden: bool, folder: str | None) -> tuple[list[dict], str]:
    """Return a notebook's records and where they come from: the stored demo, or `folder`, completed if needed."""
    if folder is None and profile.name == "demo" and not overridden:
        return read_records(STORED_DEMO), "stored with the repository"
    target = Path(folder) if folder else paths.RESULTS / profile.name
    filler = Filler(**profile.filler.model_dump())
    return evaluate(profile.accuracy, filler, profile.seed, target), "generated by this run"


def agreement(records: Sequence[dict]) -> tuple[int, int]:
    """Return how many records have the same response as the stored demo's, and how many could be compared."""
    stored = {(r["model"], r["condition"], *_pair(r)): r["response"] for r in read_records(STORED_DEMO)}
    mine = {(r["model"], r["condition"], *_pair(r)): r["response"] for r in records}
    common = stored.keys() & mine.keys()
    return sum(stored[name] == mine[name] for name in common), len(common)
