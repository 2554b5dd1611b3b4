"""Score texts under every condition: the reference solution, the gold answer without
reasoning, or sampled answers, which importance weighting needs.

The same text is scored under two conditions, so the difference has no sampling noise,
and a few hundred problems are as precise as thousands of answers are for accuracy.

The log-likelihood of a sampled answer is computed at its sampling temperature, on its
sampled tokens including the end token, and by the same revision of the model, in the
same dtype or in float32, whose rounding has no visible effect on importance weights.
Problems whose answers are all right, or all wrong, need no scores, because they
contribute a difference of 0.
"""

import sys
from pathlib import Path
from typing import Any, NamedTuple, cast

import pandas as pd

from lib.errors import InputError
from lib.files.row_store import read_settings
from lib.files.text_files import read
from lib.models.loading import Loaded
from lib.models.sources import resolve
from lib.prompts.conditions import Condition, Filler
from lib.prompts.problems import (
    Problem,
    digest,
    load_problems,
    sampling_order,
    solved_problems,
)
from lib.prompts.rendering import is_chat, require_no_special_token
from reproduction.evaluation.row_keys import format_of
from reproduction.evaluation.rows import (
    DRAW_SCORE_FIELDS,
    SCORE_FIELDS,
    SECTION_SETTINGS,
    SUMMARY,
    base_settings,
    frame,
    shared_settings,
)
from reproduction.evaluation.score_run import (
    Texts,
    TextToScore,
    prompts_under,
    score_models,
    texts_by_key,
)
from reproduction.evaluation.weighted_pass_rates import is_mixed, scored_draws
from reproduction.profiles import SAMPLING_CONDITIONS, Likelihood, PassRates

# The text that precedes the gold answer; it is not scored itself.
BEFORE_ANSWER = "The final answer is $\\boxed{"


def score_solutions(
    settings: Likelihood,
    filler: Filler,
    seed: int,
    folder: Path,
) -> pd.DataFrame:
    """Score the reference solutions and gold answers that `folder` lacks, store each
    score as soon as it is computed, and return the table of all scores, a row per text.

    Problems come in sampling order, of which a smaller run has the first ones. Raises
    InputError for a problem without a solution, a text with a special token or that
    exceeds the model's context, and a folder with other settings.
    """
    problems = solved_problems(settings.problems, settings.limit, seed)

    def wanted_of(loaded: Loaded) -> Texts:
        scorable = _with_short_solutions(loaded, settings, problems)
        return texts_wanted(loaded, settings, filler, scorable)

    shared = shared_settings(settings, filler, seed)
    rows = score_models(settings, folder, shared, wanted_of)
    return pd.DataFrame(rows, columns=SCORE_FIELDS)


def _with_short_solutions(
    loaded: Loaded, settings: Likelihood, problems: list[Problem]
) -> list[Problem]:
    """Return the problems whose solutions have at most max_solution_tokens tokens, and
    print how many have more.
    """
    short = [
        problem
        for problem in problems
        if len(_ids(loaded, problem.solution)) <= settings.max_solution_tokens
    ]
    left_out = len(problems) - len(short)
    if left_out:
        print(
            f"{left_out} problems have solutions of over"
            f" {settings.max_solution_tokens} tokens",
            file=sys.stderr,
        )
    return short


def texts_wanted(
    loaded: Loaded, settings: Likelihood, filler: Filler, problems: list[Problem]
) -> Texts:
    """Return every reference solution and gold answer that a run scores, by key and
    problem by problem; raise InputError if one exceeds the model's context.

    Solutions are scored under settings.conditions, answers under settings.at_once.
    """
    end_of_question = []
    format = format_of(loaded, settings.format)
    if not is_chat(format):
        # A chat template ends the question itself.
        end_of_question = _tokens(loaded, "\n")

    conditions = dict.fromkeys([*settings.conditions, *settings.at_once])
    solutions = {problem.id: _ids(loaded, problem.solution) for problem in problems}
    texts = []
    for prompt in prompts_under(loaded, format, filler, problems, conditions):
        problem, condition, _ = prompt
        solution = solutions[problem.id]
        lead = [*end_of_question, *_thought(loaded, condition, solution)]
        if condition in settings.conditions:
            texts.append(TextToScore(*prompt, "solution", lead, solution))
        if condition in settings.at_once:
            before = [*lead, *_ids(loaded, BEFORE_ANSWER)]
            answer = _ids(loaded, problem.answer + "}")
            texts.append(TextToScore(*prompt, "answer", before, answer))
    return texts_by_key(loaded, texts)


def _thought(loaded: Loaded, condition: Condition, solution: list[int]) -> list[int]:
    """Return the tokens that a condition inserts between the question and the scored
    text, instead of reasoning: none, the solution, or as many dots.
    """
    if condition.thought == "solution":
        return solution
    if condition.thought == "dots":
        return _ids(loaded, ".") * len(solution)
    return []


def _ids(loaded: Loaded, text: str) -> list[int]:
    """Return the tokens of a text without the spaces at its ends."""
    return _tokens(loaded, text.strip())


def _tokens(loaded: Loaded, text: str) -> list[int]:
    """Return the tokens of a text; raise InputError for one with a special token."""
    require_no_special_token(loaded.tokenizer, text, f"the text {text[:40]!r}")
    tokenizer = cast(Any, loaded.tokenizer)
    return tokenizer(text, add_special_tokens=False)["input_ids"]


