"""The report's answers: what the models wrote under each condition, as compact JSON for the page's table."""

from pydantic import BaseModel

from lib import paths
from lib.errors import InputError, valid
from lib.evaluation.store import read_records
from lib.profiles import Profile

TEXT_LIMIT = 2_000_000  # characters of answers in a page that people mail to each other
PART_NAMES = {
    "main": "accuracy",
    "fillers": "fillers: lengths, places, kinds",
    "sampling": "several samples",
    "interventions": "ARM and tokens",
    "arm_map": "ARM under other settings",
}


class Answer(BaseModel):
    """What the report reads of a record; problem texts are in none."""

    model: str
    revision: str
    condition: str
    problem_id: str
    level: int | None
    answer: str
    sample: int
    response: str
    extracted: str | None
    finish_reason: str
    completion_tokens: int
    correct: bool
    correct_authors: bool


def read_answers(profile: Profile) -> tuple[dict, dict[str, str], list[str]]:
    """Return what the page's table of answers needs, as JSON, the models' revisions, and what is missing and why.

    `runs` are parts and models: `conditions`, `problems` (id, level, gold answer) and `cells` [problem][condition], a
    list of samples (right, right by the authors' rule, extracted, index in `texts` or None, finish reason, tokens).
    """
    texts, runs, revisions, missing = _Texts(), [], {}, []
    for part in PART_NAMES:
        try:
            answers = _read(profile, part)
        except InputError as error:
            missing.append(f"{PART_NAMES[part]}: {error}")
            continue
        revisions |= {answer.model: answer.revision for answer in answers}
        for model in dict.fromkeys(answer.model for answer in answers):
            mine = [answer for answer in answers if answer.model == model]
            runs.append({"part": PART_NAMES[part], "model": model} | _run(mine, texts))
    if texts.left_out:
        missing.append(f"{texts.left_out} texts are left out, so that the page stays small: completions.jsonl has all")
    return {"texts": list(texts.index), "runs": runs}, revisions, missing


class _Texts:
    """Each answer once, as long as there is room."""

    def __init__(self):
        self.index: dict[str, int] = {}
        self.room = TEXT_LIMIT
        self.left_out = 0

    def place(self, text: str) -> int | None:
        """Return where the text stands, None when it found no room."""
        if text not in self.index:
            if len(text) > self.room:
                self.left_out += 1
                return None
            self.room -= len(text)
            self.index[text] = len(self.index)
        return self.index[text]


def _read(profile: Profile, part: str) -> list[Answer]:
    """Return a part's answers from results/, or those stored with the repository; none where there are none."""
    folder = profile.results if part == "main" else profile.results / part
    files = [file for file in sorted(folder.glob("completions*.jsonl")) if file.stat().st_size]
    if not files and profile.name == "demo":
        files = [paths.DATA / f"demo_{'completions' if part == 'main' else part}.jsonl"]
    records = [record for file in files for record in read_records(file)]
    asked = profile.accuracy if part == "main" else getattr(profile.accuracy, part)
    if not files and asked:
        files = sorted((paths.DATA / profile.name).glob("*.jsonl.gz"))  # a model's answers of all parts together
        stored = [record for file in files for record in read_records(file)]
        records = [record for record in stored if record["condition"] in asked.conditions]
    records = {record["key"]: record for record in records}
    return [valid(Answer, record, files[0].name) for record in records.values()]


def _run(answers: list[Answer], texts: _Texts) -> dict:
    conditions = sorted({answer.condition: None for answer in answers}, key=lambda name: name != "none")
    problems = {answer.problem_id: [answer.problem_id, answer.level, answer.answer] for answer in answers}
    cells = {name: [[] for _ in conditions] for name in problems}
    for answer in sorted(answers, key=lambda answer: answer.sample):
        text = texts.place(answer.response)
        judged = [answer.correct, answer.correct_authors, answer.extracted]
        sample = [*judged, text, answer.finish_reason, answer.completion_tokens]
        cells[answer.problem_id][conditions.index(answer.condition)].append(sample)
    return {"conditions": conditions, "problems": list(problems.values()), "cells": list(cells.values())}
