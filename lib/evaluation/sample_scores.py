"""Score sampled answers under every condition, so that they can be weighted.

An answer is scored at its sampling temperature, on its sampled tokens including the end
token, and with the weights that sampled it, in the same dtype or in float32, whose
rounding has no visible effect on weights. Problems whose answers are all right, or all
wrong, need no score, because their weights are multiplied by 0.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from lib.errors import InputError
from lib.evaluation.log_likelihood import Texts, TextToScore
from lib.evaluation.records import (
    DRAW_SCORE_FIELDS,
    SECTION_SETTINGS,
    SUMMARY,
    base_settings,
    frame,
)
from lib.evaluation.solution_scores import (
    plain_rows,
    prompts_under,
    score_models,
    texts_by_key,
)
from lib.evaluation.weighted_pass_rates import is_mixed, scored_draws
from lib.files.store import read, read_settings
from lib.models.loading import Loaded
from lib.models.names import resolve
from lib.profiles import SAMPLING_CONDITIONS, Likelihood, PassRates
from lib.prompts.conditions import Filler
from lib.prompts.problem import Problem
from lib.prompts.problems import digest, load_problems
from lib.prompts.sampling import sampling_order


class SampledAnswers(NamedTuple):
    """The sampled answers of a folder to some problems, a row per answer, and the
    settings with which they were sampled.
    """

    folder: Path
    settings: dict
    problems: list[Problem]
    answers: pd.DataFrame


def score_draws(
    settings: Likelihood, answers: Path, folder: Path, known: Sequence[dict] = ()
) -> pd.DataFrame:
    """Score the sampled answers of one folder that another one lacks, store each score
    at once, and return all answers to the problems, as `scored_draws` does.

    Filler, seed, format and temperature are those of the answers. `known` scores are
    copied. Raises InputError for answers that were not sampled from the complete
    distribution, or have other problems, models or weights than `settings`.
    """
    drawn = _read_sampled(settings, answers)

    def wanted_of(loaded: Loaded) -> Texts:
        own = _answers_of_model(loaded, drawn)
        deciding = own[is_mixed(own)]
        return draws_wanted(loaded, settings, deciding, drawn.problems, drawn.settings)

    filler = Filler(**drawn.settings["filler"])
    shared = base_settings(settings.problems, filler, drawn.settings["seed"])
    shared |= {name: drawn.settings[name] for name in SECTION_SETTINGS[PassRates]}
    rows = score_models(settings, folder, shared, wanted_of, plain_rows, known)
    names = [resolve(spec).name for spec in settings.models]
    own = drawn.answers[drawn.answers["model"].isin(names)]
    return scored_draws(own, pd.DataFrame(rows, columns=DRAW_SCORE_FIELDS))


def _read_sampled(settings: Likelihood, folder: Path) -> SampledAnswers:
    """Return the sampled answers of a folder to the problems of the settings, and warn
    if the folder is not complete.
    """
    drawn_with = read_settings(folder)
    _require_probabilities(folder, drawn_with)
    every = load_problems(settings.problems)
    if digest(every) != drawn_with["problems_sha256"]:
        raise InputError(
            f"{folder} answers {drawn_with['problems']}, not {settings.problems}: name"
            " its problems by --problems"
        )
    if not (folder / SUMMARY).is_file():
        print(
            f"{folder} is not complete, and the missing answers may be the longest: run"
            " its command again first",
            file=sys.stderr,
        )
    problems = sampling_order(every, drawn_with["seed"])[: settings.limit]
    ids = [problem.id for problem in problems]
    rows = frame(read(*folder.glob("completions*.jsonl")))
    # The mixture consists of these two conditions; other answers are left out.
    rows = rows[
        rows["condition"].isin(SAMPLING_CONDITIONS) & rows["problem_id"].isin(ids)
    ]
    # Independent of the order in which they were finished.
    rows = rows.sort_values(["problem_id", "condition", "sample"])
    return SampledAnswers(folder, drawn_with, problems, rows)


def _require_probabilities(folder: Path, drawn_with: dict) -> None:
    """Raise InputError for answers that were not sampled with a known probability."""
    # A lower top_p gives some tokens a probability of 0, and with an elicitation or
    # examples the scored prompt would be another one.
    from_all = drawn_with.get("temperature", 0) > 0 and drawn_with.get("top_p") == 1
    if not from_all or drawn_with["elicit"] or "examples" in drawn_with:
        raise InputError(
            f"{folder}: weights need answers that were drawn at a temperature above 0,"
            " with top_p = 1 and without elicit and examples: draw them again: evaluate"
            " --conditions none,mless --temperature 0.6 --samples 2 --top-p 1"
        )


def _answers_of_model(loaded: Loaded, drawn: SampledAnswers) -> pd.DataFrame:
    """Return a model's answers; raise InputError if there are none, or if they were
    sampled with other weights or in a finer dtype.
    """
    models = drawn.answers["model"]
    own = drawn.answers[models == loaded.name]
    if own.empty:
        others = " and ".join(sorted(models.unique())) or "no model"
        raise InputError(
            f"{drawn.folder} has answers of {others}, not of {loaded.name}: name it by"
            " --model"
        )
    # Rounding to bfloat16 changes log p by tenths of a nat, by different amounts under
    # each condition. In float32 the ratio has no such error (studies/bfloat16.py).
    fits = own["dtype"].eq(loaded.dtype) | (loaded.dtype == "float32")
    unfit = own[own["revision"].ne(loaded.revision) | ~fits]
    if len(unfit):
        first = unfit.iloc[0]
        raise InputError(
            f"{drawn.folder}: answers were drawn from revision {first['revision']} in"
            f" {first['dtype']}, not {loaded.revision} in {loaded.dtype}: their"
            " probabilities differ; score with the weights that sampled them, in"
            " their --dtype or in float32"
        )
    return own


def draws_wanted(
    loaded: Loaded,
    settings: Likelihood,
    answers: pd.DataFrame,
    problems: list[Problem],
    drawn_with: dict,
) -> Texts:
    """Return by key every sampled answer under every condition, problem by problem;
    raise InputError if one does not fit into the context.

    drawn_with: the filler, format and temperature of the sampling.
    """
    by_problem: dict[str, list[dict]] = {}
    for row in answers.to_dict("records"):
        by_problem.setdefault(row["problem_id"], []).append(row)

    answered = [problem for problem in problems if problem.id in by_problem]
    format, filler = drawn_with["format"], Filler(**drawn_with["filler"])
    texts = []
    for prompt in prompts_under(loaded, format, filler, answered, settings.conditions):
        problem, _, _ = prompt
        for row in by_problem[problem.id]:
            draw = {
                "answer": row["key"],
                "sample": row["sample"],
                "drawn_under": row["condition"],
                "temperature": drawn_with["temperature"],
            }
            texts.append(TextToScore(*prompt, "draw", [], row["token_ids"], draw))
    return texts_by_key(loaded, texts)
