"""What completions show: accuracy with intervals, each condition against none in pairs, graders, noise and power.

Every function takes the records of a run, as `results` keeps them, and returns rows for a table. Accuracies
and effects are in %, and in points of a percent.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from lib.statistics import (
    Interval,
    bootstrap_mean,
    discordant,
    holm,
    mcnemar_exact,
    n_needed,
    paired_bootstrap,
    pass_at_k,
    sign_flip,
    smallest_effect,
    wilson,
)

GRADERS = {
    "correct": "this project's grader",
    "correct_exact": "exact match after normalisation",
    "correct_authors_on_completion": "authors' rule, completion only",
    "correct_authors": "authors' rule as published",
}
KS = (1, 3, 4, 8, 16)


def pair(record: dict) -> tuple[str, int]:
    """Return what must agree in two records that are compared: problem and sample."""
    return record["problem_id"], record["sample"]


def groups(records: Sequence[dict]) -> dict[tuple[str, str], list[dict]]:
    """Return (model, condition) -> records, models and conditions as they come, none first."""
    ordered = sorted(records, key=lambda record: record["condition"] != "none")
    models = list(dict.fromkeys(record["model"] for record in records))
    found: dict[tuple[str, str], list[dict]] = {}
    for record in sorted(ordered, key=lambda record: models.index(record["model"])):
        found.setdefault((record["model"], record["condition"]), []).append(record)
    return found


def summarise(records: Sequence[dict], seed: int) -> list[dict]:
    """Return a row per model and condition: accuracy with its interval, rates, and the pairs against none.

    With one sample the interval is Wilson's and the test exact McNemar's; with several, problems are resampled
    and signs flipped, since samples of one problem are not independent. `p_holm` corrects for all rows.
    """
    by_group, rows = groups(records), []
    for (model, condition), group in by_group.items():
        row = {"model": model, "condition": condition} | _row(group, seed)
        if condition != "none" and (model, "none") in by_group:
            row |= _against(by_group[model, "none"], group, "correct", seed)
        rows.append(row)
    tested = [row for row in rows if "p_value" in row]
    for row, corrected in zip(tested, holm([row["p_value"] for row in tested]) if tested else [], strict=True):
        row["p_holm"] = float(corrected)
    return rows


def _row(group: Sequence[dict], seed: int) -> dict:
    values, lengths = matrix(group, "correct"), Counter(record["sample"] for record in group)
    accuracy = _accuracy(values, seed)
    row = {"n": len(values), "samples": len(lengths), "accuracy": 100 * accuracy.estimate}
    row |= {"low": 100 * accuracy.low, "high": 100 * accuracy.high}
    counts = {
        "accuracy_authors": sum(record["correct_authors"] for record in group),
        "no_box": sum(record["method"] in ("no-box", "empty-box") for record in group),
        "truncated": sum(record["finish_reason"] != "stop" for record in group),
        "run_on": sum(record.get("run_on", False) for record in group),
        "elicited": sum(record["elicited"] for record in group),
        "ungraded": sum(record["method"] in ("timeout", "crash", "refused") for record in group),
    }
    return row | {name: 100 * count / len(group) for name, count in counts.items()}


def matrix(group: Sequence[dict], field: str) -> np.ndarray:
    """Return right/wrong (problems, samples) of one model and condition, NaN where a sample is missing."""
    problems = {name: i for i, name in enumerate(dict.fromkeys(record["problem_id"] for record in group))}
    samples = {name: i for i, name in enumerate(sorted({record["sample"] for record in group}))}
    values = np.full((len(problems), len(samples)), np.nan)
    for record in group:
        values[problems[record["problem_id"]], samples[record["sample"]]] = record[field]
    return values


def shares(group: Sequence[dict]) -> dict[str, float]:
    """Return the accuracy of each problem over its samples, in %, of one model and condition."""
    names = dict.fromkeys(record["problem_id"] for record in group)
    return dict(zip(names, 100 * np.nanmean(matrix(group, "correct"), axis=1), strict=True))


def _accuracy(values: np.ndarray, seed: int) -> Interval:
    if values.shape[1] == 1:
        return wilson(int(values.sum()), len(values))
    return bootstrap_mean(np.nanmean(values, axis=1), seed)


def _against(baseline: Sequence[dict], treated: Sequence[dict], field: str, seed: int) -> dict:
    """Return effect, interval and p-value of one condition against none, over what both have answered."""
    before, after = ({pair(record): bool(record[field]) for record in group} for group in (baseline, treated))
    common = [name for name in before if name in after]
    if not common:
        return {}
    a, b = ([values[name] for name in common] for values in (before, after))
    only_none, only_this = discordant(a, b)
    problems = dict.fromkeys(name for name, _ in common)
    if len(problems) < len(common):  # several samples: means per problem are what is independent
        index = np.array([list(problems).index(name) for name, _ in common])
        a, b = (np.bincount(index, values) / np.bincount(index) for values in (a, b))
        p_value = sign_flip(np.subtract(b, a), seed)
    else:
        p_value = mcnemar_exact(a, b)
    effect = paired_bootstrap(a, b, seed)
    found = {"effect": effect.estimate, "effect_low": effect.low, "effect_high": effect.high}
    found = {name: 100 * float(value) for name, value in found.items()}
    rate = (only_none + only_this) / len(common)
    return found | {"p_value": p_value, "only_none": only_none, "only_this": only_this, "discordant": 100 * rate}


def graders(records: Sequence[dict], seed: int) -> list[dict]:
    """Return a row per model, condition and grader: accuracy, disagreements with this project's, effect."""
    by_group, rows = groups(records), []
    for (model, condition), group in by_group.items():
        for field, name in GRADERS.items():
            row = {"model": model, "condition": condition, "grader": name, "n": len(group)}
            row["accuracy"] = 100 * sum(record[field] for record in group) / len(group)
            row["disagree"] = sum(record[field] != record["correct"] for record in group)
            if condition != "none" and (model, "none") in by_group:
                compared = _against(by_group[model, "none"], group, field, seed)
                row |= {key: compared[key] for key in ("effect", "p_value") if key in compared}
            rows.append(row)
    return rows