class SampledAnswers(NamedTuple):
    """The sampled answers of a folder to some problems."""

    folder: Path
    settings: dict  # of the run that sampled them, from its run.json
    problems: list[Problem]
    answers: pd.DataFrame  # a row per answer


def score_draws(settings: Likelihood, answers: Path, folder: Path) -> pd.DataFrame:
    """Score the sampled answers in the folder `answers`, store each score in `folder`
    as soon as it is computed, and return all answers with their scores, as
    `scored_draws` does.

    Scores that `folder` has are not computed again. Filler, seed, format and
    temperature are those with which the answers were sampled.
    Raises InputError for answers that were not sampled from the complete distribution,
    or whose problems, models or revisions differ from those of `settings`.
    """
    drawn = _read_sampled(settings, answers)

    def wanted_of(loaded: Loaded) -> Texts:
        of_model = _answers_of_model(loaded, drawn)
        mixed = of_model[is_mixed(of_model)]
        return draws_wanted(loaded, settings, mixed, drawn.problems, drawn.settings)

    filler = Filler(**drawn.settings["filler"])
    shared = base_settings(settings.problems, filler, drawn.settings["seed"])
    shared |= {name: drawn.settings[name] for name in SECTION_SETTINGS[PassRates]}
    rows = score_models(settings, folder, shared, wanted_of)
    names = [resolve(spec).name for spec in settings.models]
    of_models = drawn.answers[drawn.answers["model"].isin(names)]
    return scored_draws(of_models, pd.DataFrame(rows, columns=DRAW_SCORE_FIELDS))


def _read_sampled(settings: Likelihood, folder: Path) -> SampledAnswers:
    """Return the sampled answers of a folder to the problems of the settings, and warn
    if the folder is not complete.
    """
    drawn_with = read_settings(folder)
    _require_probabilities(folder, drawn_with)
    all_problems = load_problems(settings.problems)
    if digest(all_problems) != drawn_with["problems_sha256"]:
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
    problems = sampling_order(all_problems, drawn_with["seed"])[: settings.limit]
    ids = [problem.id for problem in problems]
    rows = frame(read(*folder.glob("completions*.jsonl")))
    # The weights assume a mixture of these two conditions, so that answers under others
    # are left out.
    rows = rows[
        rows["condition"].isin(SAMPLING_CONDITIONS) & rows["problem_id"].isin(ids)
    ]
    # The order of the table must not depend on which answer was finished first.
    rows = rows.sort_values(["problem_id", "condition", "sample"])
    return SampledAnswers(folder, drawn_with, problems, rows)


def _require_probabilities(folder: Path, drawn_with: dict) -> None:
    """Raise InputError for answers whose sampling probability is not the likelihood
    that would be computed for them.
    """
    # A top_p below 1 changes the probabilities, and elicitation or examples would be
    # missing from the scored prompt.
    is_sampled = drawn_with.get("temperature", 0) > 0 and drawn_with.get("top_p") == 1
    if not is_sampled or drawn_with["elicit"] or "examples" in drawn_with:
        raise InputError(
            f"{folder}: weights need answers that were drawn at a temperature above 0,"
            " with top_p = 1 and without elicit and examples: draw them again: evaluate"
            " --conditions none,mless --temperature 0.6 --samples 2 --top-p 1"
        )


def _answers_of_model(loaded: Loaded, drawn: SampledAnswers) -> pd.DataFrame:
    """Return a model's answers.

    Raises InputError if there are none, or if they were sampled from another revision
    of the model, or in another dtype, unless the model is in float32.
    """
    models = drawn.answers["model"]
    of_model = drawn.answers[models == loaded.name]
    if of_model.empty:
        others = " and ".join(sorted(models.unique())) or "no model"
        raise InputError(
            f"{drawn.folder} has answers of {others}, not of {loaded.name}: name it by"
            " --model"
        )
    # Rounding to bfloat16 changes log p by tenths of a nat, by different amounts under
    # each condition. In float32 the ratio has no such error.
    has_dtype = of_model["dtype"].eq(loaded.dtype) | (loaded.dtype == "float32")
    different = of_model[of_model["revision"].ne(loaded.revision) | ~has_dtype]
    if len(different):
        first = different.iloc[0]
        raise InputError(
            f"{drawn.folder}: answers were drawn from revision {first['revision']} in"
            f" {first['dtype']}, not {loaded.revision} in {loaded.dtype}: their"
            " probabilities differ; score with the weights that sampled them, in"
            " their --dtype or in float32"
        )
    return of_model


def draws_wanted(
    loaded: Loaded,
    settings: Likelihood,
    answers: pd.DataFrame,
    problems: list[Problem],
    drawn_with: dict,
) -> Texts:
    """Return every sampled answer under every condition as a text to score, by key and
    in the order of the problems; raise InputError if one exceeds the model's context.

    answers: a model's answers. drawn_with: the settings of the run that sampled them.
    """
    by_problem: dict[str, list[dict]] = {}
    for row in answers.to_dict("records"):
        by_problem.setdefault(row["problem_id"], []).append(row)

    answered = [problem for problem in problems if problem.id in by_problem]
    format = format_of(loaded, drawn_with["format"])
    filler = Filler(**drawn_with["filler"])
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
