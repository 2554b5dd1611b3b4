"""What the page shows of answers: which ones the slashes turned, who solved which
problem, and what was written.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
import pandas as pd

from lib.errors import InputError
from lib.evaluation import of_profile
from lib.profiles import Profile
from lib.prompts.problems import MATH500, load_problems

TEXT_LIMIT = 1_800_000  # characters of answers in a page that people mail to each other
PART_TITLES = {
    "main": "accuracy",
    "fillers": "fillers: lengths, places, kinds",
    "sampling": "several samples",
    "interventions": "ARM and tokens",
    "arm_map": "ARM under other settings",
    "comparisons": "a worked example, no instruction, an ordinary sentence",
}
# What a sample of an answer shows, in this order; `text` is the index of its text.
SAMPLE_FIELDS = ["correct", "correct_authors", "extracted", "text"]
SAMPLE_FIELDS += ["finish_reason", "completion_tokens"]
PROBLEM_FIELDS = ["problem_id", "level", "answer"]
# Four ways to grade the same answer, from this project's to the authors' as published.
GRADER_FIELDS = {
    "correct": "this project's grader",
    "correct_exact": "exact match",
    "correct_authors_on_completion": "authors' rule, on the answer alone",
    "correct_authors": "authors' rule, as published",
}
DATASET = f"https://huggingface.co/datasets/{MATH500}/viewer/default/test?q="
# Without one of these an answer cannot be shown.
NEEDED_FIELDS = ["key", "model", "revision", "condition", *PROBLEM_FIELDS]
NEEDED_FIELDS += ["sample", "response", "finish_reason", "completion_tokens"]
NEEDED_FIELDS += ["correct", "correct_authors"]


class Stored(NamedTuple):
    """The answers and likelihoods of a profile as they are stored, read once for all
    that the page shows of them.
    """

    parts: dict[str, pd.DataFrame]  # the answers that can be shown
    missing: list[str]  # the parts whose answers cannot, and why
    scores: pd.DataFrame | None
    draws: pd.DataFrame | None

    @property
    def main(self) -> pd.DataFrame | None:
        """The answers of the main part; None without any that can be shown."""
        main = self.parts.get("main")
        return None if main is None or main.empty else main


def read_stored(profile: Profile) -> Stored:
    """Read the answers and likelihoods of a profile."""
    parts: dict[str, pd.DataFrame] = {}
    missing: list[str] = []
    for part, title in PART_TITLES.items():
        try:
            rows = of_profile.stored_answers(profile, part)
        except InputError as error:
            missing.append(f"{title}: {error}")
            continue
        lacking = [name for name in NEEDED_FIELDS if rows[name].isna().any()]
        if lacking:
            missing.append(f"{title}: completions.jsonl: {lacking[0]}: missing field")
            continue
        # pandas cannot group by a lone surrogate, which a model's name may have.
        for name in ("model", "condition", "problem_id"):
            whole = [text.encode("utf-8", "replace").decode() for text in rows[name]]
            rows[name] = whole
        parts[part] = rows
    scores = of_profile.stored_scores(profile)
    return Stored(parts, missing, scores, of_profile.stored_draws(profile))


def answers_by_problem(
    profile: Profile, stored: Stored
) -> tuple[dict, dict[str, str], list[str]]:
    """Return what the page's table of answers needs, as JSON, the models' revisions,
    and what is missing and why.

    `runs` are parts and models: `conditions`, `problems` (id, level, gold answer, text
    or None) and `cells` [problem][condition], a list of samples (SAMPLE_FIELDS, where
    `text` is the index in `texts` or None). Only the project's own problems have a
    text.
    """
    answers = _all_answers(stored.parts)
    missing = [*stored.missing]

    # Each text is held once; those beyond the limit are left out.
    codes, texts = pd.factorize(answers.response)
    lengths = np.array([len(text) for text in texts], dtype=int)
    kept = int((lengths.cumsum() <= TEXT_LIMIT).sum())
    places = [int(code) if code < kept else None for code in codes]
    answers["text"] = pd.Series(places, answers.index, dtype=object)
    left_out = int((codes >= kept).sum())
    if left_out:
        missing.append(
            f"{left_out} texts are left out, so that the page stays small:"
            " completions.jsonl has all"
        )

    own_texts: dict[str, str] = {}
    if profile.accuracy.problems == "embedded":
        own_texts = {item.id: item.problem for item in load_problems("embedded")}
    runs = []
    for (part, model), rows in answers.groupby(["part", "model"], sort=False):
        runs.append({"part": part, "model": model} | _run(rows, own_texts))
    revisions = dict(zip(answers.model, answers.revision, strict=True))
    return {"texts": texts[:kept].tolist(), "runs": runs}, revisions, missing


def flipped(profile: Profile, stored: Stored) -> list[dict]:
    """Return the problems whose answer slashes turned right or wrong, by this project's
    grader.

    `graders` are pairs in the order of GRADER_FIELDS: right without, right with; None
    where a run did not grade so. `link`: where the dataset shows the problem.
    """
    if stored.main is None:
        return []
    first = stored.main[stored.main["sample"] == 0]
    flips = []
    for model, rows in first.groupby("model", sort=False):
        none, slashes = (
            rows[rows.condition == name].set_index("problem_id")
            for name in ("none", "mless")
        )
        for problem in none.index.intersection(slashes.index, sort=False):
            before, after = none.loc[problem], slashes.loc[problem]
            if before.correct == after.correct:
                continue
            flips.append(
                {
                    "model": model,
                    "problem": problem,
                    "level": before.level,
                    "gained": bool(after.correct),
                    "graders": [_pair(before, after, name) for name in GRADER_FIELDS],
                    "link": _dataset_link(profile, problem),
                }
            )
    return flips


def _pair(before: pd.Series, after: pd.Series, field: str) -> tuple[bool, bool] | None:
    """Return whether both answers are right to a grader; None without its grade."""
    without = before.get(field)
    with_slashes = after.get(field)
    if pd.isna(without) or pd.isna(with_slashes):
        return None
    return bool(without), bool(with_slashes)


def _dataset_link(profile: Profile, problem: str) -> str | None:
    """Return where the dataset shows a problem; the project's own need no link."""
    if profile.accuracy.problems != "math500":
        return None
    return DATASET + quote(problem, safe="")


def _all_answers(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the answers of all parts, which are called by their titles."""
    tables = [
        rows.sort_values("sample", kind="stable").assign(part=PART_TITLES[part])
        for part, rows in parts.items()
    ]
    if not tables:
        return pd.DataFrame(columns=["part", *NEEDED_FIELDS, *SAMPLE_FIELDS])
    return pd.concat(tables)


def _run(rows: pd.DataFrame, own_texts: dict[str, str]) -> dict:
    """Return a model's answers of one part, a row of cells per problem."""
    conditions = sorted(rows.condition.unique(), key=lambda name: name != "none")
    samples: dict[tuple[str, str], list] = {}
    fields = rows[["problem_id", "condition", *SAMPLE_FIELDS]]
    for problem, condition, *sample in fields.values.tolist():
        samples.setdefault((problem, condition), []).append(sample)
    problems = rows.drop_duplicates("problem_id")[PROBLEM_FIELDS].values.tolist()
    return {
        "conditions": conditions,
        "problems": [[*problem, own_texts.get(problem[0])] for problem in problems],
        "cells": [
            [samples.get((name, condition), []) for condition in conditions]
            for name, *_ in problems
        ],
    }