def breakdown(records: Sequence[dict], field: str) -> list[dict]:
    """Return a row per model, condition and level or subject: n and accuracy with its Wilson interval."""
    rows = []
    for (model, condition), group in groups(records).items():
        for value in sorted({record[field] for record in group}):
            part = [record["correct"] for record in group if record[field] == value]
            share = wilson(sum(part), len(part))
            ends = {"accuracy": 100 * share.estimate, "low": 100 * share.low, "high": 100 * share.high}
            rows.append({"model": model, "condition": condition, field: value, "n": len(part)} | ends)
    return rows


def diversity(records: Sequence[dict], seed: int) -> list[dict]:
    """Return a row per model and condition with several samples: pass@k and distinct 2-grams, with intervals."""
    rows = []
    for (model, condition), group in groups(records).items():
        values = matrix(group, "correct")
        if values.shape[1] < 2:
            continue
        row = {"model": model, "condition": condition, "n": len(values), "samples": values.shape[1]}
        measures = {f"pass@{k}": pass_at_k(values, k) for k in KS if k <= values.shape[1]}
        measures["distinct 2-grams"] = np.array([distinct_2(texts) for texts in by_problem(group).values()])
        for name, share in measures.items():
            mean = bootstrap_mean(share, seed)
            row |= {name: 100 * mean.estimate, f"{name} low": 100 * mean.low, f"{name} high": 100 * mean.high}
        rows.append(row)
    return rows


def by_problem(group: Sequence[dict]) -> dict[str, list[str]]:
    """Return the responses to each problem, in the order in which `matrix` has the problems."""
    texts: dict[str, list[str]] = {}
    for record in group:
        texts.setdefault(record["problem_id"], []).append(record["response"])
    return texts


def distinct_2(texts: Sequence[str]) -> float:
    """Return the share of distinct pairs of neighbouring words among all of them, over the texts; 0 without any."""
    pairs = [two for text in texts for two in zip(text.split(), text.split()[1:], strict=False)]
    return len(set(pairs)) / len(pairs) if pairs else 0.0


def noise_floor(records: Sequence[dict]) -> list[dict]:
    """Return a row per model: how far two runs of none that differ in nothing but the seed lie apart.

    `difference` is the mean distance of two samples' accuracies in points, `discordant` the share of problems
    that one of two samples solves and the other does not. Empty without samples.
    """
    rows = []
    for (model, condition), group in groups(records).items():
        values = matrix(group, "correct")
        if condition != "none" or values.shape[1] < 2:
            continue
        first, second = np.triu_indices(values.shape[1], 1)
        apart = values[:, first] - values[:, second]  # (problems, pairs of samples)
        row = {"model": model, "n": len(values), "samples": values.shape[1]}
        row |= {"difference": 100 * np.abs(apart.mean(0)).mean(), "discordant": 100 * np.abs(apart).mean()}
        rows.append(row | {"largest": 100 * np.abs(apart.mean(0)).max()})
    return rows


def power(rows: Sequence[dict], effect: float) -> list[dict]:
    """Return, for each row of `summarise` with pairs, what n could show: the smallest effect at 80 % power and the
    n that an effect of so many points needs, at the discordant rate that was found (NaN: none can).
    """
    found = []
    for row in rows:
        if "p_value" not in row:
            continue
        rate, pairs = row["discordant"] / 100, row["n"] * row["samples"]
        needed = n_needed(effect / 100, rate) if effect / 100 <= rate else float("nan")
        smallest = 100 * smallest_effect(pairs, rate)
        names = {"model": row["model"], "condition": row["condition"], "pairs": pairs, "discordant": row["discordant"]}
        found.append(names | {"smallest": smallest, "needed": needed})
    return found
